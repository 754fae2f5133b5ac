//! The shapes as golden files: what a request gets, headers and pieces and all.
use bytes::BytesMut;

use super::*;
use crate::sim::{
    Config,
    reply::Body,
    request::{BodyReader, take_head},
};

/// Asks each in turn, on one simulator, and compares all answers with the snapshot `name`.
fn check(name: &str, asks: &[(&str, &str)]) {
    let shared = Shared::new(Config {
        seed: Some(0),
        ..Config::default()
    });
    let answers = asks
        .iter()
        .map(|(line, body)| format!("> {line}\n> {body}\n{}", answered(&shared, line, body)));
    insta::assert_snapshot!(name, answers.collect::<Vec<_>>().join("\n\n"));
}

fn answered(shared: &Shared, line: &str, body: &str) -> String {
    // Header lines follow the request line after a semicolon.
    let mut lines = line.split("; ");
    let line = lines.next().unwrap();
    let more = lines.flat_map(|l| [l, "\r\n"]).collect::<String>();
    let body = body.replace('\n', "\r\n");
    let length = body.len();
    let raw =
        format!("{line} HTTP/1.1\r\nx-api-key: a\r\nContent-Length: {length}\r\n{more}\r\n{body}");
    let mut buffer = BytesMut::from(&*raw);
    let head = take_head(&mut buffer).unwrap().unwrap();
    let mut reader = BodyReader::new(head.framing, 1 << 20, false);
    assert_eq!(reader.feed(&mut buffer), Ok(true));
    let received = reader.finish();
    shown(&answer(
        &Call::new(shared, &head, "a", &received),
        None,
        None,
    ))
}

fn shown(reply: &Reply) -> String {
    let headers = reply.headers.iter().map(|(n, v)| format!("{n}: {v}\n"));
    let text = |bytes: &bytes::Bytes| match std::str::from_utf8(bytes) {
        Ok(text) => text.replace("\r\n", "~\n"),
        Err(_) => format!(
            "<{} bytes, sha256 {}>",
            bytes.len(),
            crate::sim::trace::hex(crate::digest::sha256(bytes))
        ),
    };
    let body = match &reply.body {
        Body::Whole(bytes) => text(bytes),
        Body::Pieces(pieces) => pieces.iter().map(text).collect::<Vec<_>>().join("|"),
        Body::Fill(bytes) => format!("<fill {bytes}>"),
    };
    format!("{}\n{}\n{body}", reply.status, headers.collect::<String>())
}

const FORM: &str = "; Content-Type: multipart/form-data; boundary=b";

fn form(line: &str) -> String {
    format!("{line}{}", FORM.replace("; b", ";b"))
}

fn fields(fields: &[(&str, &str)]) -> String {
    let part = |(name, value): &(&str, &str)| match *name {
        "image" | "file" => {
            format!(
                "--b\nContent-Disposition: form-data; name=\"{name}\"; filename=\"f\"\n\n{value}\n"
            )
        }
        _ => format!("--b\nContent-Disposition: form-data; name=\"{name}\"\n\n{value}\n"),
    };
    format!("{}--b--\n", fields.iter().map(part).collect::<String>())
}

