//! The pool document: the whole pool by names instead of ids, as people write and keep it.
//!
//! Invariant: identity follows the secret. A credential is known again by the fingerprint of its
//! secret, whatever happens to its name or its place in the list; only where no fingerprint
//! matches can a name that a person gave mean a rotation. A document with a mistake changes
//! nothing, and every mistake is named with its path.
mod accounts;
mod credentials;
mod endpoints;
mod keys;
mod names;
mod plan;
mod sync;

use super::{
    BaseUrl, DisabledReason, ModelRow, Origin, QuotaScope, State, presets::ProviderPreset,
};
use crate::domain::{protocol::Protocol, secret::Secret};
use std::{fmt, sync::Arc};

pub use self::plan::{Change, ChangeKind, MintedKey, Mode, Plan, Tools, plan};

/// What a document says of one property.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Field<T> {
    /// Nothing: what is stored stays.
    #[default]
    Absent,
    /// Null: inherit, or none.
    Null,
    /// A value.
    Value(T),
}

impl<T: Clone> Field<T> {
    /// The new value of a property that may be unset, where `kept` is the stored one.
    pub fn over(&self, kept: Option<T>) -> Option<T> {
        match self {
            Self::Absent => kept,
            Self::Null => None,
            Self::Value(value) => Some(value.clone()),
        }
    }

    /// The same for a list that is shared from then on.
    pub fn over_shared<I: Clone>(&self, kept: Option<Arc<[I]>>) -> Option<Arc<[I]>>
    where
        T: AsRef<[I]>,
    {
        match self {
            Self::Absent => kept,
            Self::Null => None,
            Self::Value(value) => Some(value.as_ref().into()),
        }
    }

    /// The new value of a property that is always set: null means `default`.
    pub fn or(&self, kept: T, default: T) -> T {
        match self {
            Self::Absent => kept,
            Self::Null => default,
            Self::Value(value) => value.clone(),
        }
    }
}

/// Something wrong at one place of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Where: `credentials[2].accounts[0]`, `line 3`, or a variable's name.
    pub path: String,
    /// What is wrong, and what would be right.
    pub what: String,
}

/// Something worth telling that is no mistake.
pub type Warning = Mistake;

impl Mistake {
    /// A mistake at `path`.
    pub fn new(path: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            what: what.into(),
        }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.what);
        }
        write!(f, "{}: {}", self.path, self.what)
    }
}

/// The state that a document asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedState {
    /// Take work, whatever was before.
    Active,
    /// Take no new work.
    Draining,
    /// Take no new work; a reason that is stored already stays.
    Disabled,
}

/// An endpoint as a document describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointEntry {
    /// Where it stands in the document.
    pub path: String,
    /// Its name, by which it is matched.
    pub name: Arc<str>,
    /// A provider whose properties stand in for those that the document leaves out.
    pub preset: Option<&'static ProviderPreset>,
    /// Whether a mistake was found in it already. Its name still counts as known.
    pub is_broken: bool,
    /// Whether an endpoint of that name is left alone, should there be one.
    pub only_if_missing: bool,
    /// Where it is.
    pub base_url: Field<BaseUrl>,
    /// What it speaks.
    pub protocols: Field<Vec<Protocol>>,
    /// What it serves; null means everything.
    pub models: Field<Vec<ModelRow>>,
    /// Headers added to every request.
    pub headers: Field<Vec<(Arc<str>, Arc<str>)>>,
    /// The state asked for.
    pub state: Option<WantedState>,
}

/// An account as a document describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountEntry {
    /// Where it stands in the document.
    pub path: String,
    /// Its name, by which it is matched.
    pub name: Arc<str>,
    /// What its caps apply to.
    pub quota_scope: Field<QuotaScope>,
    /// Streams at once; null inherits.
    pub stream_limit: Field<u32>,
    /// Requests being started at once; null inherits.
    pub create_limit: Field<u32>,
    /// Jobs at once; null inherits.
    pub job_limit: Field<u32>,
    /// Lower numbers are chosen first.
    pub priority: Field<i32>,
    /// Share among equals.
    pub weight: Field<u32>,
    /// Whether a 429 cools only the model that was asked for.
    pub cooldown_per_model: Field<bool>,
    /// Whether resets far away are believed without a look in between.
    pub trust_reset: Field<bool>,
    /// The state asked for.
    pub state: Option<WantedState>,
}

