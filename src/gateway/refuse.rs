//! fairlane's own answers: in the protocol's shape, with the reason in a header, in words that say
//! which limit, how much of it is used, and what would help.
//!
//! Invariant: no text names another key, a secret, an address or an account.
use super::{
    Reply,
    intake::IntakeError,
    ticket::{Ended, Ticket},
};
use crate::{
    domain::{
        admission::Refusal, ledger::Outcome, protocol::Protocol, reason::Reason, settings::Name,
    },
    engine::{
        admission::{Denied, RETRY_AFTER_MAX_SECONDS},
        dispatch::Undelivered,
    },
    protocol::{errors, operation::Operation},
};
use http::{HeaderName, HeaderValue, Response, StatusCode, header};

const REASON: HeaderName = HeaderName::from_static("x-fairlane-reason");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What is said of what no edge can serve over WebSocket.
pub(super) const NO_WEBSOCKET: &str =
    "No account can serve this over WebSocket; send it as an HTTP request.";

/// What is said of things that nobody, or another key, is known to have made.
const UNKNOWN: &str = "Nothing is known here of what this request refers to.";

/// A refusal in the making.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) reason: Reason,
    pub(super) message: String,
    /// When to come again, in seconds, before spreading.
    pub(super) retry_after: Option<u64>,
    /// When that will help, in seconds since 1970, where it is later than clients may be told to wait.
    pub(super) resets_at: Option<i64>,
    /// The methods that the path has.
    pub(super) allow: Option<&'static str>,
    /// What happened, for ledger and log alone.
    pub(super) detail: Option<String>,
    /// Whether nobody is there any more to read it.
    pub(super) is_too_late: bool,
    /// Whether it is about the response that the request continues.
    pub(super) is_continued: bool,
    /// Whether repeating the request would not help, whatever the reason usually means.
    pub(super) is_final: bool,
}

impl Refused {
    pub(super) fn new(reason: Reason, message: impl Into<String>) -> Self {
        let is_worth_repeating = matches!(reason.status(), 429 | 503);
        Self {
            reason,
            message: message.into(),
            retry_after: is_worth_repeating.then_some(1),
            resets_at: None,
            allow: None,
            detail: None,
            is_too_late: false,
            is_continued: false,
            is_final: false,
        }
    }

    /// What the request refers to is unknown, or nothing that this key made; both read alike.
    pub(super) fn owner_unknown() -> Self {
        Self::new(Reason::OwnerUnknown, UNKNOWN)
    }

    /// The account that holds what the request refers to does not take it.
    pub(super) fn owner_unavailable() -> Self {
        Self::new(
            Reason::OwnerUnavailable,
            "The account that holds what this request refers to takes no new requests.",
        )
    }

    /// The account that held what the request refers to is gone.
    pub(super) fn owner_gone(is_continued: bool) -> Self {
        Self {
            is_continued,
            is_final: true,
            ..Self::new(
                Reason::OwnerUnavailable,
                "The account that held what this request refers to is gone.",
            )
        }
    }

    /// The answer, and the end of the ticket. A client that was answered ahead gets it as the event
    /// that ends the stream of `operation`; then only the body counts.
    pub(super) fn answer(
        self,
        ticket: &mut Ticket,
        operation: Option<Operation>,
    ) -> Response<Reply> {
        let protocol = ticket.protocol();
        let response = match operation.filter(|_| ticket.live.is_committed()) {
            Some(operation) => self.event(protocol, operation),
            None => self.response(protocol, &ticket.id().to_string()),
        };
        self.settle(ticket);
        response
    }

    /// The same as a message on an open WebSocket, and the end of the ticket.
    pub(super) fn message(self, ticket: &mut Ticket) -> String {
        let message = errors::socket_message(&self.refusal());
        self.settle(ticket);
        message
    }

