//! The main job, end to end, in each protocol.
use crate::harness::{Setup, World, chat, get};
use http::StatusCode;
use serde_json::json;

#[tokio::test]
async fn every_protocol_is_answered_with_its_own_credential_header() {
    let world = World::start().await;
    let check = async |path: &str, body: serde_json::Value, header: &str, value: &str| {
        let answer = world.post(path, &body).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {answer:?}");
        let log = world.sim.log();
        let last = log.last().unwrap();
        assert_eq!(last.header(header), Some(value), "{path}");
        assert_eq!(last.header("x-forwarded-for"), None);
        assert!(!answer.header("x-request-id").is_empty());
        assert!(!log.iter().any(|r| {
            r.headers
                .iter()
                .any(|(_, v)| v.contains(crate::harness::KEY))
        }));
    };
    let secret = crate::harness::SECRET;
    let bearer = format!("Bearer {secret}");
    let messages = json!({"model": "claude-sonnet-4-5", "max_tokens": 9,
                          "messages": [{"role": "user", "content": "hi"}]});
    let contents = json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]});
    let gemini = "/v1beta/models/gemini-2.5-flash:generateContent";
    check(
        "/v1/chat/completions",
        chat(false),
        "authorization",
        &bearer,
    )
    .await;
    check("/v1/chat/completions", chat(true), "authorization", &bearer).await;
    check("/v1/messages", messages, "x-api-key", secret).await;
    check(gemini, contents, "x-goog-api-key", secret).await;
    world.end().await;
}

#[tokio::test]
async fn a_tight_account_makes_requests_wait_instead_of_failing() {
    let mut setup = Setup::default();
    setup.pool["accounts"][0]["stream_limit"] = json!(2);
    setup.pool["accounts"][0]["create_limit"] = json!(1);
    let world = setup
        .env("FAIRLANE_ACCOUNT_STREAM_RESERVE", "0")
        .start()
        .await;
    let body = chat(false);
    let all = (0..20).map(|_| world.post("/v1/chat/completions", &body));
    for answer in futures_util::future::join_all(all).await {
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    }
    let stats = world.sim.stats();
    let peak = stats[crate::harness::SECRET].peak;
    assert!((1..=2).contains(&peak), "{peak} at once");
    world.end().await;
}

#[tokio::test]
async fn models_are_listed_though_no_catalog_names_them() {
    let world = World::start().await;
    let answer = world.answer(get("/v1/models")).await;
    let ids: Vec<_> = answer.json()["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["id"].as_str().unwrap().to_owned())
        .collect();
    assert!(ids.contains(&"gpt-4o-mini".to_owned()), "{ids:?}");
    world.end().await;
}
