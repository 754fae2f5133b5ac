//! What is known of an account or a credential belongs to it and to nothing else: not to its place
//! in a list, and not to the process.
use crate::{
    hand::{Caller, Exchange, Hand, Way},
    harness::{Setup, World, chat},
    pool::{CHAT, limited, ranked, secret},
};
use fairlane::{
    domain::{
        ledger::Outcome,
        pool::{DisabledReason, State},
    },
    sim::{Act, Rule},
};
use http::{Method, StatusCode};
use serde_json::{Value, json};

const AUTH: State = State::Disabled(DisabledReason::Auth);
const BILLING: State = State::Disabled(DisabledReason::Billing);
const ENV: (&str, &str) = ("FAIRLANE_CAPACITY_WAIT_SECONDS", "0");

#[tokio::test]
async fn what_cools_and_what_is_disabled_outlives_the_process() {
    let setup = ranked(&["two", "three", "four"]).env("FAIRLANE_MAX_ATTEMPTS", "10");
    let world = setup.env(ENV.0, ENV.1).start().await;
    world.sim.script([
        Rule::new(limited("600")).credential(&secret("one")),
        Rule::new(Act::status(401)).credential(&secret("two")),
        Rule::new(Act::status(402)).credential(&secret("three")),
    ]);
    assert_eq!(world.post(CHAT, &chat(false)).await.status, StatusCode::OK);
    assert_eq!(world.asked(CHAT), ["one", "two", "three", "four"]);
    let before = [world.account("one").await, world.account("three").await];
    let mut world = world.restart(&[ENV]).await;
    for _ in 0..2 {
        assert_eq!(world.credential("two").await.state, AUTH);
        assert_eq!(world.account("three").await.state, BILLING);
        let kept = world.cooldown("one").await;
        assert!(kept.ends_in_ms > 300_000, "{kept:?}");
        assert_eq!(kept.length_ms, 600_000);
        let asked = world.asked(CHAT).len();
        assert_eq!(world.post(CHAT, &chat(false)).await.status, StatusCode::OK);
        assert_eq!(world.asked(CHAT)[asked..], ["four"]);
        world = world.restart(&[ENV]).await;
    }
    assert_eq!(world.account("one").await.id, before[0].id);
    let path = format!("/accounts/{}/disable", world.account("four").await.id);
    world.admin(Method::POST, &path, &Value::Null).await;
    let refused = world.post(CHAT, &chat(false)).await;
    assert_eq!(refused.reason(), "account_cooling", "{refused:?}");
    world.end().await;
}

#[tokio::test]
async fn a_cooldown_that_ended_while_nothing_ran_is_probed_by_one_request() {
    let world = World::start().await;
    world
        .sim
        .script([Rule::new(limited("1")).path(CHAT).times(1)]);
    let waiting = Caller::post(world.address(), CHAT, &chat(false).to_string()).await;
    world.cooldown("one").await;
    waiting.leave(Way::Fin);
    let world = world.restart(&[]).await;
    let shot = Act {
        delay_headers_ms: Some(200),
        ..Act::default()
    };
    world.sim.script([Rule::new(shot).path(CHAT).times(1)]);
    let ask = chat(false);
    let all = futures_util::future::join_all((0..6).map(|_| world.post(CHAT, &ask)));
    assert!(all.await.iter().all(|answer| answer.status == 200));
    let log = world.seen(CHAT);
    let verdict_at = log[1].answered_ms.unwrap();
    assert_eq!(log.len(), 7);
    assert!(log[2..].iter().all(|r| r.started_ms >= verdict_at));
    let is_over = async || world.cooldowns().await.is_empty();
    world.eventually("the end of it", is_over).await;
    world.end().await;
}

/// Three credentials without accounts: the second cools, the third is refused.
async fn three_of_one_provider() -> World {
    let world = Setup::default()
        .with("/accounts", json!([]))
        .with("/credentials", listed(&["one", "two", "three"]))
        .env(ENV.0, ENV.1)
        .start()
        .await;
    world.sim.script([
        Rule::new(limited("600")).credential(&secret("two")),
        Rule::new(Act::status(401)).credential(&secret("three")),
    ]);
    for _ in 0..3 {
        assert_eq!(world.post(CHAT, &chat(false)).await.status, StatusCode::OK);
    }
    world.credential_becomes("three", AUTH).await;
    world.sim.clear_rules();
    world
}

fn listed(names: &[&str]) -> Value {
    let one = |name: &&str| json!({"name": name, "secret": secret(name), "endpoints": ["sim"]});
    names.iter().map(one).collect()
}

/// Only those names are of use now.
async fn check_serving(world: &World, names: &[&str]) {
    let before = world.asked(CHAT).len();
    for _ in 0..6 {
        let status = world.post(CHAT, &chat(false)).await.status;
        assert_eq!(status == StatusCode::OK, !names.is_empty(), "{status}");
    }
    let asked = world.asked(CHAT);
    for name in &asked[before..] {
        assert!(names.contains(&&**name), "{name} was asked");
    }
    for name in names {
        assert!(asked[before..].contains(&(*name).to_owned()), "{name}");
    }
}

