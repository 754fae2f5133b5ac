//! A snapshot of the pool as admission sees it: the caps of each edge, and who depends on what.
//!
//! A *subject* is whatever slots are counted on and whatever cools: an account or a credential.
//! Every lease counts on all subjects of its edge, capped or not, so that a cap set later finds
//! true numbers. A *gate* is a cap on one subject.
//!
//! Invariant: a subject, and an endpoint's breaker, keep their number for the life of the process,
//! whatever happens to the pool.
use super::{Demand, Limits};
use crate::domain::{
    ids::{AccountId, CredentialId, EndpointId, KeyId},
    pool::{Account, Credential, Edge, EdgeIndex, Offers, Pool, QuotaScope, Unit},
};
use std::{collections::HashMap, sync::Arc};

/// Whatever slots are counted on and whatever cools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// An account.
    Account(AccountId),
    /// A credential.
    Credential(CredentialId),
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
    pub(super) job: u32,
}

/// A subject that a 429 on an edge cools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limited {
    pub(super) subject: u32,
    pub(super) is_per_model: bool,
    pub(super) is_trusted: bool,
}

/// What a lease on an edge counts on and is held back by.
#[derive(Debug)]
pub(super) struct Gates {
    /// Every subject that it counts on, accounts first, the credential last.
    pub(super) subjects: Box<[u32]>,
    /// The caps that all edges of its unit share.
    pub(super) shared: Box<[Gate]>,
    /// The credential's own cap on top of them.
    pub(super) own: Option<Gate>,
    /// What a 429 cools.
    pub(super) limited: Box<[Limited]>,
}

impl Gates {
    /// The credential's number.
    pub(super) fn credential(&self) -> u32 {
        self.subjects.last().copied().unwrap_or_default()
    }

    /// Whether slots are taken on several things at once.
    pub(super) fn spans_several(&self) -> bool {
        let mut subjects = self.shared.iter().map(|gate| gate.subject);
        let first = subjects.next();
        subjects.any(|subject| Some(subject) != first)
    }

    /// The subject whose turn is the unit's turn: whatever is limited as a whole.
    pub(super) fn turn(&self) -> u32 {
        let first = self.limited.first().map(|l| l.subject);
        first.unwrap_or_else(|| self.credential())
    }
}

/// A snapshot, prepared for admission. Made outside of the lock.
#[derive(Debug)]
pub struct Layout {
    pub(super) pool: Arc<Pool>,
    pub(super) limits: Limits,
    /// By edge.
    gates: Vec<Arc<Gates>>,
    /// By endpoint of the pool: the number of its breaker.
    breakers: Vec<u32>,
    /// By subject: the units whose standing follows its own.
    dependents: Vec<Vec<u32>>,
    /// How many breakers have a number.
    pub(super) breaker_count: usize,
    /// Who has which number, for those that have one by now.
    pub(super) subjects: Arc<[Subject]>,
    /// The weight of every client key.
    pub(super) weights: HashMap<KeyId, u32>,
    /// Whether any account cools by model.
    pub(super) is_per_model: bool,
    /// Whether any credential takes slots on several accounts at once.
    pub(super) has_several: bool,
}

/// Gives out numbers.
#[derive(Debug, Default)]
pub struct Numbers {
    subjects: HashMap<Subject, u32>,
    listed: Vec<Subject>,
    endpoints: HashMap<EndpointId, u32>,
}

impl Numbers {
    fn subject(&mut self, subject: Subject) -> u32 {
        let next = u32::try_from(self.listed.len()).unwrap_or(u32::MAX);
        let number = *self.subjects.entry(subject).or_insert(next);
        if number == next {
            self.listed.push(subject);
        }
        number
    }

    fn endpoint(&mut self, id: EndpointId) -> u32 {
        let next = u32::try_from(self.endpoints.len()).unwrap_or(u32::MAX);
        *self.endpoints.entry(id).or_insert(next)
    }

    /// Prepares a snapshot.
    pub fn layout(&mut self, pool: Arc<Pool>, limits: Limits) -> Layout {
        let accounts = pool.accounts().iter();
        let account_numbers: Vec<u32> = accounts
            .map(|a| self.subject(Subject::Account(a.id)))
            .collect();
        let endpoints = pool.endpoints().iter();
        let breakers = endpoints.map(|e| self.endpoint(e.id)).collect();
        let gates = self.gates(&pool, &account_numbers, limits);
        let mut dependents = vec![Vec::new(); self.listed.len()];
        for (unit, n) in pool.units().iter().zip(0u32..) {
            let Some(gates) = gates
                .get(unit.edges.start as usize)
                .filter(|_| !unit.edges.is_empty())
            else {
                continue;
            };
            let caps = gates.shared.iter().map(|g| g.subject);
            let limited = gates.limited.iter().map(|l| l.subject);
            for subject in caps.chain(limited) {
                if let Some(units) = dependents.get_mut(subject as usize)
                    && units.last() != Some(&n)
                {
                    units.push(n);
                }
            }
        }
        Layout {
            breakers,
            dependents,
            breaker_count: self.endpoints.len(),
            subjects: self.listed.as_slice().into(),
            weights: pool.keys().iter().map(|k| (k.id, k.weight)).collect(),
            has_several: gates.iter().any(|gates| gates.spans_several()),
            is_per_model: pool.accounts().iter().any(|a| a.cooldown_per_model),
            pool,
            limits,
            gates,
        }
    }

