//! How a request ended and why, in words and signs.
use super::super::shell::Shell;
use crate::domain::{
    ledger::{Entry, Outcome},
    reason::Reason,
};

/// What is shown for what is not known.
pub(super) const UNKNOWN: &str = "–";

/// How a request ended, as a badge shows it.
pub(super) struct Ended {
    pub(super) token: &'static str,
    pub(super) icon: &'static str,
    pub(super) text: String,
}

impl Ended {
    pub(super) fn new(shell: &Shell, ended: Outcome) -> Self {
        let (token, icon) = match ended {
            Outcome::Ok => ("ok", "ok"),
            Outcome::Refused => ("warn", "disabled"),
            Outcome::Failed => ("bad", "failed"),
            Outcome::Broken => ("bad", "resting"),
            Outcome::ClientGone => ("off", "leave"),
        };
        let text = outcome(shell, ended);
        Self { token, icon, text }
    }
}

/// The outcome's word.
pub(super) fn outcome(shell: &Shell, outcome: Outcome) -> String {
    let key = match outcome {
        Outcome::Ok => "outcome-ok",
        Outcome::Refused => "outcome-refused",
        Outcome::Failed => "outcome-failed",
        Outcome::Broken => "outcome-broken",
        Outcome::ClientGone => "outcome-client-gone",
    };
    shell.t(key).to_string()
}

/// What the outcome means, for a request of which no reason is known.
pub(super) fn meaning(shell: &Shell, outcome: Outcome) -> String {
    let key = match outcome {
        Outcome::Ok => "outcome-ok-meaning",
        Outcome::Refused => "outcome-refused-meaning",
        Outcome::Failed => "outcome-failed-meaning",
        Outcome::Broken => "outcome-broken-meaning",
        Outcome::ClientGone => "outcome-client-gone-meaning",
    };
    shell.t(key).to_string()
}

/// Why fairlane itself refused or ended a request.
pub(super) fn reason(shell: &Shell, reason: Reason) -> String {
    let key = match reason {
        Reason::AccountStreamCap => "reason-account-stream-cap",
        Reason::AccountCreateCap => "reason-account-create-cap",
        Reason::CredentialCap => "reason-credential-cap",
        Reason::AccountCooling => "reason-account-cooling",
        Reason::UsageLimitReached => "reason-usage-limit-reached",
        Reason::OwnerUnavailable => "reason-owner-unavailable",
        Reason::OwnerConflict => "reason-owner-conflict",
        Reason::OwnerSaturated => "reason-owner-saturated",
        Reason::AccountJobCap => "reason-account-job-cap",
        Reason::ApiKeyStreamFairShare => "reason-api-key-stream-fair-share",
        Reason::KeyRateLimited => "reason-key-rate-limited",
        Reason::KeyBudgetExhausted => "reason-key-budget-exhausted",
        Reason::KeyConcurrencyCap => "reason-key-concurrency-cap",
        Reason::QueueFull => "reason-queue-full",
        Reason::StoreUnavailable => "reason-store-unavailable",
        Reason::InvalidClientKey => "reason-invalid-client-key",
        Reason::ClientKeyExpired => "reason-client-key-expired",
        Reason::ModelNotAllowed => "reason-model-not-allowed",
        Reason::ModelNotFound => "reason-model-not-found",
        Reason::OwnerUnknown => "reason-owner-unknown",
        Reason::NoServiceableAccount => "reason-no-serviceable-account",
        Reason::UpstreamUnreachable => "reason-upstream-unreachable",
        Reason::UpstreamAmbiguous => "reason-upstream-ambiguous",
        Reason::UpstreamTimeout => "reason-upstream-timeout",
        Reason::ShuttingDown => "reason-shutting-down",
        Reason::InvalidRequest => "reason-invalid-request",
        Reason::RequestTooLarge => "reason-request-too-large",
        Reason::UnsupportedEncoding => "reason-unsupported-encoding",
        Reason::PathNotFound => "reason-path-not-found",
        Reason::MethodNotAllowed => "reason-method-not-allowed",
        Reason::UpgradeRequired => "reason-upgrade-required",
        Reason::Internal => "reason-internal",
    };
    shell.t(key).to_string()
}

/// The status that the client got. It is a code, so that its digits are never grouped.
pub(super) fn status(entry: &Entry) -> String {
    let status = entry.status.map(|status| status.to_string());
    status.unwrap_or_else(|| UNKNOWN.to_owned())
}

#[cfg(test)]
pub(super) fn entry(outcome: Outcome) -> Entry {
    use crate::domain::{
        ids::{AccountId, KeyId, RequestId},
        protocol::Protocol,
    };
    Entry {
        id: RequestId::from_u128(1_700_000_000_000 << 80),
        started_at: 1_700_000_000_000,
        key: Some(KeyId::from_u128(1)),
        account: Some(AccountId::from_u128(2)),
        credential: None,
        endpoint: None,
        protocol: Some(Protocol::OpenAi),
        method: "POST".into(),
        path: "/v1/chat/completions".into(),
        model: Some("gpt-4o-mini".into()),
        upstream_model: None,
        status: Some(200),
        reason: None,
        outcome,
        attempts: 1,
        request_bytes: 1,
        response_bytes: 20_480,
        queued_ms: Some(40),
        headers_ms: Some(400),
        first_byte_ms: Some(440),
        total_ms: Some(2000),
        input_tokens: Some(1204),
        output_tokens: None,
        cached_tokens: None,
        upstream_request_id: Some("up-1".into()),
        error: None,
    }
}
