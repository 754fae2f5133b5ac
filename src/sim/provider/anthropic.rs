//! Anthropic's messages.
use serde_json::{Value, json};

use super::{
    Call, Fault, Shape,
    body::{is_stream, model_of, number},
    files, models,
};
use crate::sim::{
    reply::{Reply, event},
    speech::{Speech, last_user_text, tokens_in},
};

pub(super) fn answer(call: &Call<'_>) -> Shape {
    match (call.head.method.as_str(), call.path.as_slice()) {
        ("POST", ["messages"]) => messages(call),
        ("POST", ["messages", "count_tokens"]) => {
            let document = call.document()?;
            model_of(&document)?;
            let tokens = json!({"input_tokens": prompt_tokens(&document)});
            Ok(Reply::json(200, &tokens))
        }
        (_, ["files", rest @ ..]) => files::answer(call, rest),
        (_, ["models", name @ ..]) => models::answer(call, name),
        _ => Err(Fault::unknown_path(call)),
    }
}

fn messages(call: &Call<'_>) -> Shape {
    let document = call.document()?;
    let model = model_of(&document)?;
    let asked = last_user_text(document.get("messages"), "content");
    let speech = call.speech(&asked, number(&document, &["max_tokens"]));
    let (input, output) = (prompt_tokens(&document), speech.tokens());
    let message = |content: Value, stop: Option<&str>, said: u64| {
        json!({
            "id": call.id("msg_"), "type": "message", "role": "assistant", "model": model,
            "content": content, "stop_reason": stop, "stop_sequence": null,
            "usage": {
                "input_tokens": input, "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0, "output_tokens": said, "service_tier": "standard",
            },
        })
    };
    if !is_stream(&document) {
        let content = json!([{"type": "text", "text": speech.text()}]);
        let whole = message(content, Some(stop_reason(&speech)), output);
        return Ok(call.paced_whole(Reply::json(200, &whole), output));
    }
    let events = events(&message(json!([]), None, 1), &speech, input);
    let pieces = events.iter().map(event).collect();
    Ok(call.paced_stream(Reply::sse(pieces)))
}

fn events(start: &Value, speech: &Speech, input: u64) -> Vec<Value> {
    let mut events = vec![
        json!({"type": "message_start", "message": start}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "ping"}),
    ];
    events.extend(speech.pieces().map(|piece| {
        json!({
            "type": "content_block_delta", "index": 0,
            "delta": {"type": "text_delta", "text": piece},
        })
    }));
    events.extend([
        json!({"type": "content_block_stop", "index": 0}),
        json!({
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason(speech), "stop_sequence": null},
            "usage": {"input_tokens": input, "output_tokens": speech.tokens()},
        }),
        json!({"type": "message_stop"}),
    ]);
    events
}

fn stop_reason(speech: &Speech) -> &'static str {
    if speech.is_cut {
        "max_tokens"
    } else {
        "end_turn"
    }
}

/// The system prompt and tools count as well.
fn prompt_tokens(document: &Value) -> u64 {
    ["system", "messages", "tools"]
        .iter()
        .filter_map(|field| document.get(field))
        .map(tokens_in)
        .sum()
}
