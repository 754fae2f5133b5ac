//! The pool: endpoints, accounts, credentials and client keys, and the edges between them.
//!
//! Invariant: a [`Pool`] is an immutable snapshot, swapped whole. Whatever happens to the lists
//! between two snapshots, an id keeps naming the same thing, and a credential keeps its secret
//! until that is rotated on purpose.
pub mod base_url;
pub mod document;
pub mod edges;
pub mod presets;
pub mod served;
pub mod units;

use super::{
    ids::{AccountId, CredentialId, EndpointId, KeyId},
    protocol::Protocol,
    secret::Secret,
};
use std::sync::Arc;

pub use self::{
    base_url::BaseUrl,
    edges::{Edge, EdgeIndex, EdgeRef, Pool},
    served::Offers,
    units::Unit,
};

/// Whether a thing takes new work, and if not, why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Takes work.
    Active,
    /// Takes no new work; what runs goes on to its end.
    Draining,
    /// Takes no new work until somebody or something enables it again.
    Disabled(DisabledReason),
}

/// Who or what disabled it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DisabledReason {
    /// The operator.
    Operator,
    /// Upstream refused the credential.
    Auth,
    /// Upstream refused to bill the account.
    Billing,
}

/// Who brought the secret that a credential has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The operator, who alone takes it back.
    #[default]
    Operator,
    /// A variable; the credential drains once that no longer lists its secret.
    Environment,
}

/// What the caps and cooldowns of an account apply to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QuotaScope {
    /// To the account as a whole.
    #[default]
    Account,
    /// To each of its credentials separately.
    Credential,
}

/// One row of a catalog: a model, and what upstream calls it where that differs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelRow {
    /// What clients ask for.
    pub model: Arc<str>,
    /// What upstream is asked for instead.
    pub upstream_model: Option<Arc<str>>,
}

/// Which models something serves: `None` means every model of its protocols.
pub type Catalog = Option<Arc<[ModelRow]>>;

/// A base URL and the protocols it speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Minted once.
    pub id: EndpointId,
    /// Unique among endpoints.
    pub name: Arc<str>,
    /// Where it is.
    pub base_url: BaseUrl,
    /// What it speaks; at least one.
    pub protocols: Vec<Protocol>,
    /// Which models it serves.
    pub models: Catalog,
    /// Headers added to every request, as (lower-case name, value).
    pub headers: Vec<(Arc<str>, Arc<str>)>,
    /// Whether it takes work.
    pub state: State,
}

/// Whoever the upstream bills and rate-limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Minted once.
    pub id: AccountId,
    /// Unique among accounts.
    pub name: Arc<str>,
    /// What its caps apply to.
    pub quota_scope: QuotaScope,
    /// Streams at once: `None` inherits the setting, 0 is unlimited.
    pub stream_limit: Option<u32>,
    /// Requests being started at once: `None` inherits the setting, 0 is unlimited.
    pub create_limit: Option<u32>,
    /// Jobs at once: `None` inherits the setting, 0 is unlimited.
    pub job_limit: Option<u32>,
    /// Lower numbers are chosen first.
    pub priority: i32,
    /// Share among equals; at least 1.
    pub weight: u32,
    /// Whether a 429 cools the model that was asked for instead of all models, for providers that
    /// limit per model.
    pub cooldown_per_model: bool,
    /// Whether hints of more than an hour are believed without a look in between.
    pub trust_reset: bool,
    /// Whether it takes work.
    pub state: State,
    /// The credential that it was made for, where that one named no account of its own.
    pub made_for: Option<CredentialId>,
}

/// The keyed hash of a secret, by which a credential is known again.
pub type Fingerprint = [u8; 32];

