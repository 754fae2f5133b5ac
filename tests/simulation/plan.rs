//! A pool, its limits and what is asked of it, written down plainly: the world plays on it, the
//! judge reckons with it, and the product gets its own form of it.
//!
//! Invariant: things are never removed, so that a position in a list names one thing for a whole run.
use fairlane::domain::{
    admission::{Demand, Kinds, Limits, Owner, Strategy, Tried},
    ids::{AccountId, CredentialId, EndpointId, KeyId, RequestId},
    moment::Moment,
    pool::{
        self, BaseUrl, ClientKey, DisabledReason, KeyLimits, ModelRow, Origin, QuotaScope, State,
        edges::Contents,
    },
    protocol::Protocol,
    secret::Secret,
};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(crate) stream: Option<u32>,
    pub(crate) create: Option<u32>,
    pub(crate) job: Option<u32>,
    pub(crate) priority: i32,
    pub(crate) is_by_credential: bool,
    pub(crate) is_by_model: bool,
    pub(crate) is_active: bool,
}

impl Account {
    /// One that takes work and states nothing of its own.
    pub(crate) const fn plain() -> Self {
        Self {
            stream: None,
            create: None,
            job: None,
            priority: 0,
            is_by_credential: false,
            is_by_model: false,
            is_active: true,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Credential {
    pub(crate) accounts: Vec<usize>,
    pub(crate) endpoints: Vec<usize>,
    pub(crate) models: Option<Vec<usize>>,
    pub(crate) stream: Option<u32>,
    pub(crate) create: Option<u32>,
    pub(crate) job: Option<u32>,
    pub(crate) is_active: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) models: Option<Vec<usize>>,
    pub(crate) is_active: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) weight: u32,
    pub(crate) accounts: Option<Vec<usize>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Caps {
    pub(crate) stream: u32,
    pub(crate) create: u32,
    pub(crate) job: u32,
    pub(crate) reserve: u32,
    pub(crate) threshold_pct: u32,
    pub(crate) waiters_per_key: usize,
    pub(crate) may_park: bool,
    pub(crate) breaker: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) accounts: Vec<Account>,
    pub(crate) credentials: Vec<Credential>,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) keys: Vec<Key>,
    pub(crate) caps: Caps,
}

/// Streams, creates, jobs.
pub(crate) type Slots = [bool; 3];

pub(crate) const GENERATE: Slots = [true, true, false];
pub(crate) const STREAM: Slots = [true, false, false];
pub(crate) const CREATE: Slots = [false, true, false];
pub(crate) const JOB: Slots = [false, false, true];

/// What one request asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ask {
    pub(crate) holder: u64,
    pub(crate) key: Option<usize>,
    pub(crate) model: usize,
    pub(crate) slots: Slots,
    pub(crate) is_reattach: bool,
    pub(crate) owner: Option<usize>,
    pub(crate) preferred: Option<usize>,
    pub(crate) tried_accounts: Vec<usize>,
    pub(crate) tried_credentials: Vec<usize>,
    pub(crate) until: u64,
    pub(crate) is_moving: bool,
}

/// The number in an id that was made from a place in a list.
pub(crate) const fn place_of(bits: u128) -> usize {
    bits as usize
}

fn account_id(place: usize) -> AccountId {
    AccountId::from_u128(place as u128)
}

fn credential_id(place: usize) -> CredentialId {
    CredentialId::from_u128(place as u128)
}

fn endpoint_id(place: usize) -> EndpointId {
    EndpointId::from_u128(place as u128)
}

fn model_name(place: usize) -> Arc<str> {
    format!("model-{place}").into()
}

fn catalog(models: Option<&Vec<usize>>) -> pool::Catalog {
    let row = |place: &usize| ModelRow {
        model: model_name(*place),
        upstream_model: None,
    };
    models.map(|models| models.iter().map(row).collect())
}

const fn state(is_active: bool) -> State {
    if is_active {
        State::Active
    } else {
        State::Disabled(DisabledReason::Operator)
    }
}

impl Plan {
    pub(crate) fn limits(&self) -> Limits {
        let caps = &self.caps;
        Limits {
            stream: caps.stream,
            create: caps.create,
            job: caps.job,
            reserve: caps.reserve,
            fair_share_pct: caps.threshold_pct,
            waiters_per_key: caps.waiters_per_key,
            may_park: caps.may_park,
            strategy: Strategy::LeastLoaded,
            breaker_threshold: caps.breaker,
        }
    }

