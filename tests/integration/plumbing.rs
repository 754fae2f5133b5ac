//! Request targets cross as they came, whatever the base URL and whoever the client is.
use crate::{
    harness::{KEY, SECRET, Setup, World},
    wire::{Reader, Reply, exchange},
};
use fairlane::sim::{Act, Config, Framing, Rule, Sim};
use serde_json::json;
use std::net::Ipv6Addr;
use tokio::io::AsyncWriteExt as _;

const BODY: &str = r#"{"model":"gpt-4o-mini","messages":[{"role":"user","content":"hi"}]}"#;

/// Sends a request line and some header lines, with the key; methods that bring one get a body.
async fn call(world: &World, method: &str, target: &str, lines: &str) -> Reply {
    let body = if method == "POST" { BODY } else { "" };
    let length = match body.len() {
        0 => String::new(),
        n => format!("Content-Length: {n}\r\n"),
    };
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n{lines}{length}\r\n"
    );
    exchange(world, head + body).await
}

/// A provider that answers everything with an empty document.
async fn yielding(setup: Setup) -> World {
    let world = setup.start().await;
    world.sim.script([Rule::new(Act::default().body("{}"))]);
    world
}

#[tokio::test]
async fn queries_reach_upstream_byte_for_byte() {
    let world = yielding(Setup::default()).await;
    let query = "?a=1&a=2&empty=&flag&sp=%20+&u=%ED%95%9C&enc=%2F%3F%26&&=x&h=%23&k.ey=1&q='[]{}|";
    for (method, path) in [
        ("GET", "/v1/files/file-1"),
        ("DELETE", "/v1/files/file-1"),
        ("POST", "/v1/chat/completions"),
        ("POST", "/v1/messages"),
        ("GET", "/v1/responses/resp_1"),
        ("POST", "/v1beta/models/m:streamGenerateContent"),
    ] {
        for query in [query, "?", "?alt=sse", "?variant=thumbnail&a=b?c"] {
            let target = format!("{path}{query}");
            let reply = call(&world, method, &target, "").await;
            assert_eq!(reply.status, 200, "{target}: {reply:?}");
            let log = world.sim.log();
            let last = log.last().unwrap();
            assert_eq!((&*last.method, &*last.target), (method, &*target));
        }
    }
    world.end().await;
}

#[tokio::test]
async fn odd_model_names_in_paths_stay_as_they_were_written() {
    let world = yielding(Setup::default()).await;
    for target in [
        "/v1beta/models/team%2Fmodel-x:generateContent",
        "/v1beta/models/team%2fmodel-x:generateContent",
        "/v1beta/models/team/model-x:generateContent",
        "/v1/models/m:1:streamGenerateContent?alt=sse",
        "/v1beta/models/%ED%95%9C%EA%B8%80:generateContent",
        "/v1beta/models/a%252Fb:generateContent",
        "/v1beta/models/with%20space:generateContent",
        "/v1beta/models/a@b:generateContent",
        "/v1beta/models/a%3Ab:countTokens",
        "/v1beta/models/a..b...c:generateContent",
        "/v1beta/models/a+b~c!$&'()*,;=:generateContent",
    ] {
        let reply = call(&world, "POST", target, "").await;
        assert_eq!(reply.status, 200, "{target}: {reply:?}");
        assert_eq!(world.sim.log().last().unwrap().target, target);
    }
    world.end().await;
}

#[tokio::test]
async fn paths_that_others_could_read_differently_are_no_paths() {
    let world = yielding(Setup::default()).await;
    for target in [
        "/v1/../v1/models",
        "/v1/./chat/completions",
        "/v1/%2e%2e/healthz",
        "/v1/%2E%2E%2Fhealthz",
        "/v1/files/..%2f..%2freadyz",
        "/v1/files/%252e%252e/content",
        "/v1beta/models/..%2F..%2Fmetrics:generateContent",
        "/v1beta/models/a/../../b:generateContent",
        "/v1beta/models/..;x/b:generateContent",
        "/v1beta/models/a%00b:generateContent",
        "/v1/chat%2Fcompletions",
        "//v1/chat/completions",
        "/v1//chat/completions",
        "/v1/chat/completions/",
        "/v1/chat/completions//",
    ] {
        let reply = call(&world, "POST", target, "").await;
        assert_eq!(reply.status, 404, "{target}: {reply:?}");
        assert_eq!(
            reply.header("x-fairlane-reason"),
            "path_not_found",
            "{target}"
        );
    }
    assert!(world.sim.log().is_empty());
    world.end().await;
}

