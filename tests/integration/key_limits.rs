//! Client keys' own limits: what they let through, how they refuse, and what they know.
use crate::{
    hand::{Caller, WAYS},
    harness::{Answer, KEY, Setup, World, chat, get, post},
    pool::{CHAT, chat_with, limited, ranked, secret},
    sockets::Socket,
};
use fairlane::{
    domain::{ids::KeyId, reason::Reason},
    sim::{Act, Rule},
};
use http::Method;
use serde_json::{Value, json};

const OTHER: &str = "fl-another-key-0123456789";

/// The usual world with those limits of the usual key, and a key without any.
fn with(limits: &Value) -> Setup {
    with_limits(Setup::default(), limits)
}

fn with_limits(mut setup: Setup, limits: &Value) -> Setup {
    let key = setup.pool["keys"][0].as_object_mut().unwrap();
    key.extend(limits.as_object().unwrap().clone());
    let other = json!({"name": "other", "secret": OTHER});
    setup.pool["keys"].as_array_mut().unwrap().push(other);
    setup
}

/// An answer that has used ten tokens.
fn ten_tokens() -> Act {
    Act::default()
        .header("content-type", "application/json")
        .body(
            r#"{"object":"chat.completion","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}"#,
        )
}

async fn ask(world: &World) -> Answer {
    world.post(CHAT, &chat(false)).await
}

#[track_caller]
fn check_served(answer: &Answer) {
    assert_eq!(
        (answer.status.as_u16(), answer.reason()),
        (200, ""),
        "{answer:?}"
    );
}

/// Refused for that reason, with a wait in seconds, and a message that says all of `parts`.
#[track_caller]
fn check_refused(answer: &Answer, reason: &str, parts: &[&str]) {
    let got = (answer.status.as_u16(), answer.reason());
    assert_eq!(got, (429, reason), "{answer:?}");
    let wait: u64 = answer.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&wait), "{answer:?}");
    let body = answer.json();
    assert_eq!(body["error"]["code"], reason);
    assert_eq!(body["error"]["type"], "rate_limit_error");
    let message = body["error"]["message"].as_str().unwrap();
    for part in parts {
        assert!(message.contains(part), "{part}: {message}");
    }
}

/// Changes the usual key through the admin API.
async fn change(world: &World, limits: &Value) {
    let keys = world.admin(Method::GET, "/keys", &Value::Null).await.json();
    let key = keys["items"].as_array().unwrap().iter();
    let key = key.clone().find(|key| key["name"] == "test").unwrap();
    let path = format!("/keys/{}", key["id"].as_str().unwrap());
    world.admin(Method::PATCH, &path, limits).await;
}

#[tokio::test]
async fn a_key_sends_as_many_requests_a_minute_as_it_may() {
    let world = with(&json!({"requests_per_minute": 2})).start().await;
    check_served(&ask(&world).await);
    // Whatever goes upstream counts, and what is answered here does not.
    let read = world.answer(get("/v1/files/file-1")).await;
    assert_eq!(read.reason(), "", "{read:?}");
    for _ in 0..3 {
        check_served(&world.answer(get("/v1/models")).await);
    }
    let asked = world.seen(CHAT).len();
    let refused = ask(&world).await;
    let says = [
        "may send 2 requests a minute",
        "sent 2",
        "requests_per_minute",
    ];
    check_refused(&refused, "key_rate_limited", &says);
    assert_eq!(refused.header("x-should-retry"), "");
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!(wait > 30, "the first of a minute was just now: {wait}");
    assert_eq!(world.seen(CHAT).len(), asked);
    check_served(&world.answer(get("/v1/models")).await);
    let row = world.last_row().await;
    assert_eq!(row.reason, None);
    let row = &world.rows().await[1];
    assert_eq!(
        (row.reason, row.attempts),
        (Some(Reason::KeyRateLimited), 0)
    );
    world.end().await;
}

