//! Bodies up to the limit pass; above it the client can read why not, and upstream sees nothing.
use crate::{
    harness::{KEY, Setup, World, sha256},
    wire::{Reader, Reply, chunked, exchange},
};
use fairlane::sim::{Act, Rule};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;

const LIMIT: usize = 1 << 20;

const FORM: &str = "multipart/form-data; boundary=b";

/// Paths of every surface with the content type of their bodies.
const SURFACES: [(&str, &str); 8] = [
    ("/v1/chat/completions", "application/json"),
    ("/v1/responses", "application/json"),
    ("/v1/embeddings", "application/json"),
    ("/v1/messages", "application/json"),
    ("/v1beta/models/m:generateContent", "application/json"),
    ("/v1/images/edits", FORM),
    ("/v1/audio/transcriptions", FORM),
    ("/v1/files", FORM),
];

async fn limited() -> World {
    let setup = Setup::default().env("FAIRLANE_REQUEST_BODY_LIMIT_MB", "1");
    let world = setup.start().await;
    world.sim.script([Rule::new(Act::default().body("{}"))]);
    world
}

/// A body of exactly `length` bytes that names a model at its end.
fn body_of(length: usize, content_type: &str) -> Vec<u8> {
    let (start, end) = if content_type == FORM {
        (
            "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n",
            "\r\n--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--b--\r\n",
        )
    } else {
        ("{\"input\":\"", "\",\"model\":\"m\"}")
    };
    let filling = "x".repeat(length - start.len() - end.len());
    [start, &filling, end].concat().into_bytes()
}

fn head(path: &str, content_type: &str, line: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nContent-Type: {content_type}\r\n{line}\r\n\r\n"
    )
    .into_bytes()
}

async fn send(
    world: &World,
    (path, content_type): (&str, &str),
    length: usize,
    in_chunks: bool,
) -> Reply {
    let body = body_of(length, content_type);
    let request = if in_chunks {
        let line = "Transfer-Encoding: chunked";
        [head(path, content_type, line), chunked(&body, 65_521)].concat()
    } else {
        let line = format!("Content-Length: {length}");
        [head(path, content_type, &line), body].concat()
    };
    exchange(world, request).await
}

fn message(reply: &Reply) -> String {
    let body: Value = serde_json::from_slice(&reply.body).unwrap();
    body["error"]["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_body_up_to_the_limit_passes_on_every_surface() {
    let world = limited().await;
    for surface in SURFACES {
        for length in [LIMIT - 1, LIMIT] {
            for in_chunks in [false, true] {
                let reply = send(&world, surface, length, in_chunks).await;
                assert_eq!(reply.status, 200, "{surface:?} {length}: {}", reply.text());
                let log = world.seen(surface.0);
                let expect = sha256(&body_of(length, surface.1));
                assert_eq!(log.last().unwrap().body_sha256, expect, "{surface:?}");
            }
        }
    }
    world.end().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_readably_on_every_surface() {
    let world = limited().await;
    for surface in SURFACES {
        for length in [LIMIT + 1, 10 * LIMIT] {
            for in_chunks in [false, true] {
                let reply = send(&world, surface, length, in_chunks).await;
                assert_eq!(
                    (reply.status, reply.is_whole),
                    (413, true),
                    "{surface:?} {length}"
                );
                assert_eq!(reply.header("x-fairlane-reason"), "request_too_large");
                assert_eq!(reply.header("x-should-retry"), "false");
                let message = message(&reply);
                assert!(message.contains("1 MiB"), "{message}");
                assert!(message.contains("request_body_limit_mb"), "{message}");
            }
        }
    }
    assert!(world.sim.log().is_empty(), "upstream saw something");
    world.end().await;
}

#[tokio::test]
async fn a_refused_body_takes_the_protocols_own_shape() {
    let world = limited().await;
    let check = async |path: &str, pointer: &str, expect: &str| {
        let reply = send(&world, (path, "application/json"), LIMIT + 1, false).await;
        let body: Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(body.pointer(pointer).unwrap(), expect, "{body}");
    };
    check("/v1/responses", "/error/code", "request_too_large").await;
    check("/v1/messages", "/error/type", "request_too_large").await;
    let gemini = "/v1beta/models/m:generateContent";
    check(gemini, "/error/status", "INVALID_ARGUMENT").await;
    world.end().await;
}

#[tokio::test]
async fn a_client_that_waits_for_leave_gets_it_and_sends_its_body() {
    let world = limited().await;
    let (path, content_type) = SURFACES[0];
    let body = body_of(300_000, content_type);
    let line = format!("Content-Length: {}\r\nExpect: 100-continue", body.len());
    let mut stream = world.raw().await;
    let head = head(path, content_type, &line);
    stream.write_all(&head).await.unwrap();
    let mut reader = Reader::new(&mut stream);
    let interim = reader.head().await;
    assert_eq!(interim.status, 100);
    stream.write_all(&body).await.unwrap();
    let reply = Reader::new(&mut stream).reply(false).await;
    assert_eq!(reply.status, 200);
    let log = world.sim.log();
    assert_eq!(log[0].body_sha256, sha256(&body));
    assert_eq!(log[0].header("expect"), None);
    world.end().await;
}

#[tokio::test]
async fn a_client_that_waits_for_leave_is_refused_before_it_sends() {
    let world = limited().await;
    let (path, content_type) = SURFACES[0];
    let check = async |length: usize, key: &str, expect: u16| {
        let line = format!("Content-Length: {length}\r\nExpect: 100-continue");
        let head = String::from_utf8(head(path, content_type, &line)).unwrap();
        let reply = exchange(&world, head.replace(KEY, key)).await;
        assert_eq!(
            (&*reply.interim, reply.status),
            (&[][..], expect),
            "{reply:?}"
        );
        assert!(reply.is_whole);
    };
    check(LIMIT + 1, KEY, 413).await;
    check(100, "fl-wrong-key-000000000000", 401).await;
    assert!(world.sim.log().is_empty());
    world.end().await;
}

#[tokio::test]
async fn a_body_that_breaks_off_reaches_nobody() {
    let world = limited().await;
    let (path, content_type) = SURFACES[0];
    let body = body_of(1000, content_type);
    let mut request = head(path, content_type, "Content-Length: 1000");
    request.extend_from_slice(&body[..999]);
    let mut stream = world.raw().await;
    stream.write_all(&request).await.unwrap();
    stream.shutdown().await.unwrap();
    drop(stream);
    let reply = send(&world, SURFACES[0], 1000, false).await;
    assert_eq!(reply.status, 200);
    assert_eq!(world.sim.log().len(), 1);
    world.end().await;
}
