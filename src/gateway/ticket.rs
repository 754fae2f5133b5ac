//! Goes along with one request and tells how it ended, exactly once, whichever way that was.
//!
//! Invariant: a ticket that is dropped before it was settled belongs to a client that left, or to a
//! request that is cut off because fairlane stops.
use super::{Door, allowance::tokens};
use crate::{
    domain::{
        ids::RequestId,
        ledger::{Entry, Outcome},
        owners::Object,
        pool::{ClientKey, EdgeRef},
        protocol::Protocol,
        reason::Reason,
    },
    engine::{
        allowance::Reservation,
        live::{Live, Stage},
        owners::Maker,
    },
    protocol::usage::Usage,
};
use http::{HeaderName, response};
use std::{sync::Arc, time::Duration};

/// The status by which the field records clients that left before the answer.
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// What a client that was answered ahead has read, whatever came of its request.
const COMMITTED: u16 = 200;

const UPSTREAM_REQUEST_IDS: [HeaderName; 2] = [
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("request-id"),
];

/// One request's companion.
pub(super) struct Ticket {
    pub(super) live: Live,
    door: Arc<Door>,
    protocol: Protocol,
    operation: &'static str,
    entry: Option<Box<Entry>>,
    reservation: Option<Reservation>,
}

impl Ticket {
    pub(super) fn new(door: &Arc<Door>, opening: Opening<'_>) -> Self {
        let id = RequestId::from_u128(crate::entropy::uuid7());
        let live = door.desk.enter(id, opening.is_traced);
        let entry = Entry {
            id,
            started_at: live.received_unix_ms,
            key: None,
            account: None,
            credential: None,
            endpoint: None,
            protocol: Some(opening.protocol),
            method: opening.method.into(),
            path: opening.path.into(),
            model: None,
            upstream_model: None,
            status: None,
            reason: None,
            outcome: Outcome::ClientGone,
            attempts: 0,
            request_bytes: 0,
            response_bytes: 0,
            queued_ms: None,
            headers_ms: None,
            first_byte_ms: None,
            total_ms: None,
            input_tokens: None,
            output_tokens: None,
            cached_tokens: None,
            upstream_request_id: None,
            error: None,
        };
        Self {
            live,
            door: Arc::clone(door),
            protocol: opening.protocol,
            operation: opening.operation,
            entry: Some(Box::new(entry)),
            reservation: None,
        }
    }

    pub(super) fn id(&self) -> RequestId {
        self.live.id
    }

    pub(super) fn door(&self) -> &Door {
        &self.door
    }

    pub(super) fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The answer has made these, on that edge.
    pub(super) fn learns(&self, made: Vec<Object>, edge: &EdgeRef) {
        if !made.is_empty() {
            let key = self.entry.as_ref().and_then(|entry| entry.key);
            let maker = Maker::at(key, edge);
            self.door.gateway.owners.learned(made, maker);
        }
    }

    /// Nothing is to be recorded: what this was about is recorded elsewhere.
    pub(super) fn withdraw(&mut self) {
        self.entry = None;
    }

    fn note(&mut self, note: impl FnOnce(&mut Entry)) {
        if let Some(entry) = &mut self.entry {
            note(entry);
        }
    }

    pub(super) fn is_from(&mut self, key: Option<&Arc<ClientKey>>) {
        self.live.reach(Stage::Authenticated);
        if let Some(key) = key {
            self.live.is_from(key.id);
        }
        self.note(|r| r.key = key.map(|k| k.id));
    }

    /// The client key's reservation goes along to the end, and is settled there.
    pub(super) fn holds(&mut self, reservation: Option<Reservation>) {
        self.reservation = reservation;
    }

    pub(super) fn asks_for(&mut self, model: Option<&Arc<str>>, request_bytes: u64) {
        self.live.reach(Stage::Parsed);
        self.note(|r| {
            r.model = model.cloned();
            r.request_bytes = request_bytes;
        });
    }

    pub(super) fn was_answered_by(&mut self, edge: &EdgeRef, head: &response::Parts) {
        let request_id = UPSTREAM_REQUEST_IDS
            .iter()
            .find_map(|name| head.headers.get(name)?.to_str().ok());
        self.was_told(edge, head.status.as_u16(), request_id);
    }

    /// The same where the answer is not one of HTTP, or only half of it.
    pub(super) fn was_told(&mut self, edge: &EdgeRef, status: u16, request_id: Option<&str>) {
        self.live.reach(Stage::UpstreamHeaders);
        self.note(|r| {
            r.account = edge.accounts().next().map(|a| a.id);
            r.credential = Some(edge.credential().id);
            r.endpoint = Some(edge.endpoint().id);
            r.status = Some(status);
            r.upstream_request_id = request_id.map(Into::into);
            if let Some(model) = &r.model {
                let asked = edge.upstream_model(model);
                r.upstream_model = (asked != &**model).then(|| asked.into());
            }
        });
    }

