//! Starting, stopping, and changing what is configured while requests run.
#![expect(
    clippy::unwrap_used,
    reason = "a helper whose peer does not play along has failed its test"
)]

use crate::{
    hand::{Caller, Exchange, Hand, Way, within},
    harness::{Answer, KEY, SECRET, Setup, World, chat, post},
};
use bytes::Bytes;
use fairlane::{
    domain::{
        ledger::{Entry, Outcome},
        reason::Reason,
        settings::{Name, Value},
    },
    store::{Store, ledger::LedgerFilter},
};
use http::{Request, StatusCode};
use http_body_util::Full;
use serde_json::{Value as Json, json};
use std::{path::Path, pin::pin, process::Stdio};
use tokio::io::AsyncWriteExt as _;

const CHAT: &str = "/v1/chat/completions";

const EVENT: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":null}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";

/// An instance in front of a provider moved by hand, with one slot.
async fn one_slot(hand: &Hand, env: (&str, &str)) -> World {
    let mut setup = Setup::default();
    setup.pool["endpoints"][0]["base_url"] = json!(hand.base_url());
    setup.pool["accounts"][0]["stream_limit"] = json!(1);
    let setup = setup.env("FAIRLANE_ACCOUNT_STREAM_RESERVE", "0");
    setup.env(env.0, env.1).start().await
}

/// A stream of which the client has the first event.
async fn begun(world: &World, hand: &Hand) -> (Caller, Exchange) {
    let mut caller = Caller::post(world.address(), CHAT, &chat(true).to_string()).await;
    let mut exchange = hand.take().await;
    exchange.begin("text/event-stream").await;
    exchange.say(EVENT).await;
    caller.until(EVENT).await;
    (caller, exchange)
}

/// The request log of a database that nobody has open.
async fn rows_of(db: &Path) -> Vec<Entry> {
    let db = db.to_owned();
    let read = fairlane::blocking::run(move || {
        let store = Store::open(&db).unwrap();
        let filter = LedgerFilter {
            limit: 100,
            ..LedgerFilter::default()
        };
        let rows = store.read_blocking(|conn| fairlane::store::ledger::requests(conn, &filter));
        store.close();
        rows.unwrap()
    });
    read.await.unwrap()
}

fn check_shutting_down(status: u16, head: &str) {
    assert_eq!(status, 503, "{head}");
    assert!(head.contains("x-fairlane-reason: shutting_down"), "{head}");
    assert!(head.contains("\r\nretry-after: "), "{head}");
}

#[tokio::test]
async fn a_stop_lets_streams_end_and_refuses_everything_else() {
    let hand = Hand::start().await;
    let world = one_slot(&hand, ("FAIRLANE_SHUTDOWN_GRACE_SECONDS", "60")).await;
    let (db, address) = (world.db(), world.address());
    let (caller, mut exchange) = begun(&world, &hand).await;
    let parked = Caller::post(address, CHAT, &chat(false).to_string()).await;
    world
        .until("a waiter", |(_, _, waiters)| waiters == 1)
        .await;
    let World { sim, app, dir } = world;
    let mut stop = pin!(app.stop());
    assert!(futures_util::poll!(&mut stop).is_pending());
    let got = parked.end().await;
    check_shutting_down(got.status(), &got.head);
    let late = Caller::post(address, CHAT, &chat(false).to_string()).await;
    let got = late.end().await;
    check_shutting_down(got.status(), &got.head);
    exchange.say(DONE).await;
    exchange.finish().await;
    let (stopped, is_cut) = futures_util::join!(within("the stop", stop), caller.was_cut());
    stopped.unwrap();
    assert!(!is_cut, "the stream was cut");
    let rows = rows_of(&db).await;
    let outcomes: Vec<_> = rows.iter().map(|r| (r.outcome, r.reason)).collect();
    let refused = (Outcome::Refused, Some(Reason::ShuttingDown));
    assert_eq!(outcomes, [refused, refused, (Outcome::Ok, None)]);
    drop((sim, dir));
}

