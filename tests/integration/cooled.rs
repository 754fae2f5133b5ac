//! What is said and known of what cools, and how an operator ends it.
use crate::{
    hand::within,
    harness::{SECRET, chat},
    pool::{CHAT, limited, ranked},
};
use fairlane::sim::{Act, Rule};
use futures_util::future::join_all;
use http::{Method, StatusCode};
use jiff::Timestamp;
use serde_json::Value;

#[tokio::test]
async fn a_far_reset_is_said_where_the_wait_that_is_told_ends_sooner() {
    let world = ranked(&[]).start().await;
    let used_up = Act {
        code: Some("usage_limit_reached".to_owned()),
        ..limited("600")
    };
    world.sim.script([Rule::new(used_up).path(CHAT)]);
    world.post(CHAT, &chat(false)).await;
    let refused = world.post(CHAT, &chat(false)).await;
    assert_eq!(refused.reason(), "usage_limit_reached");
    assert_eq!(refused.header("retry-after"), "60");
    let said = refused.json();
    let resets_at = said["error"]["resets_at"].as_i64().unwrap();
    let in_seconds = resets_at - Timestamp::now().as_second();
    assert!((500..=601).contains(&in_seconds), "{said}");
    world.end().await;
}

#[tokio::test]
async fn an_operators_word_ends_a_cooldown_and_wakes_all_who_wait() {
    let world = ranked(&[]).start().await;
    world
        .sim
        .script([Rule::new(limited("25")).path(CHAT).times(1)]);
    let body = chat(false);
    let first = world.post(CHAT, &body);
    let rest = async {
        let is_cooling = async || !world.cooldowns().await.is_empty();
        world.eventually("a cooldown", is_cooling).await;
        join_all((0..9).map(|_| world.post(CHAT, &body))).await
    };
    let clear = async {
        world
            .until("ten who wait", |(_, _, waiters)| waiters == 10)
            .await;
        let path = format!("/accounts/{}/clear-cooldown", world.account("one").await.id);
        let cleared = world.admin(Method::POST, &path, &Value::Null).await;
        assert_eq!(cleared.status, StatusCode::OK, "{cleared:?}");
    };
    let all = Box::pin(async { tokio::join!(first, rest, clear) });
    let (first, rest, ()) = within("the answers", all).await;
    for answer in rest.iter().chain([&first]) {
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    }
    let audit = world.admin(Method::GET, "/audit", &Value::Null).await;
    let said = String::from_utf8_lossy(&audit.body).into_owned();
    assert!(said.contains("clear_cooldown"), "{said}");
    let is_over = async || world.cooldowns().await.is_empty();
    world.eventually("nothing that cools", is_over).await;
    world.end().await;
}

#[tokio::test]
async fn a_limit_that_a_request_moved_on_from_is_evidence_of_what_the_limit_applies_to() {
    let world = ranked(&["two"]).start().await;
    world
        .sim
        .script([Rule::new(limited("30")).credential(SECRET)]);
    assert_eq!(world.post(CHAT, &chat(false)).await.status, StatusCode::OK);
    assert_eq!(world.asked(CHAT), ["one", "two"]);
    let account = world.account("one").await.id;
    let is_known = async || {
        let answers = world.app.store().answers(account).await.unwrap();
        answers.iter().any(|answer| answer.is_limited)
    };
    world.eventually("the limit to be known", is_known).await;
    world.end().await;
}
