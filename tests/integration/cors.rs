//! Browsers may call the data plane from the origins that the operator allows, and learn enough of
//! a refusal to show it.
use crate::harness::{Answer, KEY, Setup, World, chat};
use fairlane::sim::{Act, Rule};
use http::{Method, Request, StatusCode};
use http_body_util::Full;

const PATHS: [&str; 4] = [
    "/v1/responses",
    "/v1/messages",
    "/v1beta/models/m:generateContent",
    "/v1/models",
];

async fn preflight(world: &World, path: &str, origin: Option<&str>) -> Answer {
    let mut asked = Request::builder()
        .method(Method::OPTIONS)
        .uri(path)
        .header("host", "x")
        .header("access-control-request-method", "POST")
        .header(
            "access-control-request-headers",
            "authorization,content-type,x-api-key,anthropic-version",
        );
    if let Some(origin) = origin {
        asked = asked.header("origin", origin);
    }
    world.answer(asked.body(Full::default()).unwrap()).await
}

async fn call(world: &World, origin: &str, key: &str) -> Answer {
    let asked = Request::builder()
        .method(Method::POST)
        .uri("/v1/chat/completions")
        .header("host", "x")
        .header("origin", origin)
        .header("authorization", format!("Bearer {key}"))
        .body(Full::from(chat(false).to_string()))
        .unwrap();
    world.answer(asked).await
}

#[tokio::test]
async fn a_preflight_needs_no_key_and_no_upstream() {
    let world = World::start().await;
    for path in PATHS {
        let answer = preflight(&world, path, Some("https://app.example")).await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT, "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), "*");
        assert!(
            answer
                .header("access-control-allow-methods")
                .contains("POST")
        );
        let allowed = answer.header("access-control-allow-headers");
        for name in [
            "authorization",
            "content-type",
            "x-api-key",
            "anthropic-version",
        ] {
            assert!(allowed.contains(name), "{path}: {allowed}");
        }
        assert_eq!(answer.header("access-control-allow-credentials"), "");
        let answer = preflight(&world, path, None).await;
        assert!(answer.status.is_success(), "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), "");
    }
    assert!(world.sim.log().is_empty());
    world.end().await;
}

#[tokio::test]
async fn the_real_answer_and_a_refusal_can_be_read_by_the_page_that_asked() {
    let world = World::start().await;
    let origin = "https://app.example";
    let good = call(&world, origin, KEY).await;
    assert_eq!(good.status, StatusCode::OK);
    let bad = call(&world, origin, "fl-wrong-key-000000000000").await;
    assert_eq!(bad.status, StatusCode::UNAUTHORIZED);
    for answer in [good, bad] {
        assert_eq!(answer.header("access-control-allow-origin"), "*");
        let exposed = answer.header("access-control-expose-headers");
        assert!(exposed.contains("x-fairlane-reason") && exposed.contains("retry-after"));
    }
    world.end().await;
}

#[tokio::test]
async fn only_configured_origins_are_allowed() {
    let world = Setup::default()
        .env(
            "FAIRLANE_CORS_ALLOWED_ORIGINS",
            "https://a.example, http://localhost:3000",
        )
        .start()
        .await;
    // Upstream's own view of origins is not the operator's.
    let act = Act::default()
        .body("{}")
        .header("access-control-allow-origin", "*")
        .header("access-control-allow-credentials", "true");
    world.sim.script([Rule::new(act)]);
    let check = async |origin: &str, expect: &str| {
        let asked = preflight(&world, PATHS[0], Some(origin)).await;
        assert_eq!(asked.header("access-control-allow-origin"), expect);
        assert_eq!(
            asked.header("access-control-allow-methods").is_empty(),
            expect.is_empty()
        );
        for key in [KEY, "fl-wrong-key-000000000000"] {
            let answer = call(&world, origin, key).await;
            assert_eq!(
                answer.header("access-control-allow-origin"),
                expect,
                "{origin} {key}"
            );
            assert_eq!(answer.header("access-control-allow-credentials"), "");
            assert!(answer.header("vary").contains("origin"));
        }
    };
    check("https://a.example", "https://a.example").await;
    check("http://localhost:3000", "http://localhost:3000").await;
    check("http://localhost:3001", "").await;
    check("https://a.example.evil", "").await;
    check("null", "").await;
    world.end().await;
}

#[tokio::test]
async fn what_is_no_data_plane_allows_no_origin() {
    let world = World::start().await;
    for path in ["/", "/healthz", "/api/admin/settings"] {
        let answer = preflight(&world, path, Some("https://app.example")).await;
        assert_eq!(answer.header("access-control-allow-origin"), "", "{path}");
    }
    world.end().await;
}