#[tokio::test]
async fn a_stop_without_grace_cuts_what_runs() {
    let hand = Hand::start().await;
    let world = one_slot(&hand, ("FAIRLANE_SHUTDOWN_GRACE_SECONDS", "0")).await;
    let db = world.db();
    let (caller, exchange) = begun(&world, &hand).await;
    let World { sim, app, dir } = world;
    within("the stop", app.stop()).await.unwrap();
    assert!(caller.was_cut().await, "ended as if it were whole");
    // Whether by FIN or RST, upstream is left.
    drop(exchange.gone().await);
    let rows = rows_of(&db).await;
    let row = &rows[0];
    assert_eq!(rows.len(), 1);
    assert_eq!(row.outcome, Outcome::Broken, "blamed on the client");
    assert_eq!(row.reason, Some(Reason::ShuttingDown));
    drop((sim, dir));
}

#[tokio::test]
async fn a_stop_with_nothing_to_do_waits_for_no_grace() {
    let setup = Setup::default().env("FAIRLANE_SHUTDOWN_GRACE_SECONDS", "3600");
    let world = setup.start().await;
    // A connection that rests between two requests is no reason to wait either.
    let resting = world.raw().await;
    assert_eq!(world.post(CHAT, &chat(false)).await.status, StatusCode::OK);
    let db = world.db();
    let World { sim, app, dir } = world;
    within("the stop", app.stop()).await.unwrap();
    assert_eq!(rows_of(&db).await.len(), 1);
    drop((sim, dir, resting));
}

