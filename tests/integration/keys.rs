//! Whose request it is: keys in every place, and refusals in the shape that each client expects.
use crate::harness::{Answer, KEY, Setup, World, get, secret_of};
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};

const WRONG: &str = "fl-wrong-key-000000000000";

const GEMINI: &str = "/v1beta/models/gemini-2.5-flash:generateContent";

const BODY: &str = r#"{"model":"gpt-4o-mini","max_tokens":3,"contents":[],"messages":[{"role":"user","content":"hi"}]}"#;

async fn call(world: &World, method: Method, target: &str, lines: &[(&str, &str)]) -> Answer {
    let mut asked = Request::builder()
        .method(method)
        .uri(target)
        .header("host", "x");
    for (name, value) in lines {
        asked = asked.header(*name, *value);
    }
    world.answer(asked.body(Full::from(BODY)).unwrap()).await
}

/// Which protocol's error this is.
fn shape(body: &Value) -> &'static str {
    let is_text = |pointer: &str| body.pointer(pointer).is_some_and(Value::is_string);
    match body {
        _ if is_text("/detail") => "fal",
        _ if body["type"] == "error" && is_text("/error/type") && is_text("/error/message") => {
            "anthropic"
        }
        _ if body.pointer("/error/code").is_some_and(Value::is_u64) && is_text("/error/status") => {
            "gemini"
        }
        _ if is_text("/error/type")
            && is_text("/error/code")
            && body["error"].get("param").is_some() =>
        {
            "openai"
        }
        _ => "none",
    }
}

fn check_refused(answer: &Answer, status: u16, reason: &str, expect: &str) {
    assert_eq!(
        (answer.status.as_u16(), answer.reason()),
        (status, reason),
        "{answer:?}"
    );
    assert_eq!(shape(&answer.json()), expect, "{answer:?}");
    assert!(
        answer.header("x-request-id").starts_with("req_"),
        "{answer:?}"
    );
    assert_eq!(answer.header("content-type"), "application/json");
}

#[tokio::test]
async fn a_key_is_taken_from_every_place_and_goes_no_further() {
    let world = World::start().await;
    let bearer = format!("Bearer {KEY}");
    let in_query = format!("{GEMINI}?key={KEY}");
    let among = format!("{GEMINI}?a=1&key={KEY}&$alt=json");
    let escaped = format!("{GEMINI}?k%65y={KEY}");
    for (target, lines, seen) in [
        (
            "/v1/chat/completions",
            ("authorization", &*bearer),
            "/v1/chat/completions",
        ),
        (
            "/v1/chat/completions",
            ("authorization", &*format!("bearer  {KEY} ")),
            "/v1/chat/completions",
        ),
        ("/v1/messages", ("x-api-key", KEY), "/v1/messages"),
        (GEMINI, ("x-goog-api-key", KEY), GEMINI),
        (&*in_query, ("x-a", ""), GEMINI),
        (&*among, ("x-a", ""), &*format!("{GEMINI}?a=1&$alt=json")),
        (&*escaped, ("x-a", ""), GEMINI),
    ] {
        let answer = call(&world, Method::POST, target, &[lines]).await;
        assert_eq!(answer.status, StatusCode::OK, "{target}: {answer:?}");
        assert_eq!(world.sim.log().last().unwrap().target, seen);
    }
    let log = format!("{:?}", world.sim.log());
    assert!(!log.contains(KEY), "the client's key went upstream");
    world.end().await;
}

