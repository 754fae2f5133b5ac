//! An answer before it meets the wire: status, headers, and a body in the pieces it is made in.
//!
//! Invariant: a reply knows nothing of framing or faults; [`plan`](super::plan) adds those.
use std::{borrow::Cow, io::Write as _, time::Duration};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder, write::ZlibEncoder};
use serde_json::Value;

use super::act::{Act, Encoding};

/// An answer.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(Cow<'static, str>, Cow<'static, str>)>,
    pub(super) body: Body,
    pub(super) pace: Pace,
}

/// A body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// Known whole, so its length is too.
    Whole(Bytes),
    /// Made bit by bit.
    Pieces(Vec<Bytes>),
    /// So many bytes of filling.
    Fill(u64),
}

/// The waits of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pace {
    pub(super) before_head: Duration,
    pub(super) before_first: Duration,
    pub(super) between: Duration,
}

impl Reply {
    pub(super) fn new(status: u16, content_type: &'static str, body: Body) -> Self {
        Self {
            status,
            headers: vec![("content-type".into(), content_type.into())],
            body,
            pace: Pace::default(),
        }
    }

    pub(super) fn json(status: u16, document: &Value) -> Self {
        let bytes = Bytes::from(document.to_string());
        Self::new(status, "application/json", Body::Whole(bytes))
    }

    pub(super) fn sse(pieces: Vec<Bytes>) -> Self {
        Self::new(
            200,
            "text/event-stream; charset=utf-8",
            Body::Pieces(pieces),
        )
    }

    #[must_use]
    pub(super) fn header(
        mut self,
        name: impl Into<Cow<'static, str>>,
        value: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Lays the parts of `act` that concern the answer itself over this one.
    #[must_use]
    pub(super) fn scripted(mut self, act: &Act) -> Self {
        if let Some(status) = act.status {
            self.status = status;
        }
        if let Some(body) = &act.body {
            self.set_body(Body::Whole(body.0.clone()), content_type_of(&body.0));
        }
        if let Some(chunks) = &act.chunks {
            let pieces = chunks.iter().map(|c| c.0.clone()).collect();
            self.set_body(Body::Pieces(pieces), "text/event-stream");
        }
        if let Some(bytes) = act.fill_bytes {
            self.set_body(Body::Fill(bytes), "application/octet-stream");
        }
        let ms = Duration::from_millis;
        self.pace = Pace {
            before_head: act.delay_headers_ms.map_or(self.pace.before_head, ms),
            before_first: act.delay_first_ms.map_or(self.pace.before_first, ms),
            between: act.chunk_delay_ms.map_or(self.pace.between, ms),
        };
        if let Some(encoding) = act.encoding {
            self = self.encoded(encoding);
        }
        let named = |name: &str| {
            act.headers
                .iter()
                .any(|(n, _)| n.eq_ignore_ascii_case(name))
        };
        self.headers.retain(|(name, _)| !named(name));
        for (name, value) in &act.headers {
            self = self.header(name.clone(), value.clone());
        }
        self
    }

    fn set_body(&mut self, body: Body, content_type: &'static str) {
        self.body = body;
        self.headers.retain(|(name, _)| name != "content-type");
        self.headers
            .push(("content-type".into(), content_type.into()));
    }

    /// Compresses the body, each piece so that the peer can decode it at once.
    fn encoded(mut self, encoding: Encoding) -> Self {
        let done = match &self.body {
            Body::Whole(bytes) => compress(encoding, std::slice::from_ref(bytes))
                .map(|p| Body::Whole(p.concat().into())),
            Body::Pieces(pieces) => compress(encoding, pieces)
                .map(|p| Body::Pieces(p.into_iter().map(Bytes::from).collect())),
            Body::Fill(bytes) => Ok(Body::Fill(*bytes)),
        };
        match done {
            Ok(body) => {
                self.body = body;
                self.header("content-encoding", encoding.name())
            }
            // Compressing into memory has nothing to fail on; if it did, the plain body is right.
            Err(error) => {
                tracing::warn!(%error, "the simulator could not compress an answer");
                self
            }
        }
    }
}

fn content_type_of(body: &[u8]) -> &'static str {
    match body.iter().find(|b| !b.is_ascii_whitespace()) {
        Some(b'{' | b'[') => "application/json",
        Some(b'<') => "text/html; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    }
}

/// The pieces compressed as one stream, flushed after each; the last one bears its end.
fn compress(encoding: Encoding, pieces: &[Bytes]) -> std::io::Result<Vec<Vec<u8>>> {
    macro_rules! run {
        ($encoder:expr) => {{
            let mut encoder = $encoder;
            let mut out = Vec::with_capacity(pieces.len());
            for piece in pieces {
                encoder.write_all(piece)?;
                encoder.flush()?;
                out.push(std::mem::take(encoder.get_mut()));
            }
            let end = encoder.finish()?;
            match out.last_mut() {
                Some(last) => last.extend(end),
                None => out.push(end),
            }
            Ok(out)
        }};
    }
    match encoding {
        Encoding::Gzip => run!(GzEncoder::new(Vec::new(), Compression::default())),
        Encoding::Deflate => run!(ZlibEncoder::new(Vec::new(), Compression::default())),
        Encoding::Zstd => run!(zstd::stream::write::Encoder::new(Vec::new(), 3)?),
    }
}

/// The bytes of an SSE message without an event name.
pub(super) fn data(document: &Value) -> Bytes {
    format!("data: {document}\n\n").into()
}

/// The bytes of an SSE message named after the document's own `type`.
pub(super) fn event(document: &Value) -> Bytes {
    let name = document
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or("message");
    format!("event: {name}\ndata: {document}\n\n").into()
}
