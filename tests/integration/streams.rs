//! Streams: what passes through, how an end is understood, and how fast a byte is there.
#![expect(
    clippy::unwrap_used,
    reason = "a helper whose peer does not play along has failed its test"
)]

mod bytes;
mod ends;
mod pace;
mod usage;

use crate::harness::{World, post};
use ::bytes::Bytes;
use fairlane::{
    domain::ledger::Entry,
    sim::{Act, Octets, Rule},
};
use http_body_util::{BodyExt as _, Collected};
use serde_json::{Value, json};

/// How one protocol streams, as three events that say `text`.
#[derive(Clone, Copy)]
struct Tongue {
    path: &'static str,
    ask: fn() -> Value,
    first: fn(&str) -> String,
    more: fn(&str) -> String,
    /// The end, with the usage of [`USAGE`] somewhere in the stream, and without `[DONE]`.
    last: fn(&str) -> String,
}

/// Tokens in and out, as every [`Tongue`] reports them.
const USAGE: (Option<u64>, Option<u64>) = (Some(7), Some(3));

const TONGUES: [Tongue; 4] = [CHAT, RESPONSES, MESSAGES, GEMINI];

fn sse(event: &Value) -> String {
    format!("data: {event}\n\n")
}

fn named(event: &Value) -> String {
    format!(
        "event: {}\ndata: {event}\n\n",
        event["type"].as_str().unwrap()
    )
}

fn chunk(text: &str, finish: &Value) -> Value {
    json!({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m",
           "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]})
}

const CHAT: Tongue = Tongue {
    path: "/v1/chat/completions",
    ask: || crate::harness::chat(true),
    first: |text| sse(&chunk(text, &Value::Null)),
    more: |text| sse(&chunk(text, &Value::Null)),
    last: |text| {
        let mut last = chunk(text, &json!("stop"));
        last["usage"] = json!({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10});
        sse(&last)
    },
};

const RESPONSES: Tongue = Tongue {
    path: "/v1/responses",
    ask: || json!({"model": "gpt-4o-mini", "stream": true, "input": "hi"}),
    first: |text| {
        named(&json!({"type": "response.created", "sequence_number": 0,
                      "response": {"id": "resp_1", "instructions": text}}))
    },
    more: |text| {
        named(&json!({"type": "response.output_text.delta", "sequence_number": 1, "delta": text}))
    },
    last: |text| {
        named(&json!({"type": "response.completed", "sequence_number": 2,
                      "response": {"id": "resp_1", "output": [{"text": text}],
                                   "usage": {"input_tokens": 7, "output_tokens": 3}}}))
    },
};

const MESSAGES: Tongue = Tongue {
    path: "/v1/messages",
    ask: || {
        json!({"model": "claude-sonnet-4-5", "stream": true, "max_tokens": 9,
               "messages": [{"role": "user", "content": "hi"}]})
    },
    first: |text| {
        named(&json!({"type": "message_start",
                      "message": {"id": "msg_1", "content": [{"text": text}],
                                  "usage": {"input_tokens": 7, "output_tokens": 1}}}))
    },
    more: |text| {
        named(&json!({"type": "content_block_delta", "index": 0,
                      "delta": {"type": "text_delta", "text": text}}))
    },
    last: |text| {
        named(
            &json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "x": text},
                      "usage": {"output_tokens": 3}}),
        ) + &named(&json!({"type": "message_stop"}))
    },
};

fn candidate(text: &str) -> Value {
    json!({"candidates": [{"content": {"parts": [{"text": text}], "role": "model"}, "index": 0}]})
}

const GEMINI: Tongue = Tongue {
    path: "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
    ask: || json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}),
    first: |text| sse(&candidate(text)),
    more: |text| sse(&candidate(text)),
    last: |text| {
        let mut last = candidate(text);
        last["candidates"][0]["finishReason"] = json!("STOP");
        last["usageMetadata"] = json!({"promptTokenCount": 7, "candidatesTokenCount": 3});
        sse(&last)
    },
};

/// An event stream in exactly these pieces.
fn streaming<T: Into<Octets>>(pieces: impl IntoIterator<Item = T>) -> Act {
    Act::chunks(pieces).header("content-type", "text/event-stream")
}

impl Tongue {
    /// A short stream, as its three events.
    fn events(self) -> [String; 3] {
        [(self.first)("a"), (self.more)("b"), (self.last)("c")]
    }

    /// Has upstream answer this one request with `act`: what the client got, and `None` instead if
    /// its connection was cut; and the row that stands in the request log.
    async fn relayed(self, world: &World, act: Act) -> (Option<Bytes>, Entry) {
        world.sim.script([Rule::new(act).times(1)]);
        let answer = world.send(post(self.path, (self.ask)().to_string())).await;
        let got = answer.into_body().collect().await;
        let row = world.last_row().await;
        (got.ok().map(Collected::to_bytes), row)
    }
}
