//! Ten thousand requests whose clients and providers go wrong at any point leave nothing behind: no
//! slot, no waiter, no request, no socket, and all of the capacity for whoever comes next.
#![expect(
    clippy::unwrap_used,
    reason = "a helper whose peer does not play along has failed its test"
)]

use crate::{
    hand::{Caller, Way, request, within},
    harness::{Setup, World, chat},
};
use fairlane::sim::{Act, Close, Config, Encoding, Rule};
use futures_util::{StreamExt as _, future::join_all, stream};
use serde_json::json;
use std::net::SocketAddr;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::yield_now,
};

const REQUESTS: u64 = 10_000;

/// How many of them are on their way at once: four times as many as there are slots.
const AT_ONCE: usize = 64;

const ACCOUNTS: usize = 4;
const SLOTS: usize = 4;

/// Numbers that look random and are the same on every run.
struct Dice(u64);

impl Dice {
    fn throw(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

const EVENT: &str =
    "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}\n\n";
const END: &str =
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// What upstream does to a request, by the number in its query.
fn acts() -> Vec<Act> {
    let events = || Act::chunks([EVENT, EVENT, END]).header("content-type", "text/event-stream");
    let cut = |close| Act {
        close: Some(close),
        ..events()
    };
    vec![
        events(),
        Act {
            chunk_delay_ms: Some(1),
            ..events()
        },
        Act {
            delay_headers_ms: Some(3),
            ..events()
        },
        Act {
            encoding: Some(Encoding::Gzip),
            ..events()
        },
        cut(Close::BeforeHeaders),
        cut(Close::MidHeaders),
        cut(Close::AfterHeaders),
        cut(Close::MidBody).reset(),
        cut(Close::MidChunk),
        cut(Close::NoTerminator),
        Act::chunks([EVENT]).header("content-type", "text/event-stream"),
        Act::status(500),
        Act::status(400).body("{\"error\":{\"message\":\"no\"}}"),
        // Silent for ever: over only once its client leaves.
        Act {
            stall_after: Some(1),
            ..events()
        },
    ]
}

/// The number of the act that never ends.
const SILENT: u64 = 13;

fn pool() -> Setup {
    let names = (1..ACCOUNTS).map(|n| format!("a{n}"));
    let setup = names.fold(Setup::default(), |setup, name| setup.account(&name));
    let setup = (0..ACCOUNTS).fold(setup, |setup, n| {
        setup
            .with(&format!("/accounts/{n}/stream_limit"), json!(SLOTS))
            .with(&format!("/accounts/{n}/create_limit"), json!(SLOTS))
    });
    let setup = setup
        .env("FAIRLANE_ACCOUNT_STREAM_RESERVE", "0")
        .env("FAIRLANE_FAIR_SHARE_CONGESTION_THRESHOLD_PCT", "50")
        .env("FAIRLANE_BREAKER_FAILURE_THRESHOLD", "100")
        .env("FAIRLANE_CAPACITY_WAIT_SECONDS", "5")
        .env("FAIRLANE_PARK_COMMIT_SECONDS", "1");
    Setup {
        sim: Config::default(),
        ..setup
    }
}

/// One request, and how its client behaves.
async fn play(address: SocketAddr, number: u64) {
    let mut dice = Dice(number ^ 0x5eed);
    dice.throw(2);
    let act = dice.throw(14);
    let path = format!("/v1/chat/completions?act={act}.");
    let text = request(&path, &[], &chat(dice.throw(4) > 0).to_string());
    let mut stream = TcpStream::connect(address).await.unwrap();
    let written = match dice.throw(12) {
        0 => usize::try_from(dice.throw(text.len() as u64)).unwrap(),
        _ => text.len(),
    };
    // Whoever is refused meanwhile cannot write on, which is no concern here.
    let _ = stream.write_all(&text.as_bytes()[..written]).await;
    let looks = dice.throw(40);
    let is_patient = act != SILENT && written == text.len() && dice.throw(2) == 0;
    tokio::select! {
        () = read(&mut stream) => (),
        // Dropped at any await, as a task is that is aborted.
        () = leave_after(looks), if !is_patient => (),
    }
    if dice.throw(2) == 0 {
        stream.set_zero_linger().unwrap();
    }
}

async fn read(stream: &mut TcpStream) {
    let mut room = [0; 4096];
    while stream.read(&mut room).await.is_ok_and(|n| n > 0) {}
}

async fn leave_after(looks: u64) {
    for _ in 0..looks {
        yield_now().await;
    }
}

/// Connections to that port that are not over, at either end.
async fn connections(port: u16) -> usize {
    const LISTENING: &str = "0A";
    const OVER: [&str; 2] = ["06", LISTENING];
    let table = tokio::fs::read_to_string("/proc/self/net/tcp")
        .await
        .unwrap();
    let port = format!(":{port:04X}");
    let is_open = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ends = words.get(1..3).unwrap_or_default();
        let is_there = ends.iter().any(|end| end.ends_with(&port));
        is_there && words.get(3).is_some_and(|state| !OVER.contains(state))
    };
    table.lines().skip(1).filter(is_open).count()
}

/// As many requests as there are slots hold one each at the same time.
async fn check_burst(world: &World) {
    let slots = ACCOUNTS * SLOTS;
    let path = format!("/v1/chat/completions?act={SILENT}.");
    let all = join_all((0..slots).map(|_| async {
        let mut caller = Caller::post(world.address(), &path, &chat(true).to_string()).await;
        caller.until(EVENT).await;
        caller
    }));
    let all = all.await;
    assert_eq!(world.app.in_flight(), (slots, slots, 0));
    for caller in all {
        caller.leave(Way::Fin);
    }
    world.quiet().await;
    let rows = world.rows().await;
    assert!(rows.iter().take(slots).all(|row| row.queued_ms.is_none()));
}

#[tokio::test]
async fn ten_thousand_requests_that_go_wrong_anywhere_leave_nothing() {
    let world = pool().start().await;
    let rules = acts().into_iter().zip(0..);
    let rules = rules.map(|(act, n)| Rule::new(act).path(&format!("act={n}.")));
    world.sim.script(rules);
    let address = world.address();
    stream::iter(0..REQUESTS)
        .for_each_concurrent(AT_ONCE, |number| play(address, number))
        .await;
    world.quiet().await;
    let sockets = async {
        while connections(address.port()).await > 0 {
            world.app.store().flush().await.unwrap();
        }
    };
    within("every socket to close", sockets).await;
    check_burst(&world).await;
    let upstream = world.sim.addr.port();
    let rows = world.ledger().await;
    let count = |wish: fn(&fairlane::domain::ledger::Entry) -> bool| {
        rows.iter().filter(|r| wish(r)).count()
    };
    // It has been what it says: requests waited, were cut off, were left, and were served.
    assert!(count(|r| r.queued_ms.is_some()) > 100);
    assert!(count(|r| r.outcome == fairlane::domain::ledger::Outcome::Broken) > 100);
    assert!(count(|r| r.outcome == fairlane::domain::ledger::Outcome::ClientGone) > 100);
    assert!(count(|r| r.outcome == fairlane::domain::ledger::Outcome::Ok) > 100);
    let World { sim, app, dir } = world;
    assert_eq!(app.in_flight(), (0, 0, 0));
    app.stop().await.unwrap();
    let sockets = async {
        while connections(upstream).await > 0 {
            yield_now().await;
        }
    };
    within("every socket to upstream to close", sockets).await;
    sim.stop().await;
    drop(dir);
}
