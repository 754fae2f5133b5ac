//! Bodies are the same bytes on both sides, whatever is in them and however they are framed.
use crate::{
    harness::{Answer, KEY, World, chat, get, post, request, sha256},
    wire::{Reply, chunked, exchange},
};
use fairlane::{
    domain::ledger::Outcome,
    sim::{Act, Framing, Rule},
};
use http::{Method, StatusCode};
use http_body_util::Full;

const GEMINI: &str = "/v1beta/models/a%2Fb:generateContent";

/// Every operation that takes JSON and answers with JSON or a stream.
const JSON_PATHS: [&str; 11] = [
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/embeddings",
    "/v1/moderations",
    "/v1/images/generations",
    "/v1/messages",
    "/v1/messages/count_tokens",
    GEMINI,
    "/v1beta/models/m:streamGenerateContent?alt=sse",
    "/v1beta/models/m:countTokens",
];

/// JSON as no serializer would write it again: white space, escapes, numbers, a key twice, unknown
/// keys, and text beyond the basic plane.
const ODD: &str = concat!(
    "\r\n{ \"model\" :\"first\",\t\"x_new\":{\"deep\":[1.50,1e3,-0,true,null,[]]},",
    "\"messages\":[{\"role\":\"user\",\"content\":\"\\ud83c\\udf0d \\u0000\\/ é 漢 🌍 \\\"\"}],",
    "\"n\":1,\"n\":1,\"\":\"\",\"model\":\"m\" }\n\n",
);

/// `ODD` with a text of `bytes` bytes in it.
fn odd_of(bytes: usize) -> Vec<u8> {
    let unit = "h\\u00e9 漢🌍\\\\\\\" }],\\n";
    let text = unit.repeat(bytes / unit.len() + 1);
    ODD.replacen("\"n\":1,", &format!("\"long\":\"{text}\","), 1)
        .into_bytes()
}

/// Bytes without any pattern that text has, with `seam` in the middle and at the end.
fn binary(length: usize, seam: &str) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut noise = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut out = Vec::with_capacity(length + seam.len() * 2);
    for _ in 0..2 {
        for _ in 0..length / 16 {
            out.extend_from_slice(&noise());
        }
        out.extend_from_slice(seam.as_bytes());
    }
    out
}

/// A form with a model and a file.
fn form(boundary: &str, file: &[u8]) -> Vec<u8> {
    let mut out = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\nh\u{e9} 漢🌍\r\n\
         --{boundary}\r\nContent-Disposition: form-data; name=\"image[]\"; filename=\"a.png\"; \
         filename*=UTF-8''%e6%bc%a2.png\r\nContent-Type: image/png\r\n\r\n"
    )
    .into_bytes();
    out.extend_from_slice(file);
    let rest = format!(
        "\r\n--{boundary}\r\nContent-Disposition: form-data; name=\"image[]\"; filename=\"\"\r\n\r\n\r\n\
         --{boundary}\r\nX-Future: 1\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n\
         --{boundary}\r\nContent-Disposition: form-data; name=\"x_new\"\r\n\r\n\r\n--{boundary}--\r\n"
    );
    out.extend_from_slice(rest.as_bytes());
    out
}

/// The last request that the provider got has that body.
fn check_seen(world: &World, path: &str, body: &[u8]) {
    let log = world.seen(path);
    let last = log.last().unwrap();
    assert!(last.is_complete, "{path}");
    assert_eq!(last.body_bytes, body.len() as u64, "{path}");
    assert_eq!(last.body_sha256, sha256(body), "{path}");
}

/// The answer is a success with that body.
fn check_got(path: &str, answer: &Answer, body: &[u8]) {
    assert_eq!(answer.status, StatusCode::OK, "{path}: {answer:?}");
    assert_eq!(sha256(&answer.body), sha256(body), "{path}");
}

#[tokio::test]
async fn json_passes_both_ways_unchanged_in_every_protocol() {
    let world = World::start().await;
    // Nothing in it may be taken for the model's failure, and it must be a whole document.
    let answered = ODD.replace("messages", "choices");
    world
        .sim
        .script([Rule::new(Act::default().body(&*answered))]);
    for path in JSON_PATHS {
        let answer = world.answer(post(path, ODD)).await;
        check_got(path, &answer, answered.as_bytes());
        assert_eq!(answer.header("content-type"), "application/json");
        check_seen(&world, path, ODD.as_bytes());
    }
    world.end().await;
}

#[tokio::test]
async fn five_mebibytes_of_odd_json_pass_unchanged_with_a_length_and_in_chunks() {
    let world = World::start().await;
    let body = odd_of(5 << 20);
    world.sim.script([Rule::new(Act::default().body(&*body))]);
    for path in [
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/messages",
        GEMINI,
    ] {
        let answer = world.answer(post(path, body.clone())).await;
        check_got(path, &answer, &body);
        check_seen(&world, path, &body);
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n\
             Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        let reply = exchange(&world, [head.as_bytes(), &chunked(&body, 30_011)].concat()).await;
        assert_eq!((reply.status, reply.is_whole), (200, true), "{path}");
        assert_eq!(sha256(&reply.body), sha256(&body), "{path}");
        check_seen(&world, path, &body);
    }
    world.end().await;
}

