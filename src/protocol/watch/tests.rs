//! Answers of every protocol, whole, cut, failed and odd.
use super::*;
use std::io::Write as _;

use Operation as O;
use Protocol::{Anthropic, Gemini, OpenAi};

const SSE: &str = "text/event-stream; charset=utf-8";
const JSON: &str = "application/json";

const CHAT: &str = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\\\"finish_reason\\\":\\\"stop\\\" 한😀\"},\"finish_reason\":null}],\"usage\":null}\n\n\
data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4,\"prompt_tokens_details\":{\"cached_tokens\":2}}}\n\n\
data: [DONE]\n\n";

const RESPONSES: &str = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"usage\":null}}\n\n\
event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"response.completed\"}\n\n\
event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"error\":null,\"usage\":{\"input_tokens\":9,\"input_tokens_details\":{\"cached_tokens\":2},\"output_tokens\":4}}}\n\n";

const MESSAGES: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5,\"cache_read_input_tokens\":2,\"cache_creation_input_tokens\":2,\"output_tokens\":1}}}\n\n\
event: ping\ndata: {\"type\": \"ping\"}\n\n\
event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"message_stop\"}}\n\n\
event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":4}}\n\n\
event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

const CANDIDATES: &str = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}],\"usageMetadata\":{\"promptTokenCount\":9,\"cachedContentTokenCount\":2}}\r\n\r\n\
data: {\"candidates\":[{\"content\":{},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":9,\"cachedContentTokenCount\":2,\"candidatesTokenCount\":3,\"thoughtsTokenCount\":1}}\r\n\r\n";

const STREAMS: [(Protocol, Operation, &str); 4] = [
    (OpenAi, O::ChatCompletions, CHAT),
    (OpenAi, O::Responses, RESPONSES),
    (Anthropic, O::Messages, MESSAGES),
    (Gemini, O::StreamGenerateContent, CANDIDATES),
];

const USED: Usage = Usage {
    input: Some(9),
    output: Some(4),
    cached: Some(2),
};

fn watch_cut(
    operation: (Protocol, Operation),
    content_type: &str,
    body: &[u8],
    (cut, clean): (usize, bool),
) -> Verdict {
    let content_type = Some(content_type.as_bytes());
    let mut watcher = Watcher::new(operation.0, operation.1, content_type, None);
    for piece in body.chunks(cut) {
        watcher.feed(piece);
    }
    watcher.end(clean)
}

/// The verdict, which must not depend on how the body is cut.
fn watch(operation: (Protocol, Operation), content_type: &str, body: &str, clean: bool) -> Verdict {
    let body = body.as_bytes();
    let whole = watch_cut(operation, content_type, body, (body.len().max(1), clean));
    for cut in [1, 2, 3, 100, 1024] {
        let other = watch_cut(operation, content_type, body, (cut, clean));
        assert_eq!(other, whole, "cut at {cut}");
    }
    whole
}

fn failed(excerpt: &str) -> Completeness {
    Completeness::Failed {
        excerpt: excerpt.to_owned(),
    }
}

#[test]
fn a_whole_stream_is_complete_and_its_usage_known() {
    for (protocol, operation, stream) in STREAMS {
        let bare = stream.replace("\r\n", "\n");
        for line_end in ["\n", "\r\n", "\r"] {
            let noisy = bare.replace("\n\n", "\n\n: ping\n\nid: 1\nretry: 5\n\n");
            for text in [&bare, &noisy, &format!("\u{feff}{bare}")] {
                let verdict = watch(
                    (protocol, operation),
                    SSE,
                    &text.replace('\n', line_end),
                    true,
                );
                let expect = Verdict {
                    completeness: Completeness::Complete,
                    usage: USED,
                    terminal_seen: true,
                    made: Vec::new(),
                };
                assert_eq!(verdict, expect, "{operation:?} {line_end:?}");
            }
        }
    }
}

#[test]
fn a_stream_without_its_last_event_is_broken_however_it_ends() {
    for (protocol, operation, stream) in STREAMS {
        let mut events: Vec<&str> = stream.split_inclusive("\n\n").collect();
        if protocol == Gemini {
            events = stream.split_inclusive("\r\n\r\n").collect();
        }
        // Chat has the finish reason, usage and the mark at its end.
        events.truncate(
            events.len()
                - if operation == O::ChatCompletions {
                    3
                } else {
                    1
                },
        );
        let check = |clean, expect| {
            let verdict = watch((protocol, operation), SSE, &events.concat(), clean);
            assert_eq!(verdict.completeness, Completeness::Broken(expect));
            assert!(!verdict.terminal_seen);
        };
        check(true, Break::NoTerminalEvent);
        check(false, Break::CutOff);
    }
}

