//! One side of a relayed WebSocket: messages in and out, pings while it is silent, and its end.
//!
//! Invariants: whatever is half done is in the leg itself, so that waiting on it may be given up at
//! any time; it is not read while whoever takes its messages has no room, so that memory stays
//! bounded; a peer that is read from and answers no ping within [`PONG_WITHIN`] is gone.
use crate::{clock::Instant, ports::SocketIo};
use futures_util::{Sink as _, SinkExt as _, Stream as _};
use std::{
    collections::VecDeque,
    future::{Future as _, poll_fn},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::Sleep,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message,
        error::ProtocolError,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};

/// A side that is silent for so long is pinged.
pub(super) const PING_EVERY: Duration = Duration::from_secs(25);

/// A client that waits for capacity is pinged so often.
pub(super) const PING_WAITING_EVERY: Duration = Duration::from_secs(10);

/// A ping is answered within this time, or the side counts as gone.
pub(super) const PONG_WITHIN: Duration = Duration::from_secs(20);

/// What may wait to be written before the other side is not read any more.
const ROOM_BYTES: usize = 64 << 10;

/// Kept by each side for reading; larger messages grow it while they come.
const READ_BUFFER_BYTES: usize = 8 << 10;

/// As much as is thrown away of what a peer still sends when it has been told that it is over.
const DRAINED_BYTES: usize = 64 << 20;

/// What a side has to say.
#[derive(Debug)]
pub(super) enum Heard {
    /// A whole text or binary message.
    Message(Message),
    /// There is room again for what is to be written.
    Room,
    /// It closes, with what it says of that.
    Closed(Option<CloseFrame>),
    /// It is lost.
    Lost(Lost),
}

/// How a side was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// Its connection ended, or it answers no pings.
    Gone(String),
    /// It sent a message above the limit.
    TooLarge,
    /// It sent what is no WebSocket, or text that is no UTF-8.
    Wrong(CloseCode, String),
}

/// One side.
pub(super) struct Leg {
    socket: WebSocketStream<SocketIo>,
    outbox: VecDeque<Message>,
    outbox_bytes: usize,
    is_flushed: bool,
    /// When it was last heard, or last excused from being heard.
    heard_at: Instant,
    pinged_at: Option<Instant>,
    ping_every: Duration,
    timer: Pin<Box<Sleep>>,
    has_closed: bool,
}

impl Leg {
    /// A side on an upgraded connection, with messages of at most `limit` bytes.
    pub(super) async fn new(io: SocketIo, role: Role, limit: u64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(0)
            .max_message_size(Some(limit))
            .max_frame_size(Some(limit));
        Self {
            socket: WebSocketStream::from_raw_socket(io, role, Some(config)).await,
            outbox: VecDeque::new(),
            outbox_bytes: 0,
            is_flushed: true,
            heard_at: Instant::now(),
            pinged_at: None,
            ping_every: PING_EVERY,
            timer: Box::pin(tokio::time::sleep(PING_EVERY)),
            has_closed: false,
        }
    }

    /// Whether more may be written to it.
    pub(super) fn has_room(&self) -> bool {
        self.outbox_bytes < ROOM_BYTES
    }

    /// Writes a message, as soon as it takes it.
    pub(super) fn push(&mut self, message: Message) {
        self.outbox_bytes += message.len();
        self.outbox.push_back(message);
    }

    /// Pings after so long a silence from now on.
    pub(super) fn ping_every(&mut self, silence: Duration) {
        if self.ping_every != silence {
            self.ping_every = silence;
            self.rearm();
        }
    }

