//! A model that has another name upstream is asked for under that one, and nothing else changes.
use crate::harness::{Answer, Setup, World, post, request, sha256};
use fairlane::sim::{Act, Rule};
use flate2::{Compression, write::GzEncoder};
use http::{Method, StatusCode};
use http_body_util::Full;
use serde_json::json;
use std::io::Write as _;

const CHAT: &str = "/v1/chat/completions";

/// The credential knows "fast" and "team/fast" under other names upstream.
async fn renaming() -> World {
    let rows = json!([
        {"model": "fast", "upstream_model": "real \"漢\"/1"},
        {"model": "team/fast", "upstream_model": "real/2"},
        {"model": "same"},
    ]);
    let world = Setup::default()
        .with("/credentials/0/models", rows)
        .start()
        .await;
    world
        .sim
        .script([Rule::new(Act::default().body(r#"{"model":"fast"}"#))]);
    world
}

/// The provider got exactly this, and the answer is its own.
fn check_sent(world: &World, answer: &Answer, target: &str, body: &[u8]) {
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    assert_eq!(answer.body, r#"{"model":"fast"}"#);
    let log = world.sim.log();
    let last = log.last().unwrap();
    assert_eq!(last.target, target);
    let got = last.body.as_ref().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&got.0),
        String::from_utf8_lossy(body)
    );
    assert_eq!(last.body_sha256, sha256(body));
    assert_eq!(
        last.header("content-length"),
        Some(&*body.len().to_string())
    );
}

const BEFORE: &str = "\n{ \"model\":\"one\",\"x\":{\"model\":\"fast\"},\"n\":1.50,\"u\":\"h\\u00e9 漢\",\"model\" : ";
const AFTER: &str = ",\"messages\":[{\"model\":\"fast\"}] }\r\n";

#[tokio::test]
async fn another_name_upstream_changes_the_model_in_json_and_nothing_else() {
    let world = renaming().await;
    let expect = [BEFORE, r#""real \"漢\"/1""#, AFTER].concat();
    for path in [CHAT, "/v1/responses", "/v1/messages"] {
        for name in [r#""fast""#, r#""f\u0061st""#] {
            let body = [BEFORE, name, AFTER].concat();
            let answer = world.answer(post(path, body)).await;
            check_sent(&world, &answer, path, expect.as_bytes());
        }
        let same = [BEFORE, "\"s\\u0061me\"", AFTER].concat();
        let answer = world.answer(post(path, same.clone())).await;
        check_sent(&world, &answer, path, same.as_bytes());
    }
    let row = world.ledger().await.swap_remove(1);
    assert_eq!(
        (row.model.as_deref(), row.upstream_model.as_deref()),
        (Some("fast"), Some("real \"漢\"/1"))
    );
    world.end().await;
}

#[tokio::test]
async fn another_name_upstream_changes_the_model_in_a_form_and_nothing_else() {
    let world = renaming().await;
    let form = |model: &str| {
        let file = b"\xff\x00\r\n--b\r\nmodel=fast\r\n--bb--\r\n\x80".as_slice();
        let start =
            "--bx\r\ncontent-disposition: form-data; name=\"image\"; filename=\"fast\"\r\n\r\n";
        let end = format!(
            "\r\n--bx\r\nContent-Disposition: form-data; name=model\r\n\r\n{model}\r\n\
             --bx\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\nfast\r\n--bx--\r\n"
        );
        [start.as_bytes(), file, end.as_bytes()].concat()
    };
    let content_type = "multipart/form-data; boundary=\"bx\"";
    let asked = request(Method::POST, "/v1/images/edits").header("content-type", content_type);
    let answer = world
        .answer(asked.body(Full::from(form("fast"))).unwrap())
        .await;
    check_sent(&world, &answer, "/v1/images/edits", &form("real \"漢\"/1"));
    assert_eq!(
        world.sim.log()[0].header("content-type"),
        Some(content_type)
    );
    world.end().await;
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn another_name_upstream_reaches_into_packed_bodies() {
    let world = renaming().await;
    let send = async |name: &str| {
        let body = gzip(&[BEFORE, name, AFTER].concat());
        let asked = request(Method::POST, CHAT).header("content-encoding", "gzip");
        (
            world
                .answer(asked.body(Full::from(body.clone())).unwrap())
                .await,
            body,
        )
    };
    let (answer, _) = send("\"fast\"").await;
    let expect = [BEFORE, r#""real \"漢\"/1""#, AFTER].concat();
    check_sent(&world, &answer, CHAT, expect.as_bytes());
    assert_eq!(world.sim.log()[0].header("content-encoding"), None);
    // What keeps its name stays packed as it came.
    let (answer, body) = send("\"same\"").await;
    check_sent(&world, &answer, CHAT, &body);
    assert_eq!(world.sim.log()[1].header("content-encoding"), Some("gzip"));
    world.end().await;
}

#[tokio::test]
async fn another_name_upstream_changes_the_model_in_the_path_and_nothing_else() {
    let world = renaming().await;
    let body = r#"{"model":"fast","contents":[]}"#;
    for (asked, expect) in [
        (
            "/v1beta/models/fast:generateContent",
            "/v1beta/models/real%20%22%E6%BC%A2%22%2F1:generateContent",
        ),
        (
            "/v1beta/models/team%2Ffast:streamGenerateContent?alt=sse&x=%2f",
            "/v1beta/models/real%2F2:streamGenerateContent?alt=sse&x=%2f",
        ),
        (
            "/v1/models/team/fast:countTokens",
            "/v1/models/real%2F2:countTokens",
        ),
        (
            "/v1beta/models/s%61me:generateContent",
            "/v1beta/models/s%61me:generateContent",
        ),
    ] {
        let answer = world.answer(post(asked, body)).await;
        check_sent(&world, &answer, expect, body.as_bytes());
        let packed = gzip(body);
        let asked = request(Method::POST, asked).header("content-encoding", "gzip");
        let asked = asked.body(Full::from(packed.clone())).unwrap();
        check_sent(&world, &world.answer(asked).await, expect, &packed);
    }
    world.end().await;
}
