//! Models: missing, unknown, and listed.
use crate::harness::{Answer, KEY, Setup, World, get, post, request};
use fairlane::sim::{Act, Config, Rule, Sim};
use http::{Method, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};

const CHAT: &str = "/v1/chat/completions";

#[tokio::test]
async fn a_body_without_a_usable_model_is_refused_without_an_attempt() {
    let world = World::start().await;
    let long = format!(r#"{{"model":"{}"}}"#, "m".repeat(10 << 10));
    for path in [
        CHAT,
        "/v1/responses",
        "/v1/embeddings",
        "/v1/images/generations",
        "/v1/audio/speech",
        "/v1/messages",
    ] {
        for body in [
            "",
            "{}",
            "[]",
            r#"{"model":null}"#,
            r#"{"model":7}"#,
            r#"{"model":["m"]}"#,
            r#"{"model":{"id":"m"}}"#,
            r#"{"model":"m","model":null}"#,
            r#"{"x":{"model":"m"}}"#,
            r#"[{"model":"m"}]"#,
            &long,
        ] {
            let answer = world.answer(post(path, body.to_owned())).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path} {body}");
            assert_eq!(answer.reason(), "invalid_request");
            assert!(
                answer.json()["error"]["message"]
                    .to_string()
                    .contains("model")
            );
        }
    }
    assert!(world.sim.log().is_empty());
    world.end().await;
}