#[test]
fn a_finished_chat_needs_no_done_and_a_done_needs_no_finish() {
    let check = |stream: &str| {
        let verdict = watch((OpenAi, O::ChatCompletions), SSE, stream, false);
        assert_eq!(verdict.completeness, Completeness::Complete, "{stream}");
    };
    check("data: {\"choices\":[{\"finish_reason\":\"length\"}]}\n\n");
    check("data:{\"choices\":[{\"finish_reason\" : \"stop\"}]}");
    check("data: {\"choices\":\ndata: [{\"finish_reason\":\"stop\"}]}\n\n");
    check("data: {\"choices\":[{\"finish_reason\":null}]}\n\ndata: [DONE]\n");
}

#[test]
fn the_end_is_known_as_soon_as_it_has_come_by() {
    for (protocol, operation, stream) in STREAMS {
        let mut watcher = Watcher::new(protocol, operation, Some(SSE.as_bytes()), None);
        assert!(!watcher.terminal_seen());
        watcher.feed(stream.as_bytes());
        assert!(watcher.terminal_seen(), "{operation:?}");
        // A client that leaves now has everything, so the attempt is a success.
        assert_eq!(watcher.end(false).completeness, Completeness::Complete);
    }
}

#[test]
fn an_error_inside_a_stream_is_a_failure_with_an_excerpt() {
    let check = |protocol, operation, events: &str, expect: &str| {
        let verdict = watch((protocol, operation), SSE, events, true);
        assert_eq!(verdict.completeness, failed(expect));
    };
    let error = "{\"error\":{\"message\":\"말썽\"}}";
    let unnamed = format!("data: {error}\n\n");
    check(OpenAi, O::ChatCompletions, &unnamed, error);
    check(OpenAi, O::Responses, &unnamed, error);
    check(Anthropic, O::Messages, &unnamed, error);
    check(Gemini, O::StreamGenerateContent, &unnamed, error);
    let typed = "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}";
    let named = format!("event: error\ndata: {typed}\n\n");
    check(Anthropic, O::Messages, &named, typed);
    check(OpenAi, O::Responses, &named, typed);
    check(OpenAi, O::ChatCompletions, &named, typed);
    let swapped = "{\"sequence_number\":1,\"type\":\"response.failed\",\"response\":{}}";
    check(
        OpenAi,
        O::Responses,
        &format!("data: {swapped}\n\n"),
        swapped,
    );
    let finish = "{\"choices\":[{\"finish_reason\":\"error\"}],\"error\":{\"code\":502}}";
    check(
        OpenAi,
        O::ChatCompletions,
        &format!("data: {finish}\n\n"),
        finish,
    );
    let object = "{\"object\":\"error\",\"message\":\"no\"}";
    check(
        OpenAi,
        O::ChatCompletions,
        &format!("data: {object}\n\n"),
        object,
    );
}

#[test]
fn an_excerpt_is_short_and_ends_between_characters() {
    for shift in 0..4 {
        let text = "x".repeat(shift) + &"한".repeat(400);
        let excerpt = excerpt(text.as_bytes());
        assert!(excerpt.len() <= MAX_EXCERPT_BYTES && excerpt.len() > MAX_EXCERPT_BYTES - 4);
        assert!(text.starts_with(&excerpt));
    }
    assert_eq!(excerpt(b" a\xffb "), "a\u{fffd}b");
}

#[test]
fn a_line_of_any_length_hides_nothing_before_or_after_it() {
    let long = "x".repeat(4 << 20);
    let chunk = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{long}\"}},\"finish_reason\":null}}]}}\n\n"
    );
    let delta = format!(
        "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\"delta\":\"{long}\"}}\n\n"
    );
    let block = format!(
        "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"text\":\"{long}\"}}\n\n"
    );
    let parts = format!(
        "data: {{\"candidates\":[{{\"content\":\"{long}\"}}],\"usageMetadata\":{{\"promptTokenCount\":9}}}}\n\n"
    );
    for ((protocol, operation, stream), line) in
        STREAMS.into_iter().zip([chunk, delta, block, parts])
    {
        for text in [format!("{line}{stream}"), format!("{stream}{line}")] {
            let verdict = watch_cut((protocol, operation), SSE, text.as_bytes(), (1024, true));
            assert_eq!(
                verdict.completeness,
                Completeness::Complete,
                "{operation:?}"
            );
            assert_eq!(verdict.usage, USED, "{operation:?}");
        }
    }
}

