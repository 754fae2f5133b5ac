//! HTTP/1 by hand, for what no client library writes or shows: any request bytes, interim answers,
//! trailers, and how an answer ended.
//!
//! Invariant: a [`Reply`] says what stood on the wire, without the framing and nothing else undone.
use crate::harness::World;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// An answer as it stood on the wire.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    /// The statuses of interim answers.
    pub(crate) interim: Vec<u16>,
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
    /// Whether it ended as its framing says.
    pub(crate) is_whole: bool,
}

impl Reply {
    /// Every value of that header, in order.
    pub(crate) fn values(&self, name: &str) -> Vec<&str> {
        self.headers
            .iter()
            .filter(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, v)| &**v)
            .collect()
    }

    /// The first value of that header; empty where it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.values(name).first().copied().unwrap_or_default()
    }

    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Writes `request` on a connection of its own and reads the answer.
pub(crate) async fn exchange(world: &World, request: impl AsRef<[u8]>) -> Reply {
    let mut stream = world.raw().await;
    stream.write_all(request.as_ref()).await.unwrap();
    let is_head = request.as_ref().starts_with(b"HEAD ");
    Reader::new(&mut stream).reply(is_head).await
}

/// A chunked body in pieces of `size` bytes.
pub(crate) fn chunked(body: &[u8], size: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() + body.len() / size * 8 + 16);
    for piece in body.chunks(size) {
        out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        out.extend_from_slice(piece);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

/// Reads answers off a connection.
pub(crate) struct Reader<'a> {
    stream: &'a mut TcpStream,
    buffer: Vec<u8>,
    is_reset: bool,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(stream: &'a mut TcpStream) -> Self {
        Self {
            stream,
            buffer: Vec::new(),
            is_reset: false,
        }
    }

    /// The next head alone.
    pub(crate) async fn head(&mut self) -> Reply {
        loop {
            if let Some(reply) = take_head(&mut self.buffer) {
                return reply;
            }
            assert!(self.more().await, "closed before an answer");
        }
    }

    /// The next answer with its body; `is_head` for the answer to HEAD.
    pub(crate) async fn reply(&mut self, is_head: bool) -> Reply {
        let mut interim = Vec::new();
        let mut reply = loop {
            let reply = self.head().await;
            if reply.status >= 200 {
                break reply;
            }
            interim.push(reply.status);
        };
        reply.interim = interim;
        if is_head || matches!(reply.status, 204 | 304) {
            reply.is_whole = true;
        } else if reply.header("transfer-encoding") == "chunked" {
            self.chunks(&mut reply).await;
        } else if let Ok(length) = reply.header("content-length").parse() {
            while self.buffer.len() < length && self.more().await {}
            reply.is_whole = self.buffer.len() >= length;
            let rest = self.buffer.split_off(length.min(self.buffer.len()));
            reply.body = std::mem::replace(&mut self.buffer, rest);
        } else {
            while self.more().await {}
            reply.is_whole = !self.is_reset;
            reply.body = std::mem::take(&mut self.buffer);
        }
        reply
    }

    /// Whether the peer says nothing more and closes.
    pub(crate) async fn is_at_end(&mut self) -> bool {
        self.buffer.is_empty() && !self.more().await
    }

    async fn chunks(&mut self, reply: &mut Reply) {
        while let Some(line) = self.line().await {
            let size = usize::from_str_radix(line.split(';').next().unwrap(), 16).unwrap();
            if size == 0 {
                while let Some(line) = self.line().await {
                    let Some((name, value)) = line.split_once(':') else {
                        reply.is_whole = line.is_empty();
                        return;
                    };
                    let trailer = (name.to_owned(), value.trim().to_owned());
                    reply.trailers.push(trailer);
                }
                return;
            }
            while self.buffer.len() < size + 2 && self.more().await {}
            let got = size.min(self.buffer.len());
            reply.body.extend(self.buffer.drain(..got));
            if self.buffer.len() < 2 {
                return;
            }
            self.buffer.drain(..2);
        }
    }

    async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|w| w == b"\r\n") {
                let line: Vec<u8> = self.buffer.drain(..end + 2).collect();
                return Some(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            if !self.more().await {
                return None;
            }
        }
    }

    async fn more(&mut self) -> bool {
        if let Ok(count) = self.stream.read_buf(&mut self.buffer).await {
            return count > 0;
        }
        self.is_reset = true;
        false
    }
}

fn take_head(buffer: &mut Vec<u8>) -> Option<Reply> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut parsed = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(length) = parsed.parse(buffer).unwrap() else {
        return None;
    };
    let reply = Reply {
        status: parsed.code.unwrap(),
        headers: parsed
            .headers
            .iter()
            .map(|h| {
                let value = String::from_utf8_lossy(h.value);
                (h.name.to_owned(), value.into_owned())
            })
            .collect(),
        ..Reply::default()
    };
    buffer.drain(..length);
    Some(reply)
}
