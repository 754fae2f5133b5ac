//! Who waits, in lanes: one per client key, candidate set, kinds of lease and owner.
//!
//! Lanes that differ in nothing but their key form a *group*: whether there is room is the same
//! for all of them. Within a group lanes stand in the order in which they are let in, and within
//! a lane it is first in, first out.
//!
//! Invariants: a group exists while somebody waits in it; a lane's place follows what its key
//! holds at once.
mod rank;

use self::rank::Rank;
use super::{Demand, Kinds, Owner, Tried, WaiterId, sets::SetId};
use crate::domain::{ids::KeyId, moment::Moment};
use rustc_hash::FxHashMap;
use slab::Slab;
use std::collections::BTreeSet;

/// A group's place in their table.
pub(super) type GroupId = usize;

/// What requests have in common that can be let in wherever one of them can.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct GroupKey {
    set: SetId,
    kinds: Kinds,
    reattach: bool,
    owner: Owner,
    tried: Box<[Tried]>,
    is_moving: bool,
}

impl GroupKey {
    pub(super) fn of(set: SetId, demand: &Demand) -> Self {
        Self {
            set,
            kinds: demand.kinds,
            reattach: demand.reattach,
            owner: demand.owner,
            tried: demand.tried.as_slice().into(),
            is_moving: demand.is_moving,
        }
    }
}

/// Where a lane stands among all; smaller is sooner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stand {
    rank: Rank,
    /// Accounts that its requests could go to: who has fewer is first among equals.
    candidates: u32,
    /// The first in the lane, who is the oldest.
    pub(super) head: WaiterId,
    pub(super) key: Option<KeyId>,
}

/// Lanes that differ in their key alone.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) key: GroupKey,
    stands: BTreeSet<Stand>,
    by_until: BTreeSet<(Moment, WaiterId)>,
    lanes: FxHashMap<Option<KeyId>, Lane>,
    reach: Reach,
    /// Whether fair share held one of them back that could have gone otherwise.
    pub(super) is_held_back: bool,
}

/// What is known of where a group's requests could go.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    /// How many accounts.
    pub(super) candidates: u32,
    /// The units of the only credential that will do, for those that have an owner.
    pub(super) owned: Box<[u32]>,
    /// Whether every edge takes slots on several accounts at once.
    pub(super) needs_several: bool,
}

#[derive(Debug)]
struct Lane {
    queue: BTreeSet<WaiterId>,
    stand: Stand,
}

impl Group {
    pub(super) fn set(&self) -> SetId {
        self.key.set
    }

    pub(super) fn kinds(&self) -> Kinds {
        self.key.kinds
    }

    pub(super) fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Whether it concerns only some units, and none of `units`.
    pub(super) fn is_elsewhere(&self, units: &[u32]) -> bool {
        let owned = &self.reach.owned;
        !owned.is_empty() && !owned.iter().any(|unit| units.contains(unit))
    }

    /// Whether requests of it go to their owner and nowhere else.
    pub(super) fn is_owned(&self) -> bool {
        self.key.owner != Owner::Nobody
    }

    /// Whether requests of it were somewhere already.
    pub(super) fn has_tried(&self) -> bool {
        !self.key.tried.is_empty()
    }

    /// Whether the key has a lane in it.
    pub(super) fn has_lane(&self, key: Option<KeyId>) -> bool {
        self.lanes.contains_key(&key)
    }

    /// Whether a lane stands there still.
    pub(super) fn has(&self, stand: &Stand) -> bool {
        self.stands.contains(stand)
    }

    /// The first lane after `last`.
    pub(super) fn next(&self, last: Option<Stand>) -> Option<Stand> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = last.map_or(Unbounded, Excluded);
        self.stands.range((from, Unbounded)).next().copied()
    }

    /// Those whose patience ends before `end`.
    pub(super) fn impatient(&self, end: Moment) -> Vec<WaiterId> {
        let first = (end, WaiterId(0));
        self.by_until.range(..first).map(|(_, id)| *id).collect()
    }

    /// Everyone in it.
    pub(super) fn all(&self) -> Vec<WaiterId> {
        self.by_until.iter().map(|(_, id)| *id).collect()
    }
}

