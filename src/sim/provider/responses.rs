//! `OpenAI` responses: made, streamed, kept for their owner, continued and read again.
use serde_json::{Value, json};

use super::{
    Call, Fault, Shape,
    body::{is_stream, model_of, number},
};
use crate::sim::{
    reply::{Reply, event},
    shelf::{Kind, Stored},
    speech::{Speech, last_user_text, tokens_in},
    trace::hex,
};

/// Everything under `…/responses`; `rest` is what follows.
pub(super) fn answer(call: &Call<'_>, rest: &[&str]) -> Shape {
    match (call.head.method.as_str(), rest) {
        ("POST", []) => create(call),
        ("POST", ["compact"]) => compact(call),
        ("POST", ["input_tokens"]) => input_tokens(call),
        ("GET" | "HEAD", [id]) => read(call, id),
        ("DELETE", [id]) => {
            find(call, id)?;
            call.shared.shelves.remove(call.owner, Kind::Response, id);
            let gone = json!({"id": id, "object": "response", "deleted": true});
            Ok(Reply::json(200, &gone))
        }
        ("POST", [id, "cancel"]) => cancel(call, id),
        ("GET", [id, "input_items"]) => {
            let input: Value = serde_json::from_slice(&find(call, id)?.bytes).unwrap_or_default();
            Ok(Reply::json(
                200,
                &json!({"object": "list", "data": items(&input), "has_more": false}),
            ))
        }
        _ => Err(Fault::unknown_path(call)),
    }
}

/// A response in the making.
struct Making {
    id: String,
    message_id: String,
    created: i64,
    speech: Speech,
    asked: Value,
    prompt_tokens: u64,
}

fn create(call: &Call<'_>) -> Shape {
    let asked = call.document()?;
    model_of(&asked)?;
    let text = check_input(call, &asked)?;
    let making = Making {
        id: call.id("resp_"),
        message_id: call.id("msg_"),
        created: call.now(),
        speech: call.speech(&text, number(&asked, &["max_output_tokens"])),
        prompt_tokens: asked.get("input").map_or(1, tokens_in),
        asked,
    };
    let complete = making.response(making.end());
    if making.asked.get("store") != Some(&Value::Bool(false)) {
        let stored = Stored {
            shown: complete.clone(),
            bytes: making
                .asked
                .get("input")
                .map_or_else(String::new, Value::to_string)
                .into(),
        };
        call.shared
            .shelves
            .put(call.owner, Kind::Response, &making.id, stored);
    }
    if is_stream(&making.asked) {
        let pieces = making.events().iter().map(event).collect();
        return Ok(call.paced_stream(Reply::sse(pieces)));
    }
    if making.asked.get("background") == Some(&Value::Bool(true)) {
        return Ok(Reply::json(200, &making.response("queued")));
    }
    let tokens = making.speech.tokens();
    Ok(call.paced_whole(Reply::json(200, &complete), tokens))
}

/// Checks what the input refers to, and returns the text to repeat.
fn check_input(call: &Call<'_>, asked: &Value) -> Result<String, Fault> {
    let shelves = &call.shared.shelves;
    if let Some(id) = asked.get("previous_response_id").and_then(Value::as_str)
        && shelves.find(call.owner, Kind::Response, id).is_none()
    {
        let message = format!("Previous response with id '{id}' not found.");
        let code = "previous_response_not_found";
        return Err(Fault::new(400, message).code(code, "previous_response_id"));
    }
    let conversation = asked.get("conversation");
    let conversation = conversation.and_then(|c| c.as_str().or_else(|| c.get("id")?.as_str()));
    if let Some(id) = conversation
        && shelves.find(call.owner, Kind::Conversation, id).is_none()
    {
        return Err(Fault::unknown("conversation", id));
    }
    let input = asked.get("input").unwrap_or(&Value::Null);
    let mut text = match input {
        Value::String(text) => text.clone(),
        items => last_user_text(Some(items), "content"),
    };
    for id in file_ids(input) {
        let file = shelves.find(call.owner, Kind::File, id);
        let file = file.ok_or_else(|| Fault::unknown("File object", id))?;
        let sum = hex(crate::digest::sha256(&file.bytes));
        text = format!("{text} [{id}: {} bytes, sha256 {sum}]", file.bytes.len());
    }
    Ok(text)
}

/// Every `file_id` in a document, in order.
fn file_ids(document: &Value) -> Vec<&str> {
    match document {
        Value::Array(items) => items.iter().flat_map(file_ids).collect(),
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, value)| match value.as_str() {
                Some(id) if name == "file_id" => vec![id],
                _ => file_ids(value),
            })
            .collect(),
        _ => Vec::new(),
    }
}