#[tokio::test]
async fn a_wrong_or_missing_key_is_refused_in_each_shape() {
    let world = World::start().await;
    let bearer = format!("Bearer {WRONG}");
    let wrong = ("authorization", &*bearer);
    let anthropic = ("anthropic-version", "2023-06-01");
    for (target, expect) in [
        ("/v1/chat/completions", "openai"),
        ("/v1/responses", "openai"),
        ("/v1/files", "openai"),
        ("/v1/messages", "anthropic"),
        (GEMINI, "gemini"),
    ] {
        for lines in [
            &[wrong][..],
            &[("x-api-key", WRONG)],
            &[("x-api-key", "")],
            &[("authorization", "Basic eDp5")],
            &[],
        ] {
            let answer = call(&world, Method::POST, target, lines).await;
            check_refused(&answer, 401, "invalid_client_key", expect);
            assert!(!answer.json().to_string().contains(WRONG));
        }
    }
    let answer = call(&world, Method::GET, "/v1/models", &[wrong, anthropic]).await;
    check_refused(&answer, 401, "invalid_client_key", "anthropic");
    let answer = call(&world, Method::POST, "/v1/files", &[wrong, anthropic]).await;
    check_refused(&answer, 401, "invalid_client_key", "anthropic");
    let answer = call(&world, Method::POST, &format!("{GEMINI}?key={WRONG}"), &[]).await;
    check_refused(&answer, 401, "invalid_client_key", "gemini");
    // A key in the query is one to Gemini's clients alone.
    let target = format!("/v1/chat/completions?key={KEY}");
    let answer = call(&world, Method::POST, &target, &[]).await;
    check_refused(&answer, 401, "invalid_client_key", "openai");
    assert!(world.sim.log().is_empty());
    world.end().await;
}

#[tokio::test]
async fn where_no_key_is_required_none_is_fine_but_a_wrong_one_is_not() {
    let world = Setup::default()
        .env("FAIRLANE_REQUIRE_CLIENT_KEY", "off")
        .start()
        .await;
    for target in ["/v1/chat/completions", "/v1/messages", GEMINI] {
        let answer = call(&world, Method::POST, target, &[]).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        let answer = call(&world, Method::POST, target, &[("x-api-key", WRONG)]).await;
        assert_eq!(answer.reason(), "invalid_client_key");
    }
    assert_eq!(world.sim.log().len(), 3);
    world.end().await;
}

#[tokio::test]
async fn an_expired_key_is_told_so() {
    let world = Setup::default()
        .with("/keys/0/expires_at", json!("2020-01-01T00:00:00Z"))
        .start()
        .await;
    for (target, expect) in [
        ("/v1/responses", "openai"),
        ("/v1/messages", "anthropic"),
        (GEMINI, "gemini"),
    ] {
        let answer = call(&world, Method::POST, target, &[("x-api-key", KEY)]).await;
        check_refused(&answer, 401, "client_key_expired", expect);
    }
    assert!(world.sim.log().is_empty());
    world.end().await;
}

#[tokio::test]
async fn a_key_is_served_by_the_accounts_in_its_scope_alone() {
    let world = Setup::default()
        .account("two")
        .account("three")
        .with("/keys/0/accounts", json!(["three", "two"]))
        .start()
        .await;
    for _ in 0..12 {
        call(
            &world,
            Method::POST,
            "/v1/chat/completions",
            &[("x-api-key", KEY)],
        )
        .await;
    }
    let stats = world.sim.stats();
    let served = |name: &str| stats.get(&secret_of(name)).map_or(0, |s| s.served);
    assert_eq!(
        (
            stats.get(crate::harness::SECRET),
            served("two") + served("three")
        ),
        (None, 12)
    );
    assert!(served("two") > 0 && served("three") > 0, "{stats:?}");
    world.end().await;
}

