//! Caps, and what is in use of them.
//!
//! A *subject* is whatever slots are counted on: an account or a credential. Every lease counts on
//! all subjects of its edge, capped or not, so that a cap set later finds true numbers. A *gate*
//! is a cap on one subject of one edge.
//!
//! Invariant: a subject keeps its number for the life of the process, whatever happens to the pool.
use super::{Kinds, Limits};
use crate::domain::{
    ids::{AccountId, CredentialId},
    pool::{Account, Credential, Pool, QuotaScope},
    reason::Reason,
};
use std::{collections::HashMap, sync::Arc};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum SubjectId {
    Account(AccountId),
    Credential(CredentialId),
}

/// What is in use on one subject, and when it last had its turn (see [`Subjects::take`]).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    pub(super) stream: u32,
    pub(super) create: u32,
    pub(super) turn: u64,
}

/// A cap on one subject; 0 means none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gate {
    pub(super) subject: u32,
    /// Streams that ordinary requests may hold.
    pub(super) ordinary: u32,
    /// Streams in all, the reserve included.
    pub(super) stream: u32,
    pub(super) create: u32,
    /// Whether this is a credential's own cap on top of its account's.
    pub(super) is_own: bool,
}

/// The gates of one edge, and every subject that its leases count on, accounts first.
#[derive(Clone, Debug)]
pub(super) struct Gates {
    pub(super) subjects: Arc<[u32]>,
    pub(super) caps: Box<[Gate]>,
}

/// A full gate: the reason, the cap and what is in use.
pub(super) type Full = (Reason, u32, u32);

#[derive(Debug, Default)]
pub(super) struct Subjects {
    numbers: HashMap<SubjectId, u32>,
    usage: Vec<Usage>,
    now: u64,
}

/// One turn of a subject of weight 1: divisible by every small weight, so that shares come out
/// exact.
const TURN: u64 = 5040;

impl Subjects {
    pub(super) fn usage(&self, subject: u32) -> Usage {
        self.usage
            .get(subject as usize)
            .copied()
            .unwrap_or_default()
    }