impl Making {
    fn end(&self) -> &'static str {
        if self.speech.is_cut {
            "incomplete"
        } else {
            "completed"
        }
    }

    fn message(&self, status: &str, content: &Value) -> Value {
        json!({
            "id": self.message_id, "type": "message", "status": status, "role": "assistant",
            "content": content,
        })
    }

    fn part(text: &str) -> Value {
        json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text})
    }

    fn response(&self, status: &str) -> Value {
        let is_over = status == self.end();
        let field = |name: &str| self.asked.get(name).cloned().unwrap_or_default();
        let output = if is_over {
            json!([self.message(status, &json!([Self::part(self.speech.text())]))])
        } else {
            json!([])
        };
        let (input, said) = (self.prompt_tokens, self.speech.tokens());
        let usage = is_over.then(|| {
            json!({
                "input_tokens": input, "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": said, "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": input + said,
            })
        });
        let cut = (is_over && self.speech.is_cut).then(|| json!({"reason": "max_output_tokens"}));
        json!({
            "id": self.id, "object": "response", "created_at": self.created, "status": status,
            "background": self.asked.get("background") == Some(&Value::Bool(true)),
            "error": null, "incomplete_details": cut, "instructions": field("instructions"),
            "max_output_tokens": field("max_output_tokens"), "model": field("model"),
            "output": output, "parallel_tool_calls": true,
            "previous_response_id": field("previous_response_id"),
            "reasoning": {"effort": null, "summary": null}, "service_tier": "default",
            "store": self.asked.get("store") != Some(&Value::Bool(false)),
            "temperature": 1.0, "text": {"format": {"type": "text"}}, "tool_choice": "auto",
            "tools": [], "top_p": 1.0, "truncation": "disabled", "usage": usage, "user": null,
            "metadata": self.asked.get("metadata").cloned().unwrap_or_else(|| json!({})),
        })
    }

    fn events(&self) -> Vec<Value> {
        let place = |kind: &str, rest: Value| {
            let mut event = json!({"type": kind});
            merge(
                &mut event,
                json!({"item_id": self.message_id, "output_index": 0, "content_index": 0}),
            );
            merge(&mut event, rest);
            event
        };
        let text = self.speech.text();
        let done = self.message(self.end(), &json!([Self::part(text)]));
        let mut events = vec![
            json!({"type": "response.created", "response": self.response("in_progress")}),
            json!({"type": "response.in_progress", "response": self.response("in_progress")}),
            json!({
                "type": "response.output_item.added", "output_index": 0,
                "item": self.message("in_progress", &json!([])),
            }),
            place(
                "response.content_part.added",
                json!({"part": Self::part("")}),
            ),
        ];
        events.extend(self.speech.pieces().map(|piece| {
            place(
                "response.output_text.delta",
                json!({"delta": piece, "logprobs": []}),
            )
        }));
        events.extend([
            place("response.output_text.done", json!({"text": text, "logprobs": []})),
            place("response.content_part.done", json!({"part": Self::part(text)})),
            json!({"type": "response.output_item.done", "output_index": 0, "item": done}),
            json!({"type": format!("response.{}", self.end()), "response": self.response(self.end())}),
        ]);
        for (number, event) in events.iter_mut().enumerate() {
            merge(event, json!({"sequence_number": number}));
        }
        events
    }
}

fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}

fn find(call: &Call<'_>, id: &str) -> Result<Stored, Fault> {
    let found = call.shared.shelves.find(call.owner, Kind::Response, id);
    found.ok_or_else(|| Fault::new(404, format!("Response with id '{id}' not found.")))
}

/// Reads a response, or attaches to its stream again: the events after `starting_after`.
fn read(call: &Call<'_>, id: &str) -> Shape {
    let stored = find(call, id)?;
    if call.head.query("stream") != Some("true") {
        return Ok(Reply::json(200, &stored.shown));
    }
    let text = |pointer: &str| stored.shown.pointer(pointer).and_then(Value::as_str);
    let said = text("/output/0/content/0/text").unwrap_or_default();
    let again = Making {
        id: id.to_owned(),
        message_id: text("/output/0/id").unwrap_or_default().to_owned(),
        created: stored
            .shown
            .get("created_at")
            .and_then(Value::as_i64)
            .unwrap_or_default(),
        speech: Speech::repeating(said, None, None),
        prompt_tokens: stored
            .shown
            .pointer("/usage/input_tokens")
            .and_then(Value::as_u64)
            .unwrap_or_default(),
        asked: stored.shown.clone(),
    };
    let seen = call
        .head
        .query("starting_after")
        .and_then(|n| n.parse::<usize>().ok());
    let left = again.events().into_iter().skip(seen.map_or(0, |n| n + 1));
    let pieces = left.map(|e| event(&e)).collect();
    Ok(call.paced_stream(Reply::sse(pieces)))
}

fn cancel(call: &Call<'_>, id: &str) -> Shape {
    let mut stored = find(call, id)?;
    if stored.shown.get("background") != Some(&Value::Bool(true)) {
        let message = "Only responses created with background=true can be cancelled.";
        return Err(Fault::new(400, message));
    }
    merge(&mut stored.shown, json!({"status": "cancelled"}));
    call.shared
        .shelves
        .put(call.owner, Kind::Response, id, stored.clone());
    Ok(Reply::json(200, &stored.shown))
}

fn compact(call: &Call<'_>) -> Shape {
    let asked = call.document()?;
    model_of(&asked)?;
    let text = check_input(call, &asked)?;
    let tokens = asked.get("input").map_or(1, tokens_in);
    let answer = json!({
        "id": call.id("resp_"), "object": "response.compaction", "created_at": call.now(),
        "output": [{"id": call.id("cmp_"), "type": "compaction", "encrypted_content": text}],
        "usage": {"input_tokens": tokens, "output_tokens": 1, "total_tokens": tokens + 1},
    });
    Ok(Reply::json(200, &answer))
}

fn input_tokens(call: &Call<'_>) -> Shape {
    let asked = call.document()?;
    let tokens = asked.get("input").map_or(1, tokens_in);
    let answer = json!({"object": "response.input_tokens", "input_tokens": tokens});
    Ok(Reply::json(200, &answer))
}

/// An input as the list of items that it stands for.
fn items(input: &Value) -> Value {
    match input {
        Value::String(text) => json!([{
            "type": "message", "role": "user", "content": [{"type": "input_text", "text": text}],
        }]),
        Value::Null => json!([]),
        list => list.clone(),
    }
}