    /// Waits for what it has to say, writing meanwhile. Unless it `may_speak`, it is not read.
    pub(super) async fn next(&mut self, may_speak: bool) -> Heard {
        poll_fn(|cx| self.poll(cx, may_speak)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>, may_speak: bool) -> Poll<Heard> {
        let had_room = self.has_room();
        loop {
            if let Err(lost) = self.write(cx) {
                return Poll::Ready(Heard::Lost(lost));
            }
            if !had_room && self.has_room() {
                return Poll::Ready(Heard::Room);
            }
            if may_speak {
                match self.read(cx) {
                    Poll::Ready(Some(heard)) => return Poll::Ready(heard),
                    // What it said of itself may have to be answered.
                    Poll::Ready(None) => continue,
                    Poll::Pending => {}
                }
            }
            match self.poll_silence(cx, may_speak) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(lost)) => return Poll::Ready(Heard::Lost(lost)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn write(&mut self, cx: &mut Context<'_>) -> Result<(), Lost> {
        while !self.outbox.is_empty() {
            match Pin::new(&mut self.socket).poll_ready(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(ready) => ready.map_err(lost)?,
            }
            if let Some(message) = self.outbox.pop_front() {
                self.outbox_bytes = self.outbox_bytes.saturating_sub(message.len());
                self.is_flushed = false;
                Pin::new(&mut self.socket)
                    .start_send(message)
                    .map_err(lost)?;
            }
        }
        if !self.is_flushed
            && let Poll::Ready(flushed) = Pin::new(&mut self.socket).poll_flush(cx)
        {
            self.is_flushed = true;
            flushed.map_err(lost)?;
        }
        Ok(())
    }

    /// The next message; nothing where it has only said that it lives.
    fn read(&mut self, cx: &mut Context<'_>) -> Poll<Option<Heard>> {
        let next = match Pin::new(&mut self.socket).poll_next(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(next) => next,
        };
        self.heard_at = Instant::now();
        self.pinged_at = None;
        Poll::Ready(match next {
            Some(Ok(message @ (Message::Text(_) | Message::Binary(_)))) => {
                Some(Heard::Message(message))
            }
            Some(Ok(Message::Close(frame))) => {
                self.has_closed = true;
                self.is_flushed = false;
                Some(Heard::Closed(frame))
            }
            Some(Ok(_)) => {
                self.is_flushed = false;
                None
            }
            Some(Err(error)) => Some(Heard::Lost(lost(error))),
            None => Some(Heard::Lost(Lost::Gone(
                "the connection has ended".to_owned(),
            ))),
        })
    }

    /// `Ready` when a ping is to be written.
    fn poll_silence(&mut self, cx: &mut Context<'_>, may_speak: bool) -> Poll<Result<(), Lost>> {
        while self.timer.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            match self.pinged_at {
                Some(at) if now.duration_since(at) >= PONG_WITHIN => {
                    // Nobody has listened for its answer.
                    if !may_speak {
                        self.heard_at = now;
                        self.pinged_at = None;
                        self.rearm();
                        continue;
                    }
                    let seconds = PONG_WITHIN.as_secs();
                    return Poll::Ready(Err(Lost::Gone(format!("no pong within {seconds} s"))));
                }
                None if now.duration_since(self.heard_at) >= self.ping_every => {
                    self.pinged_at = Some(now);
                    self.outbox.push_front(Message::Ping(bytes::Bytes::new()));
                    self.rearm();
                    return Poll::Ready(Ok(()));
                }
                _ => self.rearm(),
            }
        }
        Poll::Pending
    }

    /// The timer is not moved with every message; when it fires, the last one is looked at.
    fn rearm(&mut self) {
        let due = match self.pinged_at {
            Some(at) => at + PONG_WITHIN,
            None => self.heard_at + self.ping_every,
        };
        self.timer.as_mut().reset(due);
    }

    /// Writes what is left and closes, waiting for so long for the peer to agree.
    pub(super) async fn close(mut self, frame: Option<CloseFrame>, within: Duration) {
        if !self.has_closed {
            self.push(Message::Close(frame));
        }
        let closing = async {
            loop {
                match self.next(true).await {
                    Heard::Message(_) | Heard::Room => {}
                    Heard::Closed(_) if !self.is_flushed => {}
                    Heard::Closed(_) => return,
                    Heard::Lost(_) => return self.drain().await,
                }
            }
        };
        // Whoever does not agree in time finds the connection closed.
        let _in_time = tokio::time::timeout(within, closing).await;
    }

    /// Reads on without keeping anything, until the peer ends too: a connection that is closed over
    /// unread data is reset, and the peer would never see why.
    async fn drain(&mut self) {
        if self.socket.flush().await.is_err() {
            return;
        }
        let io = self.socket.get_mut();
        if io.shutdown().await.is_err() {
            return;
        }
        let mut piece = vec![0; READ_BUFFER_BYTES];
        let mut left = DRAINED_BYTES;
        while let Ok(read @ 1..) = io.read(&mut piece).await {
            left = left.saturating_sub(read);
            if left == 0 {
                return;
            }
        }
    }
}

fn lost(error: Error) -> Lost {
    match error {
        Error::Capacity(_) => Lost::TooLarge,
        Error::Utf8(text) => Lost::Wrong(CloseCode::Invalid, text),
        Error::Protocol(error @ ProtocolError::ResetWithoutClosingHandshake) => {
            Lost::Gone(error.to_string())
        }
        Error::Protocol(error) => Lost::Wrong(CloseCode::Protocol, error.to_string()),
        error => Lost::Gone(error.to_string()),
    }
}

/// What a side is told that sent what it may not.
pub(super) fn fault(lost: &Lost, limit: u64) -> Option<CloseFrame> {
    let (code, reason) = match lost {
        Lost::Gone(_) => return None,
        Lost::TooLarge => (
            CloseCode::Size,
            format!("over the limit of {} MiB", limit >> 20),
        ),
        Lost::Wrong(code, _) => (*code, "not understood".to_owned()),
    };
    Some(CloseFrame {
        code,
        reason: reason.into(),
    })
}

/// How a loss reads in a record.
pub(super) fn described(lost: &Lost) -> String {
    match lost {
        Lost::Gone(how) | Lost::Wrong(_, how) => how.clone(),
        Lost::TooLarge => "a message was over the limit".to_owned(),
    }
}

/// How a close reads in a record.
pub(super) fn closed(frame: Option<&CloseFrame>) -> String {
    match frame {
        Some(frame) => format!("closed with {}: {}", u16::from(frame.code), frame.reason),
        None => "closed without a code".to_owned(),
    }
}

#[cfg(test)]
mod tests;
