//! Clients that leave, at every point of a request: upstream is left too, every slot comes back,
//! and nothing is done for those who are gone.
#![expect(
    clippy::unwrap_used,
    reason = "a helper whose peer does not play along has failed its test"
)]

use crate::{
    hand::{Caller, Hand, WAYS, Way},
    harness::{KEY, SECRET, Setup, World, chat, post, request},
};
use bytes::Bytes;
use fairlane::{
    domain::ledger::Outcome,
    sim::{Act, Phase, Record, Rule},
};
use futures_util::future::join_all;
use http::{Method, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;

const CHAT: &str = "/v1/chat/completions";

/// Longer than any test: an upstream that has not answered yet.
const NEVER_MS: u64 = 600_000;

fn ask() -> String {
    chat(true).to_string()
}

/// A world of one account with that many slots.
async fn tight(slots: u32) -> World {
    let mut setup = Setup::default();
    setup.pool["accounts"][0]["stream_limit"] = json!(slots);
    setup.pool["accounts"][0]["create_limit"] = json!(slots);
    setup
        .env("FAIRLANE_ACCOUNT_STREAM_RESERVE", "0")
        .start()
        .await
}

fn event(n: usize) -> String {
    format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{n}\"}},\"finish_reason\":null}}]}}\n\n"
    )
}

/// A stream that falls silent after two of its events.
fn stalled() -> Act {
    Act {
        stall_after: Some(2),
        ..Act::chunks([event(1), event(2), event(3)]).header("content-type", "text/event-stream")
    }
}

/// Waits until upstream has seen so many requests left at that point.
async fn left(world: &World, during: Phase, count: usize) -> Vec<Record> {
    let is_left = |r: &&Record| r.closed.is_some_and(|c| c.during == during);
    let wish = |log: &[Record]| log.iter().filter(is_left).count() == count;
    world.sim.wait_for(wish).await.unwrap()
}

async fn check_served_at_once(world: &World, slots: usize) {
    world.sim.clear_rules();
    let body = chat(false);
    let all = (0..slots).map(|_| world.post(CHAT, &body));
    for answer in join_all(all).await {
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    }
    let newest = world.rows().await.into_iter().take(slots);
    assert!(newest.into_iter().all(|row| row.queued_ms.is_none()));
}

