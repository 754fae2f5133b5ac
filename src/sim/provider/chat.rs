//! `OpenAI` chat completions, and the completions that came before them.
use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    Call, Fault, Shape,
    body::{is_stream, model_of, number},
};
use crate::sim::{
    reply::{Reply, data},
    speech::{Speech, last_user_text, text_of, tokens_in},
};

/// `POST …/chat/completions`
pub(super) fn chat(call: &Call<'_>) -> Shape {
    let document = call.document()?;
    let model = model_of(&document)?;
    let asked = last_user_text(document.get("messages"), "content");
    let cap = number(&document, &["max_completion_tokens", "max_tokens"]);
    let speech = call.speech(&asked, cap);
    let prompt = document.get("messages").map_or(1, tokens_in);
    let usage = usage(prompt, speech.tokens());
    let (id, created) = (call.id("chatcmpl-"), call.now());
    if is_stream(&document) {
        let chunk = |choices: Value| {
            json!({
                "id": id, "object": "chat.completion.chunk", "created": created, "model": model,
                "service_tier": "default", "system_fingerprint": "fp_sim", "choices": choices,
            })
        };
        let delta = |delta: Value, finish: Option<&str>| {
            chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]))
        };
        let mut chunks = vec![delta(
            json!({"role": "assistant", "content": "", "refusal": null}),
            None,
        )];
        chunks.extend(speech.pieces().map(|p| delta(json!({"content": p}), None)));
        chunks.push(delta(json!({}), Some(finish(&speech))));
        return Ok(call.paced_stream(stream(chunks, &document, &chunk(json!([])), &usage)));
    }
    let answer = json!({
        "id": id, "object": "chat.completion", "created": created, "model": model,
        "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": speech.text(), "refusal": null, "annotations": []},
            "logprobs": null,
            "finish_reason": finish(&speech),
        }],
        "usage": usage, "service_tier": "default", "system_fingerprint": "fp_sim",
    });
    Ok(call.paced_whole(Reply::json(200, &answer), speech.tokens()))
}

/// `POST …/completions`
pub(super) fn completion(call: &Call<'_>) -> Shape {
    let document = call.document()?;
    let model = model_of(&document)?;
    let prompt = document
        .get("prompt")
        .ok_or_else(|| Fault::missing("prompt"))?;
    let speech = call.speech(&text_of(prompt), number(&document, &["max_tokens"]));
    let usage = usage(tokens_in(prompt), speech.tokens());
    let (id, created) = (call.id("cmpl-"), call.now());
    let shape = |choices: Value| {
        json!({
            "id": id, "object": "text_completion", "created": created, "model": model,
            "choices": choices, "system_fingerprint": "fp_sim",
        })
    };
    let choice = |text: &str, finish: Option<&str>| {
        shape(json!([{"text": text, "index": 0, "logprobs": null, "finish_reason": finish}]))
    };
    if is_stream(&document) {
        let mut chunks: Vec<_> = speech.pieces().map(|p| choice(p, None)).collect();
        chunks.push(choice("", Some(finish(&speech))));
        return Ok(call.paced_stream(stream(chunks, &document, &shape(json!([])), &usage)));
    }
    let mut answer = choice(speech.text(), Some(finish(&speech)));
    put(&mut answer, "usage", usage);
    Ok(call.paced_whole(Reply::json(200, &answer), speech.tokens()))
}

/// The chunks, the usage if it was asked for, and the end mark.
fn stream(mut chunks: Vec<Value>, asked: &Value, last: &Value, usage: &Value) -> Reply {
    if asked.pointer("/stream_options/include_usage") == Some(&Value::Bool(true)) {
        for chunk in &mut chunks {
            put(chunk, "usage", Value::Null);
        }
        let mut last = last.clone();
        put(&mut last, "usage", usage.clone());
        chunks.push(last);
    }
    let mut pieces: Vec<_> = chunks.iter().map(data).collect();
    pieces.push(Bytes::from_static(b"data: [DONE]\n\n"));
    Reply::sse(pieces)
}

fn put(document: &mut Value, field: &str, value: Value) {
    if let Value::Object(fields) = document {
        fields.insert(field.to_owned(), value);
    }
}

fn finish(speech: &Speech) -> &'static str {
    if speech.is_cut { "length" } else { "stop" }
}

fn usage(prompt: u64, completion: u64) -> Value {
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    })
}
