//! Settings: declared once, resolved in three layers.
//!
//! Invariant: [`TABLE`] is the only list of settings; parsing, storage, API and reference follow
//! from it. A stored value is an override, and no override means "inherit": override, then
//! environment, then default.
use super::admission::Strategy;
use std::{fmt, sync::Arc};

/// Names a setting; its position in [`TABLE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(usize)]
pub enum Name {
    /// Streams at once per account; 0 = unlimited.
    AccountStreamLimit,
    /// Requests being started at once per account; 0 = unlimited.
    AccountCreateLimit,
    /// Stream slots per account kept for reattaching.
    AccountStreamReserve,
    /// How long a request may wait for capacity, in seconds; 0 = never.
    CapacityWaitSeconds,
    /// How many requests of one key may wait at once.
    WaitersPerKey,
    /// How many accounts one request may be tried on.
    MaxAttempts,
    /// By what an account is chosen among those that can take a request.
    SelectionStrategy,
    /// How long a conversation prefers the account that it was on, in seconds.
    AffinityTtlSeconds,
    /// Whether a request moves on after an answer that may have cost something.
    RetryUpstream5xx,
    /// How many failures in a row make an endpoint rest.
    BreakerFailureThreshold,
    /// Time to connect to upstream, TLS included, in seconds.
    ConnectTimeoutSeconds,
    /// Time for upstream's response headers, in seconds.
    HeaderTimeoutSeconds,
    /// Longest silence inside an upstream response, in seconds.
    IdleTimeoutSeconds,
    /// Largest request body, in MiB.
    RequestBodyLimitMb,
    /// Whether requests without a client key are refused.
    RequireClientKey,
    /// Origins whose browsers may call the data plane.
    CorsAllowedOrigins,
    /// How long ledger rows are kept, in days; 0 = none are kept.
    RequestLogRetentionDays,
    /// Whether every stage of every request is logged.
    StageTrace,
    /// How long requests in flight may go on after a stop was asked for, in seconds.
    ShutdownGraceSeconds,
    /// How long a login lasts, in hours.
    SessionTtlHours,
}

/// What kind of value a setting has, and which values are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number from `min` to `max`.
    Integer {
        /// Smallest accepted.
        min: i64,
        /// Largest accepted.
        max: i64,
    },
    /// On or off.
    Switch,
    /// One of some words.
    Word {
        /// Which.
        accepted: &'static [&'static str],
    },
    /// `*`, or origins separated by commas.
    Origins,
}

/// One value of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A whole number.
    Integer(i64),
    /// On or off.
    Switch(bool),
    /// A text.
    Text(Arc<str>),
}

/// The default, in a form that can stand in a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// A whole number.
    Integer(i64),
    /// On or off.
    Switch(bool),
    /// A text.
    Text(&'static str),
}

/// Where settings stand together on the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Caps and waiting.
    Capacity,
    /// What is done when upstream fails.
    Routing,
    /// Time limits towards upstream.
    Timeouts,
    /// What clients may do.
    Clients,
    /// Running the thing.
    Operation,
}

impl Group {
    /// Every group, in the order of the page.
    pub const ALL: [Self; 5] = [
        Self::Capacity,
        Self::Routing,
        Self::Timeouts,
        Self::Clients,
        Self::Operation,
    ];

    /// The word in API and pages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Capacity => "capacity",
            Self::Routing => "routing",
            Self::Timeouts => "timeouts",
            Self::Clients => "clients",
            Self::Operation => "operation",
        }
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// Which setting this is; equal to its position.
    pub name: Name,
    /// Its name in API, document and (in capitals, after `FAIRLANE_`) environment.
    pub key: &'static str,
    /// What it accepts.
    pub kind: Kind,
    /// What it is when nobody says anything.
    pub default: Preset,
    /// Where it stands.
    pub group: Group,
    /// What it does, in one sentence.
    pub about: &'static str,
}

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
    row(Name::AccountStreamReserve, "account_stream_reserve", int(1, 0, 1000), Group::Capacity,
        "Stream slots of every account that are kept for clients coming back to a running response."),
    row(Name::CapacityWaitSeconds, "capacity_wait_seconds", int(30, 0, 7200), Group::Capacity,
        "How long a request may wait for a free slot; 0 means that it is refused at once."),
    row(Name::WaitersPerKey, "waiters_per_key", int(200, 0, 100_000), Group::Capacity,
        "How many requests of one client key may wait at once."),
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

/// Why a value is not accepted; the text says what is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found} is not accepted; accepted: {accepted}")]
pub struct ValueError {
    /// What was given, shortened.
    pub found: String,
    /// What would be.
    pub accepted: String,
}

impl Name {
    /// This setting's row.
    pub fn declaration(self) -> &'static Declaration {
        &TABLE[self as usize]
    }

    /// The setting of that key.
    pub fn from_key(key: &str) -> Option<Self> {
        TABLE.iter().find(|d| d.key == key).map(|d| d.name)
    }
}

impl Declaration {
    /// The environment variable that sets it.
    pub fn env(&self) -> String {
        format!("FAIRLANE_{}", self.key.to_ascii_uppercase())
    }

    /// What it accepts, in words.
    pub fn accepted(&self) -> String {
        match self.kind {
            Kind::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Kind::Switch => "true or false (also on, off, 1, 0)".to_owned(),
            Kind::Word { accepted } => format!("one of {}", accepted.join(", ")),
            Kind::Origins => {
                "* or origins such as https://chat.example.com, separated by commas".to_owned()
            }
        }
    }

