//! From a reply and a script to the exact bytes, waits and end of a connection.
//!
//! Pure: the whole of an answer is laid out as steps before the first is taken, so that what a
//! fault puts on the wire can be read in one place. Invariant: each [`Step::Write`] is one write
//! call; a piece that a script asked for never shares one with another.
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};

use super::{
    act::{Act, Close, Framing},
    reply::{Body, Reply},
};

/// One thing to do to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Write(Bytes),
    /// So many bytes of filling, made while they are written.
    Fill(u64),
    Wait(Duration),
    /// Nothing more, until the peer leaves.
    Stall,
}

/// What becomes of the connection after the last step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    KeepAlive,
    Close,
    Reset,
}

/// A laid-out answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// The status in it, if there is one.
    pub(super) status: Option<u16>,
    pub(super) steps: Vec<Step>,
    pub(super) end: End,
    /// Whether the peer gets a complete answer.
    pub(super) is_whole: bool,
}

/// What of the request matters for framing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// HEAD: the head alone is wanted.
    pub(super) head_only: bool,
    pub(super) keep_alive: bool,
}

/// Writes that are ready together go out together up to this size.
const COALESCED_BYTES: usize = 64 * 1024;

/// Lays out an answer that nothing interferes with.
pub(super) fn plain(reply: Reply, asked: Asked) -> Plan {
    let framing = match reply.body {
        Body::Whole(_) | Body::Fill(_) => Framing::ContentLength,
        Body::Pieces(_) => Framing::Chunked,
    };
    let mut layout = Layout::default();
    layout.wait(reply.pace.before_head);
    let head = head(&reply, framing, None, asked.keep_alive);
    if let (Body::Whole(bytes), false) = (&reply.body, asked.head_only) {
        let mut both = BytesMut::with_capacity(head.len() + bytes.len());
        both.put(head);
        both.put_slice(bytes);
        layout.write(both.freeze());
    } else {
        layout.write(head);
    }
    if !asked.head_only && !is_bodiless(reply.status) {
        match reply.body {
            Body::Whole(_) => {}
            Body::Fill(bytes) => layout.steps.push(Step::Fill(bytes)),
            Body::Pieces(pieces) => {
                layout.wait(reply.pace.before_first);
                let mut chunks: Vec<Bytes> = pieces.iter().map(chunk).collect();
                chunks.push(Bytes::from_static(b"0\r\n\r\n"));
                layout.pieces(chunks, reply.pace.between);
            }
        }
    }
    let end = if asked.keep_alive {
        End::KeepAlive
    } else {
        End::Close
    };
    layout.ends(Some(reply.status), end, true)
}

/// Lays out an answer under a script.
pub(super) fn scripted(reply: &Reply, act: &Act, asked: Asked) -> Plan {
    let mut layout = Layout {
        exact: true,
        ..Layout::default()
    };
    let broken = if act.rst { End::Reset } else { End::Close };
    for interim in &act.informational {
        layout.wait(Duration::from_millis(interim.delay_ms));
        layout.write(head_lines(
            interim.status,
            interim.headers.iter().map(|(n, v)| (&**n, &**v)),
        ));
    }
    layout.wait(reply.pace.before_head);
    if let Some(raw) = &act.raw {
        let pieces = split(vec![raw.0.clone()], act.split_every);
        layout.pieces(pieces, reply.pace.between);
        return layout.ends(None, broken, true);
    }
    if act.close == Some(Close::BeforeHeaders) {
        return layout.ends(None, broken, false);
    }
    let framing = framing_of(reply, act);
    let ends_here = act.close.is_some() || act.rst || framing == Framing::UntilClose;
    let keep_alive = asked.keep_alive && !ends_here;
    let head = head(
        reply,
        framing,
        act.claim_bytes,
        keep_alive || act.close.is_some() || act.rst,
    );
    if act.close == Some(Close::MidHeaders) {
        layout.write(head.slice(..head.len() / 2));
        return layout.ends(Some(reply.status), broken, false);
    }
    layout.head(head, act);
    if act.close == Some(Close::AfterHeaders) {
        return layout.ends(Some(reply.status), broken, false);
    }
    let whole = asked.head_only || is_bodiless(reply.status) || {
        layout.wait(reply.pace.before_first);
        layout.body(reply, act, framing)
    };
    let end = if keep_alive { End::KeepAlive } else { broken };
    layout.ends(Some(reply.status), end, whole)
}

