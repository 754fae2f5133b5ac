//! What is remembered of one request after it has ended.
//!
//! Invariant: an [`Entry`] holds no secret and no query string; `None` means unknown, never zero.
use super::{
    ids::{AccountId, CredentialId, EndpointId, KeyId, RequestId},
    protocol::Protocol,
    reason::Reason,
};
use std::{borrow::Cow, sync::Arc};

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Upstream's answer reached the client whole.
    Ok,
    /// fairlane refused it.
    Refused,
    /// Upstream answered with an error, or could not be reached.
    Failed,
    /// The answer broke off, or ended without its protocol's last event.
    Broken,
    /// The client left before the end.
    ClientGone,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 5] = [
        Self::Ok,
        Self::Refused,
        Self::Failed,
        Self::Broken,
        Self::ClientGone,
    ];

    /// The word in API, pages and columns.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Broken => "broken",
            Self::ClientGone => "client_gone",
        }
    }

    /// The outcome of that [`name`](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|o| o.name() == name)
    }
}

/// One row of the request log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The request; ascending, so that it is also the order of the log.
    pub id: RequestId,
    /// When it arrived, in milliseconds since 1970.
    pub started_at: i64,
    /// The client key; `None` for keyless requests and unknown keys.
    pub key: Option<KeyId>,
    /// The account of the last attempt.
    pub account: Option<AccountId>,
    /// The credential of the last attempt.
    pub credential: Option<CredentialId>,
    /// The endpoint of the last attempt.
    pub endpoint: Option<EndpointId>,
    /// What the request spoke.
    pub protocol: Option<Protocol>,
    /// Its method.
    pub method: Cow<'static, str>,
    /// Its path, without the query.
    pub path: Arc<str>,
    /// The model that the client asked for.
    pub model: Option<Arc<str>>,
    /// The model that upstream was asked for.
    pub upstream_model: Option<Arc<str>>,
    /// The status that the client got; `None` if it left before there was one.
    pub status: Option<u16>,
    /// Why fairlane itself refused or ended it.
    pub reason: Option<Reason>,
    /// How it ended.
    pub outcome: Outcome,
    /// How many times it was sent upstream.
    pub attempts: u32,
    /// Size of the request body.
    pub request_bytes: u64,
    /// Size of the response body, as far as it reached the client.
    pub response_bytes: u64,
    /// Time spent waiting for capacity.
    pub queued_ms: Option<u64>,
    /// Time until upstream's headers.
    pub headers_ms: Option<u64>,
    /// Time until the first byte of the response body.
    pub first_byte_ms: Option<u64>,
    /// Time until the end.
    pub total_ms: Option<u64>,
    /// Tokens that went in, as upstream reported them.
    pub input_tokens: Option<u64>,
    /// Tokens that came out, as upstream reported them.
    pub output_tokens: Option<u64>,
    /// Those of the input that upstream had cached.
    pub cached_tokens: Option<u64>,
    /// Upstream's own id of the request.
    pub upstream_request_id: Option<Arc<str>>,
    /// The beginning of an error's text, secrets masked.
    pub error: Option<Arc<str>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for outcome in Outcome::ALL {
            assert_eq!(Outcome::from_name(outcome.name()), Some(outcome));
        }
    }
}
