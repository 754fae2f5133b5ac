//! Requests as they arrive on the wire: heads by `httparse`, bodies by a small state machine.
//!
//! Invariant: nothing is normalised. Method, target, header names, their order and the body's
//! bytes are what the peer sent, and a body of any size is hashed without being held.
use bytes::{Buf, Bytes, BytesMut};
use sha2::{Digest as _, Sha256};

/// Heads beyond this are refused: far above what clients send, and bounds the read buffer.
const MAX_HEAD_BYTES: usize = 256 * 1024;

/// More header lines than any client sends.
const MAX_HEADERS: usize = 128;

/// What arrived is not HTTP/1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Fixed(u64),
    Chunked,
}

/// A request's line and headers.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) method: String,
    /// The raw request target, query included.
    pub(super) target: String,
    /// Names and values in the order in which they arrived.
    pub(super) headers: Vec<(Bytes, Bytes)>,
    pub(super) keep_alive: bool,
    pub(super) framing: Framing,
    pub(super) expects_continue: bool,
}

impl Head {
    /// The first value of that header, if it is text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name.as_bytes()))
            .and_then(|(_, v)| std::str::from_utf8(v).ok())
    }

    /// The path without the query.
    pub(super) fn path(&self) -> &str {
        self.target.split_once('?').map_or(&*self.target, |t| t.0)
    }

    /// The first value of that query parameter, as it stands in the target.
    pub(super) fn query(&self, name: &str) -> Option<&str> {
        let (_, query) = self.target.split_once('?')?;
        query
            .split('&')
            .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }
}

/// Takes one request head off the front of `buffer`; `None` while it is incomplete.
pub(super) fn take_head(buffer: &mut BytesMut) -> Result<Option<Head>, Malformed> {
    while buffer.starts_with(b"\r\n") {
        buffer.advance(2);
    }
    let Some(end) = memchr::memmem::find(buffer, b"\r\n\r\n") else {
        return if buffer.len() > MAX_HEAD_BYTES {
            Err(Malformed)
        } else {
            Ok(None)
        };
    };
    let raw = buffer.split_to(end + 4).freeze();
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(&raw) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) | Err(_) => return Err(Malformed),
    }
    let mut head = Head {
        method: parsed.method.unwrap_or_default().to_owned(),
        target: parsed.path.unwrap_or_default().to_owned(),
        headers: Vec::with_capacity(parsed.headers.len()),
        keep_alive: parsed.version == Some(1),
        framing: Framing::Fixed(0),
        expects_continue: false,
    };
    for header in parsed.headers.iter() {
        head.note(header.name, header.value)?;
        head.headers.push((
            raw.slice_ref(header.name.as_bytes()),
            raw.slice_ref(header.value),
        ));
    }
    Ok(Some(head))
}

impl Head {
    /// Draws from one header what the framing of the message depends on.
    fn note(&mut self, name: &str, value: &[u8]) -> Result<(), Malformed> {
        if name.eq_ignore_ascii_case("content-length") {
            let length = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok());
            if self.framing != Framing::Chunked {
                self.framing = Framing::Fixed(length.ok_or(Malformed)?);
            }
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            self.framing = Framing::Chunked;
        } else if name.eq_ignore_ascii_case("connection") {
            let value = value.to_ascii_lowercase();
            if memchr::memmem::find(&value, b"close").is_some() {
                self.keep_alive = false;
            } else if memchr::memmem::find(&value, b"keep-alive").is_some() {
                self.keep_alive = true;
            }
        } else if name.eq_ignore_ascii_case("expect") {
            self.expects_continue = value.eq_ignore_ascii_case(b"100-continue");
        }
        Ok(())
    }
}

/// A body as far as it arrived.
#[derive(Clone, Debug, Default)]
pub(super) struct Received {
    /// The first bytes of the body, up to the reader's limit.
    pub(super) held: Bytes,
    /// Its length without the framing.
    pub(super) length: u64,
    /// The digest of all of it, if it was asked for.
    pub(super) sha256: Option<[u8; 32]>,
    /// Whether the end of the request was read.
    pub(super) complete: bool,
    /// Trailer lines of a chunked body.
    pub(super) trailers: Vec<(String, String)>,
}