#[tokio::test]
async fn a_key_without_limits_is_held_up_by_nobody_elses() {
    let limits = json!({"requests_per_minute": 1, "concurrency": 1, "tokens_per_day": 1});
    let world = with(&limits).start().await;
    world.sim.script([Rule::new(ten_tokens())]);
    check_served(&ask(&world).await);
    assert_eq!(ask(&world).await.status, 429);
    for _ in 0..20 {
        check_served(&world.answer(chat_with(OTHER)).await);
    }
    world.end().await;
}

/// A stream that stays open after its first event.
fn held() -> Act {
    Act {
        stall_after: Some(1),
        ..Act::chunks(["data: {\"choices\":[]}\n\n", "data: [DONE]\n\n"])
            .header("content-type", "text/event-stream")
    }
}

#[tokio::test]
async fn a_key_has_as_many_requests_at_once_as_it_may_and_a_client_that_leaves_frees_its_place() {
    for way in WAYS {
        let world = with(&json!({"concurrency": 2})).start().await;
        world.sim.script([Rule::new(held()).times(2)]);
        let body = chat(true).to_string();
        let mut callers = Vec::new();
        for _ in 0..2 {
            let mut caller = Caller::post(world.address(), CHAT, &body).await;
            caller.until("choices").await;
            callers.push(caller);
        }
        let refused = ask(&world).await;
        let says = ["may have 2 requests in flight", "has 2", "concurrency"];
        check_refused(&refused, "key_concurrency_cap", &says);
        check_served(&world.answer(chat_with(OTHER)).await);
        callers.pop().unwrap().leave(way);
        world
            .until("one to be gone", |(live, _, _)| live == 1)
            .await;
        check_served(&ask(&world).await);
        check_served(&ask(&world).await);
        callers.pop().unwrap().leave(way);
        world.end().await;
    }
}

#[tokio::test]
async fn a_request_that_waits_for_a_slot_has_its_place_and_gives_it_back_when_it_leaves() {
    let mut setup = with(&json!({"concurrency": 2}));
    setup.pool["accounts"][0]["stream_limit"] = json!(1);
    let setup = setup.env("FAIRLANE_ACCOUNT_STREAM_RESERVE", "0");
    let world = setup.start().await;
    world.sim.script([Rule::new(held()).times(1)]);
    let body = chat(true).to_string();
    let mut first = Caller::post(world.address(), CHAT, &body).await;
    first.until("choices").await;
    let parked = Caller::post(world.address(), CHAT, &body).await;
    world
        .until("one parked", |(_, _, waiting)| waiting == 1)
        .await;
    check_refused(&ask(&world).await, "key_concurrency_cap", &["has 2"]);
    parked.leave(WAYS[0]);
    world.until("nobody parked", |(live, _, _)| live == 1).await;
    first.leave(WAYS[1]);
    world.quiet().await;
    check_served(&ask(&world).await);
    world.end().await;
}

#[tokio::test]
async fn a_budget_that_is_spent_lasts_until_midnight_and_says_so() {
    let world = with(&json!({"tokens_per_day": 15})).start().await;
    world.sim.script([Rule::new(ten_tokens())]);
    check_served(&ask(&world).await);
    // Five are left, and so it may begin.
    check_served(&ask(&world).await);
    let refused = ask(&world).await;
    let says = [
        "may use 15 tokens a day",
        "used 20 today",
        "midnight UTC",
        "tokens_per_day",
    ];
    check_refused(&refused, "key_budget_exhausted", &says);
    assert_eq!(refused.header("x-should-retry"), "false");
    if let Some(at) = refused.json()["error"].get("resets_at") {
        assert_eq!(at.as_i64().unwrap() % (24 * 3600), 0, "{refused:?}");
    }
    world.end().await;
}

#[tokio::test]
async fn the_usage_of_a_stream_counts_at_its_end() {
    let world = with(&json!({"tokens_per_day": 10})).start().await;
    let usage = r#"data: {"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":6}}"#;
    let stream = Act::chunks([&format!("{usage}\n\n"), "data: [DONE]\n\n"]);
    let stream = stream.header("content-type", "text/event-stream");
    world.sim.script([Rule::new(stream)]);
    check_served(&world.post(CHAT, &chat(true)).await);
    world.quiet().await;
    check_refused(
        &ask(&world).await,
        "key_budget_exhausted",
        &["used 10 today"],
    );
    world.end().await;
}

