//! Soft owners: a preference that yields to everything.
use super::*;
use crate::hand::{Caller, Way};
use fairlane::sim::{Act, Rule};

/// One more request of the conversation; which account served it.
async fn go_on(world: &World, (name, value): (&'static str, &'static str)) -> String {
    let request = if name == "prompt_cache_key" {
        asks(KEY, Method::POST, RESPONSES, &wish(&json!({name: value})))
    } else {
        let mut request = asks(KEY, Method::POST, RESPONSES, &wish(&json!({})));
        let value = HeaderValue::from_static(value);
        request.headers_mut().insert(name, value);
        request
    };
    let answer = world.answer(request).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    last_at(world, RESPONSES)
}

const SESSION: (&str, &str) = ("x-claude-code-session-id", "session-1");

#[tokio::test]
async fn a_conversation_stays_where_it_was() {
    let world = two().start().await;
    for named in [
        ("prompt_cache_key", "k"),
        ("session_id", "s"),
        ("thread-id", "t"),
        SESSION,
    ] {
        let first = go_on(&world, named).await;
        for _ in 0..3 {
            // Without a preference, the accounts take turns.
            response(&world).await;
            response(&world).await;
            response(&world).await;
            assert_eq!(go_on(&world, named).await, first, "{named:?}");
        }
    }
    world.end().await;
}

#[tokio::test]
async fn without_a_lifetime_there_is_no_preference() {
    let setup = two().env("FAIRLANE_AFFINITY_TTL_SECONDS", "0");
    let world = setup.start().await;
    let first = go_on(&world, SESSION).await;
    assert_ne!(go_on(&world, SESSION).await, first);
    world.end().await;
}

#[tokio::test]
async fn a_conversation_leaves_an_account_that_is_told_to_wait() {
    let world = two().start().await;
    let first = go_on(&world, SESSION).await;
    let limited = Act::status(429).header("retry-after", "30");
    world.sim.script([Rule::new(limited).credential(&first)]);
    let second = go_on(&world, SESSION).await;
    assert_ne!(second, first);
    let at_first = asked_of(&world, &first);
    for _ in 0..5 {
        assert_eq!(go_on(&world, SESSION).await, second);
    }
    assert_eq!(asked_of(&world, &first), at_first, "asked while it was out");
    world.end().await;
}

#[tokio::test]
async fn a_conversation_leaves_an_account_that_is_out_of_service() {
    for state in [Some(DISABLED), None] {
        let world = two().start().await;
        let first = go_on(&world, SESSION).await;
        change(&world, account_with(&first), state).await;
        let moved = async { while go_on(&world, SESSION).await == first {} };
        within("the conversation to move", moved).await;
        let at_first = asked_of(&world, &first);
        for _ in 0..5 {
            assert_ne!(go_on(&world, SESSION).await, first);
        }
        assert_eq!(asked_of(&world, &first), at_first, "asked while it was out");
        world.end().await;
    }
}

#[tokio::test]
async fn a_conversation_does_not_wait_for_an_account_that_is_full() {
    let setup = two()
        .env("FAIRLANE_ACCOUNT_STREAM_RESERVE", "0")
        .with("/accounts/0/stream_limit", json!(1))
        .with("/accounts/1/stream_limit", json!(1));
    let world = setup.start().await;
    let first = go_on(&world, SESSION).await;
    let stalled = Act {
        stall_after: Some(1),
        ..Act::default()
    };
    world
        .sim
        .script([Rule::new(stalled).credential(&first).times(1)]);
    let body = wish(&json!({"stream": true}));
    let head = crate::hand::request(RESPONSES, &[SESSION], &body.to_string());
    let mut caller = Caller::connect(world.address()).await;
    caller.write(&head).await;
    caller.until("response.created").await;
    assert_ne!(go_on(&world, SESSION).await, first);
    caller.leave(Way::Fin);
    world.end().await;
}

fn asked_of(world: &World, secret: &str) -> usize {
    let mut log = world.sim.log();
    log.retain(|record| record.credential.as_deref() == Some(secret));
    log.len()
}
