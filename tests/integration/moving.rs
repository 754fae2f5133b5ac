//! Moving on: with the same body byte for byte where upstream refused, and not at all where the
//! work may have been done or the client has seen a byte.
use crate::{
    harness::{KEY, World, chat, post, sha256},
    pool::{CHAT, key_of, limited, ranked, rows_and_last, secret, who},
    wire::{Reply, chunked, exchange},
};
use fairlane::{
    domain::{ledger::Outcome, reason::Reason},
    sim::{Act, Close, Rule},
};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpSocket;

const MIB: usize = 1 << 20;

/// Bytes of which no part looks like another, as files are.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

fn json_of(length: usize) -> Vec<u8> {
    let (start, end) = ("{\"input\": \"", "\",\"model\":  \"m\"}");
    let digits = b"0123456789abcdef";
    let filling = noise(length - start.len() - end.len());
    let filling = filling.iter().map(|byte| digits[usize::from(byte % 16)]);
    let filling: Vec<u8> = filling.collect();
    [start.as_bytes(), &filling, end.as_bytes()].concat()
}

fn form_of(length: usize) -> Vec<u8> {
    let start = "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n\
        --b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n";
    let end = "\r\n--b--\r\n";
    let file = noise(length - start.len() - end.len());
    [start.as_bytes(), &file, end.as_bytes()].concat()
}

/// Sends a body with the key of row `n`.
async fn upload(world: &World, n: usize, (path, kind): (&str, &str), body: Framed<'_>) -> Reply {
    let (line, bytes) = match body {
        Framed::Length(body) => (format!("Content-Length: {}", body.len()), body.to_vec()),
        Framed::Chunked(body) => (
            "Transfer-Encoding: chunked".to_owned(),
            chunked(body, 65_521),
        ),
    };
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Type: {kind}\r\n{line}\r\n\r\n",
        key_of(n)
    );
    exchange(world, [head.as_bytes(), &bytes].concat()).await
}

