//! Clients that are told in the middle of their wait that it goes on: committed to success before
//! there is an answer, and kept alive until it comes.
//!
//! It happens to requests for a stream of events alone, and only where the operator lets requests
//! wait for longer than clients are left without a word.
//!
//! Invariants: what is said ahead of the answer stands before its first byte, never within it; the
//! request is the same one before and after, so that a client that leaves takes its place in the
//! queue, its slots and its ticket along; what comes instead of a stream is told as the protocol's
//! own error event.
use super::{
    Door, Reply,
    call::{self, Call},
    refuse::REQUEST_ID,
    ticket::{Ended, Ticket},
};
use crate::{
    domain::{
        ids::RequestId,
        ledger::Outcome,
        settings::{Name, Settings},
    },
    engine::{
        dispatch::Dispatched,
        held::{Held, Patience},
    },
    ports::Answer,
    protocol::{errors, keepalive::Keepalive},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, header, request, response};
use http_body::{Body, Frame};
use hyper::body::Incoming;
use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    sync::oneshot,
    time::{Interval, MissedTickBehavior},
};

/// How often a waiting client hears something. Clients and what stands between give up after
/// minutes of silence, some proxies after half a minute.
const BEAT: Duration = Duration::from_secs(10);

/// As much of a provider's error as an event passes on. Errors have a few hundred bytes.
const ERROR_BYTES: usize = 64 << 10;

/// As much of it as the request log keeps.
const EXCERPT_BYTES: usize = 400;

/// After what wait a request for a stream is answered before there is an answer; `None` where no
/// request waits for so long.
pub(super) fn commits_after(settings: &Settings) -> Option<Duration> {
    let after = settings.integer(Name::ParkCommitSeconds);
    let is_due = settings.integer(Name::CapacityWaitSeconds) > after;
    is_due.then(|| Duration::from_secs(after))
}

/// Answers a request, ahead of its answer where it waits for longer than `after`.
pub(super) async fn answer(
    door: &Arc<Door>,
    parts: &Arc<request::Parts>,
    body: Incoming,
    after: Duration,
) -> Response<Reply> {
    let (teller, mut told) = oneshot::channel();
    let commitment = Commitment {
        after,
        teller: Mutex::new(Some(teller)),
    };
    let (door, parts) = (Arc::clone(door), Arc::clone(parts));
    let mut answering: Answering =
        Box::pin(async move { call::answer(&door, &parts, body, Some(&commitment)).await });
    tokio::select! {
        biased;
        response = &mut answering => match told.try_recv() {
            Ok(promise) => promise.response(State::Answered(response.into_body())),
            Err(_) => response,
        },
        // Of a request that is not to be answered ahead nothing is ever told.
        Ok(promise) = &mut told => promise.response(State::Waiting(answering)),
    }
}

type Answering = Pin<Box<dyn Future<Output = Response<Reply>> + Send>>;

/// The possibility to answer one request ahead.
pub(super) struct Commitment {
    after: Duration,
    teller: Mutex<Option<oneshot::Sender<Promise>>>,
}

/// What a client is promised.
#[derive(Clone, Copy, Debug)]
struct Promise {
    id: RequestId,
    keepalive: Keepalive,
}

impl Promise {
    fn response(self, state: State) -> Response<Reply> {
        let mut response = Response::new(Reply::committed(Committed::new(self.keepalive, state)));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENTS));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if let Ok(id) = HeaderValue::from_str(&self.id.to_string()) {
            headers.insert(REQUEST_ID, id);
        }
        response
    }
}

const EVENTS: &str = "text/event-stream";

/// One request that may be answered ahead.
pub(super) struct Prospect<'a> {
    commitment: &'a Commitment,
    promise: Promise,
    /// What is sent upstream once the client was promised an answer that is not packed.
    unpacked: OnceLock<HeaderMap>,
}

impl<'a> Prospect<'a> {
    /// `None` if this request is answered when there is an answer and not before.
    pub(super) fn of(call: &Call<'a>, id: RequestId, is_streamed: bool) -> Option<Self> {
        let commitment = call.commitment?;
        let (headers, query) = (&call.parts.headers, call.parts.uri.query());
        let keepalive = Keepalive::of(&call.route, is_streamed, headers, query)?;
        Some(Self {
            commitment,
            promise: Promise { id, keepalive },
            unpacked: OnceLock::new(),
        })
    }

    pub(super) const fn after(&self) -> Duration {
        self.commitment.after
    }

