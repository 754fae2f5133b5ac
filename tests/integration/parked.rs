//! Requests that wait for capacity, as their clients see it: what they hear and when, in which order
//! they go, and what becomes of them if nothing comes free.
#![expect(
    clippy::unwrap_used,
    reason = "a helper whose peer does not play along has failed its test"
)]

mod committed;
mod incident;
mod sharing;
mod streams;

use crate::{
    hand::{Caller, Received, WAYS, request, within},
    harness::{KEY, Setup, World, chat, get},
    pool::CHAT,
};
use fairlane::{
    domain::{ledger::Outcome, reason::Reason},
    sim::{Act, Rule},
};
use http::{Method, StatusCode};
use serde_json::{Value, json};

/// A world whose first account has that many slots; its client may wait for so many seconds and is
/// told so after so many.
fn tight(slots: u32, wait: &str, commit: &str) -> Setup {
    Setup::default()
        .with("/accounts/0/stream_limit", json!(slots))
        .env("FAIRLANE_ACCOUNT_STREAM_RESERVE", "0")
        .env("FAIRLANE_CAPACITY_WAIT_SECONDS", wait)
        .env("FAIRLANE_PARK_COMMIT_SECONDS", commit)
}

/// Longer than any test.
const LONG: &str = "600";

/// What clients of chat hear while they wait.
const COMMENT: &str = ": waiting_for_account_capacity\n\n";

const EVENT: &str =
    "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}\n\n";

/// Where requests go that hold their slot until they leave, if they are wanted to.
const HELD: &str = "/v1/chat/completions?held";

/// Lets requests for [`HELD`] fall silent after an event.
fn hold(world: &World) {
    let act = Act {
        stall_after: Some(1),
        ..Act::chunks([EVENT, EVENT]).header("content-type", "text/event-stream")
    };
    world.sim.script([Rule::new(act).path("held")]);
}

/// A client that holds a slot.
async fn holder(world: &World, key: &str) -> Caller {
    let mut caller = asking(world, key, HELD, &[], &chat(true)).await;
    caller.until(EVENT).await;
    caller
}

/// A client with that key that has asked.
async fn asking(
    world: &World,
    key: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> Caller {
    let mut caller = Caller::connect(world.address()).await;
    let text = request(path, headers, &body.to_string()).replace(KEY, key);
    caller.write(&text).await;
    caller
}

async fn waiters(world: &World, count: usize) {
    let is_so = |(_, _, waiters)| waiters == count;
    world.until(&format!("{count} waiters"), is_so).await;
}

impl Received {
    /// A header as text; empty where it is missing.
    fn header(&self, name: &str) -> &str {
        let start = format!("{name}: ");
        let mut lines = self.head.lines();
        lines.find_map(|l| l.strip_prefix(&start)).unwrap_or("")
    }

    fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

/// A refusal for want of a slot, after which the client knows when to come again.
fn check_refused(got: &Received, reason: &str) {
    assert_eq!((got.status(), got.is_whole), (429, true), "{got:?}");
    assert_eq!(got.header("x-fairlane-reason"), reason);
    let seconds: u64 = got.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&seconds), "{got:?}");
    let body: Value = serde_json::from_slice(&got.body).unwrap();
    assert_eq!(body["error"]["type"], "rate_limit_error", "{body}");
}

#[tokio::test]
async fn nothing_is_said_before_it_is_known_what_to_say() {
    let world = tight(1, "2", "45").start().await;
    hold(&world);
    let holder = holder(&world, KEY).await;
    let parked = asking(&world, KEY, CHAT, &[], &chat(true)).await;
    waiters(&world, 1).await;
    assert_eq!(world.answer(get("/healthz")).await.status, 200);
    assert!(parked.is_quiet(), "headers were sent to a waiting client");
    check_refused(&parked.end().await, "account_stream_cap");
    holder.leave(WAYS[0]);
    let rows = world.rows().await;
    let row = rows.iter().find(|r| r.queued_ms.is_some()).unwrap();
    assert_eq!(row.outcome, Outcome::Refused);
    assert_eq!(row.reason, Some(Reason::AccountStreamCap));
    assert_eq!(world.sim.log().len(), 1);
    world.end().await;
}

