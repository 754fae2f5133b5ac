//! What it costs to watch an event stream that passes by.
use divan::{Bencher, black_box, counter::ItemsCount};
use fairlane::{
    domain::protocol::Protocol,
    protocol::{
        operation::Operation,
        watch::{Completeness, Watcher},
    },
};

/// Chunks of one stream.
const CHUNKS: usize = 1000;

fn main() {
    divan::main();
}

/// A chat stream whose chunks have some 200 bytes each.
fn chat() -> Vec<String> {
    let mut events: Vec<String> = (0..CHUNKS)
        .map(|n| {
            format!(
                "data: {{\"id\":\"chatcmpl-0123456789\",\"object\":\"chat.completion.chunk\",\"created\":1764400000,\"model\":\"gpt-4o\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\" word{n:04}\"}},\"finish_reason\":null}}]}}\n\n"
            )
        })
        .collect();
    events.push("data: [DONE]\n\n".to_owned());
    events
}

/// A Responses stream with deltas of some 200 bytes.
fn responses() -> Vec<String> {
    let mut events: Vec<String> = (0..CHUNKS)
        .map(|n| {
            format!(
                "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\"sequence_number\":{n},\"item_id\":\"msg_0123456789\",\"output_index\":0,\"content_index\":0,\"delta\":\" word\"}}\n\n"
            )
        })
        .collect();
    events.push(
        "data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":9}}}\n\n"
            .to_owned(),
    );
    events
}

/// A Gemini stream, whose chunks all carry counts.
fn candidates() -> Vec<String> {
    let mut events: Vec<String> = (0..CHUNKS)
        .map(|n| {
            format!(
                "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"word{n:04}\"}}],\"role\":\"model\"}},\"index\":0}}],\"usageMetadata\":{{\"promptTokenCount\":9,\"candidatesTokenCount\":{n}}}}}\r\n\r\n"
            )
        })
        .collect();
    events.push("data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\r\n\r\n".to_owned());
    events
}

fn watch<'a>(
    (protocol, operation): (Protocol, Operation),
    pieces: impl Iterator<Item = &'a [u8]>,
) -> Completeness {
    let mut watcher = Watcher::new(protocol, operation, Some(b"text/event-stream"), None);
    for piece in pieces {
        watcher.feed(black_box(piece));
    }
    watcher.end(true).completeness
}

fn bench_by_event(bencher: Bencher<'_, '_>, asked: (Protocol, Operation), events: &[String]) {
    let run = || watch(asked, events.iter().map(String::as_bytes));
    assert_eq!(run(), Completeness::Complete);
    bencher
        .counter(ItemsCount::new(events.len()))
        .bench_local(run);
}

#[divan::bench]
fn chat_one_chunk_at_a_time(bencher: Bencher<'_, '_>) {
    let asked = (Protocol::OpenAi, Operation::ChatCompletions);
    bench_by_event(bencher, asked, &chat());
}

#[divan::bench]
fn chat_16_kib_at_a_time(bencher: Bencher<'_, '_>) {
    let asked = (Protocol::OpenAi, Operation::ChatCompletions);
    let stream = chat().concat();
    let run = || watch(asked, stream.as_bytes().chunks(16 << 10));
    assert_eq!(run(), Completeness::Complete);
    bencher.counter(ItemsCount::new(CHUNKS)).bench_local(run);
}

#[divan::bench]
fn responses_one_event_at_a_time(bencher: Bencher<'_, '_>) {
    let asked = (Protocol::OpenAi, Operation::Responses);
    bench_by_event(bencher, asked, &responses());
}

#[divan::bench]
fn gemini_one_chunk_at_a_time(bencher: Bencher<'_, '_>) {
    let asked = (Protocol::Gemini, Operation::StreamGenerateContent);
    bench_by_event(bencher, asked, &candidates());
}
