//! Relays an answer: its head less what must not travel, its body byte for byte as it comes.
//!
//! Invariants: the slots are held until the body has ended, and not longer; a body that breaks off,
//! falls silent for too long, or ends without its protocol's end breaks off here as well, so that
//! half an answer never looks like a whole one.
use super::{
    Reply,
    refuse::REQUEST_ID,
    ticket::{Ended, Ticket},
};
use crate::{
    clock::{Instant, unix_millis},
    domain::{ledger::Outcome, owners::Object, pool::EdgeRef},
    engine::{
        admission::{Lease, RETRY_AFTER_MAX_SECONDS},
        dispatch::Dispatched,
        live::Stage,
    },
    ports::AnswerBody,
    protocol::{
        headers,
        route::Route,
        usage::Usage,
        watch::{Completeness, Watcher},
    },
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header, request, response};
use http_body::{Body, Frame, SizeHint};
use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::Sleep;

/// An answer's body with all that hangs on it, before it is attached to a client.
pub(super) struct Source {
    body: AnswerBody,
    edge: EdgeRef,
    lease: Option<Lease>,
    watch: Watch,
    idle_limit: Duration,
}

/// What is made of the bytes on their way: an answer is watched for its end and its usage, an
/// error for its first words.
enum Watch {
    Answer(Watcher),
    Error(Vec<u8>),
}

/// As much of an error as tells what it is.
const EXCERPT_BYTES: usize = 400;

impl Watch {
    fn new(route: Route<'_>, head: &response::Parts) -> Self {
        if !head.status.is_success() {
            return Self::Error(Vec::new());
        }
        let value = |name| head.headers.get(name).map(HeaderValue::as_bytes);
        Self::Answer(Watcher::new(
            route.protocol,
            route.operation,
            value(header::CONTENT_TYPE),
            value(header::CONTENT_ENCODING),
        ))
    }

    fn feed(&mut self, data: &[u8]) {
        match self {
            Self::Answer(watcher) => watcher.feed(data),
            Self::Error(excerpt) => {
                let room = EXCERPT_BYTES.saturating_sub(excerpt.len());
                excerpt.extend_from_slice(data.get(..room).unwrap_or(data));
            }
        }
    }
}

impl Source {
    /// Takes the answer over; the ticket learns who gave it.
    pub(super) fn new(
        route: Route<'_>,
        dispatched: Dispatched,
        idle_limit: Duration,
        ticket: &mut Ticket,
    ) -> (response::Parts, Self) {
        let Dispatched {
            answer,
            edge,
            lease,
        } = dispatched;
        let mut head = answer.head;
        ticket.was_answered_by(&edge, &head);
        let watch = Watch::new(route, &head);
        headers::strip_response(&mut head.headers);
        cap_retry_after(&mut head.headers);
        state_retry_after(&mut head);
        let source = Self {
            body: answer.body,
            edge,
            lease,
            watch,
            idle_limit,
        };
        (head, source)
    }

    /// Hands the answer to the client.
    pub(super) fn attach(
        self,
        mut head: response::Parts,
        ticket: Ticket,
        asked: &request::Parts,
    ) -> Response<Reply> {
        if let Ok(id) = HeaderValue::from_str(&ticket.id().to_string()) {
            head.headers.insert(REQUEST_ID, id);
        }
        head.version = http::Version::HTTP_11;
        head.extensions = http::Extensions::new();
        let mut relay = Relay {
            has_length: self.body.size_hint().exact().is_some(),
            flow: Flow::Running,
            body: self.body,
            watch: Some(self.watch),
            idle_limit: self.idle_limit,
            idle: None,
            last_byte_at: Instant::now(),
            bytes: 0,
            ticket,
            edge: self.edge,
            lease: self.lease,
        };
        // Nobody polls the body of such an answer.
        if asked.method == Method::HEAD || relay.body.is_end_stream() {
            relay.expect_no_body(asked, head.status);
            relay.end(End::Clean);
        }
        Response::from_parts(head, Reply::relay(relay))
    }
}