#[test]
fn an_end_in_a_line_of_any_length_is_seen() {
    let long = "x".repeat(4 << 20);
    let check = |protocol, operation, event: &str| {
        let verdict = watch_cut((protocol, operation), SSE, event.as_bytes(), (16_384, true));
        assert_eq!(
            verdict.completeness,
            Completeness::Complete,
            "{operation:?}"
        );
        assert_eq!(verdict.usage.output, Some(4), "{operation:?}");
    };
    check(
        OpenAi,
        O::Responses,
        &format!(
            "data: {{\"type\":\"response.completed\",\"response\":{{\"output\":\"{long}\",\"usage\":{{\"output_tokens\":4}}}}}}\n\n"
        ),
    );
    check(
        OpenAi,
        O::ImageGenerations,
        &format!(
            "data: {{\"type\":\"image_generation.completed\",\"b64_json\":\"{long}\",\"usage\":{{\"output_tokens\":4}}}}\n\n"
        ),
    );
    check(
        OpenAi,
        O::ChatCompletions,
        &format!(
            "data: {{\"choices\":[{{\"delta\":\"{long}\",\"finish_reason\":\"stop\"}}],\"usage\":{{\"completion_tokens\":4}}}}\n\n"
        ),
    );
    check(
        Gemini,
        O::StreamGenerateContent,
        &format!(
            "data: {{\"candidates\":[{{\"content\":\"{long}\",\"finishReason\":\"STOP\"}}],\"usageMetadata\":{{\"candidatesTokenCount\":4}}}}\n\n"
        ),
    );
}

#[test]
fn a_last_event_too_long_to_tell_is_taken_for_the_end() {
    let long = "x".repeat(1 << 20);
    let check = |protocol, operation, event: &str, expect: Completeness| {
        let verdict = watch_cut((protocol, operation), SSE, event.as_bytes(), (16_384, true));
        assert_eq!(verdict.completeness, expect, "{operation:?}");
    };
    let broken = Completeness::Broken(Break::NoTerminalEvent);
    let chunk = format!(
        "data: {{\"choices\":[{{\"finish_reason\":\"stop\"}}],\"citations\":\"{long}\"}}\n\n"
    );
    let going_on =
        format!("data: {{\"choices\":[{{\"delta\":\"{long}\",\"finish_reason\":null}}]}}\n\n");
    let candidate = format!(
        "data: {{\"candidates\":[{{\"finishReason\":\"STOP\",\"groundingMetadata\":\"{long}\"}}]}}\n\n"
    );
    let complete = Completeness::Complete;
    check(OpenAi, O::ChatCompletions, &chunk, complete.clone());
    check(OpenAi, O::ChatCompletions, &going_on, broken.clone());
    check(Gemini, O::StreamGenerateContent, &candidate, complete);
    let followed = candidate + "data: {\"candidates\":[{\"content\":{}}]}\n\n";
    check(Gemini, O::StreamGenerateContent, &followed, broken);
}

#[test]
fn a_stream_without_any_line_end_is_broken() {
    let body = vec![b'x'; 1 << 20];
    let mut watcher = Watcher::new(OpenAi, O::ChatCompletions, Some(SSE.as_bytes()), None);
    for _ in 0..64 {
        watcher.feed(&body);
    }
    let broken = Completeness::Broken(Break::NoTerminalEvent);
    assert_eq!(watcher.end(true).completeness, broken);
}

#[test]
fn streams_of_images_and_sound_end_with_their_own_events() {
    let check = |operation, kind: &str| {
        let event = format!(
            "event: {kind}\ndata: {{\"type\":\"{kind}\",\"usage\":{{\"input_tokens\":1}}}}\n\n"
        );
        let verdict = watch((OpenAi, operation), SSE, &event, true);
        assert_eq!(verdict.completeness, Completeness::Complete, "{kind}");
        assert_eq!(verdict.usage.input, Some(1), "{kind}");
    };
    check(O::ImageGenerations, "image_generation.completed");
    check(O::ImageEdits, "image_edit.completed");
    check(O::Transcriptions, "transcript.text.done");
    check(O::Speech, "speech.audio.done");
    check(O::ResponseRetrieve, "response.incomplete");
    check(O::Responses, "response.cancelled");
}