#[tokio::test]
async fn however_often_a_request_is_tried_it_counts_once() {
    let setup = ranked(&["two", "three"]);
    let world = with_limits(setup, &json!({"requests_per_minute": 2, "concurrency": 1}));
    let world = world.start().await;
    let refuse = |name: &str| Rule::new(limited("600")).credential(&secret(name)).times(1);
    world
        .sim
        .script([refuse("one"), refuse("two"), Rule::new(ten_tokens())]);
    check_served(&ask(&world).await);
    assert_eq!(world.asked(CHAT), ["one", "two", "three"]);
    assert_eq!(world.last_row().await.attempts, 3);
    check_served(&ask(&world).await);
    check_refused(&ask(&world).await, "key_rate_limited", &["sent 2"]);
    world.end().await;
}

#[tokio::test]
async fn what_is_refused_before_it_is_weighed_counts_nothing() {
    let mut setup = with(&json!({"requests_per_minute": 1}));
    setup.pool["keys"][0]["models"] = json!(["gpt-4o-mini"]);
    let world = setup.start().await;
    for _ in 0..3 {
        let other = world
            .post(CHAT, &json!({"model": "m", "messages": []}))
            .await;
        assert_eq!(other.reason(), "model_not_allowed");
        let none = world.post(CHAT, &json!({"messages": []})).await;
        assert_eq!(none.reason(), "invalid_request");
    }
    check_served(&ask(&world).await);
    // A refusal takes no place, or the key would never be let in again.
    for _ in 0..3 {
        check_refused(&ask(&world).await, "key_rate_limited", &["sent 1"]);
    }
    world.end().await;
}

#[tokio::test]
async fn limits_that_are_set_while_it_runs_know_what_was_used_before() {
    let world = with(&json!({})).start().await;
    world
        .sim
        .script([Rule::new(held()).times(1), Rule::new(ten_tokens())]);
    let mut caller = Caller::post(world.address(), CHAT, &chat(true).to_string()).await;
    caller.until("choices").await;
    for _ in 0..3 {
        check_served(&ask(&world).await);
    }
    // On disk as well, where they must not be counted a second time.
    world.app.store().flush().await.unwrap();
    change(&world, &json!({"tokens_per_day": 30})).await;
    check_refused(
        &ask(&world).await,
        "key_budget_exhausted",
        &["used 30 today"],
    );
    change(
        &world,
        &json!({"tokens_per_day": null, "requests_per_minute": 4}),
    )
    .await;
    check_refused(&ask(&world).await, "key_rate_limited", &["sent 4"]);
    change(
        &world,
        &json!({"requests_per_minute": null, "concurrency": 1}),
    )
    .await;
    check_refused(&ask(&world).await, "key_concurrency_cap", &["has 1"]);
    change(&world, &json!({"concurrency": 2})).await;
    check_served(&ask(&world).await);
    change(&world, &json!({"concurrency": null})).await;
    caller.leave(WAYS[0]);
    check_served(&ask(&world).await);
    world.end().await;
}

#[tokio::test]
async fn a_new_process_knows_what_an_earlier_one_counted() {
    let world = with(&json!({"tokens_per_day": 100})).start().await;
    world.sim.script([Rule::new(ten_tokens())]);
    for _ in 0..3 {
        check_served(&ask(&world).await);
    }
    let world = world.restart(&[]).await;
    let list = world.admin(Method::GET, "/keys", &Value::Null).await.json();
    let used = json!({"requests_per_minute": 3, "concurrency": 0, "tokens_per_day": 30});
    assert_eq!(list["items"][0]["used"], used);
    check_served(&ask(&world).await);
    change(&world, &json!({"tokens_per_day": 40})).await;
    check_refused(
        &ask(&world).await,
        "key_budget_exhausted",
        &["used 40 today"],
    );
    change(
        &world,
        &json!({"tokens_per_day": null, "requests_per_minute": 4}),
    )
    .await;
    check_refused(&ask(&world).await, "key_rate_limited", &["sent 4"]);
    let world = world.restart(&[]).await;
    check_refused(&ask(&world).await, "key_rate_limited", &["sent 4"]);
    world.end().await;
}

