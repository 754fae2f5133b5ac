//! A socket of the Responses API: turns, each with a lease of its own, on one socket to upstream.
//!
//! Invariants: an idle socket holds no slot; once a turn has gone out, every other one goes to the
//! same upstream; a client's messages go out in their order, so that those behind a turn that waits
//! wait with it; no message goes out twice.
use super::{
    Tether,
    begin::{Begun, Request, begin},
    leg::{Heard, Leg, Lost, PING_EVERY, PING_WAITING_EVERY, closed, described, fault},
    pinned::Pinned,
    turn::Turn,
};
use crate::{
    clock::Instant,
    domain::reason::Reason,
    gateway::{Door, ticket::Ticket},
    protocol::{
        errors,
        socket::{self, Asked, KEEPALIVE, Meaning, Turns, told},
    },
};
use http::request::Parts;
use std::{
    collections::VecDeque,
    future::{Future, pending},
    pin::Pin,
    sync::Arc,
    time::Duration,
};
use tokio_tungstenite::tungstenite::{
    Message, Utf8Bytes,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

/// How many messages, and how much of them, a client may send ahead of a turn that waits.
const AHEAD: usize = 32;
const AHEAD_BYTES: usize = 1 << 20;

/// How often a turn that runs or waits is looked after.
const TICK: Duration = Duration::from_secs(1);

/// How often a client whose timer ping frames do not reset gets a message while it waits.
const KEEPALIVE_EVERY: Duration = Duration::from_mins(1);

/// How long a peer may take to agree that a socket is closed.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// What all turns of a socket have in common.
pub(super) struct Context {
    pub(super) door: Arc<Door>,
    /// The head that opened the socket, less what is about the upgrade alone.
    pub(super) parts: Parts,
    /// The largest message, in bytes.
    pub(super) limit: u64,
}

type Beginning = Pin<Box<dyn Future<Output = Begun> + Send>>;

/// A turn on its way, and where it belongs.
struct Waiting {
    begun: Beginning,
    text: Utf8Bytes,
    stream: Option<String>,
    since: Instant,
}

/// One client's socket.
pub(super) struct Session {
    context: Arc<Context>,
    client: Leg,
    upstream: Option<Leg>,
    pinned: Option<Pinned>,
    turns: Turns<Turn>,
    waiting: Option<Waiting>,
    ahead: VecDeque<Message>,
    ahead_bytes: usize,
    /// When upstream last said something about a turn, or was asked for one.
    heard_at: Instant,
    idle: Duration,
}

enum Step {
    Client(Heard),
    Upstream(Heard),
    Begun(Box<Begun>),
    Tick,
    Stopped,
}

/// How a session ends.
enum End {
    /// The client closes, or is gone.
    Client(Option<CloseFrame>),
    /// The client is told by this close.
    Told(Option<CloseFrame>),
}

impl Session {
    pub(super) fn new(context: Context, client: Leg) -> Self {
        Self {
            context: Arc::new(context),
            client,
            upstream: None,
            pinned: None,
            turns: Turns::default(),
            waiting: None,
            ahead: VecDeque::new(),
            ahead_bytes: 0,
            heard_at: Instant::now(),
            idle: Duration::MAX,
        }
    }

    /// Serves the socket to its end.
    pub(super) async fn run(mut self, mut tether: Tether) {
        let end = loop {
            self.proceed();
            let step = self.step(&mut tether).await;
            if let Some(end) = self.take(step) {
                break end;
            }
        };
        let Self {
            client,
            upstream,
            turns,
            waiting,
            ..
        } = self;
        // Slots first: whoever waits for them need not wait for the sockets.
        let was_running = !turns.is_empty();
        drop(waiting);
        drop(turns);
        let (frame, tells_client) = match end {
            End::Client(frame) => (frame, false),
            End::Told(frame) => (frame, true),
        };
        let upstream_within = if was_running {
            Duration::ZERO
        } else {
            CLOSE_WITHIN
        };
        let closing_upstream = async {
            if let Some(upstream) = upstream {
                upstream.close(frame.clone(), upstream_within).await;
            }
        };
        let within = if tells_client {
            CLOSE_WITHIN
        } else {
            Duration::from_millis(200)
        };
        tokio::join!(closing_upstream, client.close(frame.clone(), within));
    }

    async fn step(&mut self, tether: &mut Tether) -> Step {
        let is_busy = self.waiting.is_some() || !self.turns.is_empty();
        let may_speak = self.ahead.len() < AHEAD && self.ahead_bytes < AHEAD_BYTES;
        let client_has_room = self.client.has_room();
        let (upstream, waiting) = (&mut self.upstream, &mut self.waiting);
        tokio::select! {
            biased;
            () = tether.stopped() => Step::Stopped,
            heard = self.client.next(may_speak) => Step::Client(heard),
            heard = async {
                match upstream {
                    Some(leg) => leg.next(client_has_room).await,
                    None => pending().await,
                }
            } => Step::Upstream(heard),
            begun = async {
                match waiting {
                    Some(waiting) => waiting.begun.as_mut().await,
                    None => pending().await,
                }
            } => Step::Begun(Box::new(begun)),
            () = tokio::time::sleep(TICK), if is_busy => Step::Tick,
        }
    }

    fn take(&mut self, step: Step) -> Option<End> {
        match step {
            Step::Client(Heard::Message(message)) => {
                self.ahead_bytes += message.len();
                self.ahead.push_back(message);
                None
            }
            Step::Client(Heard::Closed(frame)) => Some(End::Client(frame)),
            Step::Client(Heard::Lost(lost)) => Some(self.client_lost(&lost)),
            Step::Upstream(Heard::Message(message)) => {
                self.relay(message);
                None
            }
            Step::Upstream(Heard::Closed(frame)) => {
                self.upstream_closed(frame.as_ref());
                Some(End::Told(frame))
            }
            Step::Upstream(Heard::Lost(lost)) => self.upstream_lost(&lost),
            Step::Begun(begun) => self.begun(*begun),
            Step::Client(Heard::Room) | Step::Upstream(Heard::Room) => None,
            Step::Tick => {
                self.tick();
                None
            }
            Step::Stopped => Some(End::Told(Some(CloseFrame {
                code: CloseCode::Away,
                reason: "shutting down".into(),
            }))),
        }
    }

    fn client_lost(&self, lost: &Lost) -> End {
        tracing::debug!(how = described(lost), "a WebSocket client was lost");
        match fault(lost, self.context.limit) {
            Some(frame) => End::Told(Some(frame)),
            None => End::Client(None),
        }
    }

    /// Sends on what the client has sent, as far as it may go now.
    fn proceed(&mut self) {
        while self.waiting.is_none() && self.upstream.as_ref().is_none_or(Leg::has_room) {
            let Some(message) = self.ahead.pop_front() else {
                break;
            };
            self.ahead_bytes = self.ahead_bytes.saturating_sub(message.len());
            self.send(message);
        }
        let silence = match self.waiting {
            Some(_) => PING_WAITING_EVERY,
            None => PING_EVERY,
        };
        self.client.ping_every(silence);
    }

    fn send(&mut self, message: Message) {
        let asked = match &message {
            Message::Text(text) => socket::asked(text),
            _ => Asked::Other,
        };
        match (asked, message) {
            (Asked::Create { stream }, Message::Text(text)) => self.ask(text, stream, None),
            (Asked::Malformed, _) => self.refuse("A message must be a JSON object with a type."),
            (_, message) => self.pass(message),
        }
    }

    /// What is no turn is for upstream to understand.
    fn pass(&mut self, message: Message) {
        if let Some(upstream) = &mut self.upstream {
            upstream.push(message);
        } else {
            self.refuse("There is no response on this socket that this could be about.");
        }
    }

    fn refuse(&mut self, what: &str) {
        let refusal = errors::Refusal::new(Reason::InvalidRequest, what);
        self.client
            .push(Message::text(errors::socket_message(&refusal)));
    }

    /// Asks for a turn; one that goes on waiting brings its companion.
    fn ask(&mut self, text: Utf8Bytes, stream: Option<String>, resumed: Option<Ticket>) {
        let request = Request {
            text: text.clone(),
            pinned: self.pinned,
            has_leg: self.upstream.is_some(),
            resumed,
        };
        self.waiting = Some(Waiting {
            begun: Box::pin(begin(Arc::clone(&self.context), request)),
            text,
            stream,
            since: Instant::now(),
        });
    }

    fn begun(&mut self, begun: Begun) -> Option<End> {
        let Waiting { text, stream, .. } = self.waiting.take()?;
        match begun {
            Begun::Fresh {
                turn,
                leg,
                first,
                idle,
            } => {
                self.upstream = Some(*leg);
                self.runs(turn, stream, idle);
                self.relay(first);
            }
            Begun::Admitted {
                mut turn,
                message,
                idle,
            } => {
                if let Some(upstream) = &mut self.upstream {
                    upstream.push(message);
                    turn.sent();
                    self.runs(turn, stream, idle);
                } else {
                    // Lost while the turn waited; nothing of it was sent.
                    self.ask(text, stream, Some(turn.resume()));
                }
            }
            Begun::Told(text) => self.client.push(Message::text(text)),
            Begun::Closed(frame) => return Some(End::Told(frame)),
        }
        None
    }

    fn runs(&mut self, turn: Turn, stream: Option<String>, idle: Duration) {
        self.pinned = Some(turn.pin());
        self.idle = idle;
        self.heard_at = Instant::now();
        self.turns.begin(stream, turn);
    }

    /// What upstream says goes to the client, once it is known what it means for a turn.
    fn relay(&mut self, message: Message) {
        self.heard_at = Instant::now();
        if let Message::Text(text) = &message {
            let told = told(text);
            match told.meaning {
                Meaning::Ended | Meaning::Failed | Meaning::Refused(_) => {
                    if let Some(turn) = self.turns.end(&told) {
                        turn.ended(&told.meaning, text);
                    }
                }
                Meaning::Begun | Meaning::Going => {
                    if let Some(turn) = self.turns.about(&told) {
                        turn.heard(&told.meaning, text);
                    }
                }
                Meaning::Aside => {}
            }
        }
        self.client.push(message);
    }

    fn upstream_closed(&mut self, frame: Option<&CloseFrame>) {
        let detail = closed(frame);
        for mut turn in self.turns.take_all() {
            turn.closed(&detail);
        }
    }

    /// The socket to upstream is gone; a later turn gets another one to the same upstream.
    fn upstream_lost(&mut self, lost: &Lost) -> Option<End> {
        let upstream = self.upstream.take();
        if let Some(frame) = fault(lost, self.context.limit) {
            self.upstream = upstream;
            self.upstream_closed(Some(&frame));
            return Some(End::Told(Some(frame)));
        }
        self.break_turns(Reason::UpstreamAmbiguous, &described(lost));
        None
    }

    fn break_turns(&mut self, reason: Reason, detail: &str) {
        for turn in self.turns.take_all() {
            let text = turn.broken(reason, detail);
            self.client.push(Message::text(text));
        }
    }

    fn tick(&mut self) {
        for turn in self.turns.iter_mut() {
            turn.started();
        }
        if !self.turns.is_empty() && self.heard_at.elapsed() >= self.idle {
            // What it would say now could be about anything.
            self.upstream = None;
            self.break_turns(Reason::UpstreamTimeout, "upstream was silent for too long");
        }
        let is_due = |waiting: &mut Waiting| {
            let is_due = waiting.since.elapsed() >= KEEPALIVE_EVERY;
            if is_due {
                waiting.since = Instant::now();
            }
            is_due
        };
        if super::is_codex(&self.context.parts.headers) && self.waiting.as_mut().is_some_and(is_due)
        {
            self.client.push(Message::text(KEEPALIVE));
        }
    }
}

#[cfg(test)]
mod tests;