/// What a key holds and waits for.
#[derive(Debug)]
struct Holder {
    held: [u32; 3],
    weight: u32,
    waiting: usize,
    /// Groups in which it has a lane.
    groups: Vec<GroupId>,
}

impl Holder {
    fn rank(&self, kinds: Kinds) -> Rank {
        let [stream, create, job] = self.held;
        let held = match kinds {
            Kinds { stream: true, .. } => stream,
            Kinds { job: true, .. } => job,
            Kinds { create: true, .. } => create,
            _ => 0,
        };
        Rank {
            leases: u64::from(held) + 1,
            weight: u64::from(self.weight.max(1)),
        }
    }

    fn is_idle(&self) -> bool {
        self.waiting == 0 && self.held == [0; 3]
    }
}

/// Everyone who waits, and what each key holds.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    groups: Slab<Group>,
    by_key: FxHashMap<GroupKey, GroupId>,
    holders: FxHashMap<Option<KeyId>, Holder>,
    /// Groups whose requests need slots on several accounts at once.
    several: usize,
}

impl Lanes {
    /// Nobody waits any more; what keys hold stays.
    pub(super) fn clear(&mut self) {
        self.groups.clear();
        self.by_key.clear();
        self.several = 0;
        for holder in self.holders.values_mut() {
            holder.waiting = 0;
            holder.groups.clear();
        }
        self.holders.retain(|_, holder| !holder.is_idle());
    }

    pub(super) fn group(&self, id: GroupId) -> Option<&Group> {
        self.groups.get(id)
    }

    pub(super) fn group_mut(&mut self, id: GroupId) -> Option<&mut Group> {
        self.groups.get_mut(id)
    }

    pub(super) fn groups(&self) -> impl Iterator<Item = (GroupId, &Group)> {
        self.groups.iter()
    }

    /// The group of that description, if somebody waits in it.
    pub(super) fn find(&self, key: &GroupKey) -> Option<GroupId> {
        self.by_key.get(key).copied()
    }

    /// Whether anybody waits who needs slots on several accounts at once.
    pub(super) fn needs_several(&self) -> bool {
        self.several > 0
    }

    /// A new group of that description, for whoever is about to join it.
    pub(super) fn add_group(&mut self, key: GroupKey, reach: Reach) -> GroupId {
        self.several += usize::from(reach.needs_several);
        let id = self.groups.insert(Group {
            key: key.clone(),
            stands: BTreeSet::new(),
            by_until: BTreeSet::new(),
            lanes: FxHashMap::default(),
            reach,
            is_held_back: false,
        });
        self.by_key.insert(key, id);
        id
    }

    /// Somebody joins the end of its lane.
    pub(super) fn join(&mut self, id: GroupId, waiter: WaiterId, demand: &Demand) {
        let (key, weight) = key_of(demand);
        let holder = holder(&mut self.holders, key, weight);
        holder.waiting += 1;
        let Some(group) = self.groups.get_mut(id) else {
            return;
        };
        group.by_until.insert((demand.until, waiter));
        if let Some(lane) = group.lanes.get_mut(&key) {
            lane.queue.insert(waiter);
            return;
        }
        let stand = Stand {
            rank: holder.rank(group.key.kinds),
            candidates: group.reach.candidates,
            head: waiter,
            key,
        };
        holder.groups.push(id);
        group.stands.insert(stand);
        let queue = BTreeSet::from([waiter]);
        group.lanes.insert(key, Lane { queue, stand });
    }