#[tokio::test]
async fn where_a_model_may_be_left_out_it_may() {
    let world = World::start().await;
    world.sim.script([Rule::new(Act::default().body("{}"))]);
    for path in [
        "/v1/moderations",
        "/v1/responses/input_tokens",
        "/v1/conversations",
        "/v1/batches",
    ] {
        let answer = world.answer(post(path, r#"{"input":"x"}"#)).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {answer:?}");
    }
    world.end().await;
}

/// A catalog of a few names.
fn with_catalog() -> Setup {
    let rows = json!([{"model": "gpt-4o-mini"}, {"model": "team/Model:1"}]);
    Setup::default().with("/endpoints/0/models", rows)
}

#[tokio::test]
async fn an_unknown_model_is_told_the_names_that_come_close() {
    let world = with_catalog().start().await;
    let check = |answer: Answer, close: Option<&str>| {
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{answer:?}");
        assert_eq!(answer.reason(), "model_not_found");
        assert_eq!(answer.header("x-should-retry"), "false");
        let message = answer.json()["error"]["message"]
            .as_str()
            .unwrap()
            .to_owned();
        match close {
            Some(close) => assert!(message.contains(close), "{message}"),
            None => assert!(!message.contains("gpt-4o-mini"), "{message}"),
        }
    };
    for model in ["gpt-4o-mni", "GPT-4o-mini", " gpt-4o-mini", "gpt-4o-mini "] {
        let body = json!({"model": model, "messages": []});
        check(world.post(CHAT, &body).await, Some("gpt-4o-mini"));
        check(world.post("/v1/messages", &body).await, Some("gpt-4o-mini"));
    }
    let path = "/v1beta/models/team%2FModel:2:generateContent";
    check(world.answer(post(path, "{}")).await, Some("team/Model:1"));
    check(world.post(CHAT, &json!({"model": "zzzzzzzz"})).await, None);
    check(
        world.answer(get("/v1/models/gpt-4o-min")).await,
        Some("gpt-4o-mini"),
    );
    assert!(world.sim.log().is_empty());
    world.end().await;
}

/// The names in a list, in whichever shape.
fn names(list: &Value) -> Vec<String> {
    let rows = list["data"].as_array().or(list["models"].as_array());
    let name = |row: &Value| {
        let name = row.get("id").unwrap_or(&row["name"]);
        name.as_str().unwrap().to_owned()
    };
    rows.unwrap().iter().map(name).collect()
}

#[tokio::test]
async fn models_are_listed_in_the_shape_of_whoever_asks() {
    let world = with_catalog()
        .with("/keys/0/models", json!(["gpt-4o-mini", "not-served"]))
        .start()
        .await;
    let ask = async |target: &str, lines: &[(&str, &str)]| {
        let mut asked = request(Method::GET, target);
        for (name, value) in lines {
            asked = asked.header(*name, *value);
        }
        let answer = world.answer(asked.body(Full::default()).unwrap()).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        answer.json()
    };
    let openai = ask("/v1/models", &[]).await;
    assert_eq!(
        (&openai["object"], names(&openai)),
        (&json!("list"), vec!["gpt-4o-mini".to_owned()])
    );
    let anthropic = ask("/v1/models", &[("anthropic-version", "2023-06-01")]).await;
    assert_eq!(anthropic["data"][0]["type"], "model");
    assert_eq!(
        (&anthropic["has_more"], &anthropic["first_id"]),
        (&json!(false), &json!("gpt-4o-mini"))
    );
    let gemini = vec!["models/gpt-4o-mini".to_owned()];
    assert_eq!(names(&ask("/v1beta/models", &[]).await), gemini);
    assert_eq!(
        names(&ask("/v1/models", &[("x-goog-api-key", KEY)]).await),
        gemini
    );
    assert_eq!(
        ask("/v1/models/gpt-4o-mini", &[]).await["id"],
        "gpt-4o-mini"
    );
    assert_eq!(
        ask("/v1beta/models/gpt-4o-mini", &[]).await["name"],
        "models/gpt-4o-mini"
    );
    assert!(
        world.sim.log().is_empty(),
        "a catalog needs no question to upstream"
    );
    world.end().await;
}

#[tokio::test]
async fn a_provider_that_hangs_or_fails_does_not_keep_the_others_models_back() {
    let provider = async |name: &str| {
        let config = Config {
            models: vec!["shared".to_owned(), name.to_owned()],
            ..Config::recording()
        };
        Sim::start(config).await.unwrap()
    };
    let (hanging, failing) = (provider("of-hanging").await, provider("of-failing").await);
    hanging.script([Rule::new(Act::delayed_ms(3_600_000)).path("models")]);
    failing.script([Rule::new(Act::status(500)).path("models")]);
    let endpoint = |name: &str, base: &str| json!({"name": name, "base_url": base, "protocols": ["openai", "anthropic", "gemini"]});
    let mut setup = Setup::default()
        .with(
            "/credentials/0/endpoints",
            json!(["sim", "hanging", "failing"]),
        )
        .with(
            "/endpoints",
            json!([
                endpoint("hanging", &hanging.base_url()),
                endpoint("failing", &failing.base_url()),
                endpoint("sim", "{base}"),
            ]),
        );
    setup.sim.models = vec!["shared".to_owned(), "of-healthy".to_owned()];
    let world = setup.start().await;
    let targets = ["/v1/models", "/v1beta/models"];
    let ask = async |target: &'static str| names(&world.answer(get(target)).await.json());
    let asked = (0..20).map(|n| ask(targets[n % 2]));
    for found in futures_util::future::join_all(asked).await {
        let bare: Vec<_> = found
            .iter()
            .map(|n| n.trim_start_matches("models/"))
            .collect();
        assert_eq!(bare, ["of-healthy", "shared"]);
    }
    // The calls that got no answer were dropped, and nobody waits for that provider again.
    hanging
        .wait_for(|log| log.iter().all(|r| r.closed.is_some()))
        .await
        .unwrap();
    let questions = (
        hanging.log().len(),
        failing.log().len(),
        world.sim.log().len(),
    );
    assert_eq!(ask(targets[0]).await, ["of-healthy", "shared"]);
    assert_eq!(
        (
            hanging.log().len(),
            failing.log().len(),
            world.sim.log().len()
        ),
        questions
    );
    world.end().await;
}
