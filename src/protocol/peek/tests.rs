//! What peeking finds, checked against a JSON parser, at every cut of the body.
use super::*;
use flate2::{Compression, write};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::io::Write as _;

const FORM: &str = "multipart/form-data; boundary=XyZ";

fn peek_cut(content_type: &str, body: &[u8], cut: usize) -> Peeked {
    let mut peek = BodyPeek::new(Some(content_type.as_bytes()), None, u64::MAX).unwrap();
    for piece in body.chunks(cut.max(1)) {
        peek.feed(piece).unwrap();
    }
    peek.finish().unwrap()
}

/// What one look finds; every other way of cutting the body must find the same.
fn peek(content_type: &str, body: &[u8]) -> Peeked {
    let whole = peek_cut(content_type, body, body.len());
    for cut in [1, 2, 3, 7, 64] {
        assert_eq!(peek_cut(content_type, body, cut), whole, "cut at {cut}");
    }
    for cut in 0..body.len().min(400) {
        let mut peek = BodyPeek::new(Some(content_type.as_bytes()), None, u64::MAX).unwrap();
        let (head, tail) = body.split_at(cut);
        peek.feed(head).unwrap();
        peek.feed(tail).unwrap();
        assert_eq!(peek.finish().unwrap(), whole, "cut at {cut}");
    }
    whole
}

fn json_peek(body: &str) -> Peeked {
    peek("application/json", body.as_bytes())
}

fn check_model(body: &str, expect: Option<&str>) {
    let found = json_peek(body);
    assert_eq!(found.model.as_deref(), expect, "{body}");
    let spanned = found.model_span.map(|span| &body[span]);
    let spanned: Option<String> = spanned.map(|text| serde_json::from_str(text).unwrap());
    assert_eq!(spanned.as_deref(), expect, "{body}");
}