/// Another process that loads `document`.
async fn import(world: &World, document: &Json, arguments: &[&str]) {
    let mut child = tokio::process::Command::new(env!("CARGO_BIN_EXE_fairlane"))
        .args(["import", "-", "--db"])
        .arg(world.db())
        .args(arguments)
        .env_clear()
        .stdin(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text = document.to_string();
    stdin.write_all(text.as_bytes()).await.unwrap();
    drop(stdin);
    let status = within("the import", child.wait()).await.unwrap();
    assert!(status.success());
}

fn with_key(key: &str) -> Request<Full<Bytes>> {
    let mut request = post(CHAT, chat(false).to_string());
    let value = format!("Bearer {key}").parse().unwrap();
    request.headers_mut().insert("authorization", value);
    request
}

/// Asks until an answer is as wished; each round waits for its answer.
async fn answered(world: &World, key: &str, wish: impl Fn(&Answer) -> bool) -> Answer {
    let asking = async {
        loop {
            let answer = world.answer(with_key(key)).await;
            if wish(&answer) {
                return answer;
            }
        }
    };
    within("a change to take effect", asking).await
}

#[tokio::test]
async fn what_another_process_imports_takes_effect() {
    let world = World::start().await;
    let second = "fl-second-key-of-this-test";
    assert_eq!(world.answer(with_key(second)).await.status, 401);
    let pool = json!({"keys": [{"name": "second", "secret": second}]});
    import(&world, &pool, &[]).await;
    answered(&world, second, |a| a.status == 200).await;
    // The first one was not taken away.
    assert_eq!(world.answer(with_key(KEY)).await.status, 200);
    import(&world, &pool, &["--sync"]).await;
    let revoked = answered(&world, KEY, |a| a.status != 200).await;
    assert_eq!(revoked.status, 401);
    assert_eq!(revoked.header("x-fairlane-reason"), "invalid_client_key");
    assert_eq!(world.answer(with_key(second)).await.status, 200);
    world.end().await;
}

#[tokio::test]
async fn a_rotated_secret_takes_effect_and_the_old_one_is_used_no_more() {
    let world = World::start().await;
    let rotated = json!({
        "credentials": [{"name": "one", "secret": "sk-rotated-secret-0002",
                         "accounts": ["one"], "endpoints": ["sim"]}],
    });
    world
        .sim
        .allow(Some(vec!["sk-rotated-secret-0002".to_owned()]));
    assert_eq!(world.answer(with_key(KEY)).await.status, 401);
    import(&world, &rotated, &[]).await;
    answered(&world, KEY, |a| a.status == 200).await;
    world.quiet().await;
    let before = world.sim.stats()[SECRET];
    assert_eq!(world.answer(with_key(KEY)).await.status, 200);
    assert_eq!(world.sim.stats()[SECRET], before);
    world.end().await;
}

#[tokio::test]
async fn a_revoked_key_leaves_its_running_stream_alone() {
    let hand = Hand::start().await;
    let world = one_slot(&hand, ("FAIRLANE_CAPACITY_WAIT_SECONDS", "0")).await;
    let (mut caller, mut exchange) = begun(&world, &hand).await;
    let keys = world.app.store().keys().await.unwrap();
    world.app.store().remove_key(keys[0].id).await.unwrap();
    let refused = answered(&world, KEY, |a| a.status == 401).await;
    assert_eq!(refused.header("x-fairlane-reason"), "invalid_client_key");
    exchange.say(DONE).await;
    exchange.finish().await;
    caller.until(DONE).await;
    caller.until("0\r\n\r\n").await;
    let rows = world.rows().await;
    assert_eq!(rows.last().unwrap().outcome, Outcome::Ok);
    world.end().await;
}

#[tokio::test]
async fn a_raised_cap_lets_in_who_waits() {
    let hand = Hand::start().await;
    let world = one_slot(&hand, ("FAIRLANE_CAPACITY_WAIT_SECONDS", "3600")).await;
    let (mut first, mut first_exchange) = begun(&world, &hand).await;
    let mut second = Caller::post(world.address(), CHAT, &chat(true).to_string()).await;
    world
        .until("a waiter", |(_, _, waiters)| waiters == 1)
        .await;
    import(
        &world,
        &json!({"accounts": [{"name": "one", "stream_limit": 2}]}),
        &[],
    )
    .await;
    let mut second_exchange = hand.take().await;
    assert_eq!(world.app.in_flight(), (2, 2, 0));
    second_exchange.begin("text/event-stream").await;
    for (caller, exchange) in [
        (&mut first, &mut first_exchange),
        (&mut second, &mut second_exchange),
    ] {
        exchange.say(DONE).await;
        exchange.finish().await;
        caller.until(DONE).await;
    }
    world.end().await;
}

#[tokio::test]
async fn a_raised_setting_lets_in_who_waits_and_a_lowered_one_cuts_nobody() {
    let hand = Hand::start().await;
    let mut setup = Setup::default();
    setup.pool["endpoints"][0]["base_url"] = json!(hand.base_url());
    setup.pool["accounts"][0] = json!({"name": "one", "create_limit": 0});
    let world = setup
        .env("FAIRLANE_ACCOUNT_STREAM_RESERVE", "0")
        .env("FAIRLANE_ACCOUNT_STREAM_LIMIT", "1")
        .env("FAIRLANE_CAPACITY_WAIT_SECONDS", "3600")
        .start()
        .await;
    let set = async |limit: i64| {
        let change = vec![(Name::AccountStreamLimit, Some(Value::Integer(limit)))];
        let version = world.app.store().overrides().await.unwrap().version;
        let changed = world.app.store().change_settings(version, change).await;
        changed.unwrap();
    };
    let (mut first, mut first_exchange) = begun(&world, &hand).await;
    let second = Caller::post(world.address(), CHAT, &chat(true).to_string()).await;
    world
        .until("a waiter", |(_, _, waiters)| waiters == 1)
        .await;
    set(2).await;
    let second_exchange = hand.take().await;
    set(1).await;
    // A change made after it, whose effect shows.
    let scoped = "fl-key-for-another-model";
    let keys = json!([{"name": "scoped", "secret": scoped, "models": ["other"]}]);
    import(&world, &json!({"keys": keys}), &[]).await;
    answered(&world, scoped, |a| a.status == 403).await;
    let third = Caller::post(world.address(), CHAT, &chat(true).to_string()).await;
    world.until("a waiter", |counts| counts == (3, 2, 1)).await;
    first_exchange.say(DONE).await;
    first.until(DONE).await;
    first.leave(Way::Fin);
    world
        .until("a stream less", |counts| counts == (2, 1, 1))
        .await;
    second.leave(Way::Fin);
    let third_exchange = hand.take().await;
    world
        .until("the third alone", |counts| counts == (1, 1, 0))
        .await;
    third.leave(Way::Fin);
    for exchange in [first_exchange, second_exchange, third_exchange] {
        drop(exchange.gone().await);
    }
    world.end().await;
}