#[tokio::test]
async fn a_client_that_leaves_while_waiting_for_headers_is_not_served_on() {
    for way in WAYS {
        let world = tight(1).await;
        world.sim.script([Rule::new(Act::delayed_ms(NEVER_MS))]);
        for body in [chat(true), chat(false)] {
            let caller = Caller::post(world.address(), CHAT, &body.to_string()).await;
            let taken = |log: &[Record]| {
                log.last()
                    .is_some_and(|r| r.is_complete && r.closed.is_none())
            };
            world.sim.wait_for(taken).await.unwrap();
            caller.leave(way);
            let row = world.last_row().await;
            assert_eq!(
                (row.outcome, row.status),
                (Outcome::ClientGone, None),
                "{way:?}"
            );
        }
        left(&world, Phase::Waiting, 2).await;
        check_served_at_once(&world, 1).await;
        world.end().await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_midway_is_not_served_on() {
    for way in WAYS {
        let world = tight(1).await;
        for (n, path) in [CHAT, "/v1/responses", "/v1/messages"]
            .into_iter()
            .enumerate()
        {
            world.sim.script([Rule::new(stalled()).times(1)]);
            let mut caller = Caller::post(world.address(), path, &ask()).await;
            caller.until(&event(2)).await;
            caller.leave(way);
            left(&world, Phase::Answer, n + 1).await;
            let row = world.last_row().await;
            assert_eq!((row.outcome, row.status), (Outcome::ClientGone, Some(200)));
            assert_eq!(row.response_bytes, (event(1) + &event(2)).len() as u64);
        }
        check_served_at_once(&world, 1).await;
        world.end().await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_a_plain_body_is_not_served_on() {
    let world = tight(1).await;
    let act = Act {
        stall_after: Some(1),
        ..Act::chunks(["[{\"candidates\":[]}", ",{}]"]).header("content-type", "application/json")
    };
    world.sim.script([Rule::new(act)]);
    let path = "/v1beta/models/m:streamGenerateContent";
    let mut caller = Caller::post(world.address(), path, "{\"contents\":[]}").await;
    caller.until("candidates").await;
    caller.leave(Way::Fin);
    left(&world, Phase::Answer, 1).await;
    check_served_at_once(&world, 1).await;
    world.end().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_can_leave_as_well() {
    for way in WAYS {
        let world = tight(1).await;
        let act = Act {
            fill_bytes: Some(1 << 40),
            ..Act::default()
        };
        world
            .sim
            .script([Rule::new(act.header("content-type", "text/event-stream"))]);
        let mut caller = Caller::post(world.address(), CHAT, &ask()).await;
        caller.until("xxx").await;
        caller.leave(way);
        left(&world, Phase::Answer, 1).await;
        check_served_at_once(&world, 1).await;
        world.end().await;
    }
}

#[tokio::test]
async fn a_parked_client_that_leaves_is_never_sent_upstream() {
    for way in WAYS {
        let world = tight(1).await;
        world.sim.script([Rule::new(stalled()).times(1)]);
        let mut holder = Caller::post(world.address(), CHAT, &ask()).await;
        holder.until(&event(2)).await;
        let mut parked = Vec::new();
        for _ in 0..5 {
            parked.push(Caller::post(world.address(), CHAT, &ask()).await);
        }
        world
            .until("five waiters", |(_, _, waiters)| waiters == 5)
            .await;
        for caller in parked {
            caller.leave(way);
        }
        world
            .until("no waiters", |counts| counts == (1, 1, 0))
            .await;
        holder.leave(way);
        check_served_at_once(&world, 1).await;
        assert_eq!(
            world.sim.log().len(),
            2,
            "a client that had left was served"
        );
        let rows = world.rows().await;
        let gone = rows
            .iter()
            .filter(|r| r.outcome == Outcome::ClientGone && r.attempts == 0);
        assert_eq!(gone.count(), 5);
        world.end().await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_its_own_upload_leaves_nothing() {
    let world = tight(1).await;
    for way in WAYS {
        let mut caller = Caller::connect(world.address()).await;
        let whole = crate::hand::request(CHAT, &[], &ask());
        caller.write(&whole[..whole.len() - 9]).await;
        world.until("a request", |(live, ..)| live == 1).await;
        caller.leave(way);
        let row = world.last_row().await;
        assert_eq!(
            (row.outcome, row.attempts),
            (Outcome::ClientGone, 0),
            "{row:?}"
        );
    }
    assert!(world.sim.log().is_empty());
    world.end().await;
}

#[tokio::test]
async fn a_body_with_wrong_framing_is_refused_to_a_client_that_stays() {
    let world = World::start().await;
    let mut caller = Caller::connect(world.address()).await;
    let head = format!("POST {CHAT} HTTP/1.1\r\nhost: h\r\nauthorization: Bearer {KEY}\r\n");
    caller.write(&head).await;
    caller
        .write("transfer-encoding: chunked\r\n\r\n5\r\nhello\r\nnone\r\n")
        .await;
    assert_eq!(caller.end().await.status(), 400);
    let row = world.last_row().await;
    assert_eq!((row.outcome, row.status), (Outcome::Refused, Some(400)));
    world.end().await;
}

#[tokio::test]
async fn a_client_that_leaves_while_its_body_goes_upstream_is_not_served_on() {
    let hand = Hand::start().await;
    let mut setup = Setup::default();
    setup.pool["endpoints"][0]["base_url"] = json!(hand.base_url());
    let world = setup.start().await;
    let mut body = chat(false);
    body["padding"] = json!("x".repeat(50 << 20));
    let body = body.to_string();
    let caller = Caller::post(world.address(), CHAT, &body).await;
    let exchange = hand.take().await;
    assert!(
        exchange
            .head
            .contains(&format!("content-length: {}\r\n", body.len()))
    );
    caller.leave(Way::Fin);
    world.quiet().await;
    let came = exchange.gone().await.map_or(0, |rest| rest.len());
    assert!(came < body.len(), "all of it was sent on");
    assert_eq!(world.last_row().await.outcome, Outcome::ClientGone);
    world.end().await;
}

#[tokio::test]
async fn no_request_is_moved_because_its_client_left() {
    let mut setup = Setup::default();
    setup.pool["accounts"] = json!([{"name": "one"}, {"name": "two"}]);
    setup.pool["credentials"] = json!([
        {"name": "one", "secret": SECRET, "accounts": ["one"], "endpoints": ["sim"]},
        {"name": "two", "secret": "sk-number-two", "accounts": ["two"], "endpoints": ["sim"]},
    ]);
    let world = setup.start().await;
    world.sim.script([Rule::new(Act::delayed_ms(NEVER_MS))]);
    for (n, way) in WAYS.into_iter().enumerate() {
        let caller = Caller::post(world.address(), CHAT, &ask()).await;
        let came = |log: &[Record]| log.len() == n + 1 && log[n].is_complete;
        world.sim.wait_for(came).await.unwrap();
        caller.leave(way);
        left(&world, Phase::Waiting, n + 1).await;
        assert_eq!(world.last_row().await.attempts, 1);
    }
    assert_eq!(world.sim.log().len(), 2);
    world.end().await;
}

#[tokio::test]
async fn fifty_clients_that_leave_together_leave_nothing() {
    let world = tight(50).await;
    world.sim.script([Rule::new(stalled())]);
    let callers = join_all((0..50).map(|_| async {
        let mut caller = Caller::post(world.address(), CHAT, &ask()).await;
        caller.until(&event(2)).await;
        caller
    }));
    let callers = callers.await;
    assert_eq!(world.app.in_flight(), (50, 50, 0));
    for (n, caller) in callers.into_iter().enumerate() {
        caller.leave(WAYS[n % 2]);
    }
    left(&world, Phase::Answer, 50).await;
    check_served_at_once(&world, 50).await;
    world.end().await;
}

/// Leaves at the point of that number.
async fn leave_at(world: &World, point: usize, way: Way) {
    let mut caller = Caller::connect(world.address()).await;
    let whole = crate::hand::request(CHAT, &[], &ask());
    let sent = if point == 0 {
        whole.len() / 2
    } else {
        whole.len()
    };
    caller.write(&whole[..sent]).await;
    match point {
        0 | 1 => (),
        2 => caller.until("HTTP/1.1 200").await,
        3 => caller.until("\r\n\r\n").await,
        4 => caller.until(&event(1)).await,
        _ => caller.until("[DONE]\n\n").await,
    }
    caller.leave(way);
}

#[tokio::test]
async fn two_hundred_clients_that_leave_anywhere_leave_every_slot() {
    let world = tight(2).await;
    let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let act = Act {
        delay_headers_ms: Some(2),
        chunk_delay_ms: Some(2),
        ..Act::chunks([event(1), event(2), end.to_owned()])
    };
    world
        .sim
        .script([Rule::new(act.header("content-type", "text/event-stream"))]);
    let points = |round: usize| (0..10).map(move |n| (n + round) % 6);
    for round in 0..20 {
        let ways = points(round)
            .enumerate()
            .map(|(n, point)| leave_at(&world, point, WAYS[(n / 2 + round) % 2]));
        join_all(ways).await;
    }
    world.quiet().await;
    check_served_at_once(&world, 2).await;
    let rows = world.rows().await;
    // Of those that left at once, some were never seen.
    let all = (0..20).flat_map(points);
    let seen = all.clone().filter(|point| *point >= 2).count() + 2;
    assert!((seen..=202).contains(&rows.len()), "{} rows", rows.len());
    let count = |outcome| rows.iter().filter(|r| r.outcome == outcome).count();
    let ended = all.filter(|point| *point == 5).count() + 2;
    assert!(
        count(Outcome::Ok) >= ended,
        "an end that was seen did not count"
    );
    assert!(count(Outcome::ClientGone) > 0);
    let trouble = |o| matches!(o, Outcome::Failed | Outcome::Broken);
    assert!(
        !rows.iter().any(|r| trouble(r.outcome)),
        "blamed on upstream"
    );
    world.end().await;
}

#[tokio::test]
async fn a_client_that_only_stops_writing_is_documented_as_one_that_left() {
    let world = tight(1).await;
    world.sim.script([Rule::new(Act::delayed_ms(NEVER_MS))]);
    let mut caller = Caller::post(world.address(), CHAT, &ask()).await;
    world
        .sim
        .wait_for(|log| log.iter().any(|r| r.is_complete))
        .await
        .unwrap();
    caller.half_close().await;
    left(&world, Phase::Waiting, 1).await;
    let got = caller.end().await;
    assert_eq!((&*got.head, got.is_whole), ("", false));
    assert_eq!(world.last_row().await.outcome, Outcome::ClientGone);
    world.end().await;
}

/// A client with many requests on one connection.
async fn multiplexed(world: &World) -> http2::SendRequest<Full<Bytes>> {
    let io = TokioIo::new(world.raw().await);
    let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    fairlane::tasks::spawn("client", async move {
        // How it ended shows in the answers.
        drop(connection.await);
    });
    sender
}

fn absolute(path: &str) -> http::Request<Full<Bytes>> {
    let whole = request(Method::POST, &format!("http://localhost{path}"));
    whole.body(Full::new(ask().into())).unwrap()
}

#[tokio::test]
async fn one_stream_of_a_connection_can_leave_without_the_others() {
    let world = tight(2).await;
    let mut sender = multiplexed(&world).await;
    world.sim.script([Rule::new(stalled()).times(1)]);
    let mut leaving = sender
        .send_request(absolute(CHAT))
        .await
        .unwrap()
        .into_body();
    leaving.frame().await.unwrap().unwrap();
    let slow = Act {
        delay_headers_ms: Some(50),
        ..Act::default()
    };
    world.sim.script([Rule::new(slow)]);
    let staying = sender.send_request(absolute(CHAT));
    drop(leaving);
    left(&world, Phase::Answer, 1).await;
    let answer = staying.await.unwrap();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(body.ends_with(b"data: [DONE]\n\n"));
    drop(sender);
    check_served_at_once(&world, 2).await;
    world.end().await;
}

#[tokio::test]
async fn a_break_resets_one_stream_of_a_connection_after_what_came_before() {
    let world = tight(2).await;
    let mut sender = multiplexed(&world).await;
    let act = Act::chunks([event(1), event(2)]).header("content-type", "text/event-stream");
    world.sim.script([Rule::new(act).times(1)]);
    let mut body = sender
        .send_request(absolute(CHAT))
        .await
        .unwrap()
        .into_body();
    let mut got = Vec::new();
    let mut is_cut = false;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            is_cut = true;
            break;
        };
        got.extend(frame.into_data().unwrap());
    }
    assert_eq!(got, (event(1) + &event(2)).as_bytes());
    assert!(is_cut, "ended as if it were whole");
    let next = sender.send_request(absolute(CHAT)).await.unwrap();
    assert!(next.into_body().collect().await.is_ok());
    drop(sender);
    world.end().await;
}

#[tokio::test]
async fn an_ordinary_connection_serves_on_after_another_left() {
    let world = tight(1).await;
    world.sim.script([Rule::new(stalled()).times(1)]);
    let mut caller = Caller::post(world.address(), CHAT, &ask()).await;
    caller.until(&event(2)).await;
    // Waits for the slot that the other one holds.
    let waiting = world.send(post(CHAT, chat(false).to_string()));
    let leaving = async {
        world
            .until("a waiter", |(_, _, waiters)| waiters == 1)
            .await;
        caller.leave(Way::Reset);
    };
    let (answer, ()) = futures_util::join!(waiting, leaving);
    assert_eq!(answer.status(), StatusCode::OK);
    drop(answer.into_body().collect().await);
    world.end().await;
}
