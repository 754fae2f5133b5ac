//! `OpenAI` objects with a life of their own: uploads, batches, conversations.
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{
    Call, Fault, Shape,
    files::{keep, listing, page},
    multipart::Part,
};
use crate::sim::{
    reply::Reply,
    shelf::{Kind, Stored},
};

fn find(call: &Call<'_>, kind: Kind, id: &str) -> Result<Stored, Fault> {
    let what = match kind {
        Kind::Upload => "upload",
        Kind::Batch => "batch",
        Kind::Conversation => "conversation",
        Kind::File => "File object",
        Kind::Response => "response",
    };
    let found = call.shared.shelves.find(call.owner, kind, id);
    found.ok_or_else(|| Fault::unknown(what, id))
}

/// Stores an object under its own id and shows it.
fn put(call: &Call<'_>, kind: Kind, stored: Stored) -> Reply {
    let reply = Reply::json(200, &stored.shown);
    let id = text(&stored.shown, "id").to_owned();
    call.shared.shelves.put(call.owner, kind, &id, stored);
    reply
}

fn text<'a>(document: &'a Value, field: &str) -> &'a str {
    document
        .get(field)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn with(mut stored: Stored, fields: &[(&str, Value)]) -> Stored {
    if let Value::Object(shown) = &mut stored.shown {
        shown.extend(fields.iter().map(|(n, v)| ((*n).to_owned(), v.clone())));
    }
    stored
}

/// Everything under `…/uploads`: parts are put together in the order of their arrival.
pub(super) fn uploads(call: &Call<'_>, rest: &[&str]) -> Shape {
    match (call.head.method.as_str(), rest) {
        ("POST", []) => {
            let asked = call.document()?;
            let shown = json!({
                "id": call.id("upload_"), "object": "upload", "bytes": asked.get("bytes"),
                "created_at": call.now(), "filename": asked.get("filename"),
                "purpose": asked.get("purpose"), "status": "pending", "file": null,
            });
            let bytes = Bytes::new();
            Ok(put(call, Kind::Upload, Stored { shown, bytes }))
        }
        ("POST", [id, "parts"]) => {
            let mut stored = find(call, Kind::Upload, id)?;
            let form = call.form()?;
            let part = form.file().ok_or_else(|| Fault::missing("data"))?;
            stored.bytes = [&stored.bytes[..], &part.content].concat().into();
            call.shared
                .shelves
                .put(call.owner, Kind::Upload, id, stored);
            let shown = json!({
                "id": call.id("part_"), "object": "upload.part", "created_at": call.now(), "upload_id": id,
            });
            Ok(Reply::json(200, &shown))
        }
        ("POST", [id, "complete"]) => {
            let stored = find(call, Kind::Upload, id)?;
            let part = Part {
                name: "file".to_owned(),
                filename: Some(text(&stored.shown, "filename").to_owned()),
                content: stored.bytes.clone(),
            };
            let file = keep(call, &part, text(&stored.shown, "purpose"));
            let done = with(stored, &[("status", json!("completed")), ("file", file)]);
            Ok(put(call, Kind::Upload, done))
        }
        ("POST", [id, "cancel"]) => {
            let stored = find(call, Kind::Upload, id)?;
            Ok(put(
                call,
                Kind::Upload,
                with(stored, &[("status", json!("cancelled"))]),
            ))
        }
        _ => Err(Fault::unknown_path(call)),
    }
}

/// Everything under `…/batches`. A batch is complete by the first time it is read.
pub(super) fn batches(call: &Call<'_>, rest: &[&str]) -> Shape {
    match (call.head.method.as_str(), rest) {
        ("POST", []) => {
            let asked = call.document()?;
            let input = text(&asked, "input_file_id");
            let file = find(call, Kind::File, input)?;
            let shown = json!({
                "id": call.id("batch_"), "object": "batch", "endpoint": asked.get("endpoint"),
                "input_file_id": input, "completion_window": asked.get("completion_window"),
                "status": "validating", "output_file_id": null, "error_file_id": null,
                "created_at": call.now(), "metadata": asked.get("metadata"),
                "request_counts": {"total": 0, "completed": 0, "failed": 0},
            });
            let bytes = file.bytes;
            Ok(put(call, Kind::Batch, Stored { shown, bytes }))
        }
        ("GET", []) => {
            let all = call.shared.shelves.list(call.owner, Kind::Batch);
            Ok(Reply::json(200, &page(call, &all)))
        }
        ("GET", [id]) => {
            let stored = find(call, Kind::Batch, id)?;
            if text(&stored.shown, "status") != "validating" {
                return Ok(Reply::json(200, &stored.shown));
            }
            Ok(put(call, Kind::Batch, complete(call, stored)))
        }
        ("POST", [id, "cancel"]) => {
            let stored = find(call, Kind::Batch, id)?;
            Ok(put(
                call,
                Kind::Batch,
                with(stored, &[("status", json!("cancelled"))]),
            ))
        }
        _ => Err(Fault::unknown_path(call)),
    }
}