#[test]
fn a_blocked_prompt_is_an_end() {
    let event = "data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\n\n";
    let verdict = watch((Gemini, O::StreamGenerateContent), SSE, event, true);
    assert_eq!(verdict.completeness, Completeness::Complete);
}

fn check_document(
    operation: (Protocol, Operation),
    body: &str,
    expect: &Completeness,
    input: Option<u64>,
) {
    let verdict = watch(operation, JSON, body, true);
    assert_eq!(verdict.completeness, *expect, "{body}");
    assert_eq!(verdict.usage.input, input, "{body}");
}

#[test]
fn a_document_is_judged_by_its_ends() {
    let check = check_document;
    let chat = (OpenAi, O::ChatCompletions);
    let unfinished = Completeness::Broken(Break::UnfinishedDocument);
    let complete = Completeness::Complete;
    check(
        chat,
        "{\"choices\":[],\"usage\":{\"prompt_tokens\":3}}\n",
        &complete,
        Some(3),
    );
    check(
        chat,
        "{\"usage\":{\"prompt_tokens\":3},\"error\":null}",
        &complete,
        Some(3),
    );
    check(
        chat,
        "{\"choices\":[{\"text\":\"\\\"error\\\":{}\"}]}",
        &complete,
        None,
    );
    check(chat, "{\"choices\":[{\"error\":1}]}", &complete, None);
    check(
        chat,
        "{\"error\":{\"message\":\"x\"}}",
        &failed("{\"error\":{\"message\":\"x\"}}"),
        None,
    );
    check(
        chat,
        " {\"id\":1,\"error\":\"x\"}",
        &failed("{\"id\":1,\"error\":\"x\"}"),
        None,
    );
    check(chat, "", &failed(""), None);
    check(chat, " \n", &failed(""), None);
    check(chat, "<!DOCTYPE html>", &failed("<!DOCTYPE html>"), None);
    check(chat, "upstream sad", &failed("upstream sad"), None);
    check(chat, "{\"choices\":[", &unfinished, None);
    check(chat, "data: {}\n\n", &complete, None);
    check((OpenAi, O::Transcriptions), "", &complete, None);
}

#[test]
fn a_stream_in_an_array_is_judged_like_one() {
    let check = check_document;
    let unfinished = Completeness::Broken(Break::UnfinishedDocument);
    let stream = (Gemini, O::StreamGenerateContent);
    let end =
        "{\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":5}}";
    check(
        stream,
        &format!("[{{}},\n{end}]"),
        &Completeness::Complete,
        Some(5),
    );
    check(stream, &format!("[{{}},\n{end}"), &unfinished, Some(5));
    check(
        stream,
        "[{}]",
        &Completeness::Broken(Break::NoTerminalEvent),
        None,
    );
    check(
        stream,
        "[{},{\"error\":{}}]",
        &failed("[{},{\"error\":{}}]"),
        None,
    );
}

#[test]
fn a_document_of_any_length_is_judged_alike() {
    let long = "x".repeat(1 << 20);
    let body = format!("{{\"data\":[\"{long}\"],\"usage\":{{\"input_tokens\":3}}}}");
    let verdict = watch_cut(
        (OpenAi, O::ImageGenerations),
        JSON,
        body.as_bytes(),
        (9999, true),
    );
    assert_eq!(verdict.completeness, Completeness::Complete);
    assert_eq!(verdict.usage.input, Some(3));
    let cut = watch_cut(
        (OpenAi, O::Embeddings),
        JSON,
        &body.as_bytes()[..1 << 20],
        (9999, true),
    );
    assert_eq!(
        cut.completeness,
        Completeness::Broken(Break::UnfinishedDocument)
    );
    let body = format!("{{\"error\":\"{long}\"}}");
    let verdict = watch_cut((OpenAi, O::Embeddings), JSON, body.as_bytes(), (9999, true));
    assert!(matches!(verdict.completeness, Completeness::Failed { .. }));
}

#[test]
fn a_page_is_a_failure_whatever_was_asked_for() {
    for operation in [O::ChatCompletions, O::Speech, O::FileContent] {
        let verdict = watch((OpenAi, operation), "text/html", "<html>no</html>", true);
        assert_eq!(
            verdict.completeness,
            failed("<html>no</html>"),
            "{operation:?}"
        );
    }
}