    /// The default as a value.
    pub fn default_value(&self) -> Value {
        match self.default {
            Preset::Integer(n) => Value::Integer(n),
            Preset::Switch(b) => Value::Switch(b),
            Preset::Text(t) => Value::Text(t.into()),
        }
    }

    /// Reads a value from text, as it stands in the environment, the store or a form.
    pub fn parse(&self, text: &str) -> Result<Value, ValueError> {
        let text = text.trim();
        let value = match self.kind {
            Kind::Integer { .. } => text.parse().ok().map(Value::Integer),
            Kind::Switch => switch_from(text).map(Value::Switch),
            Kind::Word { .. } | Kind::Origins => Some(Value::Text(text.into())),
        };
        value
            .and_then(|v| self.accept(v).ok())
            .ok_or_else(|| self.refusal(format!("\"{}\"", shortened(text))))
    }

    /// Checks a typed value against kind and range.
    pub fn accept(&self, value: Value) -> Result<Value, ValueError> {
        let accepted = match (self.kind, &value) {
            (Kind::Integer { min, max }, Value::Integer(n)) => (min..=max).contains(n),
            (Kind::Switch, Value::Switch(_)) => true,
            (Kind::Word { accepted }, Value::Text(text)) => accepted.contains(&&**text),
            (Kind::Origins, Value::Text(text)) => origins_are_valid(text),
            _ => false,
        };
        if accepted {
            Ok(value)
        } else {
            Err(self.refusal(shortened(&value.to_string())))
        }
    }

    fn refusal(&self, found: String) -> ValueError {
        ValueError {
            found,
            accepted: self.accepted(),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(n) => write!(f, "{n}"),
            Self::Switch(b) => write!(f, "{b}"),
            Self::Text(t) => f.write_str(t),
        }
    }
}

fn shortened(text: &str) -> String {
    // Long enough to recognise the value, short enough for one line of a log.
    text.chars().take(60).collect()
}

fn switch_from(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "on" | "1" | "yes" => Some(true),
        "false" | "off" | "0" | "no" => Some(false),
        _ => None,
    }
}

fn origins_are_valid(text: &str) -> bool {
    text == "*" || text.is_empty() || text.split(',').all(|o| is_origin(o.trim()))
}

/// `scheme://host[:port]` without a path, as browsers send it.
fn is_origin(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, rest)| {
        matches!(scheme, "http" | "https")
            && !rest.is_empty()
            && rest
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b".-:[]".contains(&b))
    })
}

/// Which layer a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nobody said anything.
    Default,
    /// The environment.
    Environment,
    /// The operator.
    Override,
}

impl Source {
    /// The word in API and pages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Environment => "environment",
            Self::Override => "override",
        }
    }
}

/// A value that knows where it came from and what clearing it would leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// What is in force.
    pub value: Value,
    /// Which layer said so.
    pub source: Source,
    /// What would be in force without the override.
    pub inherited: Value,
    /// What the environment says, if it says anything.
    pub environment: Option<Value>,
}

/// One layer: what the environment or the operator says of each setting, in [`TABLE`]'s order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer(Vec<Option<Value>>);

impl Default for Layer {
    fn default() -> Self {
        Self(vec![None; TABLE.len()])
    }
}

impl Layer {
    /// What this layer says of `name`.
    pub fn value(&self, name: Name) -> Option<&Value> {
        self.0.get(name as usize).and_then(Option::as_ref)
    }

    /// What this layer, as the environment, holds against a change of `name`: what it states can be
    /// cleared, but not set.
    pub fn locks(&self, name: Name, change: Option<&Value>) -> Option<&Value> {
        change.and(self.value(name))
    }

    /// Says `value` of `name`, or with `None` nothing any more.
    pub fn put(&mut self, name: Name, value: Option<Value>) {
        if let Some(slot) = self.0.get_mut(name as usize) {
            *slot = value;
        }
    }
}

/// Every setting, resolved: an immutable snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings(Vec<Setting>);

impl Settings {
    /// Lays the operator's overrides over the environment over the defaults.
    pub fn resolve(environment: &Layer, overrides: &Layer) -> Self {
        Self(
            TABLE
                .iter()
                .map(|d| {
                    resolve(
                        d.default_value(),
                        environment.value(d.name),
                        overrides.value(d.name),
                    )
                })
                .collect(),
        )
    }

    /// One setting with its source.
    pub fn setting(&self, name: Name) -> &Setting {
        &self.0[name as usize]
    }

    /// The value of a setting of kind [`Kind::Integer`]; 0 for any other kind.
    pub fn integer(&self, name: Name) -> u64 {
        match self.setting(name).value {
            Value::Integer(n) => u64::try_from(n).unwrap_or(0),
            _ => 0,
        }
    }

    /// The value of a setting of kind [`Kind::Switch`]; off for any other kind.
    pub fn is_on(&self, name: Name) -> bool {
        matches!(self.setting(name).value, Value::Switch(true))
    }

    /// The value of a textual setting; empty for any other kind.
    pub fn text(&self, name: Name) -> &str {
        match &self.setting(name).value {
            Value::Text(t) => t,
            _ => "",
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::resolve(&Layer::default(), &Layer::default())
    }
}

fn resolve(default: Value, environment: Option<&Value>, overridden: Option<&Value>) -> Setting {
    let inherited = environment.cloned().unwrap_or(default);
    let source = match (overridden, environment) {
        (Some(_), _) => Source::Override,
        (None, Some(_)) => Source::Environment,
        (None, None) => Source::Default,
    };
    Setting {
        value: overridden.cloned().unwrap_or_else(|| inherited.clone()),
        source,
        inherited,
        environment: environment.cloned(),
    }
}

#[cfg(test)]
mod tests;
