//! Sessions that prefer the account that they were with, and what they do while it is out.
use crate::{
    hand::{Caller, Way},
    harness::{SECRET, World, chat, post},
    pool::{CHAT, limited, ranked},
};
use fairlane::sim::{Act, Rule};
use http::{Method, StatusCode};
use serde_json::{Value, json};

/// Sticky by every means that clients have.
fn sticky(body: &Value) -> http::Request<http_body_util::Full<bytes::Bytes>> {
    let mut request = post("/v1/responses", body.to_string());
    let headers = request.headers_mut();
    headers.insert("session-id", "s-1".parse().unwrap());
    headers.insert("x-claude-code-session-id", "s-1".parse().unwrap());
    request
}

/// A session has been with its account until `out` happens to that: what follows goes elsewhere.
async fn check_session_moves(out: impl AsyncFn(&World) -> Option<Caller>) {
    let world = ranked(&["two"])
        .with("/accounts/0/stream_limit", json!(1))
        .env("FAIRLANE_ACCOUNT_STREAM_RESERVE", "0")
        .start()
        .await;
    let ask = json!({"model": "m", "input": "x", "prompt_cache_key": "p-1"});
    let go = async || world.answer(sticky(&ask)).await.status;
    assert_eq!(go().await, StatusCode::OK);
    assert_eq!(world.asked("/v1/responses"), ["one"]);
    world.quiet().await;
    let holder = out(&world).await;
    let before = world.asked("/v1/responses").len();
    for _ in 0..5 {
        assert_eq!(go().await, StatusCode::OK);
    }
    assert_eq!(world.asked("/v1/responses")[before..], ["two"; 5]);
    if let Some(holder) = holder {
        holder.leave(Way::Fin);
    }
    world.end().await;
}

#[tokio::test]
async fn a_session_goes_elsewhere_while_its_account_cools() {
    check_session_moves(async |world| {
        let rule = Rule::new(limited("600")).credential(SECRET).times(1);
        world.sim.script([rule]);
        let scoped = world.post(CHAT, &chat(false)).await;
        assert_eq!(scoped.status, StatusCode::OK);
        None
    })
    .await;
}

#[tokio::test]
async fn a_session_goes_elsewhere_while_its_account_is_disabled_or_gone() {
    check_session_moves(async |world| {
        let path = format!("/accounts/{}/disable", world.account("one").await.id);
        world.admin(Method::POST, &path, &Value::Null).await;
        None
    })
    .await;
    check_session_moves(async |world| {
        let path = format!("/credentials/{}", world.credential("one").await.id);
        world.admin(Method::DELETE, &path, &Value::Null).await;
        None
    })
    .await;
}

#[tokio::test]
async fn a_session_goes_elsewhere_while_its_account_is_full() {
    check_session_moves(async |world| {
        let act = Act {
            stall_after: Some(1),
            ..Act::chunks(["data: {\"choices\":[]}\n\n", "data: [DONE]\n\n"])
        };
        let act = act.header("content-type", "text/event-stream");
        world.sim.script([Rule::new(act).path(CHAT)]);
        let mut holder = Caller::post(world.address(), CHAT, &chat(true).to_string()).await;
        holder.until("choices").await;
        Some(holder)
    })
    .await;
}