impl Received {
    /// Whether [`Self::held`] is the whole body.
    pub(super) fn is_held(&self) -> bool {
        self.complete && u64::try_from(self.held.len()) == Ok(self.length)
    }
}

/// Reads a body piece by piece. Holds at most `hold` bytes of it.
pub(super) struct BodyReader {
    state: State,
    held: BytesMut,
    hold: usize,
    length: u64,
    digest: Option<Sha256>,
    trailers: Vec<(String, String)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Fixed(u64),
    ChunkSize,
    ChunkData(u64),
    ChunkEnd,
    Trailers,
    Done,
}

impl BodyReader {
    pub(super) fn new(framing: Framing, hold: usize, hashing: bool) -> Self {
        Self {
            state: match framing {
                Framing::Fixed(0) => State::Done,
                Framing::Fixed(n) => State::Fixed(n),
                Framing::Chunked => State::ChunkSize,
            },
            held: BytesMut::new(),
            hold,
            length: 0,
            digest: hashing.then(Sha256::new),
            trailers: Vec::new(),
        }
    }

    /// Takes what `buffer` has of the body; `true` once the end was seen.
    pub(super) fn feed(&mut self, buffer: &mut BytesMut) -> Result<bool, Malformed> {
        loop {
            self.state = match self.state {
                State::Done => return Ok(true),
                State::Fixed(left) if !buffer.is_empty() => match self.take(buffer, left) {
                    0 => State::Done,
                    left => State::Fixed(left),
                },
                State::ChunkData(left) if !buffer.is_empty() => match self.take(buffer, left) {
                    0 => State::ChunkEnd,
                    left => State::ChunkData(left),
                },
                State::Fixed(_) | State::ChunkData(_) => return Ok(false),
                State::ChunkSize | State::ChunkEnd | State::Trailers => {
                    let Some(line) = take_line(buffer)? else {
                        return Ok(false);
                    };
                    self.line(&line)?
                }
            };
        }
    }

    fn line(&mut self, line: &[u8]) -> Result<State, Malformed> {
        match self.state {
            State::ChunkSize => {
                let text = std::str::from_utf8(line).map_err(|_| Malformed)?;
                let size = text.split(';').next().unwrap_or_default().trim();
                Ok(match u64::from_str_radix(size, 16) {
                    Ok(0) => State::Trailers,
                    Ok(n) => State::ChunkData(n),
                    Err(_) => return Err(Malformed),
                })
            }
            State::ChunkEnd if line.is_empty() => Ok(State::ChunkSize),
            State::Trailers if line.is_empty() => Ok(State::Done),
            State::Trailers => {
                let text = String::from_utf8_lossy(line);
                let (name, value) = text.split_once(':').ok_or(Malformed)?;
                self.trailers.push((name.to_owned(), value.trim().into()));
                Ok(State::Trailers)
            }
            _ => Err(Malformed),
        }
    }

    /// Moves up to `left` bytes off the buffer and returns how many are still to come.
    fn take(&mut self, buffer: &mut BytesMut, left: u64) -> u64 {
        let take = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let bytes = buffer.split_to(take);
        if let Some(digest) = &mut self.digest {
            digest.update(&bytes);
        }
        let room = self.hold.saturating_sub(self.held.len()).min(take);
        self.held
            .extend_from_slice(bytes.get(..room).unwrap_or_default());
        self.length += take as u64;
        left - take as u64
    }

    /// How many bytes of the body were read.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// What was read, whether or not the end was seen.
    pub(super) fn finish(self) -> Received {
        Received {
            held: self.held.freeze(),
            length: self.length,
            sha256: self.digest.map(|d| d.finalize().into()),
            complete: self.state == State::Done,
            trailers: self.trailers,
        }
    }
}

fn take_line(buffer: &mut BytesMut) -> Result<Option<Bytes>, Malformed> {
    match memchr::memmem::find(buffer, b"\r\n") {
        Some(end) => {
            let line = buffer.split_to(end + 2).freeze();
            Ok(Some(line.slice(..end)))
        }
        None if buffer.len() > MAX_HEAD_BYTES => Err(Malformed),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests;
