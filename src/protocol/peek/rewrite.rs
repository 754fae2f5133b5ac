//! Giving a body another model, where the catalog renames it.
use super::{BodyKind, Decoder, PeekError};

/// A model's name as it stands in a body of that kind, to be put in place of the `model_span` that
/// peeking gave for it.
pub fn model_literal(kind: BodyKind, name: &str) -> String {
    match kind {
        BodyKind::Json => serde_json::Value::from(name).to_string(),
        BodyKind::Multipart => name.to_owned(),
    }
}

/// The whole of `body` with its `content_encodings` (header values in their order) undone: what a
/// rename needs, since it cannot be done inside compressed bytes.
pub fn decode_body<'a>(
    content_encodings: impl Iterator<Item = &'a [u8]>,
    body: &[u8],
    decoded_limit: u64,
) -> Result<Vec<u8>, PeekError> {
    let mut decoder = Decoder::new(content_encodings)?;
    let mut plain = Vec::with_capacity(body.len());
    decoder.push(body, &mut |bytes| {
        if (plain.len() + bytes.len()) as u64 > decoded_limit {
            return Err(PeekError::TooLarge {
                limit: decoded_limit,
            });
        }
        plain.extend_from_slice(bytes);
        Ok(())
    })?;
    decoder.finish()?;
    Ok(plain)
}
