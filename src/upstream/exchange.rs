//! One request and its answer on one connection, driven in the task that waits for it.
//!
//! hyper splits a connection into a handle and a future that does the I/O. Running that future in
//! a task of its own would cost a wake-up across tasks for every chunk; here whoever polls the
//! exchange polls the I/O first, and what one read brought is handed over whole.
//!
//! Invariant: the connection goes back to rest only after a complete answer; dropped earlier, it
//! closes, and upstream sees the client leave.
use super::{
    client::Shared,
    dial::DialError,
    idle::Origin,
    wire::{Transport, Witness, Witnessed},
};
use crate::{engine::payload::Outgoing, ports::BrokenOff};
use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::{
    body::Incoming,
    client::conn::{TrySendError, http1},
};
use hyper_util::rt::TokioIo;
use std::{
    fmt,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};
use tokio::time::Instant;

type Driver = Pin<Box<http1::Connection<TokioIo<Witnessed>, Outgoing>>>;

/// What was ready together goes out together, up to this size.
const MERGE_UP_TO_BYTES: usize = 64 << 10;

/// A connection to one origin.
pub(super) struct Connection {
    sender: http1::SendRequest<Outgoing>,
    /// `None` once it has ended.
    driver: Option<Driver>,
    witness: Arc<Witness>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

/// A request that got no answer.
#[derive(Debug)]
pub(super) struct Lost {
    pub(super) error: hyper::Error,
    /// Whether bytes may have left.
    pub(super) may_have_left: bool,
}

impl Connection {
    /// Sets up HTTP on a fresh transport.
    pub(super) async fn open(transport: Transport) -> Result<Self, DialError> {
        let (io, witness) = Witnessed::new(transport);
        let (sender, driver) = http1::Builder::new()
            .handshake(TokioIo::new(io))
            .await
            .map_err(DialError::Setup)?;
        Ok(Self {
            sender,
            driver: Some(Box::pin(driver)),
            witness,
        })
    }

    /// Does what I/O there is to do.
    fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && driver.as_mut().poll(cx).is_ready()
        {
            self.driver = None;
        }
    }

    /// Whether it can take a request now, as far as can be seen from here.
    pub(super) fn poll_usable(&mut self, cx: &mut Context<'_>) -> bool {
        self.drive(cx);
        self.driver.is_some() && self.sender.is_ready()
    }

    /// Writes that were attempted so far.
    pub(super) fn witness(&self) -> (Arc<Witness>, u64) {
        (Arc::clone(&self.witness), self.witness.attempts())
    }

    /// Sends a request and waits for the head of its answer.
    pub(super) async fn send(
        &mut self,
        request: Request<Outgoing>,
    ) -> Result<Response<Incoming>, Lost> {
        let before = self.witness.attempts();
        let Self { sender, driver, .. } = self;
        let mut answer = pin!(sender.try_send_request(request));
        let result = poll_fn(|cx| {
            if let Some(running) = driver
                && running.as_mut().poll(cx).is_ready()
            {
                *driver = None;
            }
            answer.as_mut().poll(cx)
        })
        .await;
        result.map_err(|error| self.lost(error, before))
    }

    fn lost(&self, mut error: TrySendError<Request<Outgoing>>, before: u64) -> Lost {
        let was_handed_back = error.take_message().is_some();
        Lost {
            may_have_left: !was_handed_back && self.witness.attempts() != before,
            error: error.into_error(),
        }
    }
}

/// What a body has next: a frame, a fault, or (`None`) its end.
type Next = Option<Result<Frame<Bytes>, BrokenOff>>;

/// An answer's body, with the connection that brings it.
pub(super) struct Receiving {
    body: Incoming,
    connection: Option<Connection>,
    origin: Origin,
    shared: Arc<Shared>,
    /// The end of the body, met while looking for more to merge.
    held_back: Option<Next>,
}

impl Receiving {
    pub(super) fn new(
        body: Incoming,
        connection: Connection,
        origin: Origin,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            body,
            connection: Some(connection),
            origin,
            shared,
            held_back: None,
        }
    }

    /// The next frame as hyper has it, after doing the I/O that may bring it.
    fn poll_one(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        if let Some(connection) = &mut self.connection {
            connection.drive(cx);
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    /// Takes what else is ready, so that it leaves in one write.
    fn merge(&mut self, first: Bytes, cx: &mut Context<'_>) -> Bytes {
        let mut merged: Option<BytesMut> = None;
        let mut length = first.len();
        while length < MERGE_UP_TO_BYTES {
            match self.poll_one(cx) {
                Poll::Pending => break,
                Poll::Ready(Some(Ok(frame))) if frame.is_data() => {
                    let Ok(more) = frame.into_data() else { break };
                    length += more.len();
                    merged
                        .get_or_insert_with(|| {
                            let mut start = BytesMut::with_capacity(length.max(4096));
                            start.extend_from_slice(&first);
                            start
                        })
                        .extend_from_slice(&more);
                }
                Poll::Ready(other) => {
                    self.held_back = Some(other.map(|r| r.map_err(|e| broken_off(&e))));
                    break;
                }
            }
        }
        merged.map_or(first, BytesMut::freeze)
    }

    /// Whether the end is known to be next.
    fn is_at_end(&self) -> bool {
        match &self.held_back {
            Some(next) => next.is_none(),
            None => self.body.is_end_stream(),
        }
    }

    /// For answers without a body, which nobody polls: the connection goes to rest at once.
    pub(super) async fn rest_if_empty(mut self) -> Self {
        if self.body.is_end_stream() {
            poll_fn(|cx| {
                self.finish(cx);
                Poll::Ready(())
            })
            .await;
        }
        self
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        if let Some(mut connection) = self.connection.take()
            && connection.poll_usable(cx)
        {
            self.shared
                .idle
                .put(&self.origin, connection, Instant::now());
        }
    }
}

fn broken_off(error: &hyper::Error) -> BrokenOff {
    BrokenOff(error.to_string())
}

impl Body for Receiving {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let next = match self.held_back.take() {
            Some(held_back) => Poll::Ready(held_back),
            None => self
                .poll_one(cx)
                .map(|o| o.map(|r| r.map_err(|e| broken_off(&e)))),
        };
        match next {
            Poll::Ready(Some(Ok(frame))) => {
                let frame = match frame.into_data() {
                    Ok(data) => Frame::data(self.merge(data, cx)),
                    Err(trailers) => trailers,
                };
                // A server that has sent the stated length does not ask for the end.
                if self.is_at_end() {
                    self.finish(cx);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(None) => {
                self.finish(cx);
                Poll::Ready(None)
            }
            other => other,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.is_at_end()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