fn framing_of(reply: &Reply, act: &Act) -> Framing {
    if matches!(act.close, Some(Close::MidChunk | Close::NoTerminator)) || !act.trailers.is_empty()
    {
        return Framing::Chunked;
    }
    act.framing.unwrap_or(match reply.body {
        _ if act.claim_bytes.is_some() => Framing::ContentLength,
        Body::Whole(_) | Body::Fill(_) => Framing::ContentLength,
        Body::Pieces(_) => Framing::Chunked,
    })
}

/// Steps in the making.
#[derive(Default)]
struct Layout {
    steps: Vec<Step>,
    /// Whether every write stays one of its own.
    exact: bool,
}

impl Layout {
    fn wait(&mut self, time: Duration) {
        if !time.is_zero() {
            self.steps.push(Step::Wait(time));
        }
    }

    fn write(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.steps.push(Step::Write(bytes));
        }
    }

    fn head(&mut self, head: Bytes, act: &Act) {
        let mut slices = split(vec![head], act.head_slice_bytes).into_iter();
        self.write(slices.next().unwrap_or_default());
        for slice in slices {
            self.wait(Duration::from_millis(act.head_slice_delay_ms));
            self.write(slice);
        }
    }

    /// Writes the pieces with a wait between them, or together if there is none to keep.
    fn pieces(&mut self, pieces: Vec<Bytes>, between: Duration) {
        if self.exact || !between.is_zero() {
            for (n, piece) in pieces.into_iter().enumerate() {
                // The terminal chunk comes with the last piece: nobody waits for an end.
                if n > 0 && &piece[..] != b"0\r\n\r\n" {
                    self.wait(between);
                }
                self.write(piece);
            }
            return;
        }
        let mut together = BytesMut::new();
        for piece in pieces {
            together.put(piece);
            if together.len() >= COALESCED_BYTES {
                self.write(together.split().freeze());
            }
        }
        self.write(together.freeze());
    }

    /// Lays out a body under a script; `true` if the peer gets the whole of it.
    fn body(&mut self, reply: &Reply, act: &Act, framing: Framing) -> bool {
        let pieces = match &reply.body {
            Body::Fill(bytes) => return self.fill(*bytes, act, framing),
            Body::Whole(bytes) => vec![bytes.clone()],
            Body::Pieces(pieces) => pieces.clone(),
        };
        let mut pieces = split(pieces, act.split_every);
        if act.close == Some(Close::MidBody) && pieces.len() == 1 {
            pieces = pieces.first().map_or(vec![], halves);
        }
        let framed = |piece: &Bytes| match framing {
            Framing::Chunked => chunk(piece),
            Framing::ContentLength | Framing::UntilClose => piece.clone(),
        };
        let half = (pieces.len() / 2).max(usize::from(pieces.len() > 1));
        let mut keep = pieces.len();
        if matches!(act.close, Some(Close::MidBody | Close::MidChunk)) {
            keep = act.close_after.unwrap_or(half).min(keep);
        }
        let stall = act.stall_after.filter(|n| *n <= keep);
        let mut out: Vec<Bytes> = pieces
            .iter()
            .take(stall.unwrap_or(keep))
            .map(framed)
            .collect();
        if stall.is_none() && act.close == Some(Close::MidChunk) {
            let piece = pieces.get(keep.min(pieces.len().saturating_sub(1)));
            out.truncate(keep.min(pieces.len().saturating_sub(1)));
            out.extend(piece.map(half_chunk));
        }
        self.pieces(out, reply.pace.between);
        if stall.is_some() {
            self.steps.push(Step::Stall);
            return false;
        }
        match act.close {
            None | Some(Close::AfterBody) => {
                if framing == Framing::Chunked {
                    self.write(terminal_chunk(&act.trailers));
                }
                act.claim_bytes.is_none()
            }
            Some(_) => false,
        }
    }

    fn fill(&mut self, bytes: u64, act: &Act, framing: Framing) -> bool {
        let sent = match act.close {
            Some(Close::MidBody | Close::MidChunk) => bytes / 2,
            _ => bytes,
        };
        if framing == Framing::Chunked {
            self.write(format!("{bytes:x}\r\n").into());
        }
        self.steps.push(Step::Fill(sent));
        if act.stall_after.is_some() {
            self.steps.push(Step::Stall);
            return false;
        }
        let whole = sent == bytes && act.close != Some(Close::NoTerminator);
        if framing == Framing::Chunked && sent == bytes {
            self.write(Bytes::from_static(b"\r\n"));
        }
        if framing == Framing::Chunked && whole {
            self.write(terminal_chunk(&act.trailers));
        }
        whole
    }

    fn ends(self, status: Option<u16>, end: End, is_whole: bool) -> Plan {
        Plan {
            status,
            steps: self.steps,
            end,
            is_whole,
        }
    }
}

