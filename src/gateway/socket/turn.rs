//! One response on a socket, from the message that went out to its last event.
//!
//! Invariant: a turn holds its lease for as long as it lives and not longer, and its ticket is
//! settled with the message that ends it.
use super::pinned::Pinned;
use crate::{
    clock::{Instant, unix_millis},
    domain::{
        admission::Evidence, ledger::Outcome, owners::Object, pool::EdgeRef, protocol::Protocol,
        reason::Reason,
    },
    engine::{
        admission::Lease,
        dispatch::{evidence, tell},
        live::Stage,
    },
    gateway::{
        refuse::Refused,
        ticket::{Ended, Ticket},
    },
    ports::STARTED_AFTER,
    protocol::{
        owned,
        socket::{self, Meaning},
        verdict,
    },
};

/// As much of an error as is kept for the record.
const EXCERPT_BYTES: usize = 400;

/// What runs on the socket.
pub(super) struct Turn {
    pub(super) ticket: Ticket,
    lease: Option<Lease>,
    edge: EdgeRef,
    sent_at: Instant,
    bytes: u64,
    is_answered: bool,
}
/// The beginning of an error as text, without the secret should upstream have echoed it.
pub(super) fn excerpt(edge: &EdgeRef, text: &str) -> Box<str> {
    let end = text.floor_char_boundary(EXCERPT_BYTES);
    let part = text.get(..end).unwrap_or_default();
    edge.credential().secret.masked_in(part).into()
}

impl Turn {
    pub(super) fn new(ticket: Ticket, lease: Lease, edge: EdgeRef) -> Self {
        Self {
            ticket,
            lease: Some(lease),
            edge,
            sent_at: Instant::now(),
            bytes: 0,
            is_answered: false,
        }
    }

    /// Where it runs.
    pub(super) fn pin(&self) -> Pinned {
        Pinned::at(&self.edge)
    }

    /// The slot for starting is given back once upstream has had its time to begin.
    pub(super) fn started(&mut self) {
        if !self.is_answered
            && self.sent_at.elapsed() >= STARTED_AFTER
            && let Some(lease) = &mut self.lease
        {
            lease.release_create();
        }
    }

    /// An event of its own has come and is about to reach the client.
    pub(super) fn heard(&mut self, meaning: &Meaning, text: &str) {
        self.bytes += text.len() as u64;
        if !self.is_answered {
            self.answered(meaning, text);
        }
        if *meaning == Meaning::Begun {
            let made: Vec<Object> = owned::made_in_event(text.as_bytes());
            self.ticket.learns(made, &self.edge);
        }
    }

    fn answered(&mut self, meaning: &Meaning, text: &str) {
        self.is_answered = true;
        let (status, says) = match meaning {
            Meaning::Refused(status) => {
                let headers = socket::error_headers(text);
                let body = text.as_bytes();
                let said = verdict::judge(Protocol::OpenAi, *status, &headers, body, unix_millis());
                tell(&*self.ticket.door().gateway.watch, said, &self.edge, true);
                (*status, evidence(said))
            }
            _ => (200, Evidence::Success),
        };
        if let Some(lease) = &mut self.lease {
            lease.answered(says);
        }
        self.ticket.was_told(&self.edge, status, None);
        self.ticket.live.reach(Stage::FirstByte);
    }

    /// The last event of its own has come: the slot is free, the record complete.
    pub(super) fn ended(mut self, meaning: &Meaning, text: &str) {
        self.heard(meaning, text);
        self.lease = None;
        let (outcome, status, error) = match meaning {
            Meaning::Ended => (Outcome::Ok, None, None),
            Meaning::Refused(status) => (Outcome::Failed, Some(*status), Some(text)),
            _ => (Outcome::Failed, None, Some(text)),
        };
        self.ticket.settle(Ended {
            status,
            response_bytes: self.bytes,
            tokens: socket::usage(text).unwrap_or_default(),
            error: error.map(|text| excerpt(&self.edge, text)),
            ..Ended::with(outcome)
        });
    }

    /// It is over without an end of its own. Gives what the client is told of it.
    pub(super) fn broken(mut self, reason: Reason, detail: &str) -> String {
        if let Some(mut lease) = self.lease.take()
            && !self.is_answered
        {
            lease.answered(Evidence::Failed);
        }
        if !self.is_answered {
            self.ticket.was_told(&self.edge, reason.status(), None);
        }
        self.closed(detail);
        Refused::new(reason, lost_message(reason)).message(&mut self.ticket)
    }

    /// Its socket was closed by upstream in due form: nobody's fault that anybody knows of.
    pub(super) fn closed(&mut self, detail: &str) {
        self.lease = None;
        self.ticket.settle(Ended {
            response_bytes: self.bytes,
            error: Some(detail.into()),
            ..Ended::with(Outcome::Broken)
        });
    }

    /// Its message goes out on the socket that there is.
    pub(super) fn sent(&mut self) {
        self.sent_at = Instant::now();
        self.ticket.live.attempt();
    }

    /// Nothing was sent after all: it gives its slots back, to be asked for anew.
    pub(super) fn resume(self) -> Ticket {
        self.ticket
    }
}

fn lost_message(reason: Reason) -> &'static str {
    match reason {
        Reason::UpstreamTimeout => {
            "Nothing came from the provider for longer than the idle limit; the request was not repeated."
        }
        _ => {
            "The connection to the provider broke before the response was complete; the request was not repeated."
        }
    }
}
