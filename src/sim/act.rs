//! What a rule does to a request: every way in which a provider can be slow, wrong or gone.
use serde::{Deserialize, Serialize};

use super::octets::Octets;

/// What happens to a request that a rule matched. What is absent stays as the simulated provider
/// would have it, so that `{"chunk_delay_ms": 50}` is an ordinary answer at another pace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Act {
    /// The status. Without a body of its own, an error status brings the error shape of the
    /// protocol that the path speaks.
    pub status: Option<u16>,
    /// Header lines that replace those of the same name, repetitions included.
    pub headers: Vec<(String, String)>,
    /// The message inside the error shape.
    pub message: Option<String>,
    /// The code (`OpenAI`), type (Anthropic) or status word (Gemini) inside the error shape.
    pub code: Option<String>,
    /// A body, sent as one piece.
    pub body: Option<Octets>,
    /// A body in exactly these pieces: each one chunk, each one write.
    pub chunks: Option<Vec<Octets>>,
    /// A body of so many `x` that nobody has to hold.
    pub fill_bytes: Option<u64>,
    /// A whole hand-written answer, head included. The connection ends after it.
    pub raw: Option<Octets>,

    /// Waits before the request's body is read.
    pub read_delay_ms: u64,
    /// Answers (or closes) before the request's body is read.
    pub early: bool,
    /// Answers (or closes) once so many bytes of the request's body were read.
    pub early_after_bytes: Option<u64>,
    /// Waits before the head.
    pub delay_headers_ms: Option<u64>,
    /// Waits between the head and the first piece.
    pub delay_first_ms: Option<u64>,
    /// Waits between pieces.
    pub chunk_delay_ms: Option<u64>,
    /// Writes the head in slices of so many bytes…
    pub head_slice_bytes: Option<usize>,
    /// …with this wait between them.
    pub head_slice_delay_ms: u64,
    /// Falls silent after so many pieces, until the peer leaves.
    pub stall_after: Option<usize>,

    /// Cuts the body anew into pieces of so many bytes.
    pub split_every: Option<usize>,
    /// Compresses the body, flushed after every piece.
    pub encoding: Option<Encoding>,
    /// How the body's end is made known.
    pub framing: Option<Framing>,
    /// A `Content-Length` that may be a lie.
    pub claim_bytes: Option<u64>,
    /// Trailer lines after a chunked body.
    pub trailers: Vec<(String, String)>,
    /// Interim answers before the head.
    pub informational: Vec<Informational>,
    /// What becomes of `Expect: 100-continue`.
    pub expect: Expect,

    /// Where the connection breaks off.
    pub close: Option<Close>,
    /// After how many pieces, for [`Close::MidBody`] and [`Close::MidChunk`]; else half of them.
    pub close_after: Option<usize>,
    /// On a socket: it is closed with this code, `message` being the reason.
    pub close_code: Option<u16>,
    /// Ends the connection with RST instead of FIN, after the answer or at `close`.
    pub rst: bool,
}

/// Where a connection breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Close {
    /// Without a byte of an answer.
    BeforeHeaders,
    /// In the middle of the head.
    MidHeaders,
    /// After the head, before any of the body.
    AfterHeaders,
    /// Between two pieces of the body.
    MidBody,
    /// Within a chunk whose size was announced. Makes the body chunked.
    MidChunk,
    /// After the last piece, without the terminal chunk. Makes the body chunked.
    NoTerminator,
    /// After the complete answer, though the connection could live on.
    AfterBody,
}

/// A content encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// RFC 1952.
    Gzip,
    /// RFC 1950, which is what HTTP calls deflate.
    Deflate,
    /// RFC 8878.
    Zstd,
}

impl Encoding {
    /// Its name in `Content-Encoding`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Zstd => "zstd",
        }
    }
}

/// How the end of an answer's body is made known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Framing {
    /// By its length in the head.
    ContentLength,
    /// By the terminal chunk.
    Chunked,
    /// By the end of the connection, as in HTTP/1.0.
    UntilClose,
}

/// An interim (1xx) answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Informational {
    /// 100 to 199, and not 101.
    pub status: u16,
    /// Its header lines.
    pub headers: Vec<(String, String)>,
    /// Waits before it.
    pub delay_ms: u64,
}

/// What becomes of a request that expects `100 Continue`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// It is told to go on.
    #[default]
    Continue,
    /// It is told nothing; the body is awaited all the same.
    Ignore,
    /// It is answered 417 without its body.
    Refuse,
}

impl Act {
    /// Answers with that status; an error status in the protocol's own shape.
    pub fn status(status: u16) -> Self {
        Self {
            status: Some(status),
            ..Self::default()
        }
    }

    /// Breaks the connection off there.
    pub fn close(at: Close) -> Self {
        Self {
            close: Some(at),
            ..Self::default()
        }
    }

    /// Answers 200 with exactly these pieces.
    pub fn chunks<T: Into<Octets>>(chunks: impl IntoIterator<Item = T>) -> Self {
        Self {
            chunks: Some(chunks.into_iter().map(Into::into).collect()),
            ..Self::default()
        }
    }

    /// Writes these bytes instead of an HTTP answer and ends the connection.
    pub fn raw(bytes: impl Into<Octets>) -> Self {
        Self {
            raw: Some(bytes.into()),
            ..Self::default()
        }
    }

    /// Answers as usual, but sends the head so much later.
    pub fn delayed_ms(before_headers: u64) -> Self {
        Self {
            delay_headers_ms: Some(before_headers),
            ..Self::default()
        }
    }

    /// Adds a header line.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Octets>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Ends the connection with RST.
    #[must_use]
    pub fn reset(mut self) -> Self {
        self.rst = true;
        self
    }

    /// Whether the answer is the script's own, not the provider's.
    pub(super) fn replaces_answer(&self) -> bool {
        self.status.is_some()
            || self.body.is_some()
            || self.chunks.is_some()
            || self.fill_bytes.is_some()
    }
}
