//! Both ends moved by hand: a client that leaves as and when it likes, and a provider that says
//! nothing but what the test makes it say, when the test says it.
//!
//! Invariant: no wait here is a pause; each ends with a byte, an end, or an answer of the store,
//! and fails the test after [`PATIENCE`].
#![expect(
    clippy::unwrap_used,
    reason = "a test whose peer does not play along has failed"
)]

use crate::harness::{KEY, World};
use fairlane::{
    domain::ledger::Entry,
    store::ledger::{LedgerFilter, PAGE},
};
use std::{fmt::Write as _, future::Future, io, net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};

/// What has not come by then will not come.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for `what`, but not for ever.
pub(crate) async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    let done = timeout(PATIENCE, work).await;
    done.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

impl World {
    /// Waits until `wish` is true of (live requests, leases, waiters); asks again after each
    /// answer of the store's writer.
    pub(crate) async fn until(&self, what: &str, wish: impl Fn((usize, usize, usize)) -> bool) {
        let waiting = async {
            while !wish(self.app.in_flight()) {
                self.app.store().flush().await.unwrap();
            }
        };
        within(what, waiting).await;
    }

    /// Waits until nothing is in flight.
    pub(crate) async fn quiet(&self) {
        self.until("nothing in flight", |counts| counts == (0, 0, 0))
            .await;
    }

    /// The request log once nothing is in flight, newest first.
    pub(crate) async fn rows(&self) -> Vec<Entry> {
        self.quiet().await;
        let store = self.app.store();
        store.flush().await.unwrap();
        let filter = LedgerFilter {
            limit: PAGE,
            ..LedgerFilter::default()
        };
        store.requests(filter).await.unwrap()
    }

    /// The newest row of the request log.
    pub(crate) async fn last_row(&self) -> Entry {
        self.rows().await.into_iter().next().unwrap()
    }
}

/// In which way a client leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// An orderly end.
    Fin,
    /// A reset.
    Reset,
}

/// Both ways.
pub(crate) const WAYS: [Way; 2] = [Way::Fin, Way::Reset];

/// A client on a raw socket.
pub(crate) struct Caller {
    stream: TcpStream,
    got: Vec<u8>,
}

/// All that a client got.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// Whether the body ended as its framing demands.
    pub(crate) is_whole: bool,
}

impl Received {
    /// The status of its head.
    pub(crate) fn status(&self) -> u16 {
        let word = self.head.split(' ').nth(1).unwrap();
        word.parse().unwrap()
    }
}

/// The bytes of a request with the key, to be the only one on its connection.
pub(crate) fn request(path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut text = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {KEY}\r\n\
         content-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        write!(text, "{name}: {value}\r\n").unwrap();
    }
    text + "\r\n" + body
}