    pub(super) fn commit(&self, headers: &HeaderMap) {
        self.unpacked.get_or_init(|| {
            let mut headers = headers.clone();
            let identity = HeaderValue::from_static("identity");
            headers.insert(header::ACCEPT_ENCODING, identity);
            headers
        });
        let teller = &self.commitment.teller;
        let teller = teller.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(teller) = teller {
            // Nobody listens any more where the client has left at this very moment.
            let _ = teller.send(self.promise);
        }
    }

    /// What is sent upstream in place of the client's own headers.
    pub(super) fn unpacked(&self) -> Option<&HeaderMap> {
        self.unpacked.get()
    }
}

/// Whether that answer goes on where the promise left off.
pub(super) fn is_promised(head: &response::Parts) -> bool {
    let value = |name| head.headers.get(name).map(HeaderValue::as_bytes);
    let is_events = value(header::CONTENT_TYPE).is_some_and(|v| {
        v.get(..EVENTS.len())
            .is_some_and(|v| v.eq_ignore_ascii_case(EVENTS.as_bytes()))
    });
    let is_packed =
        value(header::CONTENT_ENCODING).is_some_and(|v| !v.eq_ignore_ascii_case(b"identity"));
    head.status.is_success() && is_events && !is_packed
}

/// Tells a client that was promised a stream what came instead, and ends the ticket.
///
/// The stream ends properly after that event, since to cut it would make clients report, or repeat
/// after, a broken connection instead of the error that they were told.
pub(super) async fn disappoint(
    call: &Call<'_>,
    dispatched: Dispatched,
    ticket: &mut Ticket,
) -> Response<Reply> {
    let Dispatched {
        answer: Answer { head, body },
        edge,
        lease,
    } = dispatched;
    let status = head.status.as_u16();
    ticket.was_answered_by(&edge, &head);
    let document = if head.status.is_success() {
        None
    } else {
        let held = Held::read(body, Patience::Between(call.policy.idle), ERROR_BYTES).await;
        let codings = head.headers.get_all(header::CONTENT_ENCODING);
        held.document(codings.iter().map(HeaderValue::as_bytes))
    };
    drop(lease);
    let document = document.unwrap_or_default();
    let route = &call.route;
    let event = errors::sse_event_of_answer(route.protocol, route.operation, status, &document);
    let excerpt = document.get(..EXCERPT_BYTES).unwrap_or(&document);
    let excerpt = String::from_utf8_lossy(excerpt);
    let excerpt = excerpt.trim_end_matches(char::REPLACEMENT_CHARACTER);
    let error = if head.status.is_success() {
        "the answer is no stream of events".to_owned()
    } else {
        format!("status {status}: {excerpt}")
    };
    ticket.settle(Ended {
        response_bytes: event.len() as u64,
        error: Some(edge.credential().secret.masked_in(&error).into()),
        ..Ended::with(Outcome::Failed)
    });
    Response::new(Reply::whole(event))
}

/// The body of an answer that was promised.
pub(super) struct Committed {
    keepalive: Keepalive,
    beat: Interval,
    state: State,
    /// Whether anything of the answer has come.
    has_begun: bool,
}

enum State {
    /// There is no answer yet; its head is of no use any more once there is.
    Waiting(Answering),
    /// There is one.
    Answered(Reply),
}

impl Committed {
    fn new(keepalive: Keepalive, state: State) -> Self {
        // The first one comes at once.
        let mut beat = tokio::time::interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            keepalive,
            beat,
            state,
            has_begun: false,
        }
    }

    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let frame = loop {
            match &mut self.state {
                State::Waiting(answering) => match answering.as_mut().poll(cx) {
                    Poll::Ready(answer) => self.state = State::Answered(answer.into_body()),
                    Poll::Pending => break Poll::Pending,
                },
                State::Answered(reply) => break Pin::new(reply).poll_frame(cx),
            }
        };
        self.has_begun |= frame.is_ready();
        if self.has_begun {
            frame
        } else {
            self.poll_beat(cx)
        }
    }

    fn poll_beat(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let keepalive = self.keepalive;
        self.beat.poll_tick(cx).map(|_| {
            let bytes = Bytes::from_static(keepalive.bytes());
            Some(Ok(Frame::data(bytes)))
        })
    }

    pub(super) fn is_end_stream(&self) -> bool {
        match &self.state {
            State::Waiting(_) => false,
            State::Answered(reply) => reply.is_end_stream(),
        }
    }
}