#[test]
fn the_model_is_the_last_one_at_the_top() {
    check_model(r#"{"model":"m"}"#, Some("m"));
    check_model(" {\n \"model\" : \"m\" } ", Some("m"));
    check_model(r#"{"model":"a","model":"b"}"#, Some("b"));
    check_model(r#"{"model":"a","model":7}"#, None);
    check_model(r#"{"model":["a"],"x":1}"#, None);
    check_model(r#"{"m":{"model":"x"},"a":["model","y"]}"#, None);
    check_model(r#"{"x":"model","y":"z"}"#, None);
    check_model(
        r#"{"input":"\"model\":\"x\"","model":"a/b:c"}"#,
        Some("a/b:c"),
    );
    check_model(
        r#"{"\u006dodel":"\u0041\ud83d\ude00\n\"한"}"#,
        Some("A😀\n\"한"),
    );
    check_model(r#"{"a":1.5e-3,"b":[true,null,{}],"model":"m"}"#, Some("m"));
    check_model(r#"["model","m"]"#, None);
}

#[test]
fn a_model_longer_than_any_name_makes_the_body_malformed() {
    let fits = "m".repeat(MAX_FIELD_BYTES);
    check_model(&json!({ "model": fits }).to_string(), Some(&fits));
    for body in [
        json!({"model": "m".repeat(MAX_FIELD_BYTES + 1)}).to_string(),
        format!(r#"{{"model":"{}"}}"#, r"\u0041".repeat(MAX_FIELD_BYTES + 1)),
    ] {
        let found = json_peek(&body);
        assert_eq!((found.model, found.is_well_formed), (None, false));
    }
}

#[test]
fn the_fields_that_bind_a_request_are_found() {
    let found = json_peek(
        r#"{"stream":true,"previous_response_id":"resp_1","conversation":{"x":{"id":"no"},"id":"conv_1"},
        "prompt_cache_key":"pck","input":[{"content":[{"type":"input_file","file_id":"file-1"}]}],
        "tools":[{"container":{"file_ids":["file-2","file-3"]}}],"metadata":{"stream":false}}"#,
    );
    let expect = Peeked {
        stream: Some(true),
        previous_response_id: Some("resp_1".into()),
        conversation: Some("conv_1".into()),
        prompt_cache_key: Some("pck".into()),
        file_ids: vec!["file-1".into(), "file-2".into(), "file-3".into()],
        bears_media: true,
        is_well_formed: true,
        decoded_bytes: found.decoded_bytes,
        ..Peeked::default()
    };
    assert_eq!(found, expect);
    let found = json_peek(r#"{"conversation":"conv_2","stream":false,"input_file_id":"f"}"#);
    assert_eq!(found.conversation.as_deref(), Some("conv_2"));
    assert_eq!((found.stream, found.file_ids.len()), (Some(false), 1));
    let found = json_peek(r#"{"conversation":"a","conversation":null,"stream":true,"stream":0}"#);
    assert_eq!((found.conversation, found.stream), (None, None));
}

#[test]
fn media_is_known_by_the_keys_of_every_protocol() {
    let check = |part: &str, expect| {
        let body = format!(r#"{{"messages":[{{"content":[{part}]}}]}}"#);
        assert_eq!(json_peek(&body).bears_media, expect, "{part}");
    };
    check(r#"{"type":"image_url","image_url":{"url":"data:"}}"#, true);
    check(r#"{"type":"image","source":{}}"#, true);
    check(r#"{"inlineData":{"data":"AAAA"}}"#, true);
    check(r#"{"image_url":"https://x"}"#, true);
    check(r#"{"type":"text","text":"image"}"#, false);
    check(r#"{"type":"text","text":"\"type\":\"image\""}"#, false);
    check(r#"{"inlineData":null}"#, false);
}

#[test]
fn brackets_may_nest_deeper_than_any_stack() {
    let depth = 200_000;
    let body = format!(
        r#"{{"a":{}{},"model":"m"}}"#,
        r#"[{"b":"#.repeat(depth) + "1",
        "}]".repeat(depth)
    );
    let found = peek_cut("application/json", body.as_bytes(), 4096);
    assert_eq!(found.model.as_deref(), Some("m"));
    assert!(found.is_well_formed);
}

#[test]
fn what_is_no_whole_json_is_noticed() {
    for body in [
        "",
        " ",
        "{",
        "[1,",
        "{\"a\":}",
        "{\"a\":1,}",
        "[1,]",
        "{]",
        "[}",
        "{\"a\" 1}",
        "tru",
        "truth",
        "{\"a\":\"x}",
        "{} {}",
        "{\"a\":nul}",
        "plain text",
        "{1:2}",
        "\"a",
        "{\"a\":1]",
    ] {
        assert!(!json_peek(body).is_well_formed, "{body}");
    }
    for body in [
        "{}",
        "[]",
        "1",
        "\"a\"",
        "null",
        "\u{feff}{}",
        "[[],{},-1e9]",
    ] {
        assert!(json_peek(body).is_well_formed, "{body}");
    }
}

fn reference(body: &str) -> Option<Peeked> {
    let value: Value = serde_json::from_str(body).ok()?;
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let conversation = value.get("conversation");
    Some(Peeked {
        model: text("model"),
        stream: value.get("stream").and_then(Value::as_bool),
        previous_response_id: text("previous_response_id"),
        conversation: conversation
            .map(|c| c.get("id").unwrap_or(c))
            .and_then(Value::as_str)
            .map(str::to_owned),
        prompt_cache_key: text("prompt_cache_key"),
        is_well_formed: true,
        decoded_bytes: body.len() as u64,
        ..Peeked::default()
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(vec![
            "model",
            "stream",
            "conversation",
            "id",
            "previous_response_id",
            "prompt_cache_key",
            "\\u006dodel",
            "i\\u0064",
        ])
        .prop_map(str::to_owned),
        "[a-z\"\\\\한😀]{0,6}".prop_map(|s| {
            let quoted = Value::from(s).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        }),
    ]
}

/// JSON text with duplicate keys, odd spacing and escapes.
fn json_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        key().prop_map(|k| format!("\"{k}\"")),
        proptest::sample::select(vec!["true", "false", "null", "0", "-1.5e+3"])
            .prop_map(str::to_owned),
    ];
    let space = "[ \n\t]{0,2}";
    leaf.prop_recursive(5, 60, 8, move |inner| {
        let pair = (key(), space, inner.clone()).prop_map(|(k, s, v)| format!("\"{k}\"{s}:{s}{v}"));
        prop_oneof![
            proptest::collection::vec(inner, 0..5).prop_map(|v| format!("[{}]", v.join(" ,"))),
            proptest::collection::vec(pair, 0..8).prop_map(|v| format!("{{{}}}", v.join(", "))),
        ]
    })
}

proptest! {
    #[test]
    fn json_is_read_as_a_parser_reads_it(body in json_text(), cut in 1usize..9) {
        let mut found = peek_cut("application/json", body.as_bytes(), cut);
        if let Some(span) = found.model_span.take() {
            prop_assert_eq!(serde_json::from_str(&body[span]).ok(), found.model.clone());
        }
        found.file_ids.clear();
        found.bears_media = false;
        prop_assert_eq!(Some(found), reference(&body));
    }

    #[test]
    fn a_damaged_body_is_read_the_same_however_it_is_cut(
        body in json_text(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in 1usize..9,
    ) {
        let mut body = body.into_bytes();
        for (at, byte) in damage {
            let at = at.index(body.len());
            body[at] = byte;
        }
        let found = peek_cut("application/json", &body, body.len());
        prop_assert_eq!(&peek_cut("application/json", &body, cut), &found);
        // What a parser takes must be taken here.
        prop_assert!(found.is_well_formed || serde_json::from_slice::<Value>(&body).is_err());
    }

    #[test]
    fn any_bytes_at_all_are_survived(body: Vec<u8>, cut in 1usize..9) {
        for kind in ["application/json", FORM] {
            prop_assert_eq!(peek_cut(kind, &body, cut), peek_cut(kind, &body, body.len()));
        }
    }

    #[test]
    fn a_forms_fields_are_found_whatever_its_files_hold(
        file in "(\r\n--XyZx|\r\n--Xy|\r|\n|--Xy|[a-z]|\r\n-){0,40}",
        model in "[ -~]{0,30}",
        cut in 1usize..9,
    ) {
        let body = format!(
            "--XyZ\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n{file}\r\n\
             --XyZ\r\ncontent-disposition: form-data; name=model\r\n\r\n{model}\r\n--XyZ--\r\n"
        );
        let found = peek_cut(FORM, body.as_bytes(), cut);
        prop_assert_eq!(found.model_span.clone().map(|span| &body[span]), Some(&*model));
        prop_assert_eq!(found.model, Some(model));
        prop_assert!(found.is_well_formed && found.bears_media);
    }
}

fn part(head: &str, value: &str) -> String {
    format!("--XyZ\r\nContent-Disposition: form-data; {head}\r\n\r\n{value}\r\n")
}

#[test]
fn small_fields_of_a_form_are_read_and_files_are_not() {
    let body = [
        "a preamble\r\n".to_owned(),
        part("name=\"model\"", "whisper"),
        part(
            "name=\"file\"; filename=\"model\"; filename*=utf-8''%ED",
            "",
        ),
        part(
            "name=\"image[]\"; filename=\"a;name=model\"",
            "\u{0}\r\n--XyZ no\r\n--",
        ),
        part("name=\"prompt\"", "model"),
        part("name=\"stream\"", "true"),
        part("name=\"prompt_cache_key\"", "k"),
        part("name=\"model\"\r\nContent-Type: text/plain", "gpt-image"),
        "--XyZ--\r\nepilogue".to_owned(),
    ]
    .concat();
    let found = peek(FORM, body.as_bytes());
    assert_eq!(found.kind, BodyKind::Multipart);
    assert_eq!(found.model.as_deref(), Some("gpt-image"));
    assert_eq!(&body[found.model_span.unwrap()], "gpt-image");
    assert_eq!(found.stream, Some(true));
    assert_eq!(found.prompt_cache_key.as_deref(), Some("k"));
    assert!(found.bears_media && found.is_well_formed);
}

#[test]
fn a_form_that_breaks_off_is_not_well_formed() {
    let body = part("name=\"model\"", "m");
    assert!(!peek(FORM, body.as_bytes()).is_well_formed);
    let whole = body + "--XyZ--";
    assert!(peek(FORM, whole.as_bytes()).is_well_formed);
    let endless = format!("--XyZ\r\n{}", "x".repeat(20_000));
    assert!(!peek(FORM, endless.as_bytes()).is_well_formed);
}

#[test]
fn a_form_without_a_boundary_is_refused() {
    let peek = BodyPeek::new(Some(b"multipart/form-data"), None, 1);
    assert_eq!(peek.err(), Some(PeekError::Boundary));
}

fn encode(name: &str, body: &[u8]) -> Vec<u8> {
    let level = Compression::default();
    match name {
        "gzip" => {
            let mut gz = flate2::GzBuilder::new()
                .filename("f")
                .comment("c")
                .extra(vec![1, 2, 3])
                .write(Vec::new(), level);
            gz.write_all(body).unwrap();
            gz.finish().unwrap()
        }
        "deflate" => {
            let mut z = write::ZlibEncoder::new(Vec::new(), level);
            z.write_all(body).unwrap();
            z.finish().unwrap()
        }
        "bare deflate" => {
            let mut z = write::DeflateEncoder::new(Vec::new(), level);
            z.write_all(body).unwrap();
            z.finish().unwrap()
        }
        "zstd" => zstd::encode_all(body, 3).unwrap(),
        _ => body.to_vec(),
    }
}

fn peek_encoded(header: &str, body: &[u8], cut: usize, limit: u64) -> Result<Peeked, PeekError> {
    let mut peek = BodyPeek::new(None, Some(header.as_bytes()), limit)?;
    for piece in body.chunks(cut) {
        peek.feed(piece)?;
    }
    peek.finish()
}

fn sample() -> Vec<u8> {
    let words: Vec<String> = (0..20_000)
        .map(|n| format!("w{}", n * 7919 % 6007))
        .collect();
    json!({"input": words.join(" "), "model": "m"})
        .to_string()
        .into_bytes()
}

#[test]
fn every_accepted_encoding_is_looked_through() {
    let body = sample();
    let check = |header: &str, encodings: &[&str]| {
        let encoded = encodings
            .iter()
            .fold(body.clone(), |body, name| encode(name, &body));
        for cut in [1, 1000, encoded.len()] {
            let found = peek_encoded(header, &encoded, cut, u64::MAX).unwrap();
            assert_eq!(found.model.as_deref(), Some("m"), "{header}");
            assert_eq!(found.decoded_bytes, body.len() as u64);
        }
        let decoded = decode_body(std::iter::once(header.as_bytes()), &encoded, u64::MAX);
        assert_eq!(decoded.as_ref(), Ok(&body));
    };
    check("identity", &[]);
    check("", &[]);
    check("gzip", &["gzip"]);
    check("X-GZIP", &["gzip"]);
    check("deflate", &["deflate"]);
    check("deflate", &["bare deflate"]);
    check("zstd", &["zstd"]);
    check("gzip, zstd", &["gzip", "zstd"]);
    check("zstd ,identity,deflate, gzip", &["zstd", "deflate", "gzip"]);
}

#[test]
fn members_and_frames_may_follow_one_another() {
    for name in ["gzip", "zstd"] {
        let body = [encode(name, b"{\"model\":"), encode(name, b"\"m\"}")].concat();
        for cut in [1, body.len()] {
            let found = peek_encoded(name, &body, cut, 100).unwrap();
            assert_eq!(found.model.as_deref(), Some("m"), "{name}");
        }
    }
}

#[test]
fn encodings_that_are_not_known_are_named_with_those_that_are() {
    let error = peek_encoded("gzip, br", b"", 1, 1).unwrap_err();
    assert_eq!(error.reason(), Reason::UnsupportedEncoding);
    insta::assert_snapshot!(error, @"the request's Content-Encoding `br` is not supported; accepted are identity, gzip, deflate and zstd");
    let error = peek_encoded("gzip,gzip,gzip,gzip", b"", 1, 1).unwrap_err();
    assert_eq!(error, PeekError::TooManyEncodings { max: 3 });
}

#[test]
fn a_corrupt_or_shortened_body_is_told_from_a_whole_one() {
    for name in ["gzip", "deflate", "zstd"] {
        let corrupt = Some(PeekError::Corrupt { encoding: name });
        let encoded = encode(name, &sample());
        let short = &encoded[..encoded.len() - 1];
        assert_eq!(peek_encoded(name, short, 99, u64::MAX).err(), corrupt);
        let long = [&*encoded, b"more"].concat();
        assert_eq!(peek_encoded(name, &long, 99, u64::MAX).err(), corrupt);
        assert_eq!(
            peek_encoded(name, b"{\"model\":1}", 3, u64::MAX).err(),
            corrupt
        );
        assert!(peek_encoded(name, b"", 1, u64::MAX).is_ok());
    }
    let mut bad_checksum = encode("gzip", b"{}");
    let at = bad_checksum.len() - 6;
    bad_checksum[at] ^= 1;
    assert!(peek_encoded("gzip", &bad_checksum, 1, u64::MAX).is_err());
}

#[test]
fn a_bomb_is_stopped_at_the_limit() {
    let huge = vec![b' '; 64 << 20];
    for name in ["gzip", "deflate", "zstd"] {
        let bomb = encode(name, &huge);
        let error = peek_encoded(name, &bomb, bomb.len(), 1 << 20).unwrap_err();
        assert_eq!(error, PeekError::TooLarge { limit: 1 << 20 });
        assert_eq!(error.reason(), Reason::RequestTooLarge);
    }
}

#[test]
fn a_window_larger_than_the_standard_allows_is_refused() {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(27).unwrap();
    // Sized so that the frame states its window instead of being a single segment.
    encoder.write_all(&vec![b' '; 1 << 20]).unwrap();
    let body = encoder.finish().unwrap();
    let error = peek_encoded("zstd", &body, 4096, u64::MAX).unwrap_err();
    assert_eq!(error, PeekError::Corrupt { encoding: "zstd" });
}

#[test]
fn a_renamed_model_changes_nothing_else() {
    let check = |body: &str, peeked: Peeked, name: &str, expect: &str| {
        let mut renamed = body.to_owned();
        let literal = model_literal(peeked.kind, name);
        renamed.replace_range(peeked.model_span.unwrap(), &literal);
        assert_eq!(renamed, expect);
    };
    let body = r#"{ "model" :"a\u0062", "x":[1, 2] }"#;
    let expect = r#"{ "model" :"q\"\n/한", "x":[1, 2] }"#;
    check(body, json_peek(body), "q\"\n/한", expect);
    let form = part("name=\"model\"", "old") + "--XyZ--";
    let expect = part("name=\"model\"", "new") + "--XyZ--";
    check(&form, peek(FORM, form.as_bytes()), "new", &expect);
}
