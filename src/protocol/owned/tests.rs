//! Golden requests, answers and lists.
use super::{
    super::{
        peek::BodyPeek,
        route::{Routed, route},
    },
    *,
};
use http::Method;

use AffinitySource as S;
use Operation as O;

fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    lines
        .iter()
        .map(|(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v)))
        .collect()
}

fn peek(body: &str) -> Peeked {
    let mut peek = BodyPeek::new(None, None, u64::MAX).unwrap();
    peek.feed(body.as_bytes()).unwrap();
    peek.finish().unwrap()
}

fn named(request: (&str, &str), lines: &[(&'static str, &'static str)], body: &str) -> Vec<String> {
    let method = Method::from_bytes(request.0.as_bytes()).unwrap();
    let headers = headers(lines);
    let Routed::Call(route) = route(&method, request.1, &headers, None) else {
        panic!("{request:?}");
    };
    references(&route, Some(&peek(body)), &headers)
        .iter()
        .map(|r| format!("{} {} {:?}", r.object.kind.name(), r.object.id, r.role))
        .collect()
}

#[test]
fn the_object_in_a_path_is_named_with_its_kind() {
    let check = |method: &str, path: &str, expect: &str| {
        let version: &[_] = &[("anthropic-version", "2023-06-01")];
        let lines = if expect.starts_with("message") {
            version
        } else {
            &[]
        };
        let found = named((method, path), lines, "");
        assert_eq!(found, [format!("{expect} Needed")], "{path}");
    };
    check("GET", "/v1/responses/resp_1", "response resp_1");
    check("POST", "/v1/responses/resp_1/cancel", "response resp_1");
    check("GET", "/v1/responses/resp_1/input_items", "response resp_1");
    check("DELETE", "/v1/files/file-1", "file file-1");
    check("GET", "/v1/files/odd/content", "file odd");
    check("POST", "/v1/uploads/upload_1/parts", "upload upload_1");
    check("POST", "/v1/uploads/upload_1/complete", "upload upload_1");
    check("GET", "/v1/batches/batch_1", "batch batch_1");
    check(
        "POST",
        "/v1/conversations/conv_1/items",
        "conversation conv_1",
    );
    check(
        "GET",
        "/v1/messages/batches/mb_1/results",
        "message_batch mb_1",
    );
}

#[test]
fn every_operation_with_an_object_in_its_path_has_its_kind() {
    for operation in Operation::ALL {
        let has_object = matches!(operation.effect(), Effect::Uses | Effect::Ends);
        assert_eq!(path_kind(*operation).is_some(), has_object, "{operation:?}");
        let lists = operation.effect() == Effect::Lists;
        assert_eq!(listed(*operation).is_some(), lists, "{operation:?}");
        let makes = operation.effect() == Effect::Makes;
        assert!(
            !makes || making(*operation) != Making::Nothing,
            "{operation:?}"
        );
    }
}