    fn gates(&mut self, pool: &Pool, accounts: &[u32], limits: Limits) -> Vec<Arc<Gates>> {
        let mut all: Vec<Arc<Gates>> = Vec::with_capacity(pool.edges().len());
        let mut last: Option<usize> = None;
        for edge in pool.edges() {
            // A credential's edges stand together and have the same gates.
            let same = all.last().filter(|_| last == Some(edge.credential));
            let gates = match same {
                Some(gates) => Arc::clone(gates),
                None => Arc::new(self.gates_of(pool, edge, accounts, limits)),
            };
            last = Some(edge.credential);
            all.push(gates);
        }
        all
    }

    fn gates_of(&mut self, pool: &Pool, edge: &Edge, numbers: &[u32], limits: Limits) -> Gates {
        let credential = pool.credential(edge);
        let own = self.subject(Subject::Credential(credential.id));
        let number = |n: &usize| numbers.get(*n).copied().unwrap_or_default();
        let mut subjects: Vec<u32> = edge.accounts.iter().map(number).collect();
        let mut limited: Vec<Limited> = Vec::new();
        let mut shared = Vec::new();
        for (account, n) in pool.accounts_of(edge).zip(&subjects) {
            let (subject, gate) = match account.quota_scope {
                QuotaScope::Account => (*n, account_gate(*n, account, limits)),
                QuotaScope::Credential => (own, credential_gate(own, account, credential, limits)),
            };
            shared.push(gate);
            if limited.iter().all(|l| l.subject != subject) {
                limited.push(Limited {
                    subject,
                    is_per_model: account.cooldown_per_model,
                    is_trusted: account.trust_reset,
                });
            }
        }
        subjects.push(own);
        Gates {
            subjects: subjects.into(),
            shared: shared.into(),
            own: own_gate(own, credential),
            limited: limited.into(),
        }
    }
}

impl Layout {
    /// The edges that serve what a request asks for, whoever may use them.
    pub(super) fn offers(&self, demand: &Demand) -> Offers<'_> {
        self.pool.offers(demand.protocol, demand.model.as_deref())
    }

    pub(super) fn gates(&self, edge: EdgeIndex) -> &Arc<Gates> {
        &self.gates[edge.position()]
    }

    /// The gates that all edges of a unit share; `None` for a unit without edges.
    pub(super) fn unit_gates(&self, unit: u32) -> Option<&Arc<Gates>> {
        let unit = self.unit(unit)?;
        let first = self.gates.get(unit.edges.start as usize);
        first.filter(|_| !unit.edges.is_empty())
    }

    pub(super) fn unit(&self, unit: u32) -> Option<&Unit> {
        self.pool.units().get(unit as usize)
    }

    pub(super) fn units(&self) -> u32 {
        u32::try_from(self.pool.units().len()).unwrap_or(u32::MAX)
    }

    /// The number of an edge's breaker.
    pub(super) fn breaker(&self, edge: &Edge) -> u32 {
        self.breakers
            .get(edge.endpoint)
            .copied()
            .unwrap_or_default()
    }

    /// The number of an endpoint's breaker.
    pub(super) fn breaker_at(&self, endpoint: usize) -> u32 {
        self.breakers.get(endpoint).copied().unwrap_or_default()
    }

    /// The units whose standing follows a subject's.
    pub(super) fn dependents(&self, subject: u32) -> &[u32] {
        self.dependents
            .get(subject as usize)
            .map_or(&[], Vec::as_slice)
    }

    /// A subject's number, where it has one.
    pub(super) fn number(&self, subject: Subject) -> Option<u32> {
        let found = self.subjects.iter().position(|s| *s == subject)?;
        u32::try_from(found).ok()
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
        job: account.job_limit.unwrap_or(limits.job),
    }
}

fn credential_gate(own: u32, account: &Account, credential: &Credential, limits: Limits) -> Gate {
    let stream = credential
        .stream_limit
        .or(account.stream_limit)
        .unwrap_or(limits.stream);
    let create = credential.create_limit.or(account.create_limit);
    let job = credential.job_limit.or(account.job_limit);
    Gate {
        subject: own,
        ordinary: ordinary(stream, limits.reserve),
        stream,
        create: create.unwrap_or(limits.create),
        job: job.unwrap_or(limits.job),
    }
}

/// The credential's own caps, where it has any; nothing of them is reserved.
fn own_gate(own: u32, credential: &Credential) -> Option<Gate> {
    let stream = credential.stream_limit.unwrap_or(0);
    let create = credential.create_limit.unwrap_or(0);
    let job = credential.job_limit.unwrap_or(0);
    (stream > 0 || create > 0 || job > 0).then_some(Gate {
        subject: own,
        ordinary: stream,
        stream,
        create,
        job,
    })
}