/// What an entry does to a credential that is stored already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMatch {
    /// It becomes what the entry says.
    #[default]
    Update,
    /// It works at the entry's endpoints as well.
    Extend,
    /// It stays as it is. The environment is read at every start and must not undo what an
    /// operator did since. Only a credential that the environment brought, and that drains, is
    /// back in use.
    Keep,
}

/// A credential as a document describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CredentialEntry {
    /// Where it stands in the document.
    pub path: String,
    /// Whether a mistake was found in it already. Only what it refers to is checked then.
    pub is_broken: bool,
    /// What happens to it if it is stored already.
    pub on_match: OnMatch,
    /// Who brings the secret, should it be new.
    pub origin: Origin,
    /// Its name, if a person gave one.
    pub name: Option<Arc<str>>,
    /// Its secret; without one, the name says which stored credential is meant.
    pub secret: Option<Secret>,
    /// Names of the accounts it is charged to; null or an empty list means one of its own.
    pub accounts: Field<Vec<Arc<str>>>,
    /// Names of the endpoints it works at.
    pub endpoints: Field<Vec<Arc<str>>>,
    /// What it may use; null means everything.
    pub models: Field<Vec<ModelRow>>,
    /// Own cap of streams; null means none.
    pub stream_limit: Field<u32>,
    /// Own cap of requests being started; null means none.
    pub create_limit: Field<u32>,
    /// Own cap of jobs; null means none.
    pub job_limit: Field<u32>,
    /// The state asked for.
    pub state: Option<WantedState>,
}

/// A client key as a document describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyEntry {
    /// Where it stands in the document.
    pub path: String,
    /// Its name, by which it is matched.
    pub name: Arc<str>,
    /// Its secret; without one, a stored key keeps its own and a new key gets a fresh one.
    pub secret: Option<Secret>,
    /// Its share when the pool is tight.
    pub weight: Field<u32>,
    /// Names of the accounts it may use; null means all.
    pub accounts: Field<Vec<Arc<str>>>,
    /// The models it may ask for; null means all.
    pub models: Field<Vec<Arc<str>>>,
    /// Requests that may begin in any minute; null means no limit.
    pub requests_per_minute: Field<u32>,
    /// Requests in flight at once; null means no limit.
    pub concurrency: Field<u32>,
    /// Tokens of a day; null means no limit.
    pub tokens_per_day: Field<u64>,
    /// When it ends, in milliseconds since 1970; null means never.
    pub expires_at: Field<i64>,
}

/// Of which kinds a document lists everything, so that a sync may drain the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Covers {
    /// Every endpoint.
    pub endpoints: bool,
    /// Every account.
    pub accounts: bool,
    /// Every credential of these.
    pub credentials: Option<Coverage>,
    /// Every client key.
    pub keys: bool,
}

/// Which credentials a document lists completely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// All there are.
    All,
    /// Those that work at the endpoint of that name and nowhere else.
    At(Arc<str>),
    /// Those that the environment brought to the endpoints of these names: the ones whose variable
    /// is present. An operator may have added endpoints since, but the first tells the variable.
    Environment(Vec<Arc<str>>),
}

/// A pool document, read but not yet compared with what is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// Endpoints.
    pub endpoints: Vec<EndpointEntry>,
    /// Accounts.
    pub accounts: Vec<AccountEntry>,
    /// Credentials.
    pub credentials: Vec<CredentialEntry>,
    /// Client keys.
    pub keys: Vec<KeyEntry>,
    /// What it lists completely.
    pub covers: Covers,
    /// What was wrong already while reading; [`plan()`] refuses the document because of it, together
    /// with whatever else it finds.
    pub mistakes: Vec<Mistake>,
    /// What was put right while reading.
    pub warnings: Vec<Warning>,
}

/// The state after an import that lists the thing: what drains comes back by being listed.
fn listed_state(before: Option<State>, wanted: Option<WantedState>) -> State {
    match (wanted, before) {
        (Some(WantedState::Active), _) | (None, None | Some(State::Draining)) => State::Active,
        (Some(WantedState::Draining), _) => State::Draining,
        (Some(WantedState::Disabled), Some(state @ State::Disabled(_))) | (None, Some(state)) => {
            state
        }
        (Some(WantedState::Disabled), _) => State::Disabled(DisabledReason::Operator),
    }
}

#[cfg(test)]
mod tests;