#[tokio::test]
async fn whoever_states_a_patience_is_answered_within_it() {
    let world = tight(1, LONG, LONG).start().await;
    hold(&world);
    let holder = holder(&world, KEY).await;
    for stated in [
        &[("x-stainless-timeout", "1")][..],
        &[("x-stainless-read-timeout", "0.5")],
        &[
            ("x-stainless-timeout", "600"),
            ("x-stainless-read-timeout", "1"),
        ],
    ] {
        for is_stream in [false, true] {
            let parked = asking(&world, KEY, CHAT, stated, &chat(is_stream)).await;
            check_refused(&parked.end().await, "account_stream_cap");
        }
    }
    // One that states nothing of use waits on.
    let nonsense = [
        ("x-stainless-timeout", "soon"),
        ("x-stainless-read-timeout", "-1"),
    ];
    let parked = asking(&world, KEY, CHAT, &nonsense, &chat(false)).await;
    waiters(&world, 1).await;
    holder.leave(WAYS[0]);
    assert_eq!(parked.end().await.status(), 200);
    let last = world.sim.log().pop().unwrap();
    for (name, value) in nonsense {
        assert_eq!(last.header(name), Some(value), "upstream knows no patience");
    }
    world.end().await;
}

#[tokio::test]
async fn of_thirty_in_the_queue_only_the_one_that_stays_is_served() {
    for way in WAYS {
        let world = tight(1, LONG, LONG).start().await;
        hold(&world);
        let holder = holder(&world, KEY).await;
        let mut parked = Vec::new();
        for _ in 0..30 {
            parked.push(asking(&world, KEY, CHAT, &[], &chat(true)).await);
        }
        waiters(&world, 30).await;
        let staying = parked.swap_remove(17);
        for caller in parked {
            caller.leave(way);
        }
        waiters(&world, 1).await;
        holder.leave(way);
        let got = staying.end().await;
        assert_eq!((got.status(), got.is_whole), (200, true));
        assert_eq!(world.sim.log().len(), 2, "somebody who had left was served");
        world.check_unharmed().await;
        world.end().await;
    }
}

#[tokio::test]
async fn no_waiter_that_leaves_is_an_accounts_fault_or_goes_to_another() {
    let world = tight(1, LONG, LONG)
        .account("two")
        .account("three")
        .with("/accounts/1/stream_limit", json!(1))
        .with("/accounts/2/stream_limit", json!(1))
        .start()
        .await;
    hold(&world);
    let mut holders = Vec::new();
    for _ in 0..3 {
        holders.push(holder(&world, KEY).await);
    }
    let mut parked = Vec::new();
    for _ in 0..20 {
        parked.push(asking(&world, KEY, CHAT, &[], &chat(true)).await);
    }
    waiters(&world, 20).await;
    for (n, caller) in parked.into_iter().enumerate() {
        caller.leave(WAYS[n % 2]);
    }
    waiters(&world, 0).await;
    drop(holders);
    world.check_unharmed().await;
    assert_eq!(world.sim.log().len(), 3);
    world.end().await;
}

#[tokio::test]
async fn a_higher_limit_lets_waiters_in_at_once_and_a_lower_one_cuts_nothing_off() {
    let world = tight(1, LONG, LONG).start().await;
    hold(&world);
    let first = holder(&world, KEY).await;
    let mut second = asking(&world, KEY, HELD, &[], &chat(true)).await;
    waiters(&world, 1).await;
    let path = format!("/accounts/{}", world.account("one").await.id);
    world
        .admin(Method::PATCH, &path, &json!({"stream_limit": 2}))
        .await;
    second.until(EVENT).await;
    world
        .admin(Method::PATCH, &path, &json!({"stream_limit": 1}))
        .await;
    let third = asking(&world, KEY, CHAT, &[], &chat(true)).await;
    waiters(&world, 1).await;
    // Both go on: neither has heard anything but its stream.
    assert!(first.is_quiet() && second.is_quiet());
    first.leave(WAYS[0]);
    world
        .until("one of two", |counts| counts == (2, 1, 1))
        .await;
    second.leave(WAYS[0]);
    assert_eq!(third.end().await.status(), 200);
    world.end().await;
}

#[tokio::test]
async fn a_stop_answers_whoever_waits_and_tells_those_who_were_told_to() {
    let world = tight(1, LONG, "1")
        .env("FAIRLANE_SHUTDOWN_GRACE_SECONDS", "0")
        .start()
        .await;
    hold(&world);
    let holder = holder(&world, KEY).await;
    let plain = asking(&world, KEY, CHAT, &[], &chat(false)).await;
    let mut told = asking(&world, KEY, CHAT, &[], &chat(true)).await;
    told.sees(COMMENT).await;
    let World { sim, app, dir } = world;
    let stopping = fairlane::tasks::spawn("stop", async move { app.stop().await.unwrap() });
    let got = plain.end().await;
    assert_eq!(got.status(), StatusCode::SERVICE_UNAVAILABLE.as_u16());
    assert_eq!(got.header("x-fairlane-reason"), "shutting_down");
    assert!(!got.header("retry-after").is_empty());
    let got = told.end().await;
    assert_eq!((got.status(), got.is_whole), (200, true));
    assert!(got.text().contains("shutting_down"), "{got:?}");
    drop(holder);
    within("the stop", stopping).await.unwrap();
    drop((sim, dir));
}
