//! Sockets: turns, their leases and their ends, over real sockets.
mod pinned;
mod realtime;
mod refusals;
mod turns;
mod unspoken;

use crate::{
    hand::within,
    harness::{KEY, Setup, World},
};
use futures_util::{
    SinkExt as _, StreamExt as _,
    stream::{SplitSink, SplitStream},
};
use serde_json::{Value, json};
use std::fmt::Write as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message,
        protocol::{CloseFrame, Role, WebSocketConfig},
    },
};

/// A client's socket.
pub(crate) struct Socket(Stream);

type Stream = WebSocketStream<TcpStream>;

/// The head of the answer to a request for a socket, in lower case, and its connection.
pub(crate) async fn ask(
    world: &World,
    target: &str,
    headers: &[(&str, &str)],
) -> (String, TcpStream) {
    let mut stream = world.raw().await;
    let mut text = format!(
        "GET {target} HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    );
    for (name, value) in headers {
        write!(text, "{name}: {value}\r\n").unwrap();
    }
    stream.write_all((text + "\r\n").as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(within("a head", stream.read_u8()).await.unwrap());
    }
    (String::from_utf8(head).unwrap().to_lowercase(), stream)
}

impl Socket {
    /// Opens a socket with the key of the world.
    pub(crate) async fn open(world: &World, target: &str) -> Self {
        let key = format!("Bearer {KEY}");
        let (head, stream) = ask(world, target, &[("authorization", &key)]).await;
        assert!(head.starts_with("http/1.1 101 "), "{head}");
        assert!(
            head.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="),
            "{head}"
        );
        assert!(!head.contains("sec-websocket-extensions"), "{head}");
        Self::on(stream).await
    }

    pub(crate) async fn on(stream: TcpStream) -> Self {
        let config = WebSocketConfig::default().max_frame_size(Some(64 << 20));
        Self(WebSocketStream::from_raw_socket(stream, Role::Client, Some(config)).await)
    }

    pub(crate) async fn say(&mut self, message: impl Into<Message>) {
        self.0.send(message.into()).await.unwrap();
    }

    /// The next message that is no ping.
    pub(crate) async fn hear(&mut self) -> Message {
        loop {
            let next = within("a message", self.0.next()).await;
            match next.unwrap().unwrap() {
                Message::Ping(_) | Message::Pong(_) => {}
                message => return message,
            }
        }
    }

    /// The next message as JSON.
    pub(crate) async fn event(&mut self) -> Value {
        let message = self.hear().await;
        serde_json::from_str(message.to_text().unwrap())
            .unwrap_or_else(|e| panic!("{e}: {message}"))
    }

    /// Asks for a response.
    pub(crate) async fn create(&mut self, more: &Value) {
        let mut asked = json!({"type": "response.create", "model": "m", "input": "say a word"});
        for (name, value) in more.as_object().unwrap() {
            asked[name] = value.clone();
        }
        self.say(Message::text(asked.to_string())).await;
    }

    /// The event that ends a turn.
    pub(crate) async fn ending(&mut self) -> Value {
        loop {
            let event = self.event().await;
            let kind = event["type"].as_str().unwrap();
            if matches!(kind, "response.completed" | "response.failed" | "error") {
                return event;
            }
        }
    }

    /// A whole turn; gives its last event.
    pub(crate) async fn turn(&mut self, more: &Value) -> Value {
        self.create(more).await;
        self.ending().await
    }

    /// How the peer closes.
    pub(crate) async fn closed(&mut self) -> Option<CloseFrame> {
        loop {
            if let Message::Close(frame) = self.hear().await {
                return frame;
            }
        }
    }

    /// What is said and what is heard, for use at the same time. Pings come among what is heard.
    pub(crate) fn split(self) -> (SplitSink<Stream, Message>, SplitStream<Stream>) {
        self.0.split()
    }

    /// Leaves without a word.
    pub(crate) fn leave(self) {
        drop(self);
    }
}

/// One account with that many ordinary slots; what is full waits `wait` seconds.
pub(crate) fn capped(slots: u64, wait: &str) -> Setup {
    Setup::default()
        .with("/accounts/0/stream_limit", (slots + 1).into())
        .env("FAIRLANE_CAPACITY_WAIT_SECONDS", wait)
}
