//! The one vocabulary for why a request got the answer it got from fairlane itself.
//!
//! Invariant: every refusal of fairlane's own carries exactly one [`Reason`]; its code is what
//! clients, logs, metrics and the ledger show.

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $status:literal;)*) => {
        /// Why fairlane itself refused or ended a request.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Reason {
            $($(#[$doc])* $name,)*
        }

        impl Reason {
            /// Every reason, in the order of the contract.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The code, as in the header `x-fairlane-reason`.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// The HTTP status that goes with it.
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }
        }
    };
}

reasons! {
    /// Every candidate is at its cap of streams.
    AccountStreamCap = "account_stream_cap", 429;
    /// Every candidate is at its cap of requests being started.
    AccountCreateCap = "account_create_cap", 429;
    /// Every candidate is at its cap of jobs.
    AccountJobCap = "account_job_cap", 429;
    /// Every candidate's credential is at its own cap.
    CredentialCap = "credential_cap", 429;
    /// Every candidate cools, or awaits the answer of the one request that was let through.
    AccountCooling = "account_cooling", 429;
    /// Every candidate's quota is used up until a known time.
    UsageLimitReached = "usage_limit_reached", 429;
    /// The pool is tight, and the key holds its share of it.
    ApiKeyStreamFairShare = "api_key_stream_fair_share", 429;
    /// The only account that knows the named state is at its cap.
    OwnerSaturated = "owner_saturated", 429;
    /// The key has as many requests parked as it may.
    QueueFull = "queue_full", 429;
    /// The key has sent as many requests in a minute as it may.
    KeyRateLimited = "key_rate_limited", 429;
    /// The key has used as many tokens in a day as it may.
    KeyBudgetExhausted = "key_budget_exhausted", 429;
    /// The key has as many requests in flight as it may.
    KeyConcurrencyCap = "key_concurrency_cap", 429;
    /// Something durable was asked for and the disk refuses.
    StoreUnavailable = "store_unavailable", 503;
    /// No such client key, or none given.
    InvalidClientKey = "invalid_client_key", 401;
    /// The client key's time is over.
    ClientKeyExpired = "client_key_expired", 401;
    /// The model is outside the key's scope.
    ModelNotAllowed = "model_not_allowed", 403;
    /// No edge serves the model.
    ModelNotFound = "model_not_found", 404;
    /// The id names state that fairlane has never seen, and more than one account could own it.
    OwnerUnknown = "owner_unknown", 404;
    /// The account that owns the named state takes no new work, or is gone.
    OwnerUnavailable = "owner_unavailable", 503;
    /// The request names state of two accounts.
    OwnerConflict = "owner_conflict", 409;
    /// Edges exist, but all are disabled, draining or broken.
    NoServiceableAccount = "no_serviceable_account", 503;
    /// No connection to upstream could be made; nothing was sent.
    UpstreamUnreachable = "upstream_unreachable", 502;
    /// The request left, and its outcome is unknown; it is not sent again.
    UpstreamAmbiguous = "upstream_ambiguous", 502;
    /// Upstream did not answer, or fell silent, within its time limit.
    UpstreamTimeout = "upstream_timeout", 504;
    /// fairlane is stopping.
    ShuttingDown = "shutting_down", 503;
    /// The request lacks something that its operation needs.
    InvalidRequest = "invalid_request", 400;
    /// The body is over `request_body_limit_mb`.
    RequestTooLarge = "request_too_large", 413;
    /// The body's `Content-Encoding` is not one that fairlane can look into.
    UnsupportedEncoding = "unsupported_encoding", 415;
    /// No such path under the data plane.
    PathNotFound = "path_not_found", 404;
    /// The path exists, the method does not.
    MethodNotAllowed = "method_not_allowed", 405;
    /// The path speaks WebSocket, and no edge can serve that.
    UpgradeRequired = "upgrade_required", 426;
    /// A fault of fairlane's own; the log has it under the request id.
    Internal = "internal", 500;
}

impl Reason {
    /// Whether repeating the same request later can help. Where not, `x-should-retry: false`
    /// says so.
    pub const fn is_curable_by_repeating(self) -> bool {
        match self {
            Self::AccountStreamCap
            | Self::AccountCreateCap
            | Self::AccountJobCap
            | Self::CredentialCap
            | Self::ApiKeyStreamFairShare
            | Self::KeyRateLimited
            | Self::KeyConcurrencyCap
            | Self::AccountCooling
            | Self::UsageLimitReached
            | Self::OwnerSaturated
            | Self::OwnerUnavailable
            | Self::QueueFull
            | Self::StoreUnavailable
            | Self::NoServiceableAccount
            | Self::UpstreamUnreachable
            | Self::ShuttingDown => true,
            Self::KeyBudgetExhausted
            | Self::InvalidClientKey
            | Self::ClientKeyExpired
            | Self::ModelNotAllowed
            | Self::ModelNotFound
            | Self::OwnerUnknown
            | Self::OwnerConflict
            | Self::UpstreamAmbiguous
            | Self::UpstreamTimeout
            | Self::InvalidRequest
            | Self::RequestTooLarge
            | Self::UnsupportedEncoding
            | Self::PathNotFound
            | Self::MethodNotAllowed
            | Self::UpgradeRequired
            | Self::Internal => false,
        }
    }

    /// The reason of that [`code`](Self::code).
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|r| r.code() == code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_read_back() {
        for reason in Reason::ALL {
            assert_eq!(Reason::from_code(reason.code()), Some(*reason));
        }
    }

    #[test]
    fn every_429_and_503_but_a_spent_budget_can_be_cured_by_repeating() {
        for reason in Reason::ALL {
            if matches!(reason.status(), 429 | 503) {
                let is_budget = *reason == Reason::KeyBudgetExhausted;
                assert_eq!(reason.is_curable_by_repeating(), !is_budget, "{reason:?}");
            }
        }
    }
}
