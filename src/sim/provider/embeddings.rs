//! `OpenAI` embeddings and moderations. A vector follows from its text alone.
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{
    Call, Fault, Shape,
    body::{model_of, number},
};
use crate::sim::{reply::Reply, speech::tokens_in};

/// What `text-embedding-3-small` has.
const DIMENSIONS: u64 = 1536;

/// More than any model offers.
const MAX_DIMENSIONS: u64 = 8192;

/// `POST …/embeddings`
pub(super) fn embeddings(call: &Call<'_>) -> Shape {
    let document = call.document()?;
    let model = model_of(&document)?;
    let input = document
        .get("input")
        .ok_or_else(|| Fault::missing("input"))?;
    let size = number(&document, &["dimensions"])
        .unwrap_or(DIMENSIONS)
        .min(MAX_DIMENSIONS);
    let as_base64 = document.get("encoding_format").and_then(Value::as_str) == Some("base64");
    let data: Vec<_> = inputs(input)
        .iter()
        .enumerate()
        .map(|(index, text)| {
            let vector = vector(text, size);
            let embedding = if as_base64 {
                let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
                json!(STANDARD.encode(bytes))
            } else {
                json!(vector)
            };
            json!({"object": "embedding", "index": index, "embedding": embedding})
        })
        .collect();
    let tokens = tokens_in(input);
    let answer = json!({
        "object": "list", "data": data, "model": model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    });
    Ok(call.paced_whole(Reply::json(200, &answer), 0))
}

/// `POST …/moderations`; the model may be left out.
pub(super) fn moderations(call: &Call<'_>) -> Shape {
    let document = call.document()?;
    let model = document.get("model").and_then(Value::as_str);
    let input = document
        .get("input")
        .ok_or_else(|| Fault::missing("input"))?;
    let results: Vec<_> = inputs(input)
        .iter()
        .map(|_| {
            json!({
                "flagged": false,
                "categories": {"harassment": false, "hate": false, "violence": false},
                "category_scores": {"harassment": 0.0, "hate": 0.0, "violence": 0.0},
            })
        })
        .collect();
    let answer = json!({
        "id": call.id("modr-"), "model": model.unwrap_or("omni-moderation-latest"), "results": results,
    });
    Ok(Reply::json(200, &answer))
}

/// One text, or a list of them; a list of numbers is one input of tokens.
fn inputs(input: &Value) -> Vec<String> {
    match input {
        Value::Array(items) if !items.iter().all(Value::is_number) => {
            items.iter().map(Value::to_string).collect()
        }
        one => vec![one.to_string()],
    }
}

/// Numbers between -1 and 1, exact in single precision, that follow from the text.
pub(super) fn vector(text: &str, size: u64) -> Vec<f32> {
    let digest = crate::digest::sha256(text.as_bytes());
    let bytes = digest.iter().cycle().zip(0..size);
    bytes
        .map(|(byte, n)| {
            let turn = byte.wrapping_add((n / 32).to_le_bytes()[0]);
            f32::from(i16::from(turn) - 128) / 128.0
        })
        .collect()
}
