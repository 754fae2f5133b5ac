//! Files, in `OpenAI`'s shape and in Anthropic's. They belong to the credential that sent them.
use serde_json::{Value, json};

use super::{Call, Fault, Flavour, Shape, multipart::Part};
use crate::sim::{
    reply::{Body, Reply},
    shelf::{Kind, Stored},
};

/// Everything under `…/files`; `rest` is what follows.
pub(super) fn answer(call: &Call<'_>, rest: &[&str]) -> Shape {
    let shelves = &call.shared.shelves;
    match (call.head.method.as_str(), rest) {
        ("POST", []) => upload(call),
        ("GET", []) => {
            let files = shelves.list(call.owner, Kind::File);
            Ok(Reply::json(200, &page(call, &files)))
        }
        ("GET" | "HEAD", [id]) => Ok(Reply::json(200, &find(call, id)?.shown)),
        ("GET" | "HEAD", [id, "content"]) => {
            let body = Body::Whole(find(call, id)?.bytes);
            Ok(Reply::new(200, "application/octet-stream", body))
        }
        ("DELETE", [id]) => {
            find(call, id)?;
            shelves.remove(call.owner, Kind::File, id);
            let gone = match call.flavour {
                Flavour::Anthropic => json!({"id": id, "type": "file_deleted"}),
                _ => json!({"id": id, "object": "file", "deleted": true}),
            };
            Ok(Reply::json(200, &gone))
        }
        _ => Err(Fault::unknown_path(call)),
    }
}

fn find(call: &Call<'_>, id: &str) -> Result<Stored, Fault> {
    let found = call.shared.shelves.find(call.owner, Kind::File, id);
    found.ok_or_else(|| Fault::unknown("File object", id))
}

fn upload(call: &Call<'_>) -> Shape {
    if !call.body.is_held() {
        let message = "The simulator holds no file of this size.";
        return Err(Fault::new(413, message));
    }
    let form = call.form()?;
    let file = form.file().ok_or_else(|| Fault::missing("file"))?;
    let purpose = form
        .field("purpose")
        .unwrap_or_else(|| "user_data".to_owned());
    Ok(Reply::json(200, &keep(call, file, &purpose)))
}

/// Stores a file and returns what reads of it show.
pub(super) fn keep(call: &Call<'_>, file: &Part, purpose: &str) -> Value {
    let name = file.filename.as_deref().unwrap_or("file");
    let size = file.content.len();
    let (id, shown);
    if call.flavour == Flavour::Anthropic {
        id = call.id("file_");
        shown = json!({
            "id": id, "type": "file", "filename": name, "mime_type": "application/octet-stream",
            "size_bytes": size, "created_at": "2026-01-01T00:00:00Z", "downloadable": false,
        });
    } else {
        id = call.id("file-");
        shown = json!({
            "id": id, "object": "file", "bytes": size, "created_at": call.now(),
            "filename": name, "purpose": purpose, "status": "processed", "expires_at": null,
        });
    }
    let stored = Stored {
        shown: shown.clone(),
        bytes: file.content.clone(),
    };
    call.shared.shelves.put(call.owner, Kind::File, &id, stored);
    shown
}

/// The page of `items` that the call asks for.
pub(super) fn page(call: &Call<'_>, items: &[Value]) -> Value {
    let (after, before) = match call.flavour {
        Flavour::Anthropic => ("after_id", "before_id"),
        _ => ("after", "before"),
    };
    let at = |name: &str| {
        let id = call.head.query(name)?;
        items
            .iter()
            .position(|item| item.get("id") == Some(&json!(id)))
    };
    let limit = call.head.query("limit").and_then(|n| n.parse().ok());
    let limit: usize = limit.unwrap_or(usize::MAX);
    let rest = if let Some(end) = at(before) {
        items.get(..end).unwrap_or_default()
    } else {
        let begin = at(after).map_or(0, |n| n + 1);
        items.get(begin..).unwrap_or_default()
    };
    let begin = match at(before) {
        Some(_) => rest.len().saturating_sub(limit),
        None => 0,
    };
    let shown = rest.iter().skip(begin).take(limit).cloned();
    let shown: Vec<Value> = shown.collect();
    listing(&shown, shown.len() < rest.len())
}

/// A page with these on it.
pub(super) fn listing(items: &[Value], has_more: bool) -> Value {
    let id = |item: Option<&Value>| item.and_then(|i| i.get("id")).cloned();
    json!({
        "object": "list", "first_id": id(items.first()), "last_id": id(items.last()),
        "data": items, "has_more": has_more,
    })
}