#[tokio::test]
async fn a_base_url_keeps_its_prefix_with_one_slash_at_the_joint() {
    for (base, expect) in [
        ("{base}", "/v1/chat/completions"),
        ("{base}/", "/v1/chat/completions"),
        ("{base}//", "/v1/chat/completions"),
        ("{base}/v1", "/v1/chat/completions"),
        ("{base}/v1/", "/v1/chat/completions"),
        ("{base}/prefix", "/prefix/v1/chat/completions"),
        ("{base}/prefix/v1/", "/prefix/v1/chat/completions"),
        ("{base}/prefix/v2", "/prefix/v2/chat/completions"),
        ("{base}/prefix/v2/", "/prefix/v2/chat/completions"),
        ("{base}/pre%2Ffix/a:b", "/pre%2Ffix/a:b/v1/chat/completions"),
    ] {
        let world = yielding(Setup::default().with("/endpoints/0/base_url", json!(base))).await;
        let reply = call(&world, "POST", "/v1/chat/completions?a=/", "").await;
        assert_eq!(reply.status, 200, "{base}: {reply:?}");
        let log = world.sim.log();
        assert_eq!(log[0].target, format!("{expect}?a=/"), "{base}");
        assert_eq!(log[0].header_values("host"), [world.sim.addr.to_string()]);
        world.end().await;
    }
}

#[tokio::test]
async fn a_provider_at_an_ipv6_address_is_reached_under_its_bracketed_name() {
    let config = Config {
        listen: (Ipv6Addr::LOCALHOST, 0).into(),
        ..Config::recording()
    };
    let sim = Sim::start(config).await.unwrap();
    let base = format!("http://[::1]:{}/prefix/", sim.addr.port());
    let setup = Setup::default().with("/endpoints/0/base_url", json!(base));
    let world = setup.start().await;
    let reply = call(&world, "POST", "/v1/chat/completions", "").await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let log = sim.log();
    assert_eq!(log[0].target, "/prefix/v1/chat/completions");
    assert_eq!(
        log[0].header("host"),
        Some(&*format!("[::1]:{}", sim.addr.port()))
    );
    world.end().await;
}

#[tokio::test]
async fn head_is_answered_with_a_head_alone() {
    let world = World::start().await;
    let act = Act {
        framing: Some(Framing::ContentLength),
        ..Act::default().body("{\"a\":1}")
    };
    world.sim.script([Rule::new(act)]);
    let mut stream = world.raw().await;
    let head =
        format!("HEAD /v1/files/file-1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n\r\n");
    // A second request on the same connection would stumble over a body.
    for _ in 0..2 {
        stream.write_all(head.as_bytes()).await.unwrap();
        let reply = Reader::new(&mut stream).reply(true).await;
        assert_eq!((reply.status, reply.header("content-length")), (200, "7"));
    }
    let log = world.sim.log();
    assert_eq!((log.len(), &*log[0].method), (2, "HEAD"));
    world.end().await;
}

#[tokio::test]
async fn a_client_of_http_1_0_gets_the_whole_answer_and_then_the_end() {
    let world = World::start().await;
    world.sim.script([Rule::new(Act::chunks(
        include_str!("golden/chat.sse").split_inclusive("\n\n"),
    ))]);
    let length = BODY.len();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.0\r\nAuthorization: Bearer {KEY}\r\nContent-Length: {length}\r\n\r\n"
    );
    let mut stream = world.raw().await;
    stream.write_all((head + BODY).as_bytes()).await.unwrap();
    let mut reader = Reader::new(&mut stream);
    let reply = reader.reply(false).await;
    assert_eq!((reply.status, reply.is_whole), (200, true));
    assert_eq!(reply.header("transfer-encoding"), "");
    assert_eq!(reply.text(), include_str!("golden/chat.sse"));
    assert!(reader.is_at_end().await);
    let log = world.sim.log();
    assert_eq!(log[0].credential.as_deref(), Some(SECRET));
    world.end().await;
}
