//! A call's body as a document, through whatever encoding it came in.
use std::io::Read;

use bytes::Bytes;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use serde_json::Value;

use super::{Call, Fault, multipart::Form};

/// Compressed bodies grow to no more than this.
const MAX_DECODED_BYTES: u64 = 64 * 1024 * 1024;

impl Call<'_> {
    /// The body's bytes without its content encodings.
    pub(super) fn plain_body(&self) -> Result<Bytes, Fault> {
        let Some(encodings) = self.head.header("content-encoding") else {
            return Ok(self.body.held.clone());
        };
        let mut bytes = self.body.held.clone();
        for encoding in encodings.rsplit(',') {
            bytes = decode(encoding.trim(), &bytes)?;
        }
        Ok(bytes)
    }

    /// The body as JSON.
    pub(super) fn document(&self) -> Result<Value, Fault> {
        if !self.body.is_held() {
            // Too long to be held: what matters is at its start, or it is not known.
            let start = &self.body.held;
            let stream = memchr::memmem::find(start, b"\"stream\":true").is_some();
            let model = "unknown-as-the-body-is-not-held";
            return Ok(serde_json::json!({"model": model, "stream": stream}));
        }
        let bytes = self.plain_body()?;
        serde_json::from_slice(&bytes)
            .map_err(|error| Fault::new(400, format!("The body is no JSON: {error}.")))
    }

    /// The body as a multipart form.
    pub(super) fn form(&self) -> Result<Form, Fault> {
        let content_type = self.head.header("content-type").unwrap_or_default();
        Form::parse(content_type, &self.plain_body()?)
            .ok_or_else(|| Fault::new(400, "The body is no multipart form."))
    }
}

/// The `model` of a document, which must be there.
pub(super) fn model_of(document: &Value) -> Result<&str, Fault> {
    document
        .get("model")
        .and_then(Value::as_str)
        .filter(|m| !m.is_empty())
        .ok_or_else(|| Fault::missing("model"))
}

/// Whether a document asks for a stream.
pub(super) fn is_stream(document: &Value) -> bool {
    document.get("stream").and_then(Value::as_bool) == Some(true)
}

/// The first of these fields that holds a number.
pub(super) fn number(document: &Value, fields: &[&str]) -> Option<u64> {
    fields.iter().find_map(|f| document.get(f)?.as_u64())
}

fn decode(encoding: &str, bytes: &[u8]) -> Result<Bytes, Fault> {
    let mut out = Vec::new();
    let read = match encoding {
        "identity" => return Ok(Bytes::copy_from_slice(bytes)),
        "gzip" => take(MultiGzDecoder::new(bytes), &mut out),
        "deflate" => take(ZlibDecoder::new(bytes), &mut out),
        "zstd" => zstd::stream::read::Decoder::new(bytes).and_then(|d| take(d, &mut out)),
        _ => {
            return Err(Fault::new(
                415,
                format!("Unsupported encoding: {encoding}."),
            ));
        }
    };
    match read {
        Ok(n) if n < MAX_DECODED_BYTES => Ok(out.into()),
        Ok(_) => Err(Fault::new(413, "The decoded body is too large.")),
        Err(_) => Err(Fault::new(400, format!("The body is no {encoding}."))),
    }
}

fn take(decoder: impl Read, out: &mut Vec<u8>) -> std::io::Result<u64> {
    let read = decoder.take(MAX_DECODED_BYTES).read_to_end(out)?;
    Ok(read as u64)
}
