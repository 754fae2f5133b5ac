//! Every path of the data plane, and the odd ones around them.
use super::*;
use http::HeaderValue;
use std::fmt::Write as _;

type Pairs = &'static [(&'static str, &'static str)];

const NONE: Pairs = &[];
const ANTHROPIC: Pairs = &[("anthropic-version", "2023-06-01")];

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        })
        .collect()
}

/// One line of what a request is taken for.
fn line(method: &str, target: &str, pairs: &[(&'static str, &'static str)]) -> String {
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    match route(&method, path, &headers(pairs), query) {
        Routed::Call(r) => {
            let mut line = format!("{} {}", r.protocol, r.operation.name());
            for (holds, word) in [
                (r.leases.stream, " +stream"),
                (r.leases.create, " +create"),
                (r.reattach, " reattach"),
                (r.takes_body, " body"),
            ] {
                line.push_str(if holds { word } else { "" });
            }
            if r.model != ModelSource::None {
                write!(line, " model={:?}", r.model).unwrap();
            }
            if let Some(id) = r.owner_id {
                write!(line, " owner={id}").unwrap();
            }
            line
        }
        other => format!("{other:?}"),
    }
}

fn lines(cases: &[(&str, &str, Pairs)]) -> String {
    let lines: Vec<String> = cases
        .iter()
        .map(|(method, target, pairs)| {
            let mark = if pairs.is_empty() { "" } else { " (anthropic)" };
            format!("{method} {target}{mark} => {}", line(method, target, pairs))
        })
        .collect();
    lines.join("\n")
}

#[test]
fn every_path_that_generates_has_its_operation() {
    insta::assert_snapshot!(lines(&[
        ("POST", "/v1/chat/completions", NONE),
        ("POST", "/v1/completions", NONE),
        ("POST", "/v1/responses", NONE),
        ("POST", "/v1/responses/compact", NONE),
        ("POST", "/v1/responses/input_tokens", NONE),
        ("POST", "/v1/embeddings", NONE),
        ("POST", "/v1/moderations", NONE),
        ("POST", "/v1/images/generations", NONE),
        ("POST", "/v1/images/edits", NONE),
        ("POST", "/v1/images/variations", NONE),
        ("POST", "/v1/audio/speech", NONE),
        ("POST", "/v1/audio/transcriptions", NONE),
        ("POST", "/v1/audio/translations", NONE),
        ("POST", "/v1/messages?beta=true", NONE),
        ("POST", "/v1/messages/count_tokens", ANTHROPIC),
        ("POST", "/v1beta/models/g:generateContent", NONE),
        ("POST", "/v1/models/g:streamGenerateContent?alt=sse", NONE),
        ("POST", "/v1beta/models/g:embedContent", NONE),
        ("POST", "/v1beta/models/g:batchEmbedContents", NONE),
        ("POST", "/v1beta/models/g:predict", NONE),
        ("POST", "/v1beta/models/g:countTokens", NONE),
    ]));
}

#[test]
fn every_path_of_stored_objects_has_its_operation() {
    insta::assert_snapshot!(lines(&[
        ("GET", "/v1/responses/resp_1", NONE),
        (
            "GET",
            "/v1/responses/resp_1?stream=true&starting_after=4",
            NONE
        ),
        ("DELETE", "/v1/responses/resp_1", NONE),
        ("POST", "/v1/responses/resp_1/cancel", NONE),
        ("GET", "/v1/responses/resp_1/input_items", NONE),
        ("POST", "/v1/files", NONE),
        ("HEAD", "/v1/files", NONE),
        ("GET", "/v1/files/file-1", NONE),
        ("DELETE", "/v1/files/file-1", NONE),
        ("GET", "/v1/files/file-1/content", NONE),
        ("POST", "/v1/uploads", NONE),
        ("POST", "/v1/uploads/up_1/parts", NONE),
        ("POST", "/v1/uploads/up_1/complete", NONE),
        ("POST", "/v1/uploads/up_1/cancel", NONE),
        ("POST", "/v1/batches", NONE),
        ("GET", "/v1/batches", NONE),
        ("GET", "/v1/batches/b_1", NONE),
        ("POST", "/v1/batches/b_1/cancel", NONE),
        ("POST", "/v1/conversations", NONE),
        ("GET", "/v1/conversations/conv_1", NONE),
        ("POST", "/v1/conversations/conv_1", NONE),
        ("DELETE", "/v1/conversations/conv_1", NONE),
        ("GET", "/v1/conversations/conv_1/items", NONE),
        ("POST", "/v1/conversations/conv_1/items", NONE),
        ("DELETE", "/v1/conversations/conv_1/items/msg_1", NONE),
        ("POST", "/v1/messages/batches", ANTHROPIC),
        ("GET", "/v1/messages/batches", ANTHROPIC),
        ("GET", "/v1/messages/batches/mb_1", ANTHROPIC),
        ("DELETE", "/v1/messages/batches/mb_1", ANTHROPIC),
        ("POST", "/v1/messages/batches/mb_1/cancel", ANTHROPIC),
        ("GET", "/v1/messages/batches/mb_1/results", ANTHROPIC),
        ("POST", "/v1/files", ANTHROPIC),
        ("GET", "/v1/files/file_1/content", ANTHROPIC),
    ]));
}

