//! `OpenAI` audio: speech from text, and text from recordings.
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde_json::{Value, json};

use super::{Call, Fault, Shape, body::model_of};
use crate::sim::{
    reply::{Body, Reply, event},
    speech::Speech,
    trace::hex,
};

/// `POST …/audio/speech`: for each word a block of bytes that follow from it.
pub(super) fn speech(call: &Call<'_>) -> Shape {
    let document = call.document()?;
    model_of(&document)?;
    let text = document.get("input").and_then(Value::as_str);
    let text = text.ok_or_else(|| Fault::missing("input"))?;
    let speech = call.speech(text, None);
    let sounds = speech.pieces().map(|word| {
        let block = crate::digest::sha256(word.as_bytes());
        Bytes::from(block.repeat(8))
    });
    if document.get("stream_format").and_then(Value::as_str) == Some("sse") {
        let mut events: Vec<_> = sounds
            .map(|s| json!({"type": "speech.audio.delta", "audio": STANDARD.encode(s)}))
            .collect();
        let said = speech.tokens();
        let usage = json!({"input_tokens": said, "output_tokens": said, "total_tokens": 2 * said});
        events.push(json!({"type": "speech.audio.done", "usage": usage}));
        return Ok(call.paced_stream(Reply::sse(events.iter().map(event).collect())));
    }
    let reply = Reply::new(200, "audio/mpeg", Body::Pieces(sounds.collect()));
    Ok(call.paced_stream(reply))
}

/// `POST …/audio/transcriptions`: the text says which bytes were heard.
pub(super) fn transcription(call: &Call<'_>) -> Shape {
    if !call.body.is_held() {
        let text = format!("{} bytes", call.body.length);
        return Ok(Reply::json(200, &json!({"text": text})));
    }
    let form = call.form()?;
    if form.field("model").is_none() {
        return Err(Fault::missing("model"));
    }
    let file = form.file().ok_or_else(|| Fault::missing("file"))?;
    let sum = hex(crate::digest::sha256(&file.content));
    let text = format!("sha256 {sum} bytes {}", file.content.len());
    let usage = json!({"type": "duration", "seconds": 1});
    if form.field("stream").as_deref() == Some("true") {
        let speech = Speech::repeating(&text, None, None);
        let mut events: Vec<_> = speech
            .pieces()
            .map(|w| json!({"type": "transcript.text.delta", "delta": w}))
            .collect();
        events.push(json!({"type": "transcript.text.done", "text": text, "usage": usage}));
        return Ok(call.paced_stream(Reply::sse(events.iter().map(event).collect())));
    }
    let reply = match form.field("response_format").as_deref() {
        Some("text") => {
            let body = Body::Whole(format!("{text}\n").into());
            Reply::new(200, "text/plain; charset=utf-8", body)
        }
        Some("verbose_json") => {
            let segment = json!({"id": 0, "start": 0.0, "end": 1.0, "text": text});
            let shape = json!({
                "task": "transcribe", "language": "english", "duration": 1.0, "text": text,
                "segments": [segment], "usage": usage,
            });
            Reply::json(200, &shape)
        }
        _ => Reply::json(200, &json!({"text": text, "usage": usage})),
    };
    Ok(call.paced_whole(reply, 0))
}
