//! Opens a socket to upstream as one attempt of the dispatcher: the upgrade and, for a turn, its
//! message and the first frame that comes back. So everything that holds for an HTTP request until
//! its answer's headers holds for a socket until its first frame.
//!
//! Invariant: until the message is written nothing was asked for, so that a failed upgrade never
//! counts as dispatched; from then on nothing is proven.
use super::leg::{Heard, Leg, closed, described};
use crate::{
    clock::Instant,
    domain::{
        dispatch::{Cause, Provenance},
        unspoken::SocketKind,
    },
    engine::payload::Payload,
    ports::{
        Answer, AnswerBody, Attempt, Opened, OpeningSocket, STARTED_AFTER, SendFailure, Sending,
        Started, Upstream,
    },
    protocol::socket::{self, Meaning},
};
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, response};
use http_body_util::{BodyExt as _, Full};
use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio_tungstenite::tungstenite::{
    Message, Utf8Bytes,
    protocol::{CloseFrame, Role, frame::coding::CloseCode},
};

/// Marks the head of an answer that was made from a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct FromFrame;

/// What the last attempt has opened.
pub(super) enum Found {
    /// A socket, and the first message on it where one was waited for.
    Socket(Box<Leg>, Option<Message>),
    /// A socket that upstream has closed at once.
    Closed(Option<CloseFrame>),
}

/// Attempts by way of sockets.
pub(super) struct Dialler<'a> {
    upstream: &'a dyn Upstream,
    kind: SocketKind,
    /// The largest message, in bytes.
    limit: u64,
    /// How long the first frame may take.
    idle: Duration,
    found: Mutex<Option<Found>>,
}

impl<'a> Dialler<'a> {
    /// Messages are `limit` bytes at most, and the first frame comes within `idle`.
    pub(super) const fn new(
        upstream: &'a dyn Upstream,
        kind: SocketKind,
        (limit, idle): (u64, Duration),
    ) -> Self {
        Self {
            upstream,
            kind,
            limit,
            idle,
            found: Mutex::new(None),
        }
    }

    /// What the last attempt has opened.
    pub(super) fn found(&self) -> Option<Found> {
        self.slot().take()
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Found>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn attempt(
        &self,
        mut attempt: Attempt<'_>,
        started: &mut Started<'_>,
    ) -> Result<Answer, SendFailure> {
        *self.slot() = None;
        let message = match attempt.payload.take() {
            Some(payload) => Some(text_of(&payload).await?),
            None => None,
        };
        let opened = self.upstream.open_socket(attempt).await;
        let (head, io) = match opened.map_err(unasked)? {
            Opened::Socket(head, io) => (head, io),
            Opened::Refused(answer) => return self.refused(answer),
        };
        let mut leg = Leg::new(io, Role::Client, self.limit).await;
        let Some(message) = message else {
            *self.slot() = Some(Found::Socket(Box::new(leg), None));
            return Ok(taken(head));
        };
        leg.push(Message::Text(message));
        let first = match self.first(&mut leg, started).await? {
            Ok(first) => first,
            Err(frame) => {
                let answer = closed_at_once(frame.as_ref());
                *self.slot() = Some(Found::Closed(frame));
                return Ok(answer);
            }
        };
        let answer = match &first {
            Message::Text(text) => match socket::told(text).meaning {
                Meaning::Refused(status) => refused_by(status, text),
                _ => taken(head),
            },
            _ => taken(head),
        };
        *self.slot() = Some(Found::Socket(Box::new(leg), Some(first)));
        Ok(answer)
    }

    /// What is no upgrade comes from an endpoint that does not speak WebSocket, or is about this
    /// request.
    fn refused(&self, answer: Answer) -> Result<Answer, SendFailure> {
        let status = answer.head.status.as_u16();
        if !socket::is_unspoken(self.kind, status) {
            return Ok(answer);
        }
        Err(SendFailure {
            provenance: Provenance::NotDispatched,
            cause: Cause::NotSpoken,
            detail: format!("the upgrade was answered with {status}"),
        })
    }

    /// The first frame, or how upstream closed instead.
    async fn first(
        &self,
        leg: &mut Leg,
        started: &mut Started<'_>,
    ) -> Result<Result<Message, Option<CloseFrame>>, SendFailure> {
        let begun = Instant::now();
        let mut due = begun + STARTED_AFTER.min(self.idle);
        loop {
            match tokio::time::timeout_at(due, leg.next(true)).await {
                Ok(Heard::Message(message)) => return Ok(Ok(message)),
                Ok(Heard::Room) => {}
                Ok(Heard::Closed(frame)) => return Ok(Err(frame)),
                Ok(Heard::Lost(lost)) => return Err(unknown(Cause::Connection, described(&lost))),
                Err(_) if begun.elapsed() >= self.idle => {
                    let seconds = self.idle.as_secs();
                    let detail = format!("no frame within {seconds} s");
                    return Err(unknown(Cause::HeaderTimeout, detail));
                }
                Err(_) => {
                    started();
                    due = begun + self.idle;
                }
            }
        }
    }
}

impl Upstream for Dialler<'_> {
    fn open_socket<'a>(&'a self, attempt: Attempt<'a>) -> OpeningSocket<'a> {
        self.upstream.open_socket(attempt)
    }

