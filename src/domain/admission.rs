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
//! granted, but for the single shot; no key is let beyond its share of a congested pool; after
//! every event no parked request could be admitted, so that a newcomer which finds room overtakes
//! nobody; the counts equal the leases.
//!
//! Where to read on: `selection` chooses an edge, `fair_share` says whether a key may have one more,
//! `sets` keeps the sums of that, `leases` takes slots and gives them back, `lanes` orders those who
//! wait, `pass` lets them in, `queue` is how they come and go, `several` is for those who need slots
//! on more than one account at once.
mod blocked;
pub mod demand;
mod evidence;
mod explain;
mod fair_share;
mod heal;
mod lanes;
mod layout;
mod leases;
mod order;
mod pass;
mod picture;
mod queue;
mod selection;
mod sets;
mod several;
mod strategy;
mod subjects;
mod time;

pub use self::{
    demand::{Demand, Kinds, Owner, Refusal, Tried},
    evidence::{Evidence, Note},
    explain::{Explained, Foreseen, Holding, Standing},
    fair_share::{LEAST, Share},
    heal::{Healed, NoLease},
    layout::{Layout, Numbers, Subject},
    leases::Part,
    picture::{HeldLease, Waiting},
    selection::Why,
    strategy::Strategy,
};

use self::{
    lanes::Lanes, leases::LeaseRow, order::Order, pass::Scope, selection::View, sets::Sets,
    several::Hold, subjects::Subjects,
};
use super::{moment::Moment, pool::EdgeRef};
use rustc_hash::FxHashMap;
use std::{collections::BTreeMap, sync::Arc};

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

#[derive(Clone, Debug)]
struct Waiter {
    demand: Arc<Demand>,
    parked_at: Moment,
    group: lanes::GroupId,
    /// Whether it has been told already that fair share holds the request back.
    is_told: bool,
}

/// The state: leases held, requests parked, and the pool that both refer to.
#[derive(Debug)]
pub struct Admission {
    layout: Layout,
    subjects: Subjects,
    order: Order,
    sets: Sets,
    lanes: Lanes,
    /// Units that owners' waiters need, with how many each.
    wanted: FxHashMap<u32, u32>,
    hold: Option<Hold>,
    leases: FxHashMap<LeaseId, LeaseRow>,
    waiters: BTreeMap<WaiterId, Waiter>,
    minted: u64,
    /// Whether some keys' shares may have grown since the last pass.
    has_shifted: bool,
}

/// Why a request may not go now.
#[derive(Clone, Copy, Debug)]
enum Denial {
    /// Nothing can take it.
    NoRoom,
    /// Something could, but the key holds its share.
    FairShare(Share),
}

impl Admission {
    /// Nothing held, nobody waiting.
    pub fn new(layout: Layout) -> Self {
        let mut subjects = Subjects::default();
        subjects.grow(layout.subjects.len(), layout.breaker_count);
        let mut order = Order::default();
        order.rebuild(&layout, &subjects);
        let mut sets = Sets::default();
        sets.clear(&layout);
        Self {
            layout,
            subjects,
            order,
            sets,
            lanes: Lanes::default(),
            wanted: FxHashMap::default(),
            hold: None,
            leases: FxHashMap::default(),
            waiters: BTreeMap::new(),
            minted: 0,
            has_shifted: false,
        }
    }

    const fn view(&self) -> View<'_> {
        View {
            layout: &self.layout,
            subjects: &self.subjects,
            order: &self.order,
            wanted: &self.wanted,
        }
    }

    /// The state as sets see it, beside the sets themselves.
    const fn split(&mut self) -> (View<'_>, &mut Sets) {
        let view = View {
            layout: &self.layout,
            subjects: &self.subjects,
            order: &self.order,
            wanted: &self.wanted,
        };
        (view, &mut self.sets)
    }

    /// Grants, parks or refuses one request. Check and taking are one step.
    pub fn request(
        &mut self,
        now: Moment,
        demand: &Arc<Demand>,
        effects: &mut Effects,
    ) -> Decision {
        let denial = match self.denial_of_lane(demand) {
            Some(denial) => denial,
            None => match self.try_grant(now, demand) {
                Ok(grant) => {
                    self.pass_if_shifted(now, effects);
                    return Decision::Granted(grant);
                }
                Err(denial) => denial,
            },
        };
        if let Denial::FairShare(share) = denial {
            queue::tell_held_back(demand, share, effects);
        }
        self.park_or_refuse(now, demand, denial)
    }

    /// Whoever finds its own lane occupied stands behind it: what keeps the first keeps it too.
    fn denial_of_lane(&mut self, demand: &Demand) -> Option<Denial> {
        if self.lanes.waiting(demand.key_id()) == 0 {
            return None;
        }
        let is_held_back = self.lane_of(demand)?.is_held_back;
        let denial = if is_held_back {
            self.denial(demand)
        } else {
            None
        };
        Some(denial.unwrap_or(Denial::NoRoom))
    }

    /// What keeps a request from going now; `None` if nothing does. Nothing is taken.
    fn denial(&mut self, demand: &Demand) -> Option<Denial> {
        if self.view().select(demand).is_none() {
            return Some(Denial::NoRoom);
        }
        self.held_back(demand).map(Denial::FairShare)
    }

    fn try_grant(&mut self, now: Moment, demand: &Demand) -> Result<Grant, Denial> {
        let index = self.view().select(demand).ok_or(Denial::NoRoom)?;
        match self.held_back(demand) {
            Some(share) => Err(Denial::FairShare(share)),
            None => Ok(self.grant(now, demand, index)),
        }
    }

    /// The share that a key holds already, where that keeps it from one more stream.
    fn held_back(&mut self, demand: &Demand) -> Option<Share> {
        let is_exempt = !demand.kinds.stream || demand.reattach || demand.is_moving;
        if self.layout.limits.fair_share_pct == 0 || is_exempt || demand.key.is_none() {
            return None;
        }
        let (view, sets) = self.split();
        let set = sets.of(view, demand);
        sets.share(set, demand).filter(|share| !share.admits())
    }

    /// A new pool or new limits. Everyone parked is resolved anew, client keys included; nothing
    /// that runs is cut off, and nothing that cools is forgotten.
    pub fn reconfigure(&mut self, now: Moment, layout: Layout, effects: &mut Effects) {
        self.subjects
            .grow(layout.subjects.len(), layout.breaker_count);
        self.layout = layout;
        self.drop_hold();
        self.order.rebuild(&self.layout, &self.subjects);
        self.recount_sets();
        self.requeue(now, effects);
        self.pass(now, &Scope::All, effects);
        self.refuse_the_hopeless(&Scope::All, effects);
        self.pass_if_shifted(now, effects);
    }

    /// Counts anew what fair share is reckoned from, with the weights that keys have now.
    fn recount_sets(&mut self) {
        self.sets.clear(&self.layout);
        let weights = &self.layout.weights;
        self.lanes.reweigh(|key| weights.get(&key).copied());
        for row in self.leases.values_mut() {
            let weight = row.key.and_then(|key| weights.get(&key).copied());
            row.weight = weight.unwrap_or(row.weight);
            if row.held.stream {
                self.sets
                    .hold(&row.gates.subjects, (row.key, row.weight), 1);
            }
        }
    }

    /// How many requests are parked.
    pub fn waiters(&self) -> usize {
        self.waiters.len()
    }
}

#[cfg(test)]
mod tests;