    /// The request is over. `end` completes the record; what is called later has no effect.
    pub(super) fn settle(&mut self, mut end: Ended) {
        let Some(mut entry) = self.entry.take() else {
            return;
        };
        if end.outcome == Outcome::ClientGone && self.door.gateway.live.is_cut_off() {
            end.outcome = Outcome::Broken;
            end.reason = Some(Reason::ShuttingDown);
        }
        if let Some(reservation) = self.reservation.take() {
            reservation.settle(tokens(&end.tokens));
        }
        self.live.reach(Stage::Finished);
        entry.outcome = end.outcome;
        entry.status = end.status.or(entry.status);
        if self.live.is_committed() {
            entry.status = Some(COMMITTED);
        }
        entry.reason = end.reason;
        entry.attempts = self.live.attempts();
        entry.response_bytes = end.response_bytes;
        entry.input_tokens = end.tokens.input;
        entry.output_tokens = end.tokens.output;
        entry.cached_tokens = end.tokens.cached;
        entry.error = end.error.map(Into::into);
        let ms = |stage| self.live.micros(stage).map(|us| us / 1000);
        entry.queued_ms = self
            .parked_for()
            .map(|d| d.as_secs() * 1000 + u64::from(d.subsec_millis()));
        entry.headers_ms = ms(Stage::UpstreamHeaders);
        entry.first_byte_ms = ms(Stage::FirstByte);
        entry.total_ms = ms(Stage::Finished);
        self.count(&entry);
        self.log(&entry);
        self.door.gateway.ledger.keep(entry);
    }

    fn parked_for(&self) -> Option<Duration> {
        let from = self.live.micros(Stage::Parked)?;
        let to = self
            .live
            .micros(Stage::Admitted)
            .or_else(|| self.live.micros(Stage::Finished))?;
        Some(micros(to.saturating_sub(from)))
    }

    fn count(&self, entry: &Entry) {
        let metrics = &self.door.gateway.metrics;
        let took = self
            .live
            .micros(Stage::Finished)
            .map_or(Duration::ZERO, micros);
        let status = entry.status.unwrap_or(CLIENT_CLOSED_REQUEST);
        metrics.answered(self.protocol, status, took);
        if let Some(us) = self.live.micros(Stage::FirstByte) {
            metrics.first_byte(micros(us));
        }
        if let Some(reason) = entry.reason {
            metrics.refused(reason);
        }
        if let Some(waited) = self.parked_for() {
            metrics.waited(waited);
        }
        metrics.tokens(
            entry.input_tokens.unwrap_or(0),
            entry.output_tokens.unwrap_or(0),
        );
    }

    /// What an operator must see is logged; the rest is in the ledger, and here for those who ask.
    fn log(&self, entry: &Entry) {
        let (protocol, operation) = (self.protocol.name(), self.operation);
        let key = entry.key.map(tracing::field::display);
        let (status, ms) = (entry.status, entry.total_ms);
        let reason = entry.reason.map(Reason::code);
        let error = entry.error.as_deref();
        let ending = entry.outcome.name();
        // What upstream says of the client's own request is no trouble of the operator's.
        let is_clients = status.is_some_and(|s| (400..500).contains(&s));
        match entry.outcome {
            Outcome::Failed if is_clients => tracing::info!(
                request = %entry.id, key, protocol, operation, status, ms, error, ending,
                "upstream refused a request"
            ),
            Outcome::Failed | Outcome::Broken => tracing::warn!(
                request = %entry.id, key, protocol, operation, status, reason, ms, error, ending,
                "a request went wrong"
            ),
            Outcome::Refused => tracing::info!(
                request = %entry.id, key, protocol, operation, status, reason, ms, error,
                "a request was refused"
            ),
            Outcome::Ok | Outcome::ClientGone => tracing::debug!(
                request = %entry.id, key, protocol, operation, status, ms, ending,
                "a request ended"
            ),
        }
    }
}

fn micros(us: u64) -> Duration {
    Duration::from_micros(us)
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.settle(Ended::with(Outcome::ClientGone));
    }
}

/// What a ticket begins with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opening<'a> {
    pub(super) protocol: Protocol,
    pub(super) operation: &'static str,
    pub(super) method: &'static str,
    pub(super) path: &'a str,
    pub(super) is_traced: bool,
}

/// How a request ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) outcome: Outcome,
    pub(super) status: Option<u16>,
    pub(super) reason: Option<Reason>,
    pub(super) response_bytes: u64,
    pub(super) tokens: Usage,
    pub(super) error: Option<Box<str>>,
}

impl Ended {
    pub(super) fn with(outcome: Outcome) -> Self {
        Self {
            outcome,
            status: None,
            reason: None,
            response_bytes: 0,
            tokens: Usage::default(),
            error: None,
        }
    }
}
