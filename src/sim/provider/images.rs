//! `OpenAI` images: generations from JSON; edits and variations from forms.
use serde_json::{Value, json};

use super::{
    Call, Fault, Shape,
    body::{is_stream, number},
};
use crate::sim::{
    reply::{Reply, event},
    trace::hex,
};

/// A PNG of one transparent pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

/// `POST …/images/{kind}`
pub(super) fn answer(call: &Call<'_>, kind: &str) -> Shape {
    let (prompt, count, streams) = if kind == "generations" {
        let document = call.document()?;
        let prompt = document.get("prompt").and_then(Value::as_str);
        let prompt = prompt.ok_or_else(|| Fault::missing("prompt"))?.to_owned();
        let count = number(&document, &["n"]).unwrap_or(1);
        (prompt, count, is_stream(&document))
    } else {
        from_form(call, kind)?
    };
    if streams {
        return Ok(call.paced_stream(Reply::sse(events(call, kind))));
    }
    let image = json!({"b64_json": PIXEL, "revised_prompt": prompt});
    let images = vec![image; usize::try_from(count.clamp(1, 10)).unwrap_or(1)];
    let answer = json!({"created": call.now(), "data": images, "usage": usage()});
    Ok(call.paced_whole(Reply::json(200, &answer), 0))
}

/// The prompt of a form names the picture that came with it.
fn from_form(call: &Call<'_>, kind: &str) -> Result<(String, u64, bool), Fault> {
    if !call.body.is_held() {
        return Ok((format!("{kind} of {} bytes", call.body.length), 1, false));
    }
    let form = call.form()?;
    let picture = form.file().ok_or_else(|| Fault::missing("image"))?;
    let sum = hex(crate::digest::sha256(&picture.content));
    let prompt = form.field("prompt").unwrap_or_default();
    let count = form.field("n").and_then(|n| n.parse().ok()).unwrap_or(1);
    let streams = form.field("stream").as_deref() == Some("true");
    Ok((format!("{prompt} [{kind} of sha256 {sum}]"), count, streams))
}

/// A stream of one preview and the picture.
fn events(call: &Call<'_>, kind: &str) -> Vec<bytes::Bytes> {
    let name = if kind == "generations" {
        "image_generation"
    } else {
        "image_edit"
    };
    let shape = |suffix: &str| {
        json!({
            "type": format!("{name}.{suffix}"), "b64_json": PIXEL, "created_at": call.now(),
            "size": "1024x1024", "quality": "low", "background": "transparent", "output_format": "png",
        })
    };
    let mut preview = shape("partial_image");
    preview["partial_image_index"] = json!(0);
    let mut picture = shape("completed");
    picture["usage"] = usage();
    vec![event(&preview), event(&picture)]
}

fn usage() -> Value {
    json!({
        "input_tokens": 10, "output_tokens": 100, "total_tokens": 110,
        "input_tokens_details": {"text_tokens": 10, "image_tokens": 0},
    })
}