fn check(method: &str, target: &str, expect: &str) {
    assert_eq!(line(method, target, &[]), expect, "{method} {target}");
}

#[test]
fn models_come_in_three_shapes() {
    let shape = |target: &str, pairs: &[_], expect: &str| {
        assert_eq!(line("GET", target, pairs), expect, "{target} {pairs:?}");
    };
    let google = [("x-goog-api-key", "k")];
    let both = [("x-goog-api-key", "k"), ("anthropic-version", "v")];
    shape("/v1/models", &[], "Models { shape: OpenAi, id: None }");
    shape(
        "/v1/models?client_version=1",
        &[],
        "Models { shape: OpenAi, id: None }",
    );
    shape("/v1/models", &both, "Models { shape: Anthropic, id: None }");
    shape("/v1/models", &google, "Models { shape: Gemini, id: None }");
    shape(
        "/v1/models?key=x",
        &[],
        "Models { shape: Gemini, id: None }",
    );
    shape(
        "/v1beta/models",
        &both,
        "Models { shape: Gemini, id: None }",
    );
    shape(
        "/v1/models/ft:gpt:org::x",
        &[],
        "Models { shape: OpenAi, id: Some(\"ft:gpt:org::x\") }",
    );
    shape(
        "/v1/models/team%2Fx",
        &[],
        "Models { shape: OpenAi, id: Some(\"team%2Fx\") }",
    );
}

#[test]
fn the_model_in_a_path_keeps_its_bytes_and_has_a_name() {
    let check = |raw: &str, name: &str| {
        for prefix in ["/v1beta/models/", "/v1/models/"] {
            let path = format!("{prefix}{raw}:generateContent");
            let Routed::Call(call) = route(&Method::POST, &path, &HeaderMap::new(), None) else {
                panic!("{path} is no call");
            };
            assert_eq!(call.model, ModelSource::Path(raw));
            assert_eq!(model_name(raw), name);
            let replaced = replace_model_in_path(&path, raw, "a/b:한");
            assert_eq!(replaced, format!("{prefix}a%2Fb:%ED%95%9C:generateContent"));
        }
    };
    check("team%2Fmodel-x", "team/model-x");
    check("team%2fmodel-x", "team/model-x");
    check("publishers/x/models/y", "publishers/x/models/y");
    check("m:1", "m:1");
    check("%ED%95%9C%EA%B8%80", "한글");
    check("한글", "한글");
    check("a%252Fb", "a%2Fb");
    check("with%20space", "with space");
    check("me@x", "me@x");
    check("100%25", "100%");
}

#[test]
fn a_path_that_can_be_read_as_another_is_not_found() {
    for path in [
        "//v1/chat/completions",
        "/v1//chat/completions",
        "/v1/chat/completions/",
        "/v1/",
        "/v1/../v1/chat/completions",
        "/v1/./chat/completions",
        "/v1/chat/%2e%2e/completions",
        "/v1/%63hat/completions",
        "/v1/chat%2Fcompletions",
        "/v1/files/..%2fchat%2fcompletions",
        "/v1/files/a%20b",
        "/v1/responses/..;x/y",
        "/v1/images",
        "/v1/a/b/c/d/e/f/g/h",
        "/v1",
    ] {
        check("POST", path, "NotFound(OpenAi)");
    }
    for model in [
        "",
        "%2e%2e",
        "%2E%2e%2fx",
        "..%2f..%2fv1%2fx",
        "x%5c..%5cy",
        "a%252f%252e%252e%252fb",
        "x/../y",
        "a//b",
        "%00",
        "a%0d%0ab",
        "%zz",
        "%",
        "%ff",
        ".",
        "..",
    ] {
        check(
            "POST",
            &format!("/v1beta/models/{model}:generateContent"),
            "NotFound(Gemini)",
        );
    }
}

