//! Headers cross as they came, less those of one hop and those that are one side's own affair.
use crate::{
    harness::{KEY, World, chat, request},
    wire::{Reply, exchange},
};
use fairlane::sim::{Act, Rule};
use http::Method;
use http_body_util::Full;

const BODY: &str = r#"{"model":"gpt-4o-mini","messages":[{"role":"user","content":"hi"}]}"#;

/// Asks for a chat with those header lines and the key.
async fn call(world: &World, lines: &str) -> Reply {
    let length = BODY.len();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n{lines}Content-Length: {length}\r\n\r\n"
    );
    exchange(world, head + BODY).await
}

#[tokio::test]
async fn headers_of_one_hop_go_no_further_and_all_others_do() {
    let world = World::start().await;
    let raw = "HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=9\r\n\
               Proxy-Authenticate: Basic\r\nProxy-Connection: x\r\nTE: x\r\nUpgrade: h2c\r\nX-Dup: 2\r\nX-DUP: 1\r\nX-Empty:\r\n\
               X-Latin: caf\u{e9}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    world.sim.script([Rule::new(Act::raw(raw))]);
    let lines = "Connection: close, X-Secret-Hop\r\nX-Secret-Hop: 1\r\nKeep-Alive: timeout=5\r\n\
                 TE: trailers\r\nTrailer: X-T\r\nProxy-Authorization: Basic eDp5\r\nProxy-Connection: close\r\n\
                 Upgrade: h2c\r\nX-Dup: 2\r\nx-dUP: 1\r\nX-Empty:\r\nX-Latin: caf\u{e9}\r\n\
                 Cookie: a=b\r\nForwarded: for=1.2.3.4\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Host: h\r\n";
    let reply = call(&world, lines).await;
    assert_eq!((reply.status, reply.is_whole), (200, true), "{reply:?}");
    let log = world.sim.log();
    let ended = [
        "x-secret-hop",
        "keep-alive",
        "te",
        "trailer",
        "proxy-authorization",
        "proxy-connection",
        "upgrade",
        "cookie",
        "forwarded",
        "x-forwarded-for",
        "x-forwarded-host",
        "via",
    ];
    for name in ended {
        assert_eq!(log[0].header(name), None, "{name} went upstream");
    }
    assert!(
        !log[0]
            .header_values("connection")
            .concat()
            .contains("X-Secret-Hop")
    );
    assert_eq!(log[0].header_values("x-dup"), ["2", "1"]);
    assert_eq!(log[0].header("x-empty"), Some(""));
    assert!(log[0].header("x-latin").unwrap().starts_with("caf"));
    for name in [
        "x-hop",
        "keep-alive",
        "proxy-authenticate",
        "proxy-connection",
        "te",
        "upgrade",
    ] {
        assert_eq!(reply.header(name), "", "{name} came down");
    }
    assert_eq!(reply.values("x-dup"), ["2", "1"]);
    assert_eq!(reply.values("x-empty"), [""]);
    assert_eq!(reply.header("x-latin"), "caf\u{e9}");
    world.end().await;
}

#[tokio::test]
async fn what_a_client_says_of_its_connection_does_not_touch_ours() {
    let world = World::start().await;
    for _ in 0..8 {
        let lines = "Connection: close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n";
        let reply = call(&world, lines).await;
        assert_eq!(reply.status, 200);
    }
    let log = world.seen("/v1/chat/completions");
    let mut connections: Vec<_> = log.iter().map(|r| r.connection).collect();
    connections.sort_unstable();
    connections.dedup();
    assert!(
        connections.len() < 8,
        "none was used again: {connections:?}"
    );
    world.end().await;
}

#[tokio::test]
async fn feature_headers_of_providers_pass_both_ways() {
    let world = World::start().await;
    let sent = [
        ("anthropic-version", "2023-06-01"),
        ("anthropic-beta", "a-1,b-2"),
        ("anthropic-beta", "c-3"),
        ("anthropic-dangerous-direct-browser-access", "true"),
        ("openai-beta", "assistants=v2"),
        ("openai-organization", "org-1"),
        ("x-stainless-retry-count", "0"),
        ("x-stainless-lang", "python"),
        ("user-agent", "Some/1 (client; x)"),
        ("idempotency-key", "i-1"),
        ("x-request-id", "mine"),
        ("traceparent", "00-1-2-01"),
        ("originator", "codex_cli_rs"),
        ("x-codex-turn-metadata", "{\"a\":1}"),
        ("accept", "*/*;q=0.1"),
        ("content-type", "application/json; x=1"),
    ];
    let came = [
        ("request-id", "req_up"),
        ("anthropic-ratelimit-requests-remaining", "7"),
        ("x-ratelimit-reset-tokens", "6m0s"),
        ("openai-processing-ms", "12"),
        ("openai-version", "2020-10-01"),
        ("retry-after", "7"),
        ("x-should-retry", "true"),
        ("content-language", "ko"),
    ];
    let mut act = Act::status(400).header("x-request-id", "up-1");
    act.headers
        .extend(came.map(|(n, v)| (n.to_owned(), v.to_owned())));
    world.sim.script([Rule::new(act)]);
    let mut asked = request(Method::POST, "/v1/messages");
    for (name, value) in sent {
        asked = asked.header(name, value);
    }
    let answer = world.answer(asked.body(Full::from(BODY)).unwrap()).await;
    let log = world.sim.log();
    for (name, _) in sent {
        let expect: Vec<_> = sent
            .iter()
            .filter(|(n, _)| *n == name)
            .map(|(_, v)| *v)
            .collect();
        assert_eq!(log[0].header_values(name), expect, "{name}");
    }
    for (name, value) in came {
        assert_eq!(answer.header(name), value, "{name}");
    }
    assert_eq!(answer.header("x-upstream-request-id"), "up-1");
    assert!(
        answer.header("x-request-id").starts_with("req_"),
        "{answer:?}"
    );
    world.end().await;
}

#[tokio::test]
async fn what_upstream_sets_for_its_own_origin_ends_here() {
    let world = World::start().await;
    let act = Act::default()
        .body("{}")
        .header("set-cookie", "a=b")
        .header("alt-svc", "h3=\":443\"")
        .header("x-fairlane-reason", "queue_full");
    world.sim.script([Rule::new(act)]);
    let answer = world.post("/v1/chat/completions", &chat(false)).await;
    for name in ["set-cookie", "alt-svc", "x-fairlane-reason"] {
        assert_eq!(answer.header(name), "", "{name}");
    }
    world.end().await;
}
