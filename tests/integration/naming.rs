//! Names of models that are odd, come twice, or go by two names: one reading decides everything.
use crate::{
    harness::{KEY, Setup, World, post, sha256},
    pool::CHAT,
};
use http::StatusCode;
use serde_json::json;

#[tokio::test]
async fn of_two_models_in_one_body_the_last_is_permitted_and_routed_and_nothing_is_changed() {
    let world = Setup::default()
        .with(
            "/endpoints/0/models",
            json!([{"model": "mine"}, {"model": "theirs"}]),
        )
        .with("/keys/0/models", json!(["mine"]))
        .start()
        .await;
    let body = |first: &str, last: &str| {
        format!("{{\"model\" : \"{first}\", \"messages\":[],\"model\":\"{last}\"}}")
    };
    for path in [CHAT, "/v1/responses", "/v1/messages"] {
        let before = world.seen(path).len();
        let mine = body("theirs", "mine");
        let answer = world.answer(post(path, mine.clone())).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {answer:?}");
        let log = world.seen(path);
        assert_eq!(log[before].body_sha256, sha256(mine.as_bytes()), "{path}");
        let row = world.ledger().await.swap_remove(0);
        assert_eq!(row.model.as_deref(), Some("mine"));
        let answer = world.answer(post(path, body("mine", "theirs"))).await;
        assert_eq!(answer.reason(), "model_not_allowed", "{path}");
        assert_eq!(world.seen(path).len(), before + 1);
    }
    world.check_unharmed().await;
    world.end().await;
}

#[tokio::test]
async fn a_model_in_query_or_foreign_field_decides_nothing() {
    let world = Setup::default()
        .with("/keys/0/models", json!(["mine"]))
        .start()
        .await;
    let body = r#"{"model":"mine","messages":[]}"#;
    let answer = world
        .answer(post(&format!("{CHAT}?model=theirs"), body))
        .await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(world.sim.log()[0].target, format!("{CHAT}?model=theirs"));
    let foreign = r#"{"model":"theirs","messages":[]}"#;
    let answer = world
        .answer(post(&format!("{CHAT}?model=mine"), foreign))
        .await;
    assert_eq!(answer.reason(), "model_not_allowed");
    // Where the path names it, the body does not.
    let gemini = "/v1beta/models/mine:generateContent";
    let answer = world
        .answer(post(gemini, r#"{"model":"theirs","contents":[]}"#))
        .await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    let gemini = "/v1beta/models/theirs:generateContent";
    let answer = world
        .answer(post(gemini, r#"{"model":"mine","contents":[]}"#))
        .await;
    assert_eq!(answer.reason(), "model_not_allowed");
    assert_eq!(world.sim.log().len(), 2);
    world.end().await;
}

#[tokio::test]
async fn a_model_may_be_asked_for_by_its_alias_and_by_its_name() {
    let catalog = json!([{"model": "gpt-4o"}, {"model": "fast", "upstream_model": "gpt-4o"}]);
    let world = Setup::default()
        .with("/credentials/0/models", catalog)
        .start()
        .await;
    let check = async |model: &str, expect: Option<&str>| {
        let before = world.seen(CHAT).len();
        let body = format!("{{\"messages\":[], \"model\":  \"{model}\"}}");
        let answer = world.answer(post(CHAT, body.clone())).await;
        let log = world.seen(CHAT);
        let Some(upstream) = expect else {
            assert_eq!(answer.reason(), "model_not_found", "{model}");
            assert_eq!(log.len(), before, "{model}");
            return;
        };
        assert_eq!(answer.status, StatusCode::OK, "{model}: {answer:?}");
        let sent = body.replace(model, upstream);
        assert_eq!(log[before].body_sha256, sha256(sent.as_bytes()), "{model}");
    };
    check("gpt-4o", Some("gpt-4o")).await;
    check("fast", Some("gpt-4o")).await;
    for odd in ["FAST", " fast", "fast ", "gpt-4o@1", "GPT-4o", "fast/1"] {
        check(odd, None).await;
    }
    world.check_unharmed().await;
    world.end().await;
}

#[tokio::test]
async fn a_model_of_any_length_that_nobody_limits_is_upstreams_to_judge() {
    let world = World::start().await;
    for model in ["a b", " x ", "모델/1:β@2", "m\\u0020n", &"m".repeat(200)] {
        let body = format!("{{\"model\":\"{model}\",\"messages\":[]}}");
        let answer = world.answer(post(CHAT, body.clone())).await;
        assert_eq!(answer.status, StatusCode::OK, "{model}: {answer:?}");
        let last = world.seen(CHAT).pop().unwrap();
        assert_eq!(last.body_sha256, sha256(body.as_bytes()));
        assert_ne!(
            last.header("authorization"),
            Some(&*format!("Bearer {KEY}"))
        );
    }
    world.check_unharmed().await;
    world.end().await;
}