impl Caller {
    /// Connects.
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self {
            stream: TcpStream::connect(address).await.unwrap(),
            got: Vec::new(),
        }
    }

    /// Connects and posts `body`.
    pub(crate) async fn post(address: SocketAddr, path: &str, body: &str) -> Self {
        let mut caller = Self::connect(address).await;
        caller.write(&request(path, &[], body)).await;
        caller
    }

    /// Writes any text.
    pub(crate) async fn write(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// Says that nothing more will be written, and stays.
    pub(crate) async fn half_close(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// Reads until `text` has come, and takes everything up to its end as read.
    pub(crate) async fn until(&mut self, text: &str) {
        let end = self.sees(text).await;
        self.got.drain(..end);
    }

    /// Reads until `text` has come, and takes nothing as read; gives where it ends.
    pub(crate) async fn sees(&mut self, text: &str) -> usize {
        let reading = async {
            loop {
                let found = self
                    .got
                    .windows(text.len())
                    .position(|w| w == text.as_bytes());
                if let Some(at) = found {
                    return at + text.len();
                }
                let n = self.stream.read_buf(&mut self.got).await.unwrap();
                let got = String::from_utf8_lossy(&self.got);
                assert!(n > 0, "the answer ended before {text:?}; there was {got}");
            }
        };
        within(text, reading).await
    }

    /// Whether nothing has come since it was last read, its end included.
    pub(crate) fn is_quiet(&self) -> bool {
        let read = self.stream.try_read(&mut [0]);
        read.is_err_and(|e| e.kind() == io::ErrorKind::WouldBlock)
    }

    /// Reads to the end, whichever that is.
    pub(crate) async fn end(mut self) -> Received {
        // A reset ends it as well; what came before it is kept.
        let _how = within("the end", self.stream.read_to_end(&mut self.got)).await;
        let head_end = self.got.windows(4).position(|w| w == b"\r\n\r\n");
        let at = head_end.map_or(self.got.len(), |at| at + 4);
        let head = String::from_utf8_lossy(&self.got[..at]).to_lowercase();
        let rest = &self.got[at..];
        let length = head
            .lines()
            .find_map(|l| l.strip_prefix("content-length: "));
        let (body, is_whole) = match length {
            Some(length) => (rest.to_vec(), length.parse() == Ok(rest.len())),
            None => unchunked(rest),
        };
        Received {
            head,
            body,
            is_whole,
        }
    }

    /// Whether the connection was cut, rather than the chunked body ended; what was taken as read
    /// is not looked at again.
    pub(crate) async fn was_cut(mut self) -> bool {
        let _how = within("the end", self.stream.read_to_end(&mut self.got)).await;
        !self.got.ends_with(b"0\r\n\r\n")
    }

    /// Leaves without a word.
    pub(crate) fn leave(self, way: Way) {
        if way == Way::Reset {
            self.stream.set_zero_linger().unwrap();
        }
        drop(self.stream);
    }
}

/// The bytes of a chunked body, and whether its last chunk was there.
fn unchunked(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(line_end) = rest.windows(2).position(|w| w == b"\r\n") {
        let size = std::str::from_utf8(&rest[..line_end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        rest = &rest[line_end + 2..];
        if size == 0 {
            return (body, rest == b"\r\n");
        }
        body.extend_from_slice(&rest[..size.min(rest.len())]);
        rest = rest.get(size + 2..).unwrap_or_default();
    }
    (body, false)
}

/// A provider moved by hand.
pub(crate) struct Hand(TcpListener);

/// One request to it.
pub(crate) struct Exchange {
    stream: TcpStream,
    /// The head as it came, in lower case.
    pub(crate) head: String,
}

impl Hand {
    /// Listens.
    pub(crate) async fn start() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    /// Where, as a base URL.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}", self.0.local_addr().unwrap())
    }

    /// The next request on a new connection; its body is left unread.
    pub(crate) async fn take(&self) -> Exchange {
        let (mut stream, _) = within("a request", self.0.accept()).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(within("a head", stream.read_u8()).await.unwrap());
        }
        let head = String::from_utf8(head).unwrap().to_lowercase();
        Exchange { stream, head }
    }
}

impl Exchange {
    /// Answers 200 with the head of a chunked body.
    pub(crate) async fn begin(&mut self, content_type: &str) {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
        );
        self.stream.write_all(head.as_bytes()).await.unwrap();
    }

    /// Sends one chunk.
    pub(crate) async fn say(&mut self, text: &str) {
        let chunk = format!("{:x}\r\n{text}\r\n", text.len());
        self.stream.write_all(chunk.as_bytes()).await.unwrap();
    }

    /// Ends the body.
    pub(crate) async fn finish(&mut self) {
        self.stream.write_all(b"0\r\n\r\n").await.unwrap();
    }

    /// Reads until the peer leaves; gives what it still sent.
    pub(crate) async fn gone(mut self) -> io::Result<Vec<u8>> {
        let mut rest = Vec::new();
        let read = self.stream.read_to_end(&mut rest);
        within("the peer to leave", read).await.map(|_| rest)
    }
}