#[derive(Clone, Copy)]
enum Framed<'b> {
    Length(&'b [u8]),
    Chunked(&'b [u8]),
}

/// A refusal before the body, after a part of it, and after all of it; each time another account
/// gets every byte.
async fn check_body(surface: (&str, &str), framed: Framed<'_>) {
    let (Framed::Length(body) | Framed::Chunked(body)) = framed;
    let acts = [
        Act {
            early: true,
            ..limited("600")
        },
        Act {
            early_after_bytes: Some(MIB as u64),
            ..limited("600")
        },
        limited("600"),
    ];
    let expect = sha256(body);
    let world = rows_and_last(acts.len()).start().await;
    world.sim.record(fairlane::sim::Recording::Hashes);
    let last = Rule::new(Act::default().body("{}")).credential(&secret("last"));
    world.sim.script([last]);
    for (n, act) in acts.into_iter().enumerate() {
        let name = format!("row{n}");
        world
            .sim
            .script([Rule::new(act.clone()).credential(&secret(&name))]);
        let reply = upload(&world, n, surface, framed).await;
        assert_eq!(reply.status, 200, "{act:?}: {}", reply.text());
        let log = &world.seen(surface.0)[2 * n..];
        let asked: Vec<_> = log.iter().map(who).collect();
        assert_eq!(asked, [&*name, "last"]);
        assert_eq!(log[0].is_complete, n == 2, "{act:?}");
        assert!(log[1].is_complete, "{act:?}");
        assert_eq!(log[1].body_bytes, body.len() as u64, "{act:?}");
        assert_eq!(log[1].body_sha256, expect, "{act:?}");
        if let Some(length) = log[1].header("content-length") {
            assert_eq!(length, body.len().to_string());
        }
        world.cooldown(&name).await;
    }
    world.end().await;
}

#[tokio::test]
async fn a_large_body_of_stated_length_moves_byte_for_byte() {
    let body = json_of(20 * MIB);
    check_body(
        ("/v1/embeddings", "application/json"),
        Framed::Length(&body),
    )
    .await;
}

#[tokio::test]
async fn a_large_body_in_chunks_moves_byte_for_byte() {
    let body = json_of(20 * MIB);
    check_body(
        ("/v1/responses", "application/json"),
        Framed::Chunked(&body),
    )
    .await;
}

#[tokio::test]
async fn a_form_as_large_as_may_be_moves_byte_for_byte() {
    let body = form_of(64 * MIB);
    let surface = ("/v1/images/edits", "multipart/form-data; boundary=b");
    check_body(surface, Framed::Length(&body)).await;
}

/// Work that costs something, on each surface.
fn paid() -> [(&'static str, Value); 6] {
    [
        (CHAT, chat(true)),
        ("/v1/responses", json!({"model": "m", "input": "x"})),
        (
            "/v1/images/generations",
            json!({"model": "m", "prompt": "x"}),
        ),
        (
            "/v1/audio/speech",
            json!({"model": "m", "input": "x", "voice": "v"}),
        ),
        (
            "/v1/messages",
            json!({"model": "m", "max_tokens": 3, "messages": []}),
        ),
        (
            "/v1beta/models/m:generateContent",
            json!({"contents": [{"parts": [{"text": "x"}]}]}),
        ),
    ]
}

/// The shape in which a surface tells errors.
fn check_shape(path: &str, error: &Value) {
    let is_text = |pointer: &str| error.pointer(pointer).is_some_and(Value::is_string);
    let is_right = match path {
        "/v1/messages" => error["type"] == "error" && is_text("/error/type"),
        _ if path.starts_with("/v1beta") => is_text("/error/status"),
        _ => is_text("/error/type") && is_text("/error/code"),
    };
    assert!(is_right && is_text("/error/message"), "{path}: {error}");
}

/// Work that was taken up and then lost: one attempt, and an answer that says so.
async fn check_not_repeated(act: Act, status: u16, reason: Reason) {
    let world = ranked(&["two"])
        .env("FAIRLANE_HEADER_TIMEOUT_SECONDS", "1")
        .env("FAIRLANE_BREAKER_FAILURE_THRESHOLD", "100")
        .start()
        .await;
    world.sim.script([Rule::new(act.clone())]);
    for (path, body) in paid() {
        let answer = world.post(path, &body).await;
        let told = (answer.status.as_u16(), answer.reason());
        assert_eq!(told, (status, reason.code()), "{path} {act:?}");
        assert_eq!(answer.header("x-should-retry"), "false");
        let error = answer.json();
        check_shape(path, &error);
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains("may have been carried out"), "{message}");
        let log = world.seen(path);
        assert_eq!(log.len(), 1, "{path}: sent more than once: {act:?}");
        assert!(log[0].is_complete);
    }
    world.check_unharmed().await;
    world.end().await;
}

#[tokio::test]
async fn paid_work_of_unknown_outcome_is_never_sent_twice() {
    let lost = (502, Reason::UpstreamAmbiguous);
    for act in [
        Act::close(Close::BeforeHeaders),
        Act::close(Close::BeforeHeaders).reset(),
        Act::raw("HTTP/1.1 20"),
        Act::raw("<html>not found</html>"),
        Act::default().header("x-long", &"y".repeat(2 * MIB)),
    ] {
        check_not_repeated(act, lost.0, lost.1).await;
    }
}

#[tokio::test]
async fn paid_work_that_is_never_answered_is_never_sent_twice() {
    let silence = Act::delayed_ms(3_600_000);
    check_not_repeated(silence, 504, Reason::UpstreamTimeout).await;
}

#[tokio::test]
async fn paid_work_that_may_have_been_done_is_repeated_only_if_the_operator_says_so() {
    for (setting, statuses) in [("off", [504, 502, 500]), ("on", [200, 200, 200])] {
        let world = ranked(&["two"])
            .env("FAIRLANE_RETRY_UPSTREAM_5XX", setting)
            .env("FAIRLANE_BREAKER_FAILURE_THRESHOLD", "100")
            .start()
            .await;
        for (status, expect) in [504, 502, 500].into_iter().zip(statuses) {
            for (path, body) in paid() {
                world.sim.clear_rules();
                let act = Act::status(status);
                world
                    .sim
                    .script([Rule::new(act).credential(&secret("one"))]);
                let before = world.seen(path).len();
                let answer = world.post(path, &body).await;
                assert_eq!(answer.status.as_u16(), expect, "{path} {setting}");
                let asked = &world.asked(path)[before..];
                let all = ["one", "two"];
                let expected = if expect == 200 { &all[..] } else { &all[..1] };
                assert_eq!(asked, expected, "{path} {status}");
            }
        }
        world.check_unharmed().await;
        world.end().await;
    }
}

/// An answer that breaks off is cut off here as well, and asked for once.
async fn check_cut(path: &str, body: &Value, act: Act, expect: &[u8]) {
    let world = ranked(&["two"]).start().await;
    world
        .sim
        .script([Rule::new(act.clone()).credential(&secret("one"))]);
    let text = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nContent-Length: {}\r\n\r\n",
        text.len()
    );
    let reply = exchange(&world, head + &text).await;
    let status = act.status.unwrap_or(200);
    assert_eq!((reply.status, reply.is_whole), (status, false), "{act:?}");
    assert_eq!(reply.body, expect, "{act:?}");
    assert_eq!(world.asked(path), ["one"], "{act:?}");
    let row = world.ledger().await.swap_remove(0);
    assert_eq!((row.outcome, row.attempts), (Outcome::Broken, 1));
    world.end().await;
}

#[tokio::test]
async fn once_the_client_has_seen_a_byte_nothing_is_sent_again() {
    let events: Vec<_> = include_str!("golden/chat.sse")
        .split_inclusive("\n\n")
        .collect();
    let broken = |pieces: &[&str], close| Act {
        close_after: Some(pieces.len()),
        close: Some(close),
        rst: true,
        ..Act::chunks([pieces, &["data: never\n\n"]].concat())
            .header("content-type", "text/event-stream")
    };
    let two = events[..2].concat();
    check_cut(
        CHAT,
        &chat(true),
        broken(&events[..2], Close::MidBody),
        two.as_bytes(),
    )
    .await;
    let comment = ": one moment\n\n";
    let act = broken(&[comment], Close::MidBody);
    check_cut(CHAT, &chat(true), act, comment.as_bytes()).await;
    let headers_alone = broken(&[], Close::AfterHeaders);
    check_cut(CHAT, &chat(true), headers_alone, b"").await;
}

