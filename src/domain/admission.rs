//! Admission: who gets a slot on which edge, who waits, and who is let in when a slot is given back.
//!
//! One pure state machine for every path. Events go in ([`request`](Admission::request),
//! [`observe`](Admission::observe), [`release`](Admission::release),
//! [`withdraw`](Admission::withdraw), [`reconfigure`](Admission::reconfigure),
//! [`handle_timeout`](Admission::handle_timeout)), grants, refusals and what happened on the way
//! come out as [`Effects`]; nothing waits in here. [`next_wakeup`](Admission::next_wakeup) says when
//! time alone changes something.
//!
//! Invariants: no cap is exceeded by a grant; nothing that cools, rests or is out of service is
//! granted, but for the single shot; after every event no parked request could be admitted, so
//! that a newcomer which finds room overtakes nobody; the counts equal the leases.
mod blocked;
pub mod demand;
mod evidence;
mod explain;
mod layout;
mod order;
mod picture;
mod selection;
mod strategy;
mod subjects;
mod time;

pub use self::{
    demand::{Demand, Kinds, Owner, Refusal, Tried},
    evidence::{Evidence, Note},
    explain::{Explained, Foreseen, Holding, Standing},
    layout::{Layout, Numbers, Subject},
    picture::{HeldLease, Waiting},
    selection::Why,
    strategy::Strategy,
};