#[tokio::test]
async fn without_a_request_log_limits_hold_within_the_process() {
    let setup = with(&json!({"tokens_per_day": 10}));
    let setup = setup.env("FAIRLANE_REQUEST_LOG_RETENTION_DAYS", "0");
    let world = setup.start().await;
    world.sim.script([Rule::new(ten_tokens())]);
    check_served(&ask(&world).await);
    check_refused(&ask(&world).await, "key_budget_exhausted", &["used 10"]);
    let world = world
        .restart(&[("FAIRLANE_REQUEST_LOG_RETENTION_DAYS", "0")])
        .await;
    check_served(&ask(&world).await);
    world.end().await;
}

#[tokio::test]
async fn a_refusal_has_the_shape_of_its_protocol() {
    let world = with(&json!({"requests_per_minute": 1})).start().await;
    check_served(&ask(&world).await);
    let check = async |path: &str, pointer: &str, expect: Value| {
        let body = json!({"model": "m", "max_tokens": 1, "messages": [], "contents": []});
        let refused = world.answer(post(path, body.to_string())).await;
        let got = (refused.status.as_u16(), refused.reason());
        assert_eq!(got, (429, "key_rate_limited"), "{path}");
        assert_eq!(refused.json().pointer(pointer), Some(&expect), "{path}");
    };
    check("/v1/responses", "/error/code", json!("key_rate_limited")).await;
    check("/v1/messages", "/error/type", json!("rate_limit_error")).await;
    let gemini = "/v1beta/models/m:generateContent";
    check(gemini, "/error/status", json!("RESOURCE_EXHAUSTED")).await;
    world.end().await;
}

#[tokio::test]
async fn limits_are_read_back_as_they_were_set() {
    let limits = json!({"requests_per_minute": 60, "concurrency": 5, "tokens_per_day": 1_000_000_000_000_u64});
    let world = with(&limits).start().await;
    let document = world.admin(Method::GET, "/pool", &Value::Null).await.json();
    let list = world.admin(Method::GET, "/keys", &Value::Null).await.json();
    for key in [&document["keys"][0], &list["items"][0]] {
        for (name, value) in limits.as_object().unwrap() {
            assert_eq!(&key[name], value, "{key}");
        }
    }
    let id: KeyId = list["items"][0]["id"].as_str().unwrap().parse().unwrap();
    let stored = world.app.store().key(id).await.unwrap().unwrap();
    assert_eq!(stored.limits.tokens_per_day, Some(1_000_000_000_000));
    // Rotating, or renaming, keeps them.
    let path = format!("/keys/{id}/rotate");
    world
        .admin(Method::POST, &path, &json!({"secret": KEY}))
        .await;
    assert_eq!(
        world.app.store().key(id).await.unwrap().unwrap().limits,
        stored.limits
    );
    world.end().await;
}

#[tokio::test]
async fn each_turn_on_a_socket_is_a_request_of_its_key() {
    let world = with(&json!({"requests_per_minute": 2})).start().await;
    let mut socket = Socket::open(&world, "/v1/responses").await;
    for _ in 0..2 {
        assert_eq!(socket.turn(&json!({})).await["type"], "response.completed");
    }
    let told = socket.turn(&json!({})).await;
    assert_eq!(told["status"], 429, "{told}");
    assert_eq!(told["error"]["code"], "key_rate_limited");
    drop(socket);
    world.end().await;
}

#[tokio::test]
async fn a_realtime_session_is_in_flight_as_long_as_it_lasts() {
    let world = with(&json!({"concurrency": 1})).start().await;
    let mut socket = Socket::open(&world, "/v1/realtime?model=m").await;
    assert_eq!(socket.event().await["type"], "session.created");
    check_refused(&ask(&world).await, "key_concurrency_cap", &["1"]);
    drop(socket);
    world.end().await;
}