/// A secret that authenticates to upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// Minted once; kept when the secret is rotated.
    pub id: CredentialId,
    /// Unique among credentials.
    pub name: Arc<str>,
    /// Whether a person gave the name; names that fairlane made up never match on import.
    pub is_named: bool,
    /// The secret itself.
    pub secret: Secret,
    /// Its keyed hash.
    pub fingerprint: Fingerprint,
    /// Who brought the secret.
    pub origin: Origin,
    /// The accounts that it is charged to; at least one.
    pub accounts: Vec<AccountId>,
    /// The endpoints it works at; at least one.
    pub endpoints: Vec<EndpointId>,
    /// Which models it may use.
    pub models: Catalog,
    /// Own cap of streams: `None` and 0 mean no cap of its own.
    pub stream_limit: Option<u32>,
    /// Own cap of requests being started: `None` and 0 mean no cap of its own.
    pub create_limit: Option<u32>,
    /// Own cap of jobs: `None` and 0 mean no cap of its own.
    pub job_limit: Option<u32>,
    /// Whether it takes work.
    pub state: State,
}

/// The SHA-256 of a client key's secret, by which it is looked up.
pub type KeyHash = [u8; 32];

/// What a client presents to fairlane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientKey {
    /// Minted once.
    pub id: KeyId,
    /// Unique among client keys.
    pub name: Arc<str>,
    /// What is stored of its secret.
    pub hash: KeyHash,
    /// The secret's last four characters.
    pub secret_hint: Arc<str>,
    /// Its share when the pool is tight; at least 1.
    pub weight: u32,
    /// The accounts it may use; `None` means all.
    pub accounts: Option<Vec<AccountId>>,
    /// The models it may ask for; `None` means all.
    pub models: Option<Vec<Arc<str>>>,
    /// How much it may use.
    pub limits: KeyLimits,
    /// When it ends, in milliseconds since 1970; `None` means never.
    pub expires_at: Option<i64>,
}

/// A client key's own limits, whatever the pool could carry; `None` means none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyLimits {
    /// Requests that may begin in any minute; at least 1.
    pub requests_per_minute: Option<u32>,
    /// Requests in flight at once; at least 1.
    pub concurrency: Option<u32>,
    /// Tokens of a day in UTC, those read and those written; at least 1.
    pub tokens_per_day: Option<u64>,
}

impl KeyLimits {
    /// Whether there is none.
    pub const fn is_none(&self) -> bool {
        self.requests_per_minute.is_none()
            && self.concurrency.is_none()
            && self.tokens_per_day.is_none()
    }
}

impl ClientKey {
    /// Whether its time is over at `now_ms`, in milliseconds since 1970.
    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_at.is_some_and(|end| now_ms >= end)
    }

    /// Whether it may ask for `model`.
    pub fn may_use_model(&self, model: &str) -> bool {
        self.models
            .as_ref()
            .is_none_or(|list| list.iter().any(|m| &**m == model))
    }
}

impl State {
    /// Whether new work may start.
    pub const fn takes_work(self) -> bool {
        matches!(self, Self::Active)
    }

    /// The word in API and pages, without the reason.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Draining => "draining",
            Self::Disabled(_) => "disabled",
        }
    }
}

impl DisabledReason {
    /// The word in API and pages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Auth => "auth",
            Self::Billing => "billing",
        }
    }
}

impl Origin {
    /// The word in API and database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Environment => "environment",
        }
    }

    /// The origin of that [`name`](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "operator" => Some(Self::Operator),
            "environment" => Some(Self::Environment),
            _ => None,
        }
    }
}

impl QuotaScope {
    /// The word in API and document.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Account => "account",
            Self::Credential => "credential",
        }
    }

    /// The scope of that [`name`](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "account" => Some(Self::Account),
            "credential" => Some(Self::Credential),
            _ => None,
        }
    }
}

/// What a catalog says of one model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer<'a> {
    /// There is no catalog: every model is served under its own name.
    Any,
    /// The catalog has this row for it.
    Listed(&'a ModelRow),
    /// The catalog lacks it.
    Missing,
}

impl<'a> Offer<'a> {
    /// What `catalog` says of `model`.
    pub fn of(catalog: &'a Catalog, model: &str) -> Self {
        match catalog {
            None => Self::Any,
            Some(rows) => rows
                .iter()
                .find(|r| &*r.model == model)
                .map_or(Self::Missing, Self::Listed),
        }
    }

    /// What upstream is asked for when the client asks for `model`.
    pub fn upstream_model(self, model: &'a str) -> &'a str {
        match self {
            Self::Listed(row) => row.upstream_model.as_deref().unwrap_or(model),
            Self::Any | Self::Missing => model,
        }
    }
}