#[test]
fn bytes_that_say_nothing_are_judged_by_the_transport() {
    let speech = (OpenAi, O::Speech);
    let verdict = watch(speech, "audio/mpeg", "\u{0}\u{1}", true);
    assert_eq!(verdict.completeness, Completeness::Complete);
    let verdict = watch(speech, "audio/mpeg", "\u{0}\u{1}", false);
    assert_eq!(verdict.completeness, Completeness::Broken(Break::CutOff));
}

fn watch_encoded(encoding: &str, body: &[u8]) -> Verdict {
    let (kind, encoding) = (Some(SSE.as_bytes()), Some(encoding.as_bytes()));
    let mut watcher = Watcher::new(OpenAi, O::Responses, kind, encoding);
    for piece in body.chunks(10) {
        watcher.feed(piece);
    }
    watcher.end(true)
}

#[test]
fn compressed_answers_are_watched_where_they_can_be_decoded() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(RESPONSES.as_bytes()).unwrap();
    let verdict = watch_encoded("gzip", &gzip.finish().unwrap());
    assert_eq!((verdict.usage, verdict.terminal_seen), (USED, true));
    let zstd = zstd::encode_all(RESPONSES.as_bytes(), 1).unwrap();
    assert_eq!(watch_encoded("zstd", &zstd).usage, USED);
    for (encoding, body) in [("br", &zstd), ("gzip", &zstd)] {
        let verdict = watch_encoded(encoding, body);
        assert_eq!(verdict.completeness, Completeness::Complete, "{encoding}");
        assert_eq!(verdict.usage, Usage::default(), "{encoding}");
    }
}

fn ids(made: &[crate::domain::owners::Object]) -> Vec<&str> {
    made.iter().map(|object| &*object.id).collect()
}

const MAKING: &str = "event: keepalive\ndata: {\"type\":\"keepalive\"}\n\n\
event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"conversation\":{\"id\":\"conv_1\"}}}\n\n";

#[test]
fn a_stream_tells_what_it_makes_with_the_piece_that_says_it() {
    let text = [MAKING, RESPONSES].concat();
    for cut in 1..text.len() {
        let mut watcher = Watcher::new(OpenAi, O::Responses, Some(SSE.as_bytes()), None);
        let mut passed = 0;
        let mut told_at = None;
        for piece in text.as_bytes().chunks(cut) {
            watcher.feed(piece);
            passed += piece.len();
            let made = watcher.take_made();
            if !made.is_empty() {
                assert_eq!(ids(&made), ["resp_1", "conv_1"]);
                assert_eq!(told_at.replace(passed), None, "told twice");
            }
        }
        // A client knows of it once the event has ended.
        let said_at = MAKING.len().next_multiple_of(cut).min(text.len());
        assert_eq!(told_at, Some(said_at), "cut at {cut}");
        assert_eq!(watcher.end(true).made, []);
    }
}

#[test]
fn what_was_not_taken_is_told_at_the_end() {
    let check = |operation, content_type, body: &str, expect: &[&str]| {
        let verdict = watch((OpenAi, operation), content_type, body, false);
        assert_eq!(ids(&verdict.made), expect, "{body}");
    };
    check(O::Responses, SSE, MAKING, &["resp_1", "conv_1"]);
    check(
        O::Responses,
        JSON,
        r#"{"id":"resp_1","output":[]}"#,
        &["resp_1"],
    );
    check(
        O::Responses,
        JSON,
        r#"{"id":"resp_1","output":["#,
        &["resp_1"],
    );
    check(O::ResponsesCompact, JSON, r#"{"id":"resp_1"}"#, &["resp_1"]);
    // Reading makes nothing, and what must be on disk first is not learned in passing.
    check(O::ResponseRetrieve, SSE, MAKING, &[]);
    check(O::FileCreate, JSON, r#"{"id":"file-1"}"#, &[]);
    check(O::ChatCompletions, JSON, r#"{"id":"chatcmpl-1"}"#, &[]);
}

#[test]
fn only_the_first_events_are_looked_into_for_what_a_stream_makes() {
    let late =
        |count: usize| ["data: {\"type\":\"x\"}\n\n".repeat(count).as_str(), MAKING].concat();
    let check = |text: &str, expect: &[&str]| {
        let verdict = watch((OpenAi, O::Responses), SSE, text, false);
        assert_eq!(ids(&verdict.made), expect);
    };
    check(&late(6), &["resp_1", "conv_1"]);
    check(&late(7), &[]);
}
