//! Admission: who gets a slot on which edge, who waits, and who is let in when a slot is given back.
//!
//! One pure state machine for every path. Events go in ([`request`](Admission::request),
//! [`release`](Admission::release), [`withdraw`](Admission::withdraw),
//! [`reconfigure`](Admission::reconfigure)), grants and refusals come out; nothing waits in here.
//!
//! Invariants: no cap is exceeded by a grant; after every event no parked request could be
//! admitted, so that a newcomer which finds room overtakes nobody; the counts equal the leases.
pub mod demand;
mod gates;
mod selection;

pub use self::demand::{Demand, Kinds, Refusal};

use self::{
    gates::{Gates, Subjects},
    selection::{Blocked, select},
};
use super::{
    ids::{AccountId, KeyId},
    pool::{EdgeRef, Pool},
    reason::Reason,
};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// The caps that settings give to accounts which state none, and the bounds on waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Streams at once per account; 0 = unlimited.
    pub stream: u32,
    /// Requests being started at once per account; 0 = unlimited.
    pub create: u32,
    /// Stream slots per account that only reattaching may take.
    pub reserve: u32,
    /// Parked requests per client key.
    pub waiters_per_key: usize,
    /// Whether requests may park at all.
    pub may_park: bool,
}

/// Names a lease while it is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseId(u64);

/// Names a parked request. Later ones are larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WaiterId(u64);

/// A slot taken: the edge to use, within the snapshot that it was chosen from.
#[derive(Clone, Debug)]
pub struct Grant {
    /// To be given back by [`Admission::release`].
    pub lease: LeaseId,
    /// The edge to use.
    pub edge: EdgeRef,
}

/// What became of a request for a slot.
#[derive(Clone, Debug)]
pub enum Decision {
    /// It may go.
    Granted(Grant),
    /// It waits; the answer comes as a [`Settled`] of a later event.
    Parked(WaiterId),
    /// It may not go, and waiting would not help.
    Refused(Refusal),
}

/// The answer to a parked request.
#[derive(Debug)]
pub struct Settled {
    /// Whose.
    pub waiter: WaiterId,
    /// Let in, or refused after all because the pool changed.
    pub answer: Result<Grant, Refusal>,
}

/// Which part of a lease is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The slot for starting a request alone.
    Create,
    /// Everything.
    All,
}

#[derive(Debug)]
struct LeaseRow {
    key: Option<KeyId>,
    subjects: Arc<[u32]>,
    held: Kinds,
}

/// What one client key holds and waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// Streams held.
    pub streams: usize,
    /// Requests parked.
    pub waiting: usize,
}

#[derive(Debug)]
struct Waiter {
    demand: Arc<Demand>,
    why: Refusal,
}

/// The state: leases held, requests parked, and the pool that both refer to.
#[derive(Debug)]
pub struct Admission {
    pool: Arc<Pool>,
    limits: Limits,
    subjects: Subjects,
    gates: Vec<Gates>,
    leases: HashMap<LeaseId, LeaseRow>,
    waiters: BTreeMap<WaiterId, Waiter>,
    waiting: HashMap<Option<KeyId>, usize>,
    minted: u64,
}

impl Admission {
    /// Nothing held, nobody waiting.
    pub fn new(pool: Arc<Pool>, limits: Limits) -> Self {
        let mut subjects = Subjects::default();
        let gates = subjects.gates_of(&pool, limits);
        Self {
            pool,
            limits,
            subjects,
            gates,
            leases: HashMap::new(),
            waiters: BTreeMap::new(),
            waiting: HashMap::new(),
            minted: 0,
        }
    }

    /// Grants, parks or refuses one request. Check and taking are one step.
    pub fn request(&mut self, demand: &Arc<Demand>) -> Decision {
        match self.try_grant(demand) {
            Ok(grant) => Decision::Granted(grant),
            Err(Blocked::ForNow(why)) => self.park(demand, why),
            Err(Blocked::ForGood(refusal)) => Decision::Refused(refusal),
        }
    }

    fn try_grant(&mut self, demand: &Demand) -> Result<Grant, Blocked> {
        let edge = select(&self.pool, &self.gates, &self.subjects, demand)?;
        let gates = &self.gates[edge.position()];
        self.subjects
            .take(gates, demand.kinds, self.pool.edge(edge).weight);
        self.minted += 1;
        let lease = LeaseId(self.minted);
        self.leases.insert(
            lease,
            LeaseRow {
                key: demand.key_id(),
                subjects: Arc::clone(&gates.subjects),
                held: demand.kinds,
            },
        );
        Ok(Grant {
            lease,
            edge: EdgeRef::new(Arc::clone(&self.pool), edge),
        })
    }

    fn park(&mut self, demand: &Arc<Demand>, why: Refusal) -> Decision {
        if !self.limits.may_park {
            return Decision::Refused(why);
        }
        let key = demand.key_id();
        let waiting = self.waiting.get(&key).copied().unwrap_or(0);
        let most = self.limits.waiters_per_key;
        if waiting >= most {
            return Decision::Refused(Refusal::limit(Reason::QueueFull, most, waiting));
        }
        self.waiting.insert(key, waiting + 1);
        self.minted += 1;
        let id = WaiterId(self.minted);
        let demand = Arc::clone(demand);
        self.waiters.insert(id, Waiter { demand, why });
        Decision::Parked(id)
    }

