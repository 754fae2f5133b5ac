//! Settings: declared once, resolved in three layers.
//!
//! Invariant: [`TABLE`] is the only list of settings; parsing, storage, API and reference follow
//! from it. A stored value is an override, and no override means "inherit": override, then
//! environment, then default.
mod table;

pub use self::table::TABLE;

use std::{fmt, sync::Arc};

/// Names a setting; its position in [`TABLE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(usize)]
pub enum Name {
    /// Streams at once per account; 0 = unlimited.
    AccountStreamLimit,
    /// Requests being started at once per account; 0 = unlimited.
    AccountCreateLimit,
    /// Jobs at once per account; 0 = unlimited.
    AccountJobLimit,
    /// Stream slots per account kept for reattaching.
    AccountStreamReserve,
    /// How long a request may wait for capacity, in seconds; 0 = never.
    CapacityWaitSeconds,
    /// How many requests of one key may wait at once.
    WaitersPerKey,
    /// After how many seconds of waiting a streaming request is answered 200 and kept alive.
    ParkCommitSeconds,
    /// From how many percent of its capacity on the pool is shared out by weight; 0 = never.
    FairShareCongestionThresholdPct,
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