/// Answers each line of the batch's input with one of an output file.
fn complete(call: &Call<'_>, batch: Stored) -> Stored {
    let mut output = String::new();
    let mut count = 0;
    for line in batch.bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
        let asked: Value = serde_json::from_slice(line).unwrap_or_default();
        let body = json!({"object": "chat.completion", "choices": []});
        let answered = json!({
            "id": call.id("batch_req_"), "custom_id": asked.get("custom_id"),
            "response": {"status_code": 200, "body": body}, "error": null,
        });
        output.extend([answered.to_string().as_str(), "\n"]);
        count += 1;
    }
    let part = Part {
        name: "file".to_owned(),
        filename: Some("output.jsonl".to_owned()),
        content: output.into(),
    };
    let file = keep(call, &part, "batch_output");
    let counts = json!({"total": count, "completed": count, "failed": 0});
    let fields = [
        ("status", json!("completed")),
        ("output_file_id", json!(text(&file, "id"))),
        ("request_counts", counts),
    ];
    with(batch, &fields)
}

/// Everything under `…/conversations`.
pub(super) fn conversations(call: &Call<'_>, rest: &[&str]) -> Shape {
    match (call.head.method.as_str(), rest) {
        ("POST", []) => {
            let asked = if call.body.length == 0 {
                Value::Null
            } else {
                call.document()?
            };
            let metadata = asked.get("metadata").cloned();
            let shown = json!({
                "id": call.id("conv_"), "object": "conversation", "created_at": call.now(),
                "metadata": metadata.unwrap_or_else(|| Value::Object(Map::new())),
            });
            let items = asked.get("items").cloned().unwrap_or_else(|| json!([]));
            let bytes = items.to_string().into();
            Ok(put(call, Kind::Conversation, Stored { shown, bytes }))
        }
        ("GET", [id]) => Ok(Reply::json(200, &find(call, Kind::Conversation, id)?.shown)),
        ("POST", [id]) => {
            let stored = find(call, Kind::Conversation, id)?;
            let metadata = call.document()?.get("metadata").cloned();
            let fields = [("metadata", metadata.unwrap_or_default())];
            Ok(put(call, Kind::Conversation, with(stored, &fields)))
        }
        ("DELETE", [id]) => {
            find(call, Kind::Conversation, id)?;
            call.shared
                .shelves
                .remove(call.owner, Kind::Conversation, id);
            let gone = json!({"id": id, "object": "conversation.deleted", "deleted": true});
            Ok(Reply::json(200, &gone))
        }
        ("GET", [id, "items"]) => Ok(Reply::json(
            200,
            &listing(&items(&find(call, Kind::Conversation, id)?), false),
        )),
        ("POST", [id, "items"]) => {
            let mut stored = find(call, Kind::Conversation, id)?;
            let mut all = items(&stored);
            let added = call
                .document()?
                .get("items")
                .and_then(Value::as_array)
                .cloned();
            let added = added.unwrap_or_default();
            all.extend(added.iter().cloned());
            stored.bytes = Value::Array(all).to_string().into();
            call.shared
                .shelves
                .put(call.owner, Kind::Conversation, id, stored);
            Ok(Reply::json(200, &listing(&added, false)))
        }
        _ => Err(Fault::unknown_path(call)),
    }
}

fn items(conversation: &Stored) -> Vec<Value> {
    serde_json::from_slice(&conversation.bytes).unwrap_or_default()
}