    fn send<'a>(&'a self, attempt: Attempt<'a>, started: &'a mut Started<'_>) -> Sending<'a> {
        Box::pin(self.attempt(attempt, started))
    }
}

async fn text_of(payload: &Payload) -> Result<Utf8Bytes, SendFailure> {
    let unsent = |detail: String| SendFailure {
        provenance: Provenance::NotDispatched,
        cause: Cause::Connection,
        detail,
    };
    let mut text = Vec::new();
    let whole = payload.outgoing().collect().await;
    text.extend_from_slice(&whole.map_err(|e| unsent(e.to_string()))?.to_bytes());
    Utf8Bytes::try_from(Bytes::from(text)).map_err(|e| unsent(e.to_string()))
}

/// An upgrade asks for no work, so whatever became of it, nothing was dispatched.
fn unasked(failure: SendFailure) -> SendFailure {
    SendFailure {
        provenance: Provenance::NotDispatched,
        ..failure
    }
}

fn unknown(cause: Cause, detail: String) -> SendFailure {
    SendFailure {
        provenance: Provenance::Unknown,
        cause,
        detail,
    }
}

fn taken(mut head: response::Parts) -> Answer {
    head.status = StatusCode::OK;
    head.extensions = http::Extensions::new();
    head.extensions.insert(FromFrame);
    Answer {
        head,
        body: body(Bytes::new()),
    }
}

/// An error message as the answer that HTTP would have.
fn refused_by(status: u16, text: &Utf8Bytes) -> Answer {
    let status = StatusCode::from_u16(status)
        .ok()
        .filter(|s| s.as_u16() >= 400);
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let bytes = Bytes::copy_from_slice(text.as_bytes());
    made(status, socket::error_headers(text), bytes)
}

/// A close before any frame: the client's own doing, or trouble of upstream's.
fn closed_at_once(frame: Option<&CloseFrame>) -> Answer {
    let is_upstreams = matches!(
        frame.map(|f| f.code),
        Some(CloseCode::Error | CloseCode::Restart | CloseCode::Again | CloseCode::Bad(_))
    );
    let status = if is_upstreams {
        StatusCode::INTERNAL_SERVER_ERROR
    } else {
        StatusCode::BAD_REQUEST
    };
    made(status, HeaderMap::new(), Bytes::from(closed(frame)))
}

fn made(status: StatusCode, headers: HeaderMap, bytes: Bytes) -> Answer {
    let (mut head, ()) = Response::new(()).into_parts();
    head.status = status;
    head.headers = headers;
    head.extensions.insert(FromFrame);
    Answer {
        head,
        body: body(bytes),
    }
}

fn body(bytes: Bytes) -> AnswerBody {
    Box::pin(Full::new(bytes).map_err(|never| match never {}))
}