#[tokio::test]
async fn a_model_outside_a_keys_scope_is_refused_in_each_shape() {
    let world = Setup::default()
        .with("/keys/0/models", json!(["allowed"]))
        .start()
        .await;
    let ask = async |path: &str, body: &str| {
        let asked = crate::harness::post(path, body.to_owned());
        world.answer(asked).await
    };
    for (path, expect) in [("/v1/responses", "openai"), ("/v1/messages", "anthropic")] {
        let answer = ask(path, r#"{"model":"other"}"#).await;
        check_refused(&answer, 403, "model_not_allowed", expect);
        assert_eq!(answer.header("x-should-retry"), "false");
    }
    let answer = ask("/v1beta/models/other:generateContent", "{}").await;
    check_refused(&answer, 403, "model_not_allowed", "gemini");
    // Everybody reads the last of two, so the permission must be that one's.
    let path = "/v1/chat/completions";
    let answer = ask(path, r#"{"model":"allowed","model":"other"}"#).await;
    assert_eq!(answer.reason(), "model_not_allowed");
    assert!(world.sim.log().is_empty());
    let answer = ask(path, r#"{"model":"other","messages":[],"model":"allowed"}"#).await;
    assert_eq!(answer.reason(), "", "{answer:?}");
    let answer = ask("/v1beta/models/%61llowed:generateContent", "{}").await;
    assert_eq!(answer.reason(), "", "{answer:?}");
    assert_eq!(world.sim.log().len(), 2);
    world.end().await;
}

#[tokio::test]
async fn a_wrong_method_is_told_the_right_ones() {
    let world = World::start().await;
    let key = ("x-api-key", KEY);
    for (method, target, allow, expect) in [
        (Method::GET, "/v1/chat/completions", "POST", "openai"),
        (Method::PUT, "/v1/responses", "POST", "openai"),
        (Method::DELETE, "/v1/files", "GET, HEAD, POST", "openai"),
        (
            Method::POST,
            "/v1/responses/resp_1",
            "GET, HEAD, DELETE",
            "openai",
        ),
        (Method::PATCH, "/v1/messages", "POST", "anthropic"),
        (Method::GET, GEMINI, "POST", "gemini"),
        (Method::POST, "/v1/models", "GET, HEAD", "openai"),
    ] {
        let answer = call(&world, method, target, &[key]).await;
        check_refused(&answer, 405, "method_not_allowed", expect);
        assert_eq!(answer.header("allow"), allow, "{target}");
    }
    assert!(world.sim.log().is_empty());
    world.end().await;
}

#[tokio::test]
async fn an_unknown_path_is_refused_in_the_shape_of_its_neighbours() {
    let world = World::start().await;
    for (target, expect) in [
        ("/v1", "openai"),
        ("/v1/nothing", "openai"),
        ("/v1/chat", "openai"),
        ("/v1/messages/nothing", "anthropic"),
        ("/v1beta/nothing", "gemini"),
        ("/v1beta/models/m:inventVerb", "gemini"),
    ] {
        let answer = call(&world, Method::POST, target, &[("x-api-key", KEY)]).await;
        check_refused(&answer, 404, "path_not_found", expect);
    }
    let answer = world.answer(get("/v2/chat/completions")).await;
    assert_eq!(
        (answer.status, answer.reason()),
        (StatusCode::NOT_FOUND, "")
    );
    assert!(world.sim.log().is_empty());
    world.end().await;
}

#[tokio::test]
async fn a_clients_key_is_nowhere_in_the_database() {
    let world = World::start().await;
    for line in [("x-api-key", KEY), ("x-api-key", WRONG)] {
        call(&world, Method::POST, "/v1/messages", &[line]).await;
        let target = format!("{GEMINI}?key={}", line.1);
        call(&world, Method::POST, &target, &[]).await;
    }
    assert_eq!(world.ledger().await.len(), 4);
    let mut stored = std::fs::read(world.db()).unwrap();
    stored.extend(std::fs::read(world.db().with_extension("db-wal")).unwrap());
    let holds = |text: &str| memchr::memmem::find(&stored, text.as_bytes()).is_some();
    assert!(
        holds("/v1/messages"),
        "the rows are not where they are looked for"
    );
    assert!(!holds(KEY) && !holds(WRONG));
    world.end().await;
}

#[tokio::test]
async fn a_refusal_can_be_read_though_the_body_was_still_on_its_way() {
    let world = World::start().await;
    let body = vec![b'x'; 8 << 20];
    for (path, key, expect) in [
        ("/v1/chat/completions", "fl-wrong", 401),
        ("/v1/nothing-here", KEY, 404),
    ] {
        let request = Request::post(path)
            .header("host", "localhost")
            .header("authorization", format!("Bearer {key}"))
            .body(Full::new(Bytes::from(body.clone())))
            .unwrap();
        let answer = world.answer(request).await;
        assert_eq!(answer.status, expect, "{path}");
    }
    assert!(world.sim.log().is_empty());
    world.end().await;
}