/// Clients give up, or sleep for good, on longer hints.
fn cap_retry_after(headers: &mut HeaderMap) {
    let value = headers.get(header::RETRY_AFTER);
    let Some(text) = value.and_then(|v| v.to_str().ok()).map(str::trim) else {
        return;
    };
    #[expect(clippy::cast_precision_loss, reason = "sixty is exact")]
    let most = RETRY_AFTER_MAX_SECONDS as f64;
    let is_too_long = match text.parse::<f64>() {
        Ok(seconds) => seconds > most,
        Err(_) => httpdate::parse_http_date(text).is_ok_and(|date| date > latest_return()),
    };
    if is_too_long {
        // Whole seconds are all that a client like Codex understands.
        headers.insert(header::RETRY_AFTER, RETRY_AFTER_MAX_SECONDS.into());
    }
}

/// A client that is told nothing comes back at once, or never.
fn state_retry_after(head: &mut response::Parts) {
    let is_told = head.headers.contains_key(header::RETRY_AFTER);
    if head.status == StatusCode::TOO_MANY_REQUESTS && !is_told {
        head.headers.insert(header::RETRY_AFTER, 1.into());
    }
}

/// The last moment at which a client may be told to return.
fn latest_return() -> SystemTime {
    let now = u64::try_from(unix_millis()).unwrap_or_default();
    UNIX_EPOCH + Duration::from_millis(now) + Duration::from_secs(RETRY_AFTER_MAX_SECONDS)
}

/// The body of a relayed answer.
pub(super) struct Relay {
    body: AnswerBody,
    watch: Option<Watch>,
    idle_limit: Duration,
    /// Runs only while nothing comes; set when first needed.
    idle: Option<Pin<Box<Sleep>>>,
    last_byte_at: Instant,
    bytes: u64,
    /// Whether upstream has said how long the answer is.
    has_length: bool,
    flow: Flow,
    ticket: Ticket,
    /// Whose secret is never to be told, should upstream have echoed it.
    edge: EdgeRef,
    lease: Option<Lease>,
}

/// How far a body that does not end well has come. An error makes the server drop what it has not
/// written yet, so it is given a turn to write in between: the client gets all that there is, and
/// sees that the answer had begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Running,
    /// All that there is was handed over.
    LastWords,
    /// It has had its turn to be written.
    Cut,
}

/// How the body ended.
enum End {
    Clean,
    BrokenOff(String),
    Silent,
    ClientLeft,
}

