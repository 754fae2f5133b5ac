//! Giving a body another model, where the catalog renames it.
use super::{BodyKind, Decoder, PeekError};
use std::ops::Range;

/// `body` (decoded) with `new_name` in place of the model at `span`, which is the `model_span` that
/// peeking gave for this body. Every other byte stays as it is.
pub fn replace_model(body: &[u8], span: &Range<usize>, new_name: &str, kind: BodyKind) -> Vec<u8> {
    let name = match kind {
        BodyKind::Json => serde_json::Value::from(new_name).to_string(),
        BodyKind::Multipart => new_name.to_owned(),
    };
    let (before, after) = (body.get(..span.start), body.get(span.end..));
    [
        before.unwrap_or_default(),
        name.as_bytes(),
        after.unwrap_or_default(),
    ]
    .concat()
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
