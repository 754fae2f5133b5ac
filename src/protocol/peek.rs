//! The few fields of a request's body that choose where it goes.
//!
//! Invariant: a body is looked at once, in the pieces in which it arrives, through its content
//! encodings, and is neither kept nor changed. What a field holds is bounded; where a JSON key stands
//! twice, the last one counts, as it does for JSON parsers.
mod coding;
mod gzip;
mod json;
mod multipart;
mod nest;
mod param;
mod rewrite;
#[cfg(test)]
mod tests;

use crate::domain::reason::Reason;
use http::{HeaderMap, HeaderValue, header};
use json::JsonPeek;
use multipart::MultipartPeek;
use param::Shape;
use std::ops::Range;

pub use coding::Decoder;
pub use rewrite::{decode_body, model_literal};

/// The longest value of a field that is taken for one, in bytes. Names and ids are far shorter.
pub const MAX_FIELD_BYTES: usize = 1024;

/// How many file ids are noted: a request with more of them has enough to find their owner by.
pub const MAX_FILE_IDS: usize = 16;

/// What a body says about where it wants to go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peeked {
    /// How the body is written.
    pub kind: BodyKind,
    /// `model`.
    pub model: Option<String>,
    /// Where `model` stands in the decoded body: with its quotes in JSON, the bare value in a form.
    pub model_span: Option<Range<usize>>,
    /// `stream`.
    pub stream: Option<bool>,
    /// `previous_response_id`.
    pub previous_response_id: Option<String>,
    /// `conversation`, or its `id`.
    pub conversation: Option<String>,
    /// `prompt_cache_key`.
    pub prompt_cache_key: Option<String>,
    /// The values of keys that name uploaded files, at any depth; at most [`MAX_FILE_IDS`].
    pub file_ids: Vec<String>,
    /// Whether there are images, sound or documents in it, as far as the usual keys tell.
    pub bears_media: bool,
    /// Whether it is whole: JSON whose brackets, strings and separators fit, or a form with its
    /// closing boundary, and no field longer than [`MAX_FIELD_BYTES`].
    pub is_well_formed: bool,
    /// Its size in bytes, decoded.
    pub decoded_bytes: u64,
}

/// How a body is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyKind {
    /// As JSON, whatever its content type says: programs often leave that out.
    #[default]
    Json,
    /// As `multipart/form-data`.
    Multipart,
}

/// Why a body cannot be looked into.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeekError {
    /// A content encoding that is not known here.
    #[error(
        "the request's Content-Encoding `{name}` is not supported; accepted are identity, gzip, deflate and zstd"
    )]
    UnsupportedEncoding {
        /// What the header says, made printable.
        name: String,
    },
    /// More encodings on top of each other than anybody needs.
    #[error("the request's Content-Encoding names more than {max} encodings")]
    TooManyEncodings {
        /// How many are accepted.
        max: usize,
    },
    /// The bytes are not what the header says.
    #[error("the request's body is not valid {encoding} data")]
    Corrupt {
        /// The encoding that failed.
        encoding: &'static str,
    },
    /// It decodes to more than is allowed.
    #[error("the request's body is larger than {limit} bytes once decoded")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// A form whose content type lacks a usable boundary.
    #[error("the request's Content-Type is multipart/form-data without a valid boundary")]
    Boundary,
}

impl PeekError {
    /// The reason under which it is answered.
    pub const fn reason(&self) -> Reason {
        match self {
            Self::UnsupportedEncoding { .. } | Self::TooManyEncodings { .. } => {
                Reason::UnsupportedEncoding
            }
            Self::Corrupt { .. } | Self::Boundary => Reason::InvalidRequest,
            Self::TooLarge { .. } => Reason::RequestTooLarge,
        }
    }
}

/// Looks into one body while it arrives.
pub struct BodyPeek {
    decoder: Decoder,
    seen: Seen,
}

/// What has been seen of the decoded body.
struct Seen {
    scan: Scan,
    bytes: u64,
    limit: u64,
}

/// Boxed, since requests without a body carry one of these as well.
enum Scan {
    Json(Box<JsonPeek>),
    Multipart(Box<MultipartPeek>),
}

impl BodyPeek {
    /// For a body with those values of `Content-Type` and `Content-Encoding`, which may decode to at
    /// most `decoded_limit` bytes.
    pub fn new(
        content_type: Option<&[u8]>,
        content_encoding: Option<&[u8]>,
        decoded_limit: u64,
    ) -> Result<Self, PeekError> {
        Self::with_encodings(content_type, content_encoding.into_iter(), decoded_limit)
    }

    /// For a request with those headers, however many `Content-Encoding` lines it has.
    pub fn for_headers(headers: &HeaderMap, decoded_limit: u64) -> Result<Self, PeekError> {
        let encodings = headers.get_all(header::CONTENT_ENCODING);
        Self::with_encodings(
            headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes),
            encodings.iter().map(HeaderValue::as_bytes),
            decoded_limit,
        )
    }

    fn with_encodings<'a>(
        content_type: Option<&[u8]>,
        encodings: impl Iterator<Item = &'a [u8]>,
        limit: u64,
    ) -> Result<Self, PeekError> {
        let scan = match param::shape(content_type.unwrap_or_default()) {
            Shape::Form { boundary } => Scan::Multipart(Box::new(MultipartPeek::new(&boundary))),
            Shape::BrokenForm => return Err(PeekError::Boundary),
            Shape::NoForm => Scan::Json(Box::default()),
        };
        Ok(Self {
            decoder: Decoder::new(encodings)?,
            seen: Seen {
                scan,
                bytes: 0,
                limit,
            },
        })
    }

    /// Takes the next piece of the body, as it came.
    pub fn feed(&mut self, piece: &[u8]) -> Result<(), PeekError> {
        let seen = &mut self.seen;
        self.decoder.push(piece, &mut |bytes| seen.feed(bytes))
    }

    /// What was found, now that the body has ended.
    pub fn finish(self) -> Result<Peeked, PeekError> {
        self.decoder.finish()?;
        let decoded_bytes = self.seen.bytes;
        let peeked = match self.seen.scan {
            Scan::Json(json) => json.finish(),
            Scan::Multipart(form) => form.finish(),
        };
        Ok(Peeked {
            decoded_bytes,
            ..peeked
        })
    }
}

impl Seen {
    fn feed(&mut self, decoded: &[u8]) -> Result<(), PeekError> {
        self.bytes = self.bytes.saturating_add(decoded.len() as u64);
        if self.bytes > self.limit {
            return Err(PeekError::TooLarge { limit: self.limit });
        }
        match &mut self.scan {
            Scan::Json(json) => json.feed(decoded),
            Scan::Multipart(form) => form.feed(decoded),
        }
        Ok(())
    }
}