    fn settle(self, ticket: &mut Ticket) {
        if self.is_too_late {
            return ticket.settle(Ended::with(Outcome::ClientGone));
        }
        let reason = self.reason;
        let is_upstreams = matches!(
            reason,
            Reason::UpstreamAmbiguous | Reason::UpstreamUnreachable | Reason::UpstreamTimeout
        );
        let ending = if is_upstreams {
            Outcome::Failed
        } else {
            Outcome::Refused
        };
        ticket.settle(Ended {
            status: Some(reason.status()),
            reason: Some(reason),
            error: self.detail.map(Into::into),
            ..Ended::with(ending)
        });
    }

    /// What the client is told, with its wait spread.
    fn refusal(&self) -> errors::Refusal<'_> {
        let seconds = self.retry_after.map(spread);
        errors::Refusal {
            retry_after_secs: seconds.and_then(|s| u32::try_from(s).ok()),
            resets_at: self.resets_at,
            ..if self.is_continued {
                errors::Refusal::not_continuable(self.reason, &self.message)
            } else {
                errors::Refusal::new(self.reason, &self.message)
            }
        }
    }

    fn event(&self, protocol: Protocol, operation: Operation) -> Response<Reply> {
        let event = errors::sse_event(protocol, operation, &self.refusal());
        Response::new(Reply::whole(event))
    }

    fn response(&self, protocol: Protocol, request_id: &str) -> Response<Reply> {
        let refusal = self.refusal();
        let body = errors::body(protocol, &refusal);
        let mut response = Response::new(Reply::whole(body));
        *response.status_mut() =
            StatusCode::from_u16(self.reason.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        headers.insert(REASON, HeaderValue::from_static(self.reason.code()));
        if let Ok(id) = HeaderValue::from_str(request_id) {
            headers.insert(REQUEST_ID, id);
        }
        if let Some(seconds) = refusal.retry_after_secs {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.is_final || !self.reason.is_curable_by_repeating() {
            headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        if let Some(allow) = self.allow {
            headers.insert(header::ALLOW, HeaderValue::from_static(allow));
        }
        response
    }
}

/// Adds up to a fifth, so that clients which were refused together do not return together.
fn spread(seconds: u64) -> u64 {
    let seconds = seconds.clamp(1, RETRY_AFTER_MAX_SECONDS);
    let extra = u64::from(crate::entropy::byte()) * seconds.div_ceil(5) / 255;
    (seconds + extra).min(RETRY_AFTER_MAX_SECONDS)
}

impl From<IntakeError> for Refused {
    fn from(error: IntakeError) -> Self {
        match error {
            IntakeError::TooLarge(limit) => Self::new(
                Reason::RequestTooLarge,
                format!(
                    "The request body is over the limit of {} MiB; the setting {} raises it.",
                    limit >> 20,
                    Name::RequestBodyLimitMb.declaration().key
                ),
            ),
            IntakeError::Unreadable(error) => {
                Self::new(error.reason(), sentence(&error.to_string()))
            }
            IntakeError::Gone => Self {
                is_too_late: true,
                ..Self::incomplete()
            },
            IntakeError::Incomplete => Self::incomplete(),
            IntakeError::Disk(error) => Self {
                detail: Some(error.to_string()),
                ..Self::new(
                    Reason::StoreUnavailable,
                    "The request body is too large to be kept in memory now, and the disk refuses it.",
                )
            },
        }
    }
}

impl From<Undelivered> for Refused {
    fn from(error: Undelivered) -> Self {
        match error {
            Undelivered::Denied(denied) => Self::from_denied(&denied),
            Undelivered::Failed { reason, detail } => Self {
                detail: Some(detail),
                ..Self::new(reason, failure_message(reason))
            },
        }
    }
}

impl Refused {
    fn incomplete() -> Self {
        Self::new(
            Reason::InvalidRequest,
            "The request body did not arrive whole.",
        )
    }

    fn from_denied(denied: &Denied) -> Self {
        let mut refused = Self::new(denied.refusal.reason, denied_message(denied));
        if refused.retry_after.is_some() {
            refused.retry_after = Some(denied.retry_after_seconds);
            refused.resets_at = later_reset(denied);
        }
        refused
    }
}

/// When a candidate is expected to be free again, if that is later than `Retry-After` may say.
fn later_reset(denied: &Denied) -> Option<i64> {
    let is_later = |ms: &u64| *ms > RETRY_AFTER_MAX_SECONDS * 1000;
    let ms = denied.free_in_ms.filter(is_later)?;
    let at = crate::clock::unix_millis().checked_add(i64::try_from(ms).ok()?)?;
    Some(at.div_euclid(1000) + 1)
}

fn failure_message(reason: Reason) -> &'static str {
    match reason {
        Reason::UpgradeRequired => NO_WEBSOCKET,
        Reason::UpstreamUnreachable => {
            "No connection to the provider could be made; the request was not sent."
        }
        Reason::UpstreamTimeout => {
            "The provider did not answer in time; the request may have been carried out and was not repeated."
        }
        _ => {
            "The connection to the provider broke before an answer came; the request may have been carried out and was not repeated."
        }
    }
}

fn denied_message(denied: &Denied) -> String {
    let Refusal {
        reason,
        limit,
        candidates,
        disabled,
        draining,
        resting,
        ..
    } = denied.refusal;
    let free_in = denied.free_in_ms.map_or(0, |ms| ms.div_ceil(1000));
    let waited = match denied.waited.as_secs() {
        0 => String::new(),
        seconds => format!(" It waited {seconds} s."),
    };
    let (cap, used) = limit.unwrap_or_default();
    match reason {
        Reason::AccountStreamCap => format!(
            "Every account that could take this request carries as many streams as it may ({used} of {cap}).{waited} A higher stream limit or another account would help."
        ),
        Reason::AccountCreateCap => format!(
            "Every account that could take this request is starting as many requests as it may ({used} of {cap}).{waited} A higher create limit or another account would help."
        ),
        Reason::AccountJobCap => format!(
            "Every account that could take this request carries as many jobs as it may ({used} of {cap}).{waited} A higher job limit or another account would help."
        ),
        Reason::ApiKeyStreamFairShare => format!(
            "The pool is busy, and this key holds {used} streams of a share of {cap}.{waited} It gets another as soon as it ends one or the pool is less busy; a higher weight of this key or a larger pool would help."
        ),
        Reason::CredentialCap => format!(
            "Every credential that could take this request is at its own limit ({used} of {cap}).{waited} A higher limit or another credential would help."
        ),
        Reason::OwnerSaturated => format!(
            "The account that holds what this request refers to is at its limit ({used} of {cap}).{waited}"
        ),
        Reason::QueueFull => format!(
            "This key has {used} requests waiting, and at most {cap} may wait; the setting waiters_per_key raises that."
        ),
        Reason::NoServiceableAccount => format!(
            "No account can take this request now: of {candidates} that could, {disabled} are disabled, {draining} are draining and {resting} rest after failures of their endpoint."
        ),
        Reason::AccountCooling => format!(
            "Every account that could take this request was told by its provider to wait; the first is expected to be free in {free_in} s.{waited} Another account would help."
        ),
        Reason::UsageLimitReached => format!(
            "The quota of every account that could take this request is used up; the first is expected to be free in {free_in} s. Another account would help."
        ),
        Reason::OwnerUnavailable => Refused::owner_unavailable().message,
        Reason::OwnerUnknown => UNKNOWN.to_owned(),
        Reason::ShuttingDown => "This gateway is stopping.".to_owned(),
        Reason::InvalidClientKey => {
            format!("This client key was taken away.{waited}")
        }
        Reason::ModelNotAllowed => {
            format!("This client key may not use this model any more.{waited}")
        }
        _ => "This request cannot be served.".to_owned(),
    }
}

/// With a capital at its start and a full stop at its end.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), chars.as_str()),
        None => String::new(),
    }
}
