//! No secret is ever shown: known ones are used in every way, then all that came out is searched.
#![expect(
    clippy::unwrap_used,
    reason = "a helper whose program does not play along has failed its test"
)]

use crate::program::{Home, Instance, KEY, Provider, SECRET, pool};
use bytes::Bytes;
use fairlane::{
    sim::{Act, Close, Rule},
    store::{Store, ledger::LedgerFilter},
};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;

const WRONG: &str = "fl-wrong-key-marker-000000001";
const OTHER: &str = "sk-secret-of-a-dead-endpoint-01";

/// An instance with every log there is.
fn world(provider: &Provider) -> (Home, Instance, String) {
    let home = Home::new();
    let mut document = pool(&provider.sim.base_url());
    let list = |name: &str, value| (name.to_owned(), value);
    let added = [
        list(
            "endpoints",
            json!({"name": "dead", "base_url": "http://127.0.0.1:1",
                                 "protocols": ["openai"], "models": ["gone"]}),
        ),
        list("accounts", json!({"name": "two"})),
        list(
            "credentials",
            json!({"name": "two", "secret": OTHER, "accounts": ["two"],
                                   "endpoints": ["dead"]}),
        ),
    ];
    for (kind, value) in added {
        document[kind].as_array_mut().unwrap().push(value);
    }
    document["credentials"][0]["models"] = json!([{"model": "gpt-4o-mini"}]);
    home.import(&document);
    let token = home.run(&["admin", "create-token", "--name", "t"]).out;
    let instance = home.serve(&[
        ("FAIRLANE_LOG", "trace"),
        ("FAIRLANE_STAGE_TRACE", "on"),
        ("FAIRLANE_HEADER_TIMEOUT_SECONDS", "1"),
        // All that fails here fails at one endpoint.
        ("FAIRLANE_BREAKER_FAILURE_THRESHOLD", "100"),
    ]);
    (home, instance, token.trim_end().to_owned())
}

/// Every way in which an upstream can fail, each for one request, and whether the answer is its own.
fn faults() -> Vec<(bool, Act)> {
    let echo = format!("Incorrect API key provided: {SECRET}");
    let echoed = |status| Act {
        message: Some(echo.clone()),
        ..Act::status(status)
    };
    vec![
        (true, echoed(400)),
        (true, echoed(500)),
        (
            true,
            Act::status(200).body(json!({"error": {"message": echo}}).to_string()),
        ),
        // Cut within the secret, where excerpts end.
        (true, Act::status(400).body("x".repeat(385) + SECRET)),
        (
            true,
            Act::status(200).body(format!("{{\"error\":\"{}{SECRET}\"}}", "x".repeat(485))),
        ),
        (false, Act::close(Close::BeforeHeaders)),
        (false, Act::close(Close::MidHeaders)),
        (false, Act::close(Close::MidBody)),
        (false, Act::raw(format!("no http: {SECRET}\r\n\r\n"))),
        (false, Act::delayed_ms(600_000)),
    ]
}

/// Provokes everything; gives all answers that are fairlane's own.
fn provoke(provider: &Provider, instance: &Instance, token: &str) -> String {
    let mut own = String::new();
    let mut keep = |(status, text): (u16, String), expect: u16| {
        assert_eq!(status, expect, "{text}");
        own += &text;
    };
    for (is_upstreams, act) in faults() {
        provider.sim.script([Rule::new(act).times(1)]);
        let (status, text) = instance.chat(KEY);
        if !is_upstreams {
            keep((status, text), status);
        }
    }
    let gone = r#"{"model":"gone","messages":[]}"#;
    keep(instance.ask("POST /v1/chat/completions", KEY, gone), 502);
    keep(
        instance.ask("POST /v1/chat/completions", KEY, "{no json"),
        400,
    );
    keep(instance.chat(WRONG), 401);
    keep(instance.chat(SECRET), 401);
    keep(instance.chat(token), 401);
    let by_query = format!("POST /v1beta/models/m:generateContent?key={WRONG}");
    keep(instance.ask(&by_query, "", "{}"), 401);
    let unknown = format!("GET /v1/none?key={WRONG}&token={token}");
    keep(instance.ask(&unknown, KEY, ""), 404);
    let (status, metrics) = instance.ask("GET /metrics", token, "");
    assert!(
        status == 200 && metrics.contains("fairlane_requests_total"),
        "{metrics}"
    );
    own += &metrics;
    for path in [
        "pool",
        "keys",
        "credentials",
        "requests",
        "tokens",
        "settings",
    ] {
        let (status, listed) = instance.ask(&format!("GET /api/admin/{path}"), token, "");
        assert_eq!(status, 200, "{path}: {listed}");
        own += &listed;
    }
    own += &instance
        .ask(&format!("GET /elsewhere?token={token}"), token, "")
        .1;
    own
}

/// The same over HTTP/2, whose library logs on its own.
async fn multiplexed(instance: &Instance) {
    let stream = tokio::net::TcpStream::connect(instance.address).await;
    let io = TokioIo::new(stream.unwrap());
    let executor = TokioExecutor::new();
    let handshake = hyper::client::conn::http2::handshake(executor, io).await;
    let (mut sender, connection) = handshake.unwrap();
    let task = fairlane::tasks::spawn("client", async move { drop(connection.await) });
    for key in [KEY, WRONG] {
        let body = r#"{"model":"gpt-4o-mini","messages":[{"role":"user","content":"a"}]}"#;
        let request = http::Request::post("http://localhost/v1/chat/completions")
            .header("authorization", format!("Bearer {key}"))
            .body(Full::new(Bytes::from(body)));
        let answer = sender.send_request(request.unwrap()).await.unwrap();
        assert_eq!(answer.status(), if key == KEY { 200 } else { 401 });
        answer.into_body().collect().await.unwrap();
    }
    drop(sender);
    task.await.unwrap();
}

/// The request log as text.
fn ledger(home: &Home) -> String {
    let store = Store::open(&home.db()).unwrap();
    let filter = LedgerFilter {
        limit: 100,
        ..LedgerFilter::default()
    };
    let rows = store.read_blocking(|conn| fairlane::store::ledger::requests(conn, &filter));
    store.close();
    let rows = rows.unwrap();
    assert!(rows.len() > 15, "{}", rows.len());
    assert!(rows.iter().any(|r| r.error.is_some()));
    format!("{rows:#?}")
}

#[test]
fn nothing_that_comes_out_shows_a_secret() {
    let provider = Provider::start();
    let (home, instance, token) = world(&provider);
    let own = provoke(&provider, &instance, &token);
    provider.sim.clear_rules();
    provider.runtime.block_on(multiplexed(&instance));
    // It disables the credential, and so comes last.
    let refused = Act {
        message: Some(format!("Incorrect API key provided: {SECRET}")),
        ..Act::status(401)
    };
    provider.sim.script([Rule::new(refused).times(1)]);
    assert_eq!(instance.chat(KEY).0, 401);
    let log = instance.stop();
    assert!(log.contains("TRACE") && log.contains("[secret]"), "{log}");
    let commands = ["check", "settings", "export"].map(|c| home.run(&[c]));
    let printed = commands.map(|ran| ran.out + &ran.err).concat();
    let places = [
        ("answers and metrics", own),
        ("log", log),
        ("ledger", ledger(&home)),
        ("commands", printed),
    ];
    for (place, text) in places {
        for secret in [SECRET, OTHER, KEY, WRONG, &token] {
            // Half of one would be too much as well.
            let line = text.lines().find(|l| l.contains(&secret[..12]));
            assert_eq!(line, None, "in {place}");
        }
    }
}