#[tokio::test]
async fn forms_pass_unchanged_with_the_very_content_type_that_came() {
    let world = World::start().await;
    world.sim.script([Rule::new(Act::default().body("{}"))]);
    let long = "=_".repeat(35);
    let check = async |path: &str, content_type: &str, boundary: &str, file: &[u8]| {
        let body = form(boundary, file);
        let asked = request(Method::POST, path).header("content-type", content_type);
        let asked = asked.body(Full::from(body.clone())).unwrap();
        let answer = world.answer(asked).await;
        check_got(path, &answer, b"{}");
        check_seen(&world, path, &body);
        let seen = world.seen(path);
        assert_eq!(
            seen.last().unwrap().header("content-type"),
            Some(content_type)
        );
    };
    for path in ["/v1/images/edits", "/v1/audio/transcriptions", "/v1/files"] {
        let plain = "multipart/form-data; boundary=b0undary";
        let seam = "\r\n--b0undar\r\n\r\n--b0undaryX--\r\n--\r\n";
        check(path, plain, "b0undary", &binary(300_000, seam)).await;
        check(path, plain, "b0undary", b"").await;
        let quoted = "Multipart/Form-Data;charset=utf-8; BOUNDARY=\"a b:c\"";
        check(path, quoted, "a b:c", &binary(1000, "\r\n--a b:\r\n")).await;
        let longest = format!("multipart/form-data; boundary=\"{long}\"; x=1");
        check(path, &longest, &long, &binary(1000, "\r\n--=_=_\r\n")).await;
    }
    world.end().await;
}

#[tokio::test]
async fn a_form_of_fifty_mebibytes_in_chunks_arrives_unchanged() {
    let world = World::start().await;
    world.sim.script([Rule::new(Act::default().body("{}"))]);
    let body = form("b", &binary(50 << 20, "\r\n--\r\n--b-\r\n"));
    let head = format!(
        "POST /v1/audio/transcriptions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n\
         Content-Type: multipart/form-data; boundary=b\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    let reply = exchange(&world, [head.as_bytes(), &chunked(&body, 100_003)].concat()).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    check_seen(&world, "/v1/audio/transcriptions", &body);
    world.end().await;
}

#[tokio::test]
async fn a_file_comes_back_as_the_bytes_that_were_uploaded() {
    let world = World::start().await;
    let file = binary(1 << 20, "\r\n--b--\r");
    let asked = request(Method::POST, "/v1/files")
        .header("content-type", "multipart/form-data; boundary=bb")
        .body(Full::from(form("bb", &file)))
        .unwrap();
    let stored = world.answer(asked).await.json();
    let path = format!("/v1/files/{}/content", stored["id"].as_str().unwrap());
    check_got(&path, &world.answer(get(&path)).await, &file);
    world.end().await;
}

#[tokio::test]
async fn speech_of_eight_mebibytes_is_the_same_in_every_framing() {
    let world = World::start().await;
    let sound = binary(8 << 20, "\r\n0\r\n\r\n");
    for framing in [
        Framing::ContentLength,
        Framing::Chunked,
        Framing::UntilClose,
    ] {
        let act = Act {
            framing: Some(framing),
            split_every: Some(70_001),
            ..Act::default()
                .body(&*sound)
                .header("content-type", "audio/mpeg")
        };
        world.sim.clear_rules();
        world.sim.script([Rule::new(act)]);
        let asked = post("/v1/audio/speech", r#"{"model":"m","input":"x"}"#);
        let answer = world.answer(asked).await;
        check_got("/v1/audio/speech", &answer, &sound);
        let length = match framing {
            Framing::ContentLength => sound.len().to_string(),
            Framing::Chunked | Framing::UntilClose => String::new(),
        };
        assert_eq!(answer.header("content-length"), length, "{framing:?}");
    }
    world.end().await;
}

#[tokio::test]
async fn errors_and_oddities_of_upstream_pass_as_they_are_and_count_as_failures() {
    let world = World::start().await;
    let check = async |status: u16, content_type: &str, body: &str| {
        let act = Act::status(status)
            .body(body)
            .header("content-type", content_type);
        world.sim.clear_rules();
        world.sim.script([Rule::new(act)]);
        let answer = world.post("/v1/chat/completions", &chat(false)).await;
        assert_eq!(answer.status.as_u16(), status);
        assert_eq!(answer.body, body);
        assert_eq!(answer.header("content-type"), content_type);
        assert_eq!(answer.reason(), "");
        let row = world.ledger().await.swap_remove(0);
        assert_eq!(
            (row.outcome, row.status),
            (Outcome::Failed, Some(status)),
            "{body}"
        );
    };
    let json = "application/json";
    check(400, json, "{\"error\" : {\"message\":\"no \\u00e9\"}}\r\n").await;
    check(404, json, "{}").await;
    check(413, "text/plain", "too long").await;
    check(422, json, "{\"detail\":[]}").await;
    check(418, "x-made/up; a=\"b\"", "\u{feff}tea").await;
    check(200, json, "{\"error\":{\"message\":\"overloaded\"}}").await;
    check(200, "text/html; charset=utf-8", "<html>Bad gateway</html>").await;
    check(200, json, "").await;
    world.end().await;
}

#[tokio::test]
async fn trailers_reach_a_client_that_asks_for_them() {
    let world = World::start().await;
    let act = Act {
        trailers: vec![("X-Checksum".into(), "77".into())],
        ..Act::chunks(["{\"a\":", "1}"]).header("trailer", "X-Checksum")
    };
    world.sim.script([Rule::new(act)]);
    let ask = async |te: &str| -> Reply {
        let body = chat(false).to_string();
        let length = body.len();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n{te}Authorization: Bearer {KEY}\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        exchange(&world, head).await
    };
    let reply = ask("TE: trailers\r\nConnection: TE\r\n").await;
    assert_eq!(reply.text(), "{\"a\":1}");
    let expect = vec![("x-checksum".to_owned(), "77".to_owned())];
    assert_eq!(reply.trailers, expect, "{reply:?}");
    let reply = ask("").await;
    assert_eq!(
        (reply.text(), reply.is_whole),
        ("{\"a\":1}".to_owned(), true)
    );
    world.end().await;
}