    pub(crate) fn contents(&self) -> Contents {
        let accounts = self.accounts.iter().enumerate();
        let credentials = self.credentials.iter().enumerate();
        let endpoints = self.endpoints.iter().enumerate();
        Contents {
            endpoints: endpoints.map(|(n, row)| endpoint(n, row)).collect(),
            accounts: accounts.map(|(n, row)| account(n, row)).collect(),
            credentials: credentials.map(|(n, row)| credential(n, row)).collect(),
            keys: self.client_keys(),
        }
    }

    pub(crate) fn client_keys(&self) -> Vec<Arc<ClientKey>> {
        let keys = self.keys.iter().enumerate();
        keys.map(|(n, row)| Arc::new(client_key(n, row))).collect()
    }
}

fn endpoint(place: usize, row: &Endpoint) -> pool::Endpoint {
    pool::Endpoint {
        id: endpoint_id(place),
        name: format!("endpoint-{place}").into(),
        base_url: BaseUrl::parse("https://api.example.com").unwrap(),
        protocols: vec![Protocol::OpenAi],
        models: catalog(row.models.as_ref()),
        headers: Vec::new(),
        state: state(row.is_active),
    }
}

fn account(place: usize, row: &Account) -> pool::Account {
    pool::Account {
        id: account_id(place),
        name: format!("account-{place}").into(),
        quota_scope: if row.is_by_credential {
            QuotaScope::Credential
        } else {
            QuotaScope::Account
        },
        stream_limit: row.stream,
        create_limit: row.create,
        job_limit: row.job,
        priority: row.priority,
        weight: 1,
        cooldown_per_model: row.is_by_model,
        trust_reset: false,
        state: state(row.is_active),
        made_for: None,
    }
}

fn credential(place: usize, row: &Credential) -> pool::Credential {
    pool::Credential {
        id: credential_id(place),
        name: format!("credential-{place}").into(),
        is_named: true,
        secret: Secret::clean(&format!("sk-simulation-{place:06}"))
            .unwrap()
            .0,
        fingerprint: [0; 32],
        origin: Origin::Operator,
        accounts: row.accounts.iter().copied().map(account_id).collect(),
        endpoints: row.endpoints.iter().copied().map(endpoint_id).collect(),
        models: catalog(row.models.as_ref()),
        stream_limit: row.stream,
        create_limit: row.create,
        job_limit: row.job,
        state: state(row.is_active),
    }
}

fn client_key(place: usize, row: &Key) -> ClientKey {
    let mut hash = [0; 32];
    hash[..8].copy_from_slice(&(place as u64).to_le_bytes());
    let accounts = row.accounts.as_ref();
    ClientKey {
        id: KeyId::from_u128(place as u128),
        name: format!("key-{place}").into(),
        hash,
        secret_hint: "hint".into(),
        weight: row.weight,
        accounts: accounts.map(|all| all.iter().copied().map(account_id).collect()),
        models: None,
        limits: KeyLimits::default(),
        expires_at: None,
    }
}

impl Ask {
    /// The same in the product's form, with keys as they are in the pool in force.
    pub(crate) fn demand(&self, keys: &[Arc<ClientKey>]) -> Arc<Demand> {
        let accounts = self.tried_accounts.iter().copied();
        let credentials = self.tried_credentials.iter().copied();
        let tried = accounts.map(|n| Tried::Account(account_id(n)));
        let [stream, create, job] = self.slots;
        Arc::new(Demand {
            holder: RequestId::from_u128(u128::from(self.holder)),
            key: self.key.map(|n| Arc::clone(&keys[n])),
            protocol: Protocol::OpenAi,
            model: Some(model_name(self.model)),
            kinds: Kinds {
                stream,
                create,
                job,
            },
            reattach: self.is_reattach,
            owner: self
                .owner
                .map_or(Owner::Nobody, |n| Owner::Bound(credential_id(n))),
            preferred: self.preferred.map(credential_id),
            tried: tried
                .chain(credentials.map(|n| Tried::Credential(credential_id(n))))
                .collect(),
            until: Moment::from_millis(self.until),
            is_moving: self.is_moving,
        })
    }
}
