//! What may be held on an account, all its credentials together.
use crate::domain::{
    admission::Limits,
    ids::{AccountId, CredentialId},
    pool::{Account, Credential, Pool, QuotaScope},
};
use std::collections::HashMap;

/// Caps; `None` where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Streams, the reserve included.
    pub streams: Option<u64>,
    /// Of these, streams that only those may hold who come back to a running response.
    pub reserve: u64,
    /// Requests being started.
    pub creates: Option<u64>,
    /// Jobs.
    pub jobs: Option<u64>,
}

/// Nothing may be held.
impl Default for Caps {
    fn default() -> Self {
        Self {
            streams: Some(0),
            reserve: 0,
            creates: Some(0),
            jobs: Some(0),
        }
    }
}

impl Caps {
    /// Of `[streams, creates, jobs]`, where 0 is no limit, and of the streams that are kept.
    fn new([stream, create, job]: [u32; 3], reserve: u32) -> Self {
        let ordinary = stream.saturating_sub(reserve).max(1);
        let cap = |limit: u32| (limit > 0).then_some(u64::from(limit));
        Self {
            streams: cap(stream),
            reserve: u64::from(stream.saturating_sub(ordinary)),
            creates: cap(create),
            jobs: cap(job),
        }
    }

    /// Both together.
    fn and(self, other: Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a + b);
        Self {
            streams: sum(self.streams, other.streams),
            reserve: self.reserve + other.reserve,
            creates: sum(self.creates, other.creates),
            jobs: sum(self.jobs, other.jobs),
        }
    }

    /// Streams that ordinary requests may hold.
    pub fn ordinary(&self) -> Option<u64> {
        self.streams.map(|all| all.saturating_sub(self.reserve))
    }
}

/// What an account's provider limits as one: the account, or one credential of it.
pub(super) struct Quota {
    /// Which credential; `None` stands for the account.
    pub(super) credential: Option<CredentialId>,
    pub(super) caps: Caps,
}

/// The quotas of every account of the pool, in its order.
pub(super) fn quotas(pool: &Pool, limits: Limits) -> Vec<Vec<Quota>> {
    let mut charged: HashMap<AccountId, Vec<&Credential>> = HashMap::new();
    for credential in pool.credentials() {
        for account in &credential.accounts {
            charged.entry(*account).or_default().push(credential);
        }
    }
    let accounts = pool.accounts().iter();
    accounts
        .map(|account| match account.quota_scope {
            QuotaScope::Account => vec![of_account(account, limits)],
            QuotaScope::Credential => {
                let charged = charged.get(&account.id).into_iter().flatten();
                charged
                    .map(|credential| of_credential(credential, account, limits))
                    .collect()
            }
        })
        .collect()
}

fn of_account(account: &Account, limits: Limits) -> Quota {
    let all = [
        account.stream_limit.unwrap_or(limits.stream),
        account.create_limit.unwrap_or(limits.create),
        account.job_limit.unwrap_or(limits.job),
    ];
    Quota {
        credential: None,
        caps: Caps::new(all, limits.reserve),
    }
}

/// Where each credential has a quota of its own, it may state caps of its own.
fn of_credential(credential: &Credential, account: &Account, limits: Limits) -> Quota {
    let stream = credential.stream_limit.or(account.stream_limit);
    let create = credential.create_limit.or(account.create_limit);
    let job = credential.job_limit.or(account.job_limit);
    let all = [
        stream.unwrap_or(limits.stream),
        create.unwrap_or(limits.create),
        job.unwrap_or(limits.job),
    ];
    Quota {
        credential: Some(credential.id),
        caps: Caps::new(all, limits.reserve),
    }
}

/// All of them together.
pub(super) fn together<'a>(quotas: impl IntoIterator<Item = &'a Quota>) -> Caps {
    let caps = quotas.into_iter().map(|quota| quota.caps);
    caps.fold(Caps::default(), Caps::and)
}
