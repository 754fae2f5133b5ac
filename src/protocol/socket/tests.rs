//! Messages and turns of the Responses API over WebSocket.
use super::*;

fn check_asked(text: &str, expect: &Asked) {
    assert_eq!(&asked(text), expect, "{text}");
}

#[test]
fn only_what_asks_for_a_response_is_a_turn() {
    let create = |stream: Option<&str>| Asked::Create {
        stream: stream.map(str::to_owned),
    };
    check_asked(r#"{"type":"response.create","model":"m"}"#, &create(None));
    check_asked(
        r#"{"model":"m","stream_id":"a","type":"response.create"}"#,
        &create(Some("a")),
    );
    check_asked(r#"{"type":"response.cancel"}"#, &Asked::Other);
    check_asked(r#"{"kind":1}"#, &Asked::Other);
    check_asked("{", &Asked::Malformed);
    check_asked("[]", &Asked::Malformed);
}

fn check_told(text: &str, meaning: Meaning, response: Option<&str>) {
    let told = told(text);
    assert_eq!(
        (told.meaning, told.response.as_deref()),
        (meaning, response),
        "{text}"
    );
}

#[test]
fn events_begin_carry_and_end_a_turn() {
    check_told(
        r#"{"type":"response.created","response":{"id":"r"}}"#,
        Meaning::Begun,
        Some("r"),
    );
    check_told(
        r#"{"type":"response.output_text.delta"}"#,
        Meaning::Going,
        None,
    );
    for ended in ["completed", "incomplete", "cancelled"] {
        let text = format!(r#"{{"type":"response.{ended}","response":{{"id":"r"}}}}"#);
        check_told(&text, Meaning::Ended, Some("r"));
    }
    check_told(r#"{"type":"response.failed"}"#, Meaning::Failed, None);
    check_told(
        r#"{"type":"error","status":429}"#,
        Meaning::Refused(429),
        None,
    );
    check_told(r#"{"type":"error"}"#, Meaning::Refused(500), None);
    check_told(r#"{"type":"keepalive"}"#, Meaning::Aside, None);
    check_told("no JSON", Meaning::Aside, None);
}

fn about(turns: &mut Turns<u8>, text: &str) -> Option<u8> {
    turns.about(&told(text)).copied()
}

#[test]
fn overlapping_turns_are_told_apart() {
    let mut turns = Turns::default();
    turns.begin(None, 1);
    let first = r#"{"type":"response.created","response":{"id":"a"}}"#;
    assert_eq!(about(&mut turns, first), Some(1));
    turns.begin(None, 2);
    let going = r#"{"type":"response.output_text.delta"}"#;
    assert_eq!(about(&mut turns, going), Some(1));
    let second = r#"{"type":"response.created","response":{"id":"b"}}"#;
    assert_eq!(about(&mut turns, second), Some(2));
    let end = |id| {
        told(&format!(
            r#"{{"type":"response.completed","response":{{"id":"{id}"}}}}"#
        ))
    };
    assert_eq!(turns.end(&end("b")), Some(2));
    assert_eq!(turns.end(&end("a")), Some(1));
    assert_eq!(turns.end(&end("a")), None);
    assert!(turns.is_empty());
}

#[test]
fn an_error_is_about_the_turn_that_has_not_begun() {
    let mut turns = Turns::default();
    turns.begin(None, 1);
    about(
        &mut turns,
        r#"{"type":"response.created","response":{"id":"a"}}"#,
    );
    turns.begin(None, 2);
    let error = told(r#"{"type":"error","status":400}"#);
    assert_eq!(turns.end(&error), Some(2));
    assert_eq!(turns.end(&error), Some(1));
}

#[test]
fn conversations_of_one_socket_do_not_end_one_another() {
    let mut turns = Turns::default();
    turns.begin(Some("x".to_owned()), 1);
    turns.begin(Some("y".to_owned()), 2);
    let end = told(r#"{"type":"response.completed","stream_id":"y"}"#);
    assert_eq!(turns.end(&end), Some(2));
    assert_eq!(turns.end(&end), None);
    assert_eq!(turns.take_all(), [1]);
}

#[test]
fn an_error_s_wait_is_read_like_a_header() {
    let text = r#"{"type":"error","headers":{"retry-after":2,"x-a":"b","bad name":1}}"#;
    let headers = error_headers(text);
    assert_eq!(headers["retry-after"], "2");
    assert_eq!(headers["x-a"], "b");
    assert_eq!(headers.len(), 2);
    assert!(error_headers("{}").is_empty());
}

#[test]
fn an_answer_of_http_becomes_a_message() {
    let body = br#"{"error":{"message":"slow down","type":"rate_limit_error","code":"x"}}"#;
    let said = refusal_message(429, Some("2"), body);
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["type"], "error");
    assert_eq!(said["status"], 429);
    assert_eq!(said["error"]["code"], "x");
    assert_eq!(said["headers"]["retry-after"], "2");
    let unread = refusal_message(502, None, b"<html>");
    let unread: serde_json::Value = serde_json::from_str(&unread).unwrap();
    assert_eq!(unread["status"], 502);
    assert_eq!(unread["error"]["type"], "server_error");
}

#[test]
fn a_key_among_the_subprotocols_goes_no_further() {
    let (key, others) = split_subprotocols("realtime, openai-insecure-api-key.fl-1 ,beta");
    assert_eq!((key, others), (Some("fl-1"), vec!["realtime", "beta"]));
    assert_eq!(split_subprotocols("").0, None);
}

#[test]
fn an_endpoint_without_websocket_is_told_from_a_refusal_of_who_asks_or_what() {
    let check = |kind, lacks: &[u16], has: &[u16]| {
        for (statuses, expect) in [(lacks, true), (has, false)] {
            for status in statuses {
                assert_eq!(is_unspoken(kind, *status), expect, "{kind:?} {status}");
            }
        }
    };
    let refusals = [401, 402, 403, 408, 429, 500, 502, 503, 529];
    check(
        SocketKind::Turns,
        &[200, 302, 400, 404, 405, 426, 501],
        &refusals,
    );
    check(SocketKind::Realtime, &[200, 302, 405, 426, 501], &refusals);
    check(SocketKind::Realtime, &[], &[400, 404]);
}
