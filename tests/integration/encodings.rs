//! Packed bodies: looked into on the way up, left alone in both directions, and never unpacked
//! beyond the limit.
use crate::harness::{Answer, Setup, World, chat, post, request, sha256};
use fairlane::sim::{Act, Encoding, Framing, Rule};
use flate2::{
    Compression,
    write::{DeflateEncoder, GzEncoder, ZlibEncoder},
};
use http::{Method, StatusCode};
use http_body_util::Full;
use std::io::Write as _;

/// Two gibibytes of zeros, packed twice.
const BOMB: &[u8] = include_bytes!("golden/bomb.gz.gz");

/// `{"a":"brotli, and nobody here can read it"}` as a stored block of brotli.
const BROTLI: &[u8] = include_bytes!("golden/small.br");

const CHAT: &str = "/v1/chat/completions";

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn zlib(body: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

/// What some clients call deflate.
fn bare_deflate(body: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn zstd(body: &[u8]) -> Vec<u8> {
    zstd::encode_all(body, 3).unwrap()
}

async fn send(world: &World, path: &str, encoding: &str, body: &[u8]) -> Answer {
    let asked = request(Method::POST, path)
        .header("content-type", "application/json")
        .header("content-encoding", encoding)
        .body(Full::from(body.to_vec()))
        .unwrap();
    world.answer(asked).await
}

#[tokio::test]
async fn packed_requests_are_understood_and_travel_as_they_came() {
    // Only a request whose model was read finds its way here.
    let world = Setup::default()
        .with(
            "/endpoints/0/models",
            serde_json::json!([{"model": "packed"}]),
        )
        .start()
        .await;
    world.sim.script([Rule::new(Act::default().body("{}"))]);
    let plain = format!(
        r#"{{"messages":[{{"content":"{}"}}],"model":"packed"}}"#,
        "h\\u00e9 漢🌍 ".repeat(9000)
    );
    let plain = plain.as_bytes();
    let gemini = "/v1beta/models/packed:generateContent";
    for path in [CHAT, "/v1/responses", "/v1/messages", gemini] {
        for (encoding, body) in [
            ("identity", plain.to_vec()),
            ("gzip", gzip(plain)),
            ("X-GZip", gzip(plain)),
            ("deflate", zlib(plain)),
            ("deflate", bare_deflate(plain)),
            ("zstd", zstd(plain)),
            ("gzip, zstd", zstd(&gzip(plain))),
        ] {
            let answer = send(&world, path, encoding, &body).await;
            assert_eq!(
                answer.status,
                StatusCode::OK,
                "{path} {encoding}: {answer:?}"
            );
            let log = world.seen(path);
            let last = log.last().unwrap();
            assert_eq!(last.header("content-encoding"), Some(encoding), "{path}");
            assert_eq!(last.body_sha256, sha256(&body), "{path} {encoding}");
            assert_eq!(
                last.header("content-length"),
                Some(&*body.len().to_string())
            );
        }
    }
    world.end().await;
}

#[tokio::test]
async fn a_packed_body_of_another_model_is_refused_as_a_plain_one_would_be() {
    let world = Setup::default()
        .with(
            "/endpoints/0/models",
            serde_json::json!([{"model": "packed"}]),
        )
        .start()
        .await;
    let answer = send(&world, CHAT, "zstd", &zstd(br#"{"model":"other"}"#)).await;
    assert_eq!(answer.reason(), "model_not_found", "{answer:?}");
    assert!(world.seen(CHAT).is_empty());
    world.end().await;
}

#[tokio::test]
async fn an_encoding_that_nobody_can_read_is_refused_by_its_name() {
    let world = World::start().await;
    for (encoding, named) in [
        ("br", "br"),
        ("gzip, x-zip9", "x-zip9"),
        ("compress", "compress"),
    ] {
        let answer = send(&world, CHAT, encoding, b"whatever").await;
        assert_eq!(
            answer.status,
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "{answer:?}"
        );
        assert_eq!(answer.reason(), "unsupported_encoding");
        let message = answer.json()["error"]["message"].to_string();
        assert!(
            message.contains(named) && message.contains("zstd"),
            "{message}"
        );
    }
    assert!(world.seen(CHAT).is_empty());
    world.end().await;
}

#[tokio::test]
async fn bytes_that_are_not_what_their_encoding_says_are_refused() {
    let world = World::start().await;
    let whole = chat(false).to_string();
    let (gzip, zlib, zstd) = (
        gzip(whole.as_bytes()),
        zlib(whole.as_bytes()),
        zstd(whole.as_bytes()),
    );
    let mut bent = gzip.clone();
    *bent.last_mut().unwrap() ^= 1;
    for (encoding, body) in [
        ("gzip", whole.as_bytes()),
        ("zstd", whole.as_bytes()),
        ("gzip", &zstd[..]),
        ("gzip", &bent),
        ("gzip", &gzip[..gzip.len() - 9]),
        ("deflate", &zlib[..zlib.len() - 5]),
        ("zstd", &zstd[..zstd.len() - 1]),
    ] {
        let answer = send(&world, CHAT, encoding, body).await;
        assert_eq!(
            answer.status,
            StatusCode::BAD_REQUEST,
            "{encoding}: {answer:?}"
        );
        assert_eq!(answer.reason(), "invalid_request");
        let message = answer.json()["error"]["message"].to_string();
        assert!(message.contains(encoding), "{message}");
    }
    assert!(world.seen(CHAT).is_empty());
    world.end().await;
}

/// Unpacked whole, the bomb would keep this build busy for minutes and take two gibibytes.
#[tokio::test]
async fn a_bomb_is_stopped_at_the_limit() {
    assert!(BOMB.len() < 10 << 10);
    let world = Setup::default()
        .env("FAIRLANE_REQUEST_BODY_LIMIT_MB", "1")
        .start()
        .await;
    for path in [
        CHAT,
        "/v1/messages",
        "/v1beta/models/m:generateContent",
        "/v1/files",
    ] {
        let answer = send(&world, path, "gzip, gzip", BOMB).await;
        assert_eq!(
            answer.status,
            StatusCode::PAYLOAD_TOO_LARGE,
            "{path}: {answer:?}"
        );
        assert_eq!(answer.reason(), "request_too_large");
    }
    assert!(world.sim.log().is_empty());
    world.end().await;
}

#[tokio::test]
async fn packed_answers_reach_the_client_as_upstream_packed_them() {
    let world = World::start().await;
    let json = format!("{{\"text\":\"{}\"}}", "h\\u00e9 漢🌍 ".repeat(2000));
    let events = include_str!("golden/chat.sse");
    let json_type = "application/json";
    let cases = [
        ("gzip", json_type, gzip(json.as_bytes())),
        ("deflate", json_type, zlib(json.as_bytes())),
        ("zstd", json_type, zstd(json.as_bytes())),
        ("br", json_type, BROTLI.to_vec()),
        ("gzip", "text/event-stream", gzip(events.as_bytes())),
        ("zstd", "text/event-stream", zstd(events.as_bytes())),
        ("br", "text/event-stream", BROTLI.to_vec()),
    ];
    for (encoding, content_type, body) in cases {
        for framing in [Framing::ContentLength, Framing::Chunked] {
            let act = Act {
                framing: Some(framing),
                split_every: Some(97),
                ..Act::default().body(&*body)
            };
            let act = act
                .header("content-encoding", encoding)
                .header("content-type", content_type);
            world.sim.clear_rules();
            world.sim.script([Rule::new(act)]);
            let answer = world.post(CHAT, &chat(true)).await;
            assert_eq!(answer.status, StatusCode::OK);
            assert_eq!(answer.header("content-encoding"), encoding);
            assert_eq!(
                sha256(&answer.body),
                sha256(&body),
                "{encoding} {content_type} {framing:?}"
            );
        }
    }
    world.end().await;
}

#[tokio::test]
async fn usage_is_read_through_a_packed_stream() {
    let world = World::start().await;
    for encoding in [Encoding::Gzip, Encoding::Deflate, Encoding::Zstd] {
        let act = Act {
            encoding: Some(encoding),
            split_every: Some(7),
            ..Act::chunks(include_str!("golden/messages.sse").split_inclusive("\n\n"))
        };
        world.sim.clear_rules();
        world.sim.script([Rule::new(act)]);
        let answer = world
            .answer(post("/v1/messages", r#"{"model":"m","stream":true}"#))
            .await;
        assert_eq!(answer.header("content-encoding"), encoding.name());
        let row = world.ledger().await.swap_remove(0);
        assert_eq!(
            (row.input_tokens, row.output_tokens),
            (Some(11), Some(7)),
            "{encoding:?}"
        );
    }
    world.end().await;
}

#[tokio::test]
async fn nobody_gets_an_encoding_that_it_did_not_offer() {
    let world = World::start().await;
    for offered in [None, Some("br;q=0.5, identity"), Some("")] {
        let mut asked = request(Method::POST, CHAT).header("content-type", "application/json");
        if let Some(offered) = offered {
            asked = asked.header("accept-encoding", offered);
        }
        let asked = asked.body(Full::from(chat(false).to_string())).unwrap();
        assert_eq!(world.answer(asked).await.status, StatusCode::OK);
        let log = world.seen(CHAT);
        assert_eq!(log.last().unwrap().header("accept-encoding"), offered);
    }
    world.end().await;
}