#[test]
fn what_is_unknown_below_a_prefix_is_not_found_in_its_protocol() {
    check("POST", "/v1/unknown", "NotFound(OpenAi)");
    check("POST", "/v1/videos", "NotFound(OpenAiVideos)");
    check("GET", "/v1/messages/x", "NotFound(Anthropic)");
    check("GET", "/v1beta/files", "NotFound(Gemini)");
    check(
        "POST",
        "/v1beta/models/m:predictLongRunning",
        "NotFound(Gemini)",
    );
    check(
        "POST",
        "/v1beta/models/m:generateContent/x",
        "NotFound(Gemini)",
    );
    check("POST", "/fal/app/x", "NotFound(FalQueue)");
    check("POST", "/fal-run/app", "NotFound(FalQueue)");
    for path in [
        "/",
        "/api/admin/settings",
        "/v1x/models",
        "/V1/models",
        "/healthz",
    ] {
        check("GET", path, "NotDataPlane");
    }
}

#[test]
fn a_wrong_method_is_told_the_right_ones() {
    let check = |method: &str, path: &str, name: &str, allow: &str| {
        let expect = format!("MethodNotAllowed {{ protocol: {name}, allow: {allow:?} }}");
        check(method, path, &expect);
    };
    check("GET", "/v1/chat/completions", "OpenAi", "POST");
    check("GET", "/v1/responses", "OpenAi", "POST");
    check("PUT", "/v1/files/f", "OpenAi", "GET, HEAD, DELETE");
    check("DELETE", "/v1/batches", "OpenAi", "GET, HEAD, POST");
    check(
        "PATCH",
        "/v1/conversations/c",
        "OpenAi",
        "GET, HEAD, POST, DELETE",
    );
    check("GET", "/v1/messages", "Anthropic", "POST");
    check("DELETE", "/v1/models/m", "OpenAi", "GET, HEAD");
    check("POST", "/v1beta/models", "Gemini", "GET, HEAD");
    check("GET", "/v1/models/m:generateContent", "Gemini", "POST");
}

#[test]
fn websocket_paths_ask_for_an_upgrade() {
    let upgrade = [("connection", "Upgrade"), ("upgrade", "h2c, WebSocket")];
    let socket = |path| match route(&Method::GET, path, &headers(&upgrade), None) {
        Routed::Socket(route) => (route.operation, route.leases),
        other => panic!("{other:?}"),
    };
    let responses = (Operation::Responses, Leases::STREAM_AND_CREATE);
    assert_eq!(socket("/v1/responses"), responses);
    assert_eq!(
        socket("/v1/realtime"),
        (Operation::Realtime, Leases::STREAM)
    );
    assert_eq!(line("GET", "/v1/realtime?model=m", &[]), "UpgradeRequired");
}

#[test]
fn a_client_key_is_found_where_each_client_puts_it() {
    let check = |pairs: &[_], query, protocol, expect: Option<&str>| {
        let headers = headers(pairs);
        let found = client_credential(&headers, query, protocol);
        assert_eq!(
            found.as_deref(),
            expect.map(str::as_bytes),
            "{pairs:?} {query:?}"
        );
    };
    let (openai, gemini, fal) = (Protocol::OpenAi, Protocol::Gemini, Protocol::FalQueue);
    check(
        &[("authorization", "Bearer fl-1")],
        None,
        openai,
        Some("fl-1"),
    );
    check(
        &[("authorization", "bearer  fl-1 ")],
        None,
        openai,
        Some("fl-1"),
    );
    check(&[("authorization", "Basic Zm9v")], None, openai, None);
    check(&[("authorization", "Key fl-1")], None, fal, Some("fl-1"));
    check(&[("authorization", "Key fl-1")], None, openai, None);
    check(
        &[("authorization", "Basic x"), ("x-api-key", "fl-2")],
        None,
        openai,
        Some("fl-2"),
    );
    check(
        &[("authorization", "Bearer "), ("x-api-key", "")],
        None,
        openai,
        None,
    );
    check(
        &[("x-goog-api-key", "fl-3")],
        Some("key=no"),
        gemini,
        Some("fl-3"),
    );
    check(&[], Some("alt=sse&key=fl%2D4"), gemini, Some("fl-4"));
    check(&[], Some("key=fl-4"), openai, None);
    check(&[], Some("key"), gemini, None);
}

#[test]
fn a_query_loses_its_key_and_nothing_else() {
    let check = |query: &str, expect: &str| assert_eq!(strip_key(query), expect, "{query}");
    let odd = "a=1&a=2&empty=&flag&sp=%20+&u=%ED%95%9C&enc=%2F%3F%26&&monkey=1&Key=2";
    check(odd, odd);
    check("", "");
    check(&format!("key=x&{odd}"), odd);
    check(&format!("{odd}&key=x"), odd);
    check("a=1&key=x&b=%zz&key=y", "a=1&b=%zz");
    check("key=x", "");
    check("k%65y=x&alt=sse", "alt=sse");
    check("keys=1&a=key", "keys=1&a=key");
}