    /// Somebody leaves its lane. Gives the group if nobody is left in it.
    pub(super) fn leave(
        &mut self,
        id: GroupId,
        waiter: WaiterId,
        demand: &Demand,
    ) -> Option<Group> {
        let key = demand.key_id();
        let group = self.groups.get_mut(id)?;
        group.by_until.remove(&(demand.until, waiter));
        let lane = group.lanes.get_mut(&key)?;
        lane.queue.remove(&waiter);
        group.stands.remove(&lane.stand);
        let is_empty = match lane.queue.first() {
            Some(head) => {
                lane.stand.head = *head;
                group.stands.insert(lane.stand);
                false
            }
            None => group.lanes.remove(&key).is_some(),
        };
        if let Some(holder) = self.holders.get_mut(&key) {
            holder.waiting -= 1;
            if is_empty {
                holder.groups.retain(|g| *g != id);
            }
            if holder.is_idle() {
                self.holders.remove(&key);
            }
        }
        if !group.lanes.is_empty() {
            return None;
        }
        let group = self.groups.try_remove(id)?;
        self.by_key.remove(&group.key);
        self.several -= usize::from(group.reach.needs_several);
        Some(group)
    }

    /// A key takes slots: its lanes stand further back.
    pub(super) fn took(&mut self, (key, weight): (Option<KeyId>, u32), kinds: Kinds) {
        let holder = holder(&mut self.holders, key, weight);
        for (held, taken) in holder.held.iter_mut().zip(kinds.each()) {
            *held += u32::from(taken);
        }
        self.reorder(key);
    }

    /// A key gives slots back: its lanes move up.
    pub(super) fn gave(&mut self, key: Option<KeyId>, kinds: Kinds) {
        let Some(holder) = self.holders.get_mut(&key) else {
            return;
        };
        for (held, given) in holder.held.iter_mut().zip(kinds.each()) {
            *held -= u32::from(given);
        }
        if holder.is_idle() {
            self.holders.remove(&key);
        } else {
            self.reorder(key);
        }
    }

    fn reorder(&mut self, key: Option<KeyId>) {
        let Some(holder) = self.holders.get(&key) else {
            return;
        };
        for id in &holder.groups {
            let Some(group) = self.groups.get_mut(*id) else {
                continue;
            };
            let Some(lane) = group.lanes.get_mut(&key) else {
                continue;
            };
            let rank = holder.rank(group.key.kinds);
            if lane.stand.rank != rank {
                group.stands.remove(&lane.stand);
                lane.stand.rank = rank;
                group.stands.insert(lane.stand);
            }
        }
    }

    /// Weights may have changed: every key has the one that `weight` gives, or keeps its own.
    pub(super) fn reweigh(&mut self, weight: impl Fn(KeyId) -> Option<u32>) {
        for (key, holder) in &mut self.holders {
            holder.weight = key.and_then(&weight).unwrap_or(holder.weight);
        }
    }

    /// How many requests of a key wait.
    pub(super) fn waiting(&self, key: Option<KeyId>) -> usize {
        self.holders.get(&key).map_or(0, |holder| holder.waiting)
    }

    /// (key, streams held, requests waiting) of every key that does either.
    pub(super) fn holders(&self) -> impl Iterator<Item = (Option<KeyId>, u32, usize)> {
        let holders = self.holders.iter();
        holders.map(|(key, holder)| (*key, holder.held[0], holder.waiting))
    }
}

/// The key of a demand with its weight; requests without a key are together one of weight 1.
pub(super) fn key_of(demand: &Demand) -> (Option<KeyId>, u32) {
    let key = demand.key.as_ref();
    (key.map(|key| key.id), key.map_or(1, |key| key.weight))
}

fn holder(
    holders: &mut FxHashMap<Option<KeyId>, Holder>,
    key: Option<KeyId>,
    weight: u32,
) -> &mut Holder {
    holders.entry(key).or_insert_with(|| Holder {
        held: [0; 3],
        weight,
        waiting: 0,
        groups: Vec::new(),
    })
}
