//! The list of models, which three protocols keep at the same path.
use serde_json::{Value, json};

use super::{Call, Fault, Flavour, Shape};
use crate::sim::reply::Reply;

/// `GET …/models` and `…/models/{name}`; a name may have slashes.
pub(super) fn answer(call: &Call<'_>, name: &[&str]) -> Shape {
    if !matches!(call.head.method.as_str(), "GET" | "HEAD") {
        return Err(Fault::unknown_path(call));
    }
    let models = &call.shared.config.models;
    let all = || {
        models
            .iter()
            .map(|m| shape(call, m))
            .collect::<Vec<Value>>()
    };
    let name = name.join("/");
    if !name.is_empty() {
        return match models.iter().find(|m| **m == name) {
            Some(model) => Ok(Reply::json(200, &shape(call, model))),
            None => Err(Fault::unknown("model", &name)),
        };
    }
    let list = match call.flavour {
        Flavour::OpenAi => json!({"object": "list", "data": all()}),
        Flavour::Anthropic => json!({
            "data": all(), "has_more": false, "first_id": models.first(), "last_id": models.last(),
        }),
        Flavour::Gemini => json!({"models": all()}),
    };
    Ok(Reply::json(200, &list))
}

fn shape(call: &Call<'_>, model: &str) -> Value {
    match call.flavour {
        Flavour::OpenAi => json!({
            "id": model, "object": "model", "created": 1_700_000_000, "owned_by": "sim",
        }),
        Flavour::Anthropic => json!({
            "type": "model", "id": model, "display_name": model, "created_at": "2026-01-01T00:00:00Z",
        }),
        Flavour::Gemini => json!({
            "name": format!("models/{model}"), "version": "001", "displayName": model,
            "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536,
            "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens", "embedContent"],
        }),
    }
}