    fn number(&mut self, id: SubjectId) -> u32 {
        let next = u32::try_from(self.usage.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(id).or_insert(next);
        if number == next {
            self.usage.push(Usage::default());
        }
        number
    }

    /// The gates of every edge of `pool`, by position.
    pub(super) fn gates_of(&mut self, pool: &Pool, limits: Limits) -> Vec<Gates> {
        let one = |edge| {
            let credential = pool.credential(edge);
            let own = self.number(SubjectId::Credential(credential.id));
            let mut subjects = Vec::new();
            let mut caps = Vec::new();
            for account in pool.accounts_of(edge) {
                let shared = self.number(SubjectId::Account(account.id));
                subjects.push(shared);
                caps.push(match account.quota_scope {
                    QuotaScope::Account => account_gate(shared, account, limits),
                    QuotaScope::Credential => credential_gate(own, account, credential, limits),
                });
            }
            subjects.push(own);
            caps.extend(own_gate(own, credential));
            Gates {
                subjects: subjects.into(),
                caps: caps.into(),
            }
        };
        pool.edges().iter().map(one).collect()
    }

    /// Takes one slot of each kind on every subject, and moves the subjects' turns on: the lower
    /// its turn, the longer ago a subject was chosen in relation to its weight.
    pub(super) fn take(&mut self, gates: &Gates, kinds: Kinds, weight: u32) {
        for subject in gates.subjects.iter() {
            let Some(usage) = self.usage.get_mut(*subject as usize) else {
                continue;
            };
            usage.stream += u32::from(kinds.stream);
            usage.create += u32::from(kinds.create);
            // One that was idle for long starts from now, or it would catch up all at once.
            self.now = self.now.max(usage.turn);
            usage.turn = self.now + TURN / u64::from(weight.max(1));
        }
    }

    pub(super) fn give_back(&mut self, subjects: &[u32], kinds: Kinds) {
        for subject in subjects {
            if let Some(usage) = self.usage.get_mut(*subject as usize) {
                usage.stream -= u32::from(kinds.stream);
                usage.create -= u32::from(kinds.create);
            }
        }
    }

    /// The first gate of the edge that has no room for `kinds`.
    pub(super) fn full(&self, gates: &Gates, kinds: Kinds, reattach: bool) -> Option<Full> {
        gates.caps.iter().find_map(|gate| {
            let used = self.usage(gate.subject);
            let streams = if reattach { gate.stream } else { gate.ordinary };
            let reason = |plain| {
                if gate.is_own {
                    Reason::CredentialCap
                } else {
                    plain
                }
            };
            if kinds.stream && streams > 0 && used.stream >= streams {
                Some((reason(Reason::AccountStreamCap), streams, used.stream))
            } else if kinds.create && gate.create > 0 && used.create >= gate.create {
                Some((reason(Reason::AccountCreateCap), gate.create, used.create))
            } else {
                None
            }
        })
    }

    pub(super) fn stream_totals(&self, pool: &Pool, limits: Limits) -> (u64, Option<u64>) {
        let held = self.account_streams(pool);
        let mut in_flight = 0;
        let mut capacity = Some(0u64);
        for account in pool.accounts().iter().filter(|a| a.state.takes_work()) {
            in_flight += held.get(&account.id).copied().map_or(0, u64::from);
            let one = account_gate(0, account, limits).ordinary;
            capacity = capacity
                .filter(|_| one > 0)
                .map(|sum| sum + u64::from(one) * quotas(pool, account));
        }
        (in_flight, capacity)
    }

    pub(super) fn account_streams(&self, pool: &Pool) -> HashMap<AccountId, u32> {
        let held = |account: &Account| {
            let number = self.numbers.get(&SubjectId::Account(account.id))?;
            Some((account.id, self.usage(*number).stream))
        };
        let all = pool.accounts().iter().filter_map(held);
        all.filter(|(_, streams)| *streams > 0).collect()
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> &[Usage] {
        &self.usage
    }
}

/// Streams that ordinary requests may not hold, over all accounts that take work.
pub(super) fn stream_reserve(pool: &Pool, limits: Limits) -> u64 {
    let accounts = pool.accounts().iter().filter(|a| a.state.takes_work());
    let reserved = accounts.map(|account| {
        let gate = account_gate(0, account, limits);
        u64::from(gate.stream - gate.ordinary) * quotas(pool, account)
    });
    reserved.sum()
}

/// How many times the account's caps exist.
fn quotas(pool: &Pool, account: &Account) -> u64 {
    match account.quota_scope {
        QuotaScope::Account => 1,
        QuotaScope::Credential => {
            let charged = |c: &&Credential| c.accounts.contains(&account.id);
            pool.credentials().iter().filter(charged).count() as u64
        }
    }
}

/// What ordinary requests may hold of `limit` streams.
fn ordinary(limit: u32, reserve: u32) -> u32 {
    if limit == 0 {
        0
    } else {
        limit.saturating_sub(reserve).max(1)
    }
}

fn account_gate(subject: u32, account: &Account, limits: Limits) -> Gate {
    let stream = account.stream_limit.unwrap_or(limits.stream);
    Gate {
        subject,
        ordinary: ordinary(stream, limits.reserve),
        stream,
        create: account.create_limit.unwrap_or(limits.create),
        is_own: false,
    }
}

fn credential_gate(own: u32, account: &Account, credential: &Credential, limits: Limits) -> Gate {
    let stream = credential
        .stream_limit
        .or(account.stream_limit)
        .unwrap_or(limits.stream);
    let create = credential.create_limit.or(account.create_limit);
    Gate {
        subject: own,
        ordinary: ordinary(stream, limits.reserve),
        stream,
        create: create.unwrap_or(limits.create),
        is_own: false,
    }
}

/// The credential's own caps, where it has any; nothing of them is reserved.
fn own_gate(own: u32, credential: &Credential) -> Option<Gate> {
    let stream = credential.stream_limit.unwrap_or(0);
    let create = credential.create_limit.unwrap_or(0);
    (stream > 0 || create > 0).then_some(Gate {
        subject: own,
        ordinary: stream,
        stream,
        create,
        is_own: true,
    })
}
