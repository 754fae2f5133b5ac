//! A stream is the same bytes at the client, and understood the same, wherever its chunks end.
use crate::harness::{World, post, sha256};
use fairlane::{
    domain::ledger::{Entry, Outcome},
    sim::{Act, Rule},
};
use futures_util::{StreamExt as _, stream};

/// Requests at once: enough to be quick, few enough that no row of the log is shed.
const AT_ONCE: usize = 16;

/// Streams `text` once for every place at which a first chunk can end, and once in single bytes.
/// The recordings in `golden/` tell of 11 tokens in and 7 out.
async fn check(path: &str, text: &str) {
    for text in [text.to_owned(), text.replace('\n', "\r\n")] {
        let world = World::start().await;
        let bytes = text.as_bytes();
        world.sim.script((1..bytes.len()).map(|at| {
            let (before, after) = bytes.split_at(at);
            // The wait makes the two arrive apart.
            let act = Act {
                chunk_delay_ms: Some(1),
                ..Act::chunks([before, after])
            };
            Rule::new(act).path(&format!("at={at}."))
        }));
        let single = Act {
            split_every: Some(1),
            ..Act::chunks([bytes])
        };
        world.sim.script([Rule::new(single)]);
        let places = stream::iter(0..bytes.len());
        places
            .for_each_concurrent(AT_ONCE, async |at| {
                stream_once(&world, path, at, bytes).await;
            })
            .await;
        let rows = world.ledger().await;
        assert_eq!(rows.len(), bytes.len(), "{path}");
        for row in rows {
            assert_eq!(
                told(&row),
                (Outcome::Ok, Some(11), Some(7)),
                "{path}: {row:?}"
            );
        }
        world.end().await;
    }
}

fn told(row: &Entry) -> (Outcome, Option<u64>, Option<u64>) {
    (row.outcome, row.input_tokens, row.output_tokens)
}

async fn stream_once(world: &World, path: &str, at: usize, bytes: &[u8]) {
    let mark = if path.contains('?') { '&' } else { '?' };
    let target = format!("{path}{mark}at={at}.");
    let body = r#"{"model":"m","stream":true}"#;
    let answer = world.answer(post(&target, body)).await;
    assert_eq!(answer.header("content-type"), "text/event-stream");
    assert_eq!(sha256(&answer.body), sha256(bytes), "{target}: {answer:?}");
}

#[tokio::test]
async fn a_chat_stream_may_be_cut_anywhere() {
    check("/v1/chat/completions", include_str!("golden/chat.sse")).await;
}

#[tokio::test]
async fn a_responses_stream_may_be_cut_anywhere() {
    check("/v1/responses", include_str!("golden/responses.sse")).await;
}

#[tokio::test]
async fn a_messages_stream_may_be_cut_anywhere() {
    check("/v1/messages", include_str!("golden/messages.sse")).await;
}

#[tokio::test]
async fn a_gemini_stream_may_be_cut_anywhere() {
    let path = "/v1beta/models/m:streamGenerateContent?alt=sse";
    check(path, include_str!("golden/gemini.sse")).await;
}