/// Cuts pieces anew into such of `size` bytes, across their old borders.
fn split(pieces: Vec<Bytes>, size: Option<usize>) -> Vec<Bytes> {
    match size.filter(|n| *n > 0) {
        None => pieces,
        Some(size) => {
            let mut rest = Bytes::from(pieces.concat());
            let mut out = Vec::with_capacity(rest.len() / size + 1);
            while rest.len() > size {
                out.push(rest.split_to(size));
            }
            out.push(rest);
            out
        }
    }
}

fn halves(piece: &Bytes) -> Vec<Bytes> {
    let middle = piece.len() / 2;
    vec![piece.slice(..middle), piece.slice(middle..)]
}

/// A piece as a chunk. An empty one is none: it would end the body.
fn chunk(piece: &Bytes) -> Bytes {
    if piece.is_empty() {
        return Bytes::new();
    }
    let mut out = BytesMut::with_capacity(piece.len() + 12);
    out.put_slice(format!("{:x}\r\n", piece.len()).as_bytes());
    out.put_slice(piece);
    out.put_slice(b"\r\n");
    out.freeze()
}

/// A chunk whose size is announced whole, and half of whose bytes follow.
fn half_chunk(piece: &Bytes) -> Bytes {
    let mut out = BytesMut::from(&*format!("{:x}\r\n", piece.len()));
    out.put(piece.slice(..piece.len() / 2));
    out.freeze()
}

fn terminal_chunk(trailers: &[(String, String)]) -> Bytes {
    let mut out = String::from("0\r\n");
    for (name, value) in trailers {
        out.extend([name, ": ", value, "\r\n"]);
    }
    out.push_str("\r\n");
    out.into()
}

const fn is_bodiless(status: u16) -> bool {
    matches!(status, 100..200 | 204 | 304)
}

fn head(reply: &Reply, framing: Framing, claim: Option<u64>, keep_alive: bool) -> Bytes {
    let mut lines = BytesMut::with_capacity(256);
    let headers = reply.headers.iter().map(|(n, v)| (&**n, &**v));
    put_lines(&mut lines, reply.status, headers);
    let is_framed = reply.headers.iter().any(|(name, _)| {
        ["content-length", "transfer-encoding"].contains(&&*name.to_ascii_lowercase())
    });
    if !is_bodiless(reply.status) && !is_framed {
        match framing {
            Framing::Chunked => lines.put_slice(b"transfer-encoding: chunked\r\n"),
            Framing::UntilClose => {}
            Framing::ContentLength => {
                let length = claim.unwrap_or(match &reply.body {
                    Body::Whole(bytes) => bytes.len() as u64,
                    Body::Pieces(pieces) => pieces.iter().map(|p| p.len() as u64).sum(),
                    Body::Fill(bytes) => *bytes,
                });
                lines.put_slice(format!("content-length: {length}\r\n").as_bytes());
            }
        }
    }
    if !keep_alive {
        lines.put_slice(b"connection: close\r\n");
    }
    lines.put_slice(b"\r\n");
    lines.freeze()
}

fn head_lines<'a>(status: u16, headers: impl Iterator<Item = (&'a str, &'a str)>) -> Bytes {
    let mut lines = BytesMut::new();
    put_lines(&mut lines, status, headers);
    lines.put_slice(b"\r\n");
    lines.freeze()
}

fn put_lines<'a>(
    lines: &mut BytesMut,
    status: u16,
    headers: impl Iterator<Item = (&'a str, &'a str)>,
) {
    lines.put_slice(format!("HTTP/1.1 {status} {}\r\n", phrase(status)).as_bytes());
    for (name, value) in headers {
        lines.put_slice(name.as_bytes());
        lines.put_slice(b": ");
        lines.put_slice(value.as_bytes());
        lines.put_slice(b"\r\n");
    }
}

fn phrase(status: u16) -> &'static str {
    http::StatusCode::from_u16(status)
        .ok()
        .and_then(|s| s.canonical_reason())
        .unwrap_or("Unnamed")
}

#[cfg(test)]
mod tests;
