//! Gemini's `generateContent` family.
use bytes::Bytes;
use serde_json::{Value, json};

use super::{Call, Fault, Shape, embeddings::vector, models};
use crate::sim::{
    reply::{Body, Reply},
    speech::{Speech, last_user_text, tokens_in},
};

/// What Gemini's embeddings have unless told otherwise.
const DIMENSIONS: u64 = 768;

pub(super) fn answer(call: &Call<'_>) -> Shape {
    let ["models", name @ ..] = call.path.as_slice() else {
        return Err(Fault::unknown_path(call));
    };
    // A model's name may have slashes and colons; the verb comes last.
    let name = name.join("/");
    let Some((model, verb)) = name.rsplit_once(':') else {
        let segments: Vec<_> = name.split('/').filter(|s| !s.is_empty()).collect();
        return models::answer(call, &segments);
    };
    if call.head.method != "POST" {
        return Err(Fault::unknown_path(call));
    }
    let document = call.document()?;
    match verb {
        "generateContent" => Ok(generate(call, model, &document)),
        "streamGenerateContent" => Ok(stream(call, model, &document)),
        "countTokens" => {
            let tokens = tokens_in(&document);
            let answer = json!({
                "totalTokens": tokens,
                "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens}],
            });
            Ok(Reply::json(200, &answer))
        }
        "embedContent" => Ok(Reply::json(
            200,
            &json!({"embedding": embedding(&document)}),
        )),
        "batchEmbedContents" => {
            let requests = document.get("requests").and_then(Value::as_array);
            let all: Vec<_> = requests.into_iter().flatten().map(embedding).collect();
            Ok(Reply::json(200, &json!({"embeddings": all})))
        }
        _ => Err(Fault::unknown_path(call)),
    }
}

fn embedding(request: &Value) -> Value {
    let text = request
        .get("content")
        .map(Value::to_string)
        .unwrap_or_default();
    let size = request.get("outputDimensionality").and_then(Value::as_u64);
    json!({"values": vector(&text, size.unwrap_or(DIMENSIONS).min(3072))})
}

fn said(call: &Call<'_>, document: &Value) -> Speech {
    let asked = last_user_text(document.get("contents"), "parts");
    let cap = document.pointer("/generationConfig/maxOutputTokens");
    call.speech(&asked, cap.and_then(Value::as_u64))
}

/// One part of an answer; the last one says why it ended.
struct Part<'a> {
    text: &'a str,
    finish: Option<&'static str>,
    /// Tokens of the prompt, and of the answer up to and with this part.
    tokens: (u64, u64),
}

impl Part<'_> {
    fn shape(&self, model: &str, id: &str) -> Value {
        let (prompt, so_far) = self.tokens;
        let mut candidate = json!({
            "content": {"parts": [{"text": self.text}], "role": "model"}, "index": 0,
        });
        if let Some(finish) = self.finish {
            candidate["finishReason"] = json!(finish);
        }
        json!({
            "candidates": [candidate],
            "usageMetadata": {
                "promptTokenCount": prompt, "candidatesTokenCount": so_far,
                "totalTokenCount": prompt + so_far,
                "promptTokensDetails": [{"modality": "TEXT", "tokenCount": prompt}],
            },
            "modelVersion": model, "responseId": id,
        })
    }
}

fn finish(speech: &Speech) -> &'static str {
    if speech.is_cut { "MAX_TOKENS" } else { "STOP" }
}

fn generate(call: &Call<'_>, model: &str, document: &Value) -> Reply {
    let speech = said(call, document);
    let part = Part {
        text: speech.text(),
        finish: Some(finish(&speech)),
        tokens: (
            document.get("contents").map_or(1, tokens_in),
            speech.tokens(),
        ),
    };
    let reply = Reply::json(200, &part.shape(model, &call.id("")));
    call.paced_whole(reply, speech.tokens())
}

/// SSE with `alt=sse`, else one JSON array that grows.
fn stream(call: &Call<'_>, model: &str, document: &Value) -> Reply {
    let speech = said(call, document);
    let prompt = document.get("contents").map_or(1, tokens_in);
    let id = call.id("");
    let last = speech.tokens();
    let parts = speech.pieces().zip(1..).map(|(text, so_far)| {
        let part = Part {
            text,
            finish: (so_far == last).then(|| finish(&speech)),
            tokens: (prompt, so_far),
        };
        part.shape(model, &id)
    });
    if call.head.query("alt") == Some("sse") {
        let pieces = parts.map(|p| Bytes::from(format!("data: {p}\r\n\r\n")));
        return call.paced_stream(Reply::sse(pieces.collect()));
    }
    let mut pieces: Vec<Bytes> = parts
        .enumerate()
        .map(|(n, p)| format!("{}{p}", if n == 0 { "[" } else { ",\r\n" }).into())
        .collect();
    pieces.push(Bytes::from_static(if last == 0 { b"[]" } else { b"]" }));
    let reply = Reply::new(200, "application/json; charset=UTF-8", Body::Pieces(pieces));
    call.paced_stream(reply)
}