#[tokio::test]
async fn what_is_known_of_a_key_follows_the_key_through_every_edit_of_the_list() {
    let world = three_of_one_provider().await;
    let ids = [
        world.credential("two").await.id,
        world.credential("three").await.id,
    ];
    check_serving(&world, &["one"]).await;
    let path = format!("/credentials/{}", world.credential("one").await.id);
    world.admin(Method::DELETE, &path, &Value::Null).await;
    check_serving(&world, &[]).await;
    let at_the_end = json!({"credentials": listed(&["two", "three", "one"])});
    world.admin(Method::PUT, "/pool", &at_the_end).await;
    check_serving(&world, &["one"]).await;
    let at_the_head = json!({"credentials": listed(&["head", "three", "two", "one"])});
    world
        .admin(Method::PUT, "/pool?sync=true", &at_the_head)
        .await;
    check_serving(&world, &["head", "one"]).await;
    let path = format!("/credentials/{}", ids[0]);
    let renamed = json!({"name": "another name"});
    world.admin(Method::PATCH, &path, &renamed).await;
    check_serving(&world, &["head", "one"]).await;
    assert_eq!(world.credential("another name").await.id, ids[0]);
    assert_eq!(world.credential("three").await.id, ids[1]);
    assert_eq!(world.credential("three").await.state, AUTH);
    let cools = world.cooldowns().await;
    assert_eq!(cools.len(), 1, "{cools:?}");
    world.end().await;
}

#[tokio::test]
async fn a_new_secret_ends_the_refusal_of_the_old_one_and_leaves_the_accounts_limit() {
    let world = three_of_one_provider().await;
    for name in ["two", "three"] {
        let path = format!("/credentials/{}/rotate", world.credential(name).await.id);
        let fresh = json!({"secret": format!("sk-upstream-number-new-{name}")});
        world.admin(Method::POST, &path, &fresh).await;
    }
    assert_eq!(world.credential("three").await.state, State::Active);
    // The limit is the account's, whatever its key is.
    check_serving(&world, &["one", "new-three"]).await;
    assert_eq!(world.cooldowns().await.len(), 1);
    world.end().await;
}

const DONE: &str =
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn charged(name: &str, endpoint: &str) -> Value {
    json!({"name": name, "secret": secret(name), "accounts": [name], "endpoints": [endpoint]})
}

fn narrow(name: &str, priority: u32) -> Value {
    json!({"name": name, "priority": priority, "stream_limit": 1, "create_limit": 0})
}

/// Three accounts of one stream each, of which those moved by hand are chosen first.
async fn narrow_world(hand: &Hand) -> World {
    let protocols = json!(["openai"]);
    let endpoints = json!([
        {"name": "sim", "base_url": "{base}", "protocols": protocols},
        {"name": "hand", "base_url": hand.base_url(), "protocols": protocols},
    ]);
    let accounts = [narrow("one", 3), narrow("middle", 1), narrow("last", 2)];
    let credentials = [
        charged("one", "sim"),
        charged("middle", "hand"),
        charged("last", "hand"),
    ];
    Setup::default()
        .with("/endpoints", endpoints)
        .with("/accounts", json!(accounts))
        .with("/credentials", json!(credentials))
        .env("FAIRLANE_ACCOUNT_STREAM_RESERVE", "0")
        .env(ENV.0, ENV.1)
        .start()
        .await
}

/// A stream of which the client has the beginning.
async fn begun(world: &World, hand: &Hand) -> (Caller, Exchange) {
    let mut caller = Caller::post(world.address(), CHAT, &chat(true).to_string()).await;
    let mut exchange = hand.take().await;
    exchange.begin("text/event-stream").await;
    exchange.say(": begun\n\n").await;
    caller.until(": begun").await;
    (caller, exchange)
}

/// Takes the middle credential out and lists another before all others.
async fn edit(world: &World) {
    let path = format!("/credentials/{}", world.credential("middle").await.id);
    world.admin(Method::DELETE, &path, &Value::Null).await;
    let head = json!({"name": "head", "priority": 9, "stream_limit": 0, "create_limit": 0});
    let edited = json!({
        "accounts": [head, narrow("last", 2), narrow("one", 3)],
        "credentials": [charged("head", "sim"), charged("last", "hand"), charged("one", "sim")],
    });
    world.admin(Method::PUT, "/pool", &edited).await;
}

#[tokio::test]
async fn work_in_flight_survives_the_removal_of_its_key_and_new_ones_at_the_head() {
    let hand = Hand::start().await;
    let world = narrow_world(&hand).await;
    let streams = [begun(&world, &hand).await, begun(&world, &hand).await];
    world
        .sim
        .script([Rule::new(limited("600")).credential(&secret("one"))]);
    assert_eq!(world.post(CHAT, &chat(false)).await.status, 429);
    let ids = async || {
        let (one, last) = (
            world.credential("one").await,
            world.credential("last").await,
        );
        (one.id, last.id)
    };
    let before = ids().await;
    edit(&world).await;
    assert_eq!(ids().await, before);
    assert_eq!(world.app.in_flight(), (2, 2, 0));
    // One cools, the last is full, the middle one is gone: only the new one is left.
    let asked = world.asked(CHAT).len();
    for _ in 0..3 {
        assert_eq!(world.post(CHAT, &chat(false)).await.status, StatusCode::OK);
    }
    assert_eq!(world.asked(CHAT)[asked..], ["head"; 3]);
    assert!(world.cooldown("one").await.ends_in_ms > 300_000);
    for (mut caller, mut exchange) in streams {
        exchange.say(DONE).await;
        exchange.finish().await;
        caller.until("[DONE]").await;
        assert!(!caller.was_cut().await, "a stream was cut");
    }
    let rows = world.rows().await;
    let served = rows.iter().filter(|row| row.outcome == Outcome::Ok);
    assert_eq!(served.count(), 5, "{rows:?}");
    // The last one's slot is free again.
    let (caller, exchange) = begun(&world, &hand).await;
    caller.leave(Way::Fin);
    drop(exchange.gone().await);
    world.end().await;
}