impl Relay {
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.flow != Flow::Running {
            return self.break_off(cx);
        }
        match self.body.as_mut().poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                self.note(&frame);
                if self.body.is_end_stream() && !self.end(End::Clean) {
                    return self.last_words(frame, cx);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                self.end(End::BrokenOff(error.to_string()));
                self.break_off(cx)
            }
            Poll::Ready(None) => {
                if self.end(End::Clean) {
                    Poll::Ready(None)
                } else {
                    self.break_off(cx)
                }
            }
            Poll::Pending => self.poll_idle(cx),
        }
    }

    /// Hands over the last frame of an answer that is not whole.
    fn last_words(
        &mut self,
        frame: Frame<Bytes>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let Ok(mut data) = frame.into_data() else {
            return self.break_off(cx);
        };
        // As many bytes as were announced would make it look whole.
        if self.has_length {
            data.truncate(data.len().saturating_sub(1));
        }
        self.flow = Flow::LastWords;
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn break_off(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.flow == Flow::Cut {
            return Poll::Ready(Some(Err(cut())));
        }
        self.flow = Flow::Cut;
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn note(&mut self, frame: &Frame<Bytes>) {
        let Some(data) = frame.data_ref() else {
            return;
        };
        if self.bytes == 0 {
            self.ticket.live.reach(Stage::FirstByte);
        }
        self.bytes += data.len() as u64;
        self.ticket.live.moved();
        if let Some(watch) = &mut self.watch {
            watch.feed(data);
            if let Watch::Answer(watcher) = watch {
                self.ticket.learns(watcher.take_made(), &self.edge);
            }
        }
        if self.idle.is_some() {
            self.last_byte_at = Instant::now();
        }
    }

    /// Nothing has come: is the silence too long already?
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let limit = self.idle_limit;
        let idle = self.idle.get_or_insert_with(|| {
            self.last_byte_at = Instant::now();
            Box::pin(tokio::time::sleep(limit))
        });
        // The timer is not moved with every byte; when it fires, the last byte is looked at.
        while idle.as_mut().poll(cx).is_ready() {
            let due = self.last_byte_at + limit;
            if due <= Instant::now() {
                self.end(End::Silent);
                return self.break_off(cx);
            }
            idle.as_mut().reset(due);
        }
        Poll::Pending
    }

    /// Where a success has no body by its nature, none is missing.
    fn expect_no_body(&mut self, asked: &request::Parts, status: StatusCode) {
        let is_bodiless = matches!(status.as_u16(), 204 | 205 | 304)
            || (asked.method == Method::HEAD && status.is_success());
        if is_bodiless {
            self.watch = Some(Watch::Answer(Watcher::bodiless()));
        }
    }

    /// Settles; gives whether the answer is whole.
    fn end(&mut self, end: End) -> bool {
        let Some(watch) = self.watch.take() else {
            return true;
        };
        let judged = match watch {
            Watch::Answer(watcher) => judge(end, watcher),
            Watch::Error(excerpt) => Judged::failed(end, text_of(&excerpt)),
        };
        self.ticket.learns(judged.made, &self.edge);
        let error = judged.error;
        let error = error.map(|text| self.edge.credential().secret.masked_in(&text));
        self.lease = None;
        self.ticket.settle(Ended {
            response_bytes: self.bytes,
            tokens: judged.usage,
            error: error.map(Into::into),
            ..Ended::with(judged.outcome)
        });
        judged.is_whole
    }

    pub(super) fn is_end_stream(&self) -> bool {
        self.flow == Flow::Running && self.watch.is_none() && self.body.is_end_stream()
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.end(End::ClientLeft);
    }
}

/// What an ending means for the record and for the client.
struct Judged {
    outcome: Outcome,
    error: Option<String>,
    usage: Usage,
    made: Vec<Object>,
    /// Whether the client may see a proper end.
    is_whole: bool,
}

impl Judged {
    fn failed(end: End, excerpt: String) -> Self {
        let (outcome, error, is_whole) = match end {
            End::Clean => (Outcome::Failed, excerpt, true),
            End::ClientLeft => (Outcome::ClientGone, excerpt, false),
            End::BrokenOff(error) => (Outcome::Broken, error, false),
            End::Silent => (Outcome::Broken, SILENT.to_owned(), false),
        };
        Self {
            outcome,
            error: Some(error),
            usage: Usage::default(),
            made: Vec::new(),
            is_whole,
        }
    }
}

/// The beginning of an error as text; a character that was cut is left out.
fn text_of(excerpt: &[u8]) -> String {
    let text = String::from_utf8_lossy(excerpt);
    let text = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
    text.to_owned()
}

const SILENT: &str = "nothing came from upstream for longer than the idle limit";

fn judge(end: End, watcher: Watcher) -> Judged {
    let verdict = watcher.end(matches!(end, End::Clean));
    let (outcome, error, is_whole) = match (end, verdict.completeness) {
        // The client has what it came for, whether it waits for the end or not.
        (End::ClientLeft, _) if verdict.terminal_seen => (Outcome::Ok, None, false),
        (End::ClientLeft, _) => (Outcome::ClientGone, None, false),
        (End::BrokenOff(error), _) => (Outcome::Broken, Some(error), false),
        (End::Silent, _) => (Outcome::Broken, Some(SILENT.to_owned()), false),
        (End::Clean, Completeness::Complete) => (Outcome::Ok, None, true),
        (End::Clean, Completeness::Failed { excerpt }) => (Outcome::Failed, Some(excerpt), true),
        (End::Clean, Completeness::Broken(how)) => {
            (Outcome::Broken, Some(how.name().to_owned()), false)
        }
    };
    Judged {
        outcome,
        error,
        usage: verdict.usage,
        made: verdict.made,
        is_whole,
    }
}

/// Makes the server cut the connection instead of ending it.
fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the answer broke off")
}