#[test]
fn chat_completions_have_their_shape() {
    let path = "POST /v1/chat/completions";
    let text =
        r#"[{"role":"system","content":"be brief"},{"role":"user","content":"Hello there world"}]"#;
    check(
        "chat",
        &[
            (path, &format!(r#"{{"model":"m/1","messages":{text}}}"#)),
            (
                path,
                &format!(r#"{{"model":"m","max_tokens":2,"messages":{text}}}"#),
            ),
            (
                path,
                &format!(r#"{{"model":"m","stream":true,"messages":{text}}}"#),
            ),
            (
                path,
                &format!(
                    r#"{{"model":"m","stream":true,"stream_options":{{"include_usage":true}},"messages":{text}}}"#
                ),
            ),
            (path, r#"{"messages":[]}"#),
            (path, "{"),
        ],
    );
}

#[test]
fn completions_have_their_shape() {
    let path = "POST /v1/completions";
    check(
        "completions",
        &[
            (path, r#"{"model":"m","prompt":"once upon a time"}"#),
            (path, r#"{"model":"m","prompt":["a b"],"stream":true}"#),
            (path, r#"{"model":"m"}"#),
        ],
    );
}

#[test]
fn responses_have_their_shape() {
    let path = "POST /v1/responses";
    check(
        "responses",
        &[
            (path, r#"{"model":"m","input":"Hello there"}"#),
            (
                path,
                r#"{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"Hi you"}]}],"stream":true,"store":false}"#,
            ),
            (
                path,
                r#"{"model":"m","input":"a b c","max_output_tokens":1}"#,
            ),
            (path, r#"{"model":"m","input":"a","background":true}"#),
            ("POST /v1/responses/compact", r#"{"model":"m","input":"a"}"#),
            (
                "POST /v1/responses/input_tokens",
                r#"{"model":"m","input":"a"}"#,
            ),
            ("GET /v1/responses/resp_none", ""),
        ],
    );
}

#[test]
fn embeddings_and_moderations_have_their_shape() {
    let path = "POST /v1/embeddings";
    check(
        "embeddings",
        &[
            (path, r#"{"model":"m","input":["a","b"],"dimensions":4}"#),
            (
                path,
                r#"{"model":"m","input":"a","dimensions":4,"encoding_format":"base64"}"#,
            ),
            (path, r#"{"model":"m"}"#),
            ("POST /v1/moderations", r#"{"input":["a","b"]}"#),
        ],
    );
}

#[test]
fn images_and_audio_have_their_shape() {
    let picture = fields(&[("model", "m"), ("prompt", "a hat"), ("image", "PNG")]);
    let sound = fields(&[("model", "m"), ("file", "RIFF\r\n--\r\n")]);
    let as_text = fields(&[("model", "m"), ("file", "R"), ("response_format", "text")]);
    let streamed = fields(&[("model", "m"), ("file", "R"), ("stream", "true")]);
    let transcriptions = form("POST /v1/audio/transcriptions");
    check(
        "media",
        &[
            ("POST /v1/images/generations", r#"{"prompt":"a cat","n":2}"#),
            (
                "POST /v1/images/generations",
                r#"{"prompt":"a cat","stream":true}"#,
            ),
            (&form("POST /v1/images/edits"), &picture),
            (
                "POST /v1/audio/speech",
                r#"{"model":"m","input":"hello you"}"#,
            ),
            (
                "POST /v1/audio/speech",
                r#"{"model":"m","input":"a","stream_format":"sse"}"#,
            ),
            (&transcriptions, &sound),
            (&transcriptions, &as_text),
            (&transcriptions, &streamed),
        ],
    );
}

#[test]
fn stored_objects_have_their_shape() {
    let file = fields(&[("purpose", "batch"), ("file", "{}")]);
    let files = form("POST /v1/files");
    let id = |prefix: &str, n: u32| format!("{prefix}{:016x}{n:08x}", 0);
    let (first, upload) = (id("file-", 0), id("upload_", 4));
    let batch = format!(r#"{{"input_file_id":"{first}","endpoint":"/v1/embeddings"}}"#);
    check(
        "stored",
        &[
            (&files, &file),
            (&format!("{files}; anthropic-version: 2023-06-01"), &file),
            (
                "POST /v1/uploads",
                r#"{"filename":"u","purpose":"batch","bytes":1}"#,
            ),
            (
                &form(&format!("POST /v1/uploads/{upload}/parts")),
                &fields(&[("file", "xyz")]),
            ),
            (&format!("POST /v1/uploads/{upload}/complete"), ""),
            ("POST /v1/batches", &batch),
            ("GET /v1/files", ""),
            ("POST /v1/conversations", r#"{"metadata":{"a":"b"}}"#),
        ],
    );
}

#[test]
fn messages_have_their_shape() {
    let path = "POST /v1/messages";
    let text = r#""max_tokens":10,"messages":[{"role":"user","content":[{"type":"text","text":"Hi you"}]}]"#;
    check(
        "messages",
        &[
            (path, &format!(r#"{{"model":"m",{text}}}"#)),
            (path, &format!(r#"{{"model":"m","stream":true,{text}}}"#)),
            (
                "POST /v1/messages/count_tokens",
                &format!(r#"{{"model":"m",{text}}}"#),
            ),
            (path, "{}"),
            ("GET /v1/messages", ""),
        ],
    );
}

#[test]
fn gemini_has_its_shape() {
    let text =
        r#"{"contents":[{"parts":[{"text":"Hi you"}]}],"generationConfig":{"maxOutputTokens":9}}"#;
    check(
        "gemini",
        &[
            ("POST /v1beta/models/team%2Fm:1:generateContent", text),
            ("POST /v1/models/m:streamGenerateContent?alt=sse", text),
            ("POST /v1beta/models/m:streamGenerateContent", text),
            ("POST /v1beta/models/m:countTokens", text),
            (
                "POST /v1beta/models/m:embedContent",
                r#"{"content":{"parts":[]},"outputDimensionality":3}"#,
            ),
            (
                "POST /v1beta/models/m:batchEmbedContents",
                r#"{"requests":[{"outputDimensionality":2}]}"#,
            ),
            ("POST /v1beta/models/m:conquer", "{}"),
        ],
    );
}

#[test]
fn the_list_of_models_speaks_three_protocols() {
    check(
        "models",
        &[
            ("GET /v1/models", ""),
            ("GET /v1/models; anthropic-version: 2023-06-01", ""),
            ("GET /v1beta/models", ""),
            ("GET /v1/models/gpt-4o", ""),
            ("GET /v1beta/models/none", ""),
        ],
    );
}

#[test]
fn compressed_bodies_are_understood() {
    use std::io::Write as _;
    let plain = br#"{"model":"m","messages":[{"role":"user","content":"packed"}]}"#;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(plain).unwrap();
    let gzip = gzip.finish().unwrap();
    let both = zstd::stream::encode_all(&gzip[..], 1).unwrap();
    let shared = Shared::new(Config::default());
    for (encoding, bytes, status) in [
        ("gzip", gzip.clone(), 200),
        ("gzip, zstd", both, 200),
        ("zstd", gzip, 400),
        ("br", plain.to_vec(), 415),
    ] {
        let raw =
            format!("POST /v1/chat/completions HTTP/1.1\r\nContent-Encoding: {encoding}\r\n\r\n");
        let head = take_head(&mut BytesMut::from(&*raw)).unwrap().unwrap();
        let received = Received {
            length: bytes.len() as u64,
            held: bytes.into(),
            complete: true,
            ..Received::default()
        };
        let reply = answer(&Call::new(&shared, &head, "a", &received), None, None);
        assert_eq!(reply.status, status, "{encoding}");
        let said = shown(&reply).contains("\"content\":\"packed\"");
        assert_eq!(said, status == 200, "{encoding}");
    }
}

#[test]
fn any_base_path_may_stand_before_the_version() {
    let shared = Shared::new(Config::default());
    for path in ["/v1", "/api/v1", "/prefix/v2", "/openai/v1beta2", ""] {
        let line = format!("POST {path}/embeddings");
        let got = answered(
            &shared,
            &line,
            r#"{"model":"m","input":"a","dimensions":1}"#,
        );
        assert!(got.starts_with("200\n"), "{path}: {got}");
    }
}

#[test]
fn paced_answers_take_the_time_of_their_words() {
    use std::time::Duration;
    let ms = Duration::from_millis;
    let shared = Shared::new(Config {
        first_delay: ms(100),
        chunk_delay: ms(10),
        tokens: Some(5),
        ..Config::default()
    });
    let pace = |body: &str| {
        let raw = "POST /v1/chat/completions HTTP/1.1\r\n\r\n";
        let head = take_head(&mut BytesMut::from(raw)).unwrap().unwrap();
        let received = Received {
            held: bytes::Bytes::copy_from_slice(body.as_bytes()),
            length: body.len() as u64,
            complete: true,
            ..Received::default()
        };
        answer(&Call::new(&shared, &head, "a", &received), None, None).pace
    };
    let whole = pace(r#"{"model":"m"}"#);
    assert_eq!((whole.before_head, whole.between), (ms(150), ms(0)));
    let stream = pace(r#"{"model":"m","stream":true}"#);
    assert_eq!((stream.before_first, stream.between), (ms(100), ms(10)));
}