use self::{blocked::Blocked, layout::Gates, order::Order, selection::View, subjects::Subjects};
use super::{
    ids::{KeyId, RequestId},
    moment::Moment,
    pool::EdgeRef,
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
    /// Jobs at once per account; 0 = unlimited.
    pub job: u32,
    /// Stream slots per account that only reattaching may take.
    pub reserve: u32,
    /// From how many percent of the ordinary capacity on a pool counts as congested; 0 = never, and
    /// no key is held back for the sake of others.
    pub fair_share_pct: u32,
    /// Parked requests per client key.
    pub waiters_per_key: usize,
    /// Whether requests may park at all.
    pub may_park: bool,
    /// By what an account is chosen.
    pub strategy: Strategy,
    /// How many failures in a row make an endpoint rest.
    pub breaker_threshold: u32,
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

/// What an event brought about.
#[derive(Debug, Default)]
pub struct Effects {
    /// Parked requests that have their answer.
    pub settled: Vec<Settled>,
    /// What cooled, rested or came back, to be told and kept.
    pub notes: Vec<Note>,
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
    holder: RequestId,
    key: Option<KeyId>,
    /// What it was granted on.
    edge: EdgeRef,
    gates: Arc<Gates>,
    held: Kinds,
    breaker: u32,
    /// The model as upstream knows it, where limits are by model.
    model: Option<Arc<str>>,
    granted_at: Moment,
    /// Whether its answer says anything of a limit.
    is_evidence: bool,
}

#[derive(Debug)]
struct Waiter {
    demand: Arc<Demand>,
    parked_at: Moment,
}

/// The state: leases held, requests parked, and the pool that both refer to.
#[derive(Debug)]
pub struct Admission {
    layout: Layout,
    subjects: Subjects,
    order: Order,
    leases: HashMap<LeaseId, LeaseRow>,
    waiters: BTreeMap<WaiterId, Waiter>,
    waiting: HashMap<Option<KeyId>, usize>,
    minted: u64,
}

impl Admission {
    /// Nothing held, nobody waiting.
    pub fn new(layout: Layout) -> Self {
        let mut subjects = Subjects::default();
        subjects.grow(layout.subjects.len(), layout.breaker_count);
        let mut order = Order::default();
        order.rebuild(&layout, &subjects);
        Self {
            layout,
            subjects,
            order,
            leases: HashMap::new(),
            waiters: BTreeMap::new(),
            waiting: HashMap::new(),
            minted: 0,
        }
    }

    const fn view(&self) -> View<'_> {
        View {
            layout: &self.layout,
            subjects: &self.subjects,
            order: &self.order,
        }
    }

    /// Grants, parks or refuses one request. Check and taking are one step.
    pub fn request(&mut self, now: Moment, demand: &Arc<Demand>) -> Decision {
        if let Some(grant) = self.try_grant(now, demand) {
            return Decision::Granted(grant);
        }
        match self.view().blocked(demand) {
            Blocked::ForNow(why) => self.park(now, demand, why),
            Blocked::ForGood(refusal) => Decision::Refused(refusal),
        }
    }

    fn try_grant(&mut self, now: Moment, demand: &Demand) -> Option<Grant> {
        let index = self.view().select(demand)?;
        let pool = Arc::clone(&self.layout.pool);
        let edge = pool.edge(index);
        let gates = Arc::clone(self.layout.gates(index));
        self.minted += 1;
        let lease = LeaseId(self.minted);
        let asked = demand.model.as_deref().filter(|_| gates.is_per_model());
        let row = LeaseRow {
            holder: demand.holder,
            key: demand.key_id(),
            edge: EdgeRef::new(Arc::clone(&pool), index),
            breaker: self.layout.breaker(edge),
            model: asked.map(|model| pool.upstream_model(edge, model).into()),
            held: demand.kinds,
            granted_at: now,
            is_evidence: demand.is_evidence(),
            gates,
        };
        self.subjects.take(&row.gates, demand.kinds, edge.weight);
        self.take_shots(now, lease, &row);
        self.follow(&row.gates);
        self.leases.insert(lease, row);
        Some(Grant {
            lease,
            edge: EdgeRef::new(pool, index),
        })
    }

    /// Places anew whatever stands or falls with the subjects of a lease.
    fn follow(&mut self, gates: &Gates) {
        for subject in &gates.subjects {
            for unit in self.layout.dependents(*subject) {
                self.order.update(&self.layout, &self.subjects, *unit);
            }
        }
    }

    fn park(&mut self, now: Moment, demand: &Arc<Demand>, why: Refusal) -> Decision {
        if !self.layout.limits.may_park {
            return Decision::Refused(why);
        }
        let key = demand.key_id();
        let waiting = self.waiting.get(&key).copied().unwrap_or(0);
        let most = self.layout.limits.waiters_per_key;
        if waiting >= most {
            return Decision::Refused(Refusal::limit(Reason::QueueFull, most, waiting));
        }
        self.waiting.insert(key, waiting + 1);
        self.minted += 1;
        let id = WaiterId(self.minted);
        let demand = Arc::clone(demand);
        self.waiters.insert(
            id,
            Waiter {
                demand,
                parked_at: now,
            },
        );
        Decision::Parked(id)
    }

    /// Gives a lease, or a part of it, back. A lease that is not held any more is left alone.
    pub fn release(&mut self, now: Moment, lease: LeaseId, part: Part, effects: &mut Effects) {
        let Some(row) = self.leases.get_mut(&lease) else {
            return;
        };
        let freed = match part {
            Part::Create => Kinds {
                create: row.held.create,
                ..Kinds::NONE
            },
            Part::All => row.held,
        };
        row.held = row.held.without(freed);
        let gates = Arc::clone(&row.gates);
        self.subjects.give_back(&gates, freed);
        let mut has_changed = freed != Kinds::NONE;
        if part == Part::All
            && let Some(row) = self.leases.remove(&lease)
        {
            has_changed |= self.pass_shots(lease, &row, effects);
        }
        if has_changed {
            self.follow(&gates);
            self.pass(now, effects);
        }
    }

    /// A parked request leaves. `false` if it waits no more.
    pub fn withdraw(&mut self, waiter: WaiterId) -> bool {
        let Some(row) = self.waiters.remove(&waiter) else {
            return false;
        };
        self.forget_waiting(row.demand.key_id());
        true
    }

    /// Why a parked request waits, or `None` if it waits no more. Looks at every candidate, and so
    /// is for those whose client is still there to be told.
    pub fn why_waiting(&self, waiter: WaiterId) -> Option<Refusal> {
        let row = self.waiters.get(&waiter)?;
        let (Blocked::ForNow(why) | Blocked::ForGood(why)) = self.view().blocked(&row.demand);
        Some(why)
    }

    /// A new pool or new limits. Everyone parked is resolved anew, client keys included; nothing
    /// that runs is cut off, and nothing that cools is forgotten.
    pub fn reconfigure(&mut self, now: Moment, layout: Layout, effects: &mut Effects) {
        self.subjects
            .grow(layout.subjects.len(), layout.breaker_count);
        self.layout = layout;
        self.order.rebuild(&self.layout, &self.subjects);
        self.renew_keys(effects);
        self.pass(now, effects);
        self.refuse_the_hopeless(effects);
    }

    /// Gives those who wait the rights that their keys have now, or refuses them.
    fn renew_keys(&mut self, effects: &mut Effects) {
        let mut refused = Vec::new();
        for (id, row) in &mut self.waiters {
            match row.demand.renewed(&self.layout.pool) {
                Ok(None) => (),
                Ok(Some(demand)) => row.demand = Arc::new(demand),
                Err(reason) => refused.push((*id, Refusal::bare(reason))),
            }
        }
        self.refuse(refused, effects);
    }

    /// Refuses those for whom nothing is left that could become free.
    fn refuse_the_hopeless(&mut self, effects: &mut Effects) {
        let hopeless = |(id, row): (&WaiterId, &Waiter)| match self.view().blocked(&row.demand) {
            Blocked::ForGood(refusal) => Some((*id, refusal)),
            Blocked::ForNow(_) => None,
        };
        let refused = self.waiters.iter().filter_map(hopeless).collect();
        self.refuse(refused, effects);
    }

    fn refuse(&mut self, refused: Vec<(WaiterId, Refusal)>, effects: &mut Effects) {
        for (waiter, refusal) in refused {
            if let Some(row) = self.waiters.remove(&waiter) {
                self.forget_waiting(row.demand.key_id());
                let answer = Err(refusal);
                effects.settled.push(Settled { waiter, answer });
            }
        }
    }

    /// Lets in, oldest first, everyone who can be; one look at each is enough, because a grant
    /// only ever takes room away.
    fn pass(&mut self, now: Moment, effects: &mut Effects) {
        let mut cursor = WaiterId(0);
        while let Some((id, demand)) = self.next_waiter(cursor) {
            cursor = WaiterId(id.0 + 1);
            let Some(grant) = self.try_grant(now, &demand) else {
                continue;
            };
            self.waiters.remove(&id);
            self.forget_waiting(demand.key_id());
            effects.settled.push(Settled {
                waiter: id,
                answer: Ok(grant),
            });
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
}

#[cfg(test)]
mod tests;
