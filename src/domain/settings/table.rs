//! Every setting, declared once.
use super::{Declaration, Group, Kind, Name, Preset};
use crate::domain::admission::Strategy;

const fn row(
    name: Name,
    key: &'static str,
    (kind, default): (Kind, Preset),
    group: Group,
    about: &'static str,
) -> Declaration {
    Declaration {
        name,
        key,
        kind,
        default,
        group,
        about,
    }
}

const fn int(default: i64, min: i64, max: i64) -> (Kind, Preset) {
    (Kind::Integer { min, max }, Preset::Integer(default))
}

const fn switch(default: bool) -> (Kind, Preset) {
    (Kind::Switch, Preset::Switch(default))
}

/// The first word is the default.
const fn word(accepted: &'static [&'static str]) -> (Kind, Preset) {
    (Kind::Word { accepted }, Preset::Text(accepted[0]))
}

/// Every setting there is, in the order of [`Name`].
#[rustfmt::skip]
pub const TABLE: &[Declaration] = &[
    row(Name::AccountStreamLimit, "account_stream_limit", int(8, 0, 100_000), Group::Capacity,
        "Streams that one account may carry at once; 0 means unlimited."),
    row(Name::AccountCreateLimit, "account_create_limit", int(4, 0, 100_000), Group::Capacity,
        "Requests that one account may be starting at once; 0 means unlimited."),
    row(Name::AccountJobLimit, "account_job_limit", int(2, 0, 100_000), Group::Capacity,
        "Jobs that one account may carry at once; 0 means unlimited."),
    row(Name::AccountStreamReserve, "account_stream_reserve", int(1, 0, 1000), Group::Capacity,
        "Stream slots of every account that are kept for clients coming back to a running response."),
    row(Name::CapacityWaitSeconds, "capacity_wait_seconds", int(30, 0, 7200), Group::Capacity,
        "How long a request may wait for a free slot; 0 means that it is refused at once."),
    row(Name::WaitersPerKey, "waiters_per_key", int(200, 0, 100_000), Group::Capacity,
        "How many requests of one client key may wait at once."),
    row(Name::ParkCommitSeconds, "park_commit_seconds", int(45, 1, 600), Group::Capacity,
        "After so many seconds of waiting a streaming request is answered and kept alive until its turn comes; of use where capacity_wait_seconds is longer."),
    row(Name::FairShareCongestionThresholdPct, "fair_share_congestion_threshold_pct", int(0, 0, 100), Group::Capacity,
        "From how many percent of its capacity in use on the pool is shared out by the weights of the client keys that want it; 0 means never."),
    row(Name::MaxAttempts, "max_attempts", int(3, 1, 10), Group::Routing,
        "How many accounts one request may be tried on."),
    row(Name::SelectionStrategy, "selection_strategy", word(&Strategy::WORDS), Group::Routing,
        "Which account takes a request among those that can: least_loaded, round_robin or fill_first."),
    row(Name::AffinityTtlSeconds, "affinity_ttl_seconds", int(1800, 0, 86_400), Group::Routing,
        "How long a conversation prefers the account that it was on, so that caches there still help; 0 means not at all."),
    row(Name::RetryUpstream5xx, "retry_upstream_5xx", switch(false), Group::Routing,
        "Whether a request also moves on after a 500, 502, 504, 520, 524 or 527, though the work may have been done and billed."),
    row(Name::BreakerFailureThreshold, "breaker_failure_threshold", int(5, 1, 100), Group::Routing,
        "How many failures in a row make an endpoint rest for a minute."),
    row(Name::ConnectTimeoutSeconds, "connect_timeout_seconds", int(10, 1, 7200), Group::Timeouts,
        "Time to connect to upstream, TLS included."),
    row(Name::HeaderTimeoutSeconds, "header_timeout_seconds", int(600, 1, 7200), Group::Timeouts,
        "Time until upstream's response headers arrive."),
    row(Name::IdleTimeoutSeconds, "idle_timeout_seconds", int(300, 1, 7200), Group::Timeouts,
        "Longest silence inside a response; there is no limit on its whole length."),
    row(Name::RequestBodyLimitMb, "request_body_limit_mb", int(64, 1, 1024), Group::Clients,
        "Largest request body, in MiB."),
    row(Name::RequireClientKey, "require_client_key", switch(true), Group::Clients,
        "Whether requests without a client key are refused."),
    row(Name::CorsAllowedOrigins, "cors_allowed_origins", (Kind::Origins, Preset::Text("*")), Group::Clients,
        "Origins whose browsers may call the data plane: * or a comma-separated list."),
    row(Name::RequestLogRetentionDays, "request_log_retention_days", int(14, 0, 3650), Group::Operation,
        "How long the request log is kept; 0 means that nothing is kept."),
    row(Name::StageTrace, "stage_trace", switch(false), Group::Operation,
        "Whether every stage of every request is logged."),
    row(Name::ShutdownGraceSeconds, "shutdown_grace_seconds", int(30, 0, 3600), Group::Operation,
        "How long requests in flight may go on after a stop was asked for."),
    row(Name::SessionTtlHours, "session_ttl_hours", int(24, 1, 720), Group::Operation,
        "How long a login to the dashboard lasts."),
];