#[tokio::test]
async fn a_plain_answer_that_breaks_off_is_no_answer_and_is_not_asked_for_again() {
    let raw = |tail: &str| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
        Act::raw(format!("{head}{tail}"))
    };
    let chunk = "Transfer-Encoding: chunked\r\n\r\n7\r\n{\"a\":1,\r\n";
    let size = raw(&format!("{chunk}nonsense\r\n"));
    check_cut(CHAT, &chat(false), size, b"{\"a\":1,").await;
    let short = raw("Content-Length: 70\r\n\r\n{\"a\":1,");
    check_cut(CHAT, &chat(false), short, b"{\"a\":1,").await;
}

#[tokio::test]
async fn a_refusal_whose_body_breaks_off_is_a_refusal_still() {
    let world = ranked(&["two"]).start().await;
    let half = Act {
        claim_bytes: Some(1000),
        ..limited("600").body("{\"error\":")
    };
    world.sim.script([Rule::new(Act {
        close: Some(Close::MidBody),
        ..half
    })
    .credential(&secret("one"))]);
    assert_eq!(world.post(CHAT, &chat(false)).await.status, StatusCode::OK);
    assert_eq!(world.asked(CHAT), ["one", "two"]);
    assert_eq!(world.cooldown("one").await.length_ms, 600_000);
    world.end().await;
}

#[tokio::test]
async fn an_error_in_the_dress_of_a_success_is_passed_on_and_recorded_as_a_failure() {
    let world = ranked(&["two"]).start().await;
    let check = async |kind: &str, body: &str| {
        world.sim.clear_rules();
        let act = Act::default().header("content-type", kind).body(body);
        world.sim.script([Rule::new(act).path(CHAT)]);
        let before = world.seen(CHAT).len();
        let answer = world.post(CHAT, &chat(false)).await;
        assert_eq!((answer.status.as_u16(), answer.reason()), (200, ""));
        assert_eq!(answer.body, body);
        assert_eq!(answer.header("content-type"), kind);
        assert_eq!(world.seen(CHAT).len(), before + 1, "{body}");
        let row = world.ledger().await.swap_remove(0);
        assert_eq!((row.outcome, row.attempts), (Outcome::Failed, 1), "{body}");
    };
    let error = r#"{"error": {"code":502, "message":"upstream of upstream"}}"#;
    check("application/json", error).await;
    check("application/json", "").await;
    check("text/html", "<html><body>Log in</body></html>").await;
    world.check_unharmed().await;
    world.end().await;
}

#[tokio::test]
async fn moving_ends_with_the_attempts_and_the_last_refusal_is_passed_on() {
    let world = ranked(&["two", "three", "four", "five"]).start().await;
    for name in ["one", "two", "three", "four", "five"] {
        let act = Act::status(529).header("x-by", name).body(name);
        world.sim.script([Rule::new(act).credential(&secret(name))]);
    }
    let answer = world.post(CHAT, &chat(false)).await;
    assert_eq!((answer.status.as_u16(), answer.reason()), (529, ""));
    assert_eq!(
        (&*answer.body, answer.header("x-by")),
        (&b"three"[..], "three")
    );
    assert_eq!(world.asked(CHAT), ["one", "two", "three"]);
    let row = world.ledger().await.swap_remove(0);
    assert_eq!((row.outcome, row.attempts), (Outcome::Failed, 3));
    world.end().await;
}

#[tokio::test]
async fn a_real_refusal_is_told_rather_than_a_connection_that_failed_and_doubt_before_both() {
    let closed = TcpSocket::new_v4().unwrap();
    closed.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = format!("http://{}", closed.local_addr().unwrap());
    let protocols = json!(["openai"]);
    let world = ranked(&["two", "three"])
        .with(
            "/endpoints",
            json!([
                {"name": "sim", "base_url": "{base}", "protocols": protocols},
                {"name": "closed", "base_url": address, "protocols": protocols},
            ]),
        )
        .with("/credentials/1/endpoints", json!(["closed"]))
        .start()
        .await;
    let refusal = "{ \"error\": {\"message\":\"busy\"}}";
    let busy = Act::status(529).body(refusal);
    world.sim.script([
        Rule::new(busy.clone()).credential(&secret("one")),
        Rule::new(busy).credential(&secret("three")).times(1),
        Rule::new(Act::close(Close::BeforeHeaders)).credential(&secret("three")),
    ]);
    let told = world.post(CHAT, &chat(false)).await;
    assert_eq!(
        (told.status.as_u16(), &*told.body),
        (529, refusal.as_bytes())
    );
    let doubt = world.answer(post(CHAT, chat(false).to_string())).await;
    assert_eq!(doubt.reason(), "upstream_ambiguous");
    assert_eq!(world.asked(CHAT), ["one", "three", "one", "three"]);
    drop(closed);
    world.end().await;
}