#[test]
fn objects_in_a_body_are_named_once_each() {
    let body = r#"{"model":"m","previous_response_id":"resp_1","conversation":{"id":"conv_1"},
        "input":[{"type":"input_file","file_id":"file-1"},{"type":"input_image","file_id":"file-1"},
                 {"type":"x","file_id":"7"}]}"#;
    let expect = [
        "response resp_1 Continued",
        "conversation conv_1 Needed",
        "file file-1 Needed",
        "file 7 Doubtful",
    ];
    assert_eq!(named(("POST", "/v1/responses"), &[], body), expect);
    let body = r#"{"input_file_id":"file-1","endpoint":"/v1/responses"}"#;
    assert_eq!(
        named(("POST", "/v1/batches"), &[], body),
        ["file file-1 Needed"]
    );
    assert!(named(("POST", "/v1/responses"), &[], r#"{"model":"m"}"#).is_empty());
}

#[test]
fn a_turn_state_is_known_by_its_digest() {
    let lines = [("x-codex-turn-state", "opaque")];
    let found = named(("POST", "/v1/responses"), &lines, "{}");
    let made = turn_state(&headers(&lines)).unwrap();
    assert_eq!(found, [format!("turn_state {} Needed", made.id)]);
    assert!(made.id.len() == 64 && !made.id.contains("opaque"));
    assert_ne!(
        turn_state(&headers(&[("x-codex-turn-state", "other")])),
        Some(made)
    );
    assert_eq!(turn_state(&headers(&[("x-codex-turn-state", "")])), None);
}

#[test]
fn only_a_deletion_ends_an_object() {
    let check = |method: &Method, path, expect: Option<&str>| {
        let Routed::Call(route) = route(method, path, &HeaderMap::new(), None) else {
            panic!("{path}");
        };
        assert_eq!(
            ended(&route).map(|o| o.id),
            expect.map(Into::into),
            "{path}"
        );
    };
    check(&Method::DELETE, "/v1/files/file-1", Some("file-1"));
    check(&Method::DELETE, "/v1/responses/resp_1", Some("resp_1"));
    check(&Method::DELETE, "/v1/conversations/c", Some("c"));
    check(&Method::DELETE, "/v1/conversations/c/items/i", None);
    check(&Method::GET, "/v1/files/file-1", None);
}

#[test]
fn the_conversation_of_a_request_is_named_by_the_first_that_says_something() {
    let check = |body: &str, lines: &[(&'static str, &'static str)], expect| {
        let (peeked, headers) = (peek(body), headers(lines));
        let found = affinity(Some(&peeked), &headers);
        let found =
            found.map(|(source, value)| (source, String::from_utf8(value.to_vec()).unwrap()));
        assert_eq!(found, expect, "{body} {lines:?}");
    };
    let some = |source, value: &str| Some((source, value.to_owned()));
    let both = [("x-session-id", "x"), ("session_id", "s")];
    check(
        r#"{"prompt_cache_key":"k"}"#,
        &both,
        some(S::PromptCacheKey, "k"),
    );
    check("{}", &both, some(S::SessionIdUnderscored, "s"));
    check(
        r#"{"prompt_cache_key":""}"#,
        &[("thread-id", "t")],
        some(S::ThreadId, "t"),
    );
    let claude = [("session-id", ""), ("x-claude-code-session-id", "c")];
    check("{}", &claude, some(S::ClaudeCodeSessionId, "c"));
    check("{}", &[], None);
}

fn check_made(operation: Operation, body: &str, expect: &[&str]) {
    let found: Vec<String> = made(operation, body.as_bytes())
        .iter()
        .map(|o| format!("{} {}", o.kind.name(), o.id))
        .collect();
    assert_eq!(found, expect, "{body}");
}

#[test]
fn an_answer_names_what_it_has_made() {
    let check = check_made;
    check(
        O::FileCreate,
        r#"{"id":"file-1","object":"file"}"#,
        &["file file-1"],
    );
    check(
        O::UploadCreate,
        r#"{"file":null,"id":"upload_1"}"#,
        &["upload upload_1"],
    );
    check(
        O::ConversationCreate,
        r#" { "id" : "conv_1" }"#,
        &["conversation conv_1"],
    );
    check(
        O::MessageBatchCreate,
        r#"{"type":"message_batch","id":"mb"}"#,
        &["message_batch mb"],
    );
    let upload = r#"{"id":"upload_1","file":{"object":"file","id":"file-9"}}"#;
    check(O::UploadComplete, upload, &["file file-9"]);
    let batch = r#"{"id":"batch_1","input_file_id":"file-0","output_file_id":"file-1","error_file_id":null}"#;
    check(O::BatchCreate, batch, &["batch batch_1", "file file-1"]);
    check(O::BatchRetrieve, batch, &["file file-1"]);
    let list = format!(r#"{{"object":"list","data":[{batch},{{"error_file_id":"file-2"}}]}}"#);
    check(O::BatchList, &list, &["file file-1", "file file-2"]);
    check(O::FileRetrieve, r#"{"id":"file-1"}"#, &[]);
}

#[test]
fn a_response_names_itself_and_its_conversation() {
    let check = |body, expect: &[&str]| {
        check_made(O::Responses, body, expect);
        let event =
            format!(r#"{{"type":"response.created","sequence_number":0,"response":{body}}}"#);
        let found = made_in_event(event.as_bytes());
        assert_eq!(found, made(O::Responses, body.as_bytes()), "{event}");
    };
    check(
        r#"{"id":"resp_1","output":[{"id":"msg_1"}]}"#,
        &["response resp_1"],
    );
    check(
        r#"{"conversation":{"id":"conv_1"},"id":"r\u0065sp_1"}"#,
        &["response resp_1", "conversation conv_1"],
    );
    check(
        r#"{"id":"resp_1","conversation":"conv_1","store":true}"#,
        &["response resp_1", "conversation conv_1"],
    );
    check(
        r#"{"id":"resp_1","conversation":null}"#,
        &["response resp_1"],
    );
    check(r#"{"id":"old","id":"resp_1"}"#, &["response resp_1"]);
    check(r#"{"id":"resp_1","store":false}"#, &[]);
}

#[test]
fn what_is_no_id_is_none() {
    let check = |body: &str| check_made(O::Responses, body, &[]);
    check(r#"{"id":7}"#);
    check(r#"{"id":""}"#);
    check(r#"{"error":{"id":"resp_1"}}"#);
    check(r#"[{"id":"resp_1"}]"#);
    check(r#"{"id":"resp"#);
    check("<html>");
    check("");
    check(&format!(
        r#"{{"id":"{}"}}"#,
        "x".repeat(MAX_FIELD_BYTES + 1)
    ));
}

#[test]
fn the_beginning_of_a_long_answer_is_enough() {
    let whole =
        r#"{"id":"resp_1","object":"response","output":[{"type":"message","content":"xx"}]}"#;
    for cut in r#"{"id":"resp_1""#.len()..whole.len() {
        check_made(O::Responses, &whole[..cut], &["response resp_1"]);
        let event = format!(r#"{{"type":"response.created","response":{whole}}}"#);
        let event = &event[..event.len() - 1 - whole.len() + cut];
        assert_eq!(made_in_event(event.as_bytes()).len(), 1, "{event}");
    }
}

fn check_list(body: &str, keep: &[&str], expect: &str) {
    let filtered = filter_list(body.as_bytes(), |id| keep.contains(&id)).unwrap();
    assert_eq!(String::from_utf8(filtered.body).unwrap(), expect);
    assert_eq!(filtered.kept, keep.len());
}

#[test]
fn a_list_shows_what_is_kept_and_no_more() {
    let list = r#"{"object":"list","data":[{"id":"a","n":1e2},{"n":[{"id":"b"}],"id":"b"},{"id":"c"}],"first_id":"a","last_id":"c","has_more":true,"x": 1}"#;
    check_list(list, &["a", "b", "c"], list);
    check_list(
        list,
        &["b"],
        r#"{"object":"list","data":[{"n":[{"id":"b"}],"id":"b"}],"first_id":"b","last_id":"b","has_more":true,"x": 1}"#,
    );
    check_list(
        list,
        &["a", "c"],
        r#"{"object":"list","data":[{"id":"a","n":1e2},{"id":"c"}],"first_id":"a","last_id":"c","has_more":true,"x": 1}"#,
    );
    check_list(
        list,
        &[],
        r#"{"object":"list","data":[],"first_id":null,"last_id":null,"has_more":true,"x": 1}"#,
    );
    check_list(r#"{"data":[]}"#, &[], r#"{"data":[]}"#);
    check_list(
        r#"{"last_id":"a","data":[{"id":"a"}]}"#,
        &[],
        r#"{"last_id":null,"data":[]}"#,
    );
}

#[test]
fn spaces_of_a_list_stay() {
    let list = "{\n  \"data\": [\n    {\n      \"id\": \"a\"\n    },\n    {\n      \"id\": \"b\"\n    }\n  ],\n  \"last_id\" : \"b\"\n}\n";
    check_list(list, &["a", "b"], list);
    check_list(
        list,
        &["b"],
        "{\n  \"data\": [\n    {\n      \"id\": \"b\"\n    }\n  ],\n  \"last_id\" : \"b\"\n}\n",
    );
}

#[test]
fn the_next_page_begins_where_upstreams_ended() {
    let list = br#"{"data":[{"id":"a"},{"id":"b"}],"has_more":true}"#;
    let filtered = filter_list(list, |_| false).unwrap();
    assert_eq!(filtered.cursor.as_deref(), Some("b"));
    assert!(filtered.has_more);
    let filtered = filter_list(br#"{"data":[{"id":"a"}],"has_more":false}"#, |_| true).unwrap();
    assert!(!filtered.has_more);
}

#[test]
fn what_is_no_list_is_not_shown() {
    let check = |body: &str| assert_eq!(filter_list(body.as_bytes(), |_| true), None, "{body}");
    check("");
    check("[]");
    check(r#"{"id":"a"}"#);
    check(r#"{"data":{"id":"a"}}"#);
    check(r#"{"data":[{"id":"a"},]}"#);
    check(r#"{"data":[{"id":"a"}"#);
    check(r#"{"data":[{"id":"a"}]"#);
    check(r#"{"data":[],"data":[{"id":"a"}]}"#);
    check(r#"{"data" [{"id":"a"}]}"#);
    // An item without an id is nobody's.
    check_list(
        r#"{"data":[{"x":"a"},7,{"id":"b"}]}"#,
        &["b"],
        r#"{"data":[{"id":"b"}]}"#,
    );
}

#[test]
fn pages_are_joined_in_their_order_and_say_where_they_end() {
    let check = |pages: &[&str], has_more, expect: Option<&str>| {
        let pages: Vec<Vec<u8>> = pages.iter().map(|p| p.as_bytes().to_vec()).collect();
        let joined = join_pages(&pages, has_more);
        let joined = joined.map(|body| String::from_utf8(body).unwrap());
        assert_eq!(joined.as_deref(), expect);
    };
    let first = r#"{"object":"list","data":[ {"id":"a","n":1.0} ],"first_id":"a","last_id":"a","has_more":true}"#;
    let second = r#"{"data":[{"id":"b"},{"id":"c"}],"has_more":false}"#;
    check(
        &[first, second],
        false,
        Some(
            r#"{"object":"list","data":[{"id":"a","n":1.0},{"id":"b"},{"id":"c"}],"first_id":"a","last_id":"c","has_more":false}"#,
        ),
    );
    let empty = r#"{"data":[],"first_id":null,"last_id":null}"#;
    check(
        &[empty, empty],
        true,
        Some(r#"{"data":[],"first_id":null,"last_id":null}"#),
    );
    check(&[second, "[]"], true, None);
    check(&[], true, None);
}
