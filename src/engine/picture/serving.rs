//! What can serve now: what fair share is reckoned over.
//!
//! A quota serves while some edge takes work on it whose endpoint does not rest and whose quotas do
//! not cool; whether there is room on it is another question.
use super::{
    OnAccount, Used,
    caps::{self, Caps, Quota},
};
use crate::{
    domain::{
        admission::Subject,
        ids::{AccountId, CredentialId},
        pool::{Edge, Pool, QuotaScope},
    },
    engine::look::Look,
};
use std::collections::{HashMap, HashSet};

/// What serves now.
#[derive(Debug, Default)]
pub(super) struct Serving {
    /// By account of the pool: what may be held on what serves of it; `None` if nothing does.
    pub(super) accounts: Vec<Option<Caps>>,
    /// Streams held there.
    pub(super) in_flight: u64,
}

impl Serving {
    pub(super) fn find(
        (pool, look): (&Pool, &Look),
        quotas: &[Vec<Quota>],
        (accounts, credentials): (&[OnAccount], &[Used]),
    ) -> Self {
        let found = Found::of(pool, look);
        let ids = pool.credentials().iter().map(|c| c.id);
        let used: HashMap<CredentialId, u64> =
            ids.zip(credentials.iter().map(|c| c.streams)).collect();
        let mut serving = Self::default();
        for ((account, on), quotas) in pool.accounts().iter().zip(accounts).zip(quotas) {
            let serves = |quota: &&Quota| match quota.credential {
                None => found.accounts.contains(&account.id),
                Some(credential) => {
                    found.accounts.contains(&account.id) && found.credentials.contains(&credential)
                }
            };
            let mut serve = quotas.iter().filter(serves).peekable();
            if serve.peek().is_none() {
                serving.accounts.push(None);
                continue;
            }
            let in_flight = serve.clone().map(|quota| match quota.credential {
                None => on.used.streams,
                Some(credential) => used.get(&credential).copied().unwrap_or(0),
            });
            serving.in_flight += in_flight.sum::<u64>();
            serving.accounts.push(Some(caps::together(serve)));
        }
        serving
    }

    /// Streams that ordinary requests may hold of all that serves; `None` where that is unlimited.
    pub(super) fn capacity(&self) -> Option<u64> {
        let accounts = self.accounts.iter().flatten();
        accounts.map(Caps::ordinary).sum()
    }
}

/// What some edge serves on.
struct Found {
    accounts: HashSet<AccountId>,
    credentials: HashSet<CredentialId>,
}

impl Found {
    fn of(pool: &Pool, look: &Look) -> Self {
        let mut found = Self {
            accounts: HashSet::new(),
            credentials: HashSet::new(),
        };
        for edge in pool.edges() {
            let credential = pool.credential(edge).id;
            // All edges of a credential are charged alike.
            if !found.credentials.contains(&credential) && serves(edge, pool, look) {
                found.credentials.insert(credential);
                found
                    .accounts
                    .extend(pool.accounts_of(edge).map(|account| account.id));
            }
        }
        found
    }
}

fn serves(edge: &Edge, pool: &Pool, look: &Look) -> bool {
    let credential = pool.credential(edge).id;
    let lets_pass = |subject| look.lets_pass(subject);
    pool.takes_work(edge)
        && look.breaker(pool.endpoint(edge).id).lets_pass()
        && pool
            .accounts_of(edge)
            .all(|account| match account.quota_scope {
                QuotaScope::Account => lets_pass(Subject::Account(account.id)),
                QuotaScope::Credential => lets_pass(Subject::Credential(credential)),
            })
}