    /// Gives a lease, or a part of it, back. What can now be let in is appended to `settled`.
    /// A lease that is not held any more is left alone.
    pub fn release(&mut self, lease: LeaseId, part: Part, settled: &mut Vec<Settled>) {
        let Some(row) = self.leases.get_mut(&lease) else {
            return;
        };
        let freed = match part {
            Part::Create => Kinds {
                stream: false,
                ..row.held
            },
            Part::All => row.held,
        };
        row.held = row.held.without(freed);
        self.subjects.give_back(&row.subjects, freed);
        if part == Part::All {
            self.leases.remove(&lease);
        }
        if freed != Kinds::NONE {
            self.pass(settled);
        }
    }

    /// A parked request leaves. Gives why it was waiting, or `None` if it waits no more.
    pub fn withdraw(&mut self, waiter: WaiterId) -> Option<Refusal> {
        let row = self.waiters.remove(&waiter)?;
        self.forget_waiting(row.demand.key_id());
        Some(row.why)
    }

    /// A new pool or new limits. Everyone parked is resolved anew, client keys included; nothing
    /// that runs is cut off.
    pub fn reconfigure(&mut self, pool: Arc<Pool>, limits: Limits, settled: &mut Vec<Settled>) {
        self.gates = self.subjects.gates_of(&pool, limits);
        self.pool = pool;
        self.limits = limits;
        self.renew_keys(settled);
        self.pass(settled);
    }

    /// Gives those who wait the rights that their keys have now, or refuses them.
    fn renew_keys(&mut self, settled: &mut Vec<Settled>) {
        let mut refused = Vec::new();
        for (id, row) in &mut self.waiters {
            match row.demand.renewed(&self.pool) {
                Ok(None) => (),
                Ok(Some(demand)) => row.demand = Arc::new(demand),
                Err(reason) => refused.push((*id, reason)),
            }
        }
        for (waiter, reason) in refused {
            self.withdraw(waiter);
            let answer = Err(Refusal::bare(reason));
            settled.push(Settled { waiter, answer });
        }
    }

    /// Lets in, oldest first, everyone who can be; one look at each is enough, because a grant
    /// only ever takes room away.
    fn pass(&mut self, settled: &mut Vec<Settled>) {
        if self.waiters.is_empty() {
            return;
        }
        let mut cursor = WaiterId(0);
        while let Some((id, demand)) = self.next_waiter(cursor) {
            cursor = WaiterId(id.0 + 1);
            let answer = match self.try_grant(&demand) {
                Ok(grant) => Ok(grant),
                Err(Blocked::ForGood(refusal)) => Err(refusal),
                Err(Blocked::ForNow(why)) => {
                    if let Some(row) = self.waiters.get_mut(&id) {
                        row.why = why;
                    }
                    continue;
                }
            };
            self.waiters.remove(&id);
            self.forget_waiting(demand.key_id());
            settled.push(Settled { waiter: id, answer });
        }
    }

    fn next_waiter(&self, from: WaiterId) -> Option<(WaiterId, Arc<Demand>)> {
        let (id, row) = self.waiters.range(from..).next()?;
        Some((*id, Arc::clone(&row.demand)))
    }

    fn forget_waiting(&mut self, key: Option<KeyId>) {
        if let Some(waiting) = self.waiting.get_mut(&key) {
            *waiting -= 1;
            if *waiting == 0 {
                self.waiting.remove(&key);
            }
        }
    }

    /// How many leases are held.
    pub fn leases(&self) -> usize {
        self.leases.len()
    }

    /// How many requests are parked.
    pub fn waiters(&self) -> usize {
        self.waiters.len()
    }

    /// What every client key holds and waits for; `None` stands for requests without a key. Whoever
    /// does neither is not in it.
    pub fn holdings(&self) -> HashMap<Option<KeyId>, Holding> {
        let mut holdings: HashMap<_, Holding> = HashMap::new();
        for row in self.leases.values().filter(|row| row.held.stream) {
            holdings.entry(row.key).or_default().streams += 1;
        }
        for (key, waiting) in &self.waiting {
            holdings.entry(*key).or_default().waiting = *waiting;
        }
        holdings
    }

    /// Streams held on each account of the pool that holds any, whether or not it takes new work.
    pub fn account_streams(&self) -> HashMap<AccountId, u32> {
        self.subjects.account_streams(&self.pool)
    }

    /// Streams that only clients coming back may hold, over all accounts that take work.
    pub fn stream_reserve(&self) -> u64 {
        gates::stream_reserve(&self.pool, self.limits)
    }

    /// (in flight, ordinary capacity) of streams over all accounts that take work; the capacity
    /// is `None` where one of them is unlimited.
    pub fn stream_totals(&self) -> (u64, Option<u64>) {
        self.subjects.stream_totals(&self.pool, self.limits)
    }
}

#[cfg(test)]
mod tests;
