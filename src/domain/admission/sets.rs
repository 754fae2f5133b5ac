//! Candidate sets: the accounts that could serve a request by its protocol, its model and its key's
//! scope, before anything else narrows them; and who holds and wants streams there.
//!
//! A set is made when it is first needed: to stand in a lane, or to ask for a fair share. From
//! then on its sums are kept up with every event, so that a decision reads them. Where nobody is
//! held back for the sake of others nothing is counted.
//!
//! Invariant: what is kept equals what a count from scratch would give (a test compares them).
mod finding;
mod set;
mod together;

pub(super) use self::set::Set;

use self::together::Together;
use super::{demand::Demand, fair_share::Share, layout::Layout, selection::View};
use crate::domain::{
    ids::{AccountId, KeyId},
    pool::EdgeIndex,
    protocol::Protocol,
};
use rustc_hash::FxHashMap;
use slab::Slab;
use std::collections::HashMap;

/// A place in the table of sets.
pub(super) type SetId = usize;

/// By what a set is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Asked {
    protocol: Protocol,
    /// The scope's number; 0 is everything.
    scope: u32,
    has_model: bool,
}

/// Every candidate set in use, and who holds streams on what.
#[derive(Debug, Default)]
pub(super) struct Sets {
    threshold_pct: u32,
    all: Slab<Set>,
    by_asked: FxHashMap<Asked, HashMap<Box<str>, SetId>>,
    by_edges: HashMap<Box<[EdgeIndex]>, SetId>,
    /// By subject: the sets that it is a member of, and as which.
    by_subject: Vec<Vec<(SetId, usize)>>,
    /// By subject: who holds how many streams on it; kept only while keys are held back.
    holders: Vec<FxHashMap<Option<KeyId>, (u32, u64)>>,
    /// Who holds streams that take slots on several subjects; kept only where there are any.
    together: Option<Together>,
    scopes: FxHashMap<KeyId, u32>,
    scope_numbers: HashMap<Vec<AccountId>, u32>,
}

impl Sets {
    /// Forgets every set, and who holds what.
    pub(super) fn clear(&mut self, layout: &Layout) {
        *self = Self {
            threshold_pct: layout.limits.fair_share_pct,
            together: layout.has_several.then(Together::default),
            ..Self::default()
        };
    }

    const fn counts(&self) -> bool {
        self.threshold_pct > 0
    }

    pub(super) fn get(&self, set: SetId) -> Option<&Set> {
        self.all.get(set)
    }

    /// Makes a new set known to its subjects and to the other sets, and counts it.
    fn enrol(&mut self, view: View<'_>, id: SetId) {
        let Some(set) = self.all.get(id) else {
            return;
        };
        let subjects: Vec<u32> = set.members.iter().map(|m| m.subject).collect();
        for (subject, place) in subjects.iter().zip(0..) {
            let n = *subject as usize;
            if self.by_subject.len() <= n {
                self.by_subject.resize_with(n + 1, Vec::new);
            }
            if let Some(sets) = self.by_subject.get_mut(n) {
                sets.push((id, place));
            }
        }
        for place in 0..subjects.len() {
            self.refresh_member(view, (id, place));
        }
        // What others serve of it is new to them, and they to it.
        for subject in subjects {
            for (other, place) in self.members_on(subject) {
                let serves = |set: &Set| set.members.get(place).is_some_and(|m| m.serves);
                if other != id && self.all.get(other).is_some_and(serves) {
                    self.overlap((other, id), 1);
                }
            }
        }
    }

    fn members_on(&self, subject: u32) -> Vec<(SetId, usize)> {
        self.by_subject
            .get(subject as usize)
            .cloned()
            .unwrap_or_default()
    }

    /// Whether a member can serve now may have changed.
    fn refresh_member(&mut self, view: View<'_>, (id, place): (SetId, usize)) {
        let counts = self.counts();
        let Some(set) = self.all.get_mut(id) else {
            return;
        };
        let model = set.model.as_deref();
        let Some(member) = set.members.get_mut(place) else {
            return;
        };
        let serves = member.edges.iter().any(|edge| view.serves(*edge, model));
        if member.serves == serves {
            return;
        }
        member.serves = serves;
        let subject = member.subject;
        let sign = if serves { 1 } else { -1 };
        set.count(place, sign);
        if !counts {
            return;
        }
        let in_flight = i64::from(view.subjects.usage(subject).stream) * sign;
        let again = counted_elsewhere(self.together.as_ref(), &self.by_subject, (id, set), subject);
        let holders = self.holders.get(subject as usize);
        for (key, (held, weight)) in holders.into_iter().flatten() {
            if let Some(key) = key {
                let again = again.get(key).copied().unwrap_or_default();
                let held = i64::from(held.saturating_sub(again)) * sign;
                set.change(*key, *weight, |a| {
                    a.held = a.held.saturating_add_signed(held);
                });
            }
        }
        set.in_flight = set.in_flight.saturating_add_signed(in_flight);
        for (other, _) in self.members_on(subject) {
            self.overlap((id, other), sign);
        }
    }

    /// One more or one less of what `set` can serve belongs to `other` too.
    fn overlap(&mut self, (set, other): (SetId, SetId), sign: i64) {
        if !self.counts() {
            return;
        }
        let waiting: Vec<(KeyId, u64)> = match self.all.get(other) {
            Some(other) => other.waiting.iter().map(|(k, (_, w))| (*k, *w)).collect(),
            None => Vec::new(),
        };
        let Some(set) = self.all.get_mut(set) else {
            return;
        };
        let overlap = set.overlaps.entry(other).or_default();
        let before = *overlap;
        *overlap = before.saturating_add_signed(if sign > 0 { 1 } else { -1 });
        let after = *overlap;
        if after == 0 {
            set.overlaps.remove(&other);
        }
        if (before == 0) == (after == 0) {
            return;
        }
        for (key, weight) in waiting {
            let sign = if after > 0 { 1 } else { -1 };
            set.change(key, weight, |a| {
                a.waits = a.waits.saturating_add_signed(sign);
            });
        }
    }

    /// Whatever has an edge of these units may serve now, or not any more.
    pub(super) fn refresh(&mut self, view: View<'_>, units: &[u32]) {
        for unit in units {
            let Some(gates) = view.layout.unit_gates(*unit) else {
                continue;
            };
            for gate in &gates.shared {
                for member in self.members_on(gate.subject) {
                    self.refresh_member(view, member);
                }
            }
        }
    }

    /// The same of everything.
    pub(super) fn refresh_all(&mut self, view: View<'_>) {
        let sets = self.all.iter();
        let places =
            sets.flat_map(|(id, set)| (0..set.members.len()).map(move |place| (id, place)));
        for member in places.collect::<Vec<_>>() {
            self.refresh_member(view, member);
        }
    }

    /// Streams are held on these subjects from now on, or not any more.
    pub(super) fn hold(
        &mut self,
        subjects: &[u32],
        (key, weight): (Option<KeyId>, u32),
        sign: i64,
    ) {
        if !self.counts() {
            return;
        }
        let weight = u64::from(weight);
        if let Some((together, key)) = self.together.as_mut().zip(key) {
            together.hold(subjects, key, sign);
        }
        for (subject, n) in subjects.iter().zip(0..) {
            self.note_holder(*subject, (key, weight), sign);
            let Some(members) = self.by_subject.get(*subject as usize) else {
                continue;
            };
            let before = subjects.get(..n).unwrap_or_default();
            for (id, place) in members {
                let Some(set) = self.all.get_mut(*id) else {
                    continue;
                };
                if !set.members.get(*place).is_some_and(|m| m.serves) {
                    continue;
                }
                set.in_flight = set.in_flight.saturating_add_signed(sign);
                let mut before = before.iter();
                let is_again = self.together.is_some()
                    && before.any(|s| serves(&self.by_subject, (*id, set), *s));
                if let Some(key) = key.filter(|_| !is_again) {
                    set.change(key, weight, |a| a.held = a.held.saturating_add_signed(sign));
                }
            }
        }
    }

    fn note_holder(&mut self, subject: u32, (key, weight): (Option<KeyId>, u64), sign: i64) {
        let n = subject as usize;
        if self.holders.len() <= n {
            self.holders.resize_with(n + 1, FxHashMap::default);
        }
        let Some(holders) = self.holders.get_mut(n) else {
            return;
        };
        let holder = holders.entry(key).or_insert((0, weight));
        holder.0 = holder
            .0
            .saturating_add_signed(if sign > 0 { 1 } else { -1 });
        if holder.0 == 0 {
            holders.remove(&key);
        }
    }

    /// Somebody waits for a stream of that set from now on, or not any more. Gives whether its key
    /// neither holds nor wants anything there now, so that the others' shares have grown.
    pub(super) fn wait(&mut self, id: SetId, demand: &Demand, sign: i32) -> bool {
        let Some(key) = demand
            .key
            .as_ref()
            .filter(|_| self.counts() && demand.kinds.stream)
        else {
            return false;
        };
        let (key, weight) = (key.id, u64::from(key.weight));
        let Some(set) = self.all.get_mut(id) else {
            return false;
        };
        let waiting = set.waiting.entry(key).or_insert((0, weight));
        let before = waiting.0;
        waiting.0 = before.saturating_add_signed(sign);
        let after = waiting.0;
        if after == 0 {
            set.waiting.remove(&key);
        }
        if (before == 0) == (after == 0) {
            return false;
        }
        let mut has_gone = false;
        for (_, set) in self
            .all
            .iter_mut()
            .filter(|(_, s)| s.overlaps.contains_key(&id))
        {
            set.change(key, weight, |a| {
                a.waits = a.waits.saturating_add_signed(sign);
            });
            has_gone |= !set.active.contains_key(&key);
        }
        has_gone
    }

    /// The share of a request's key there; `None` where nobody is held back: without a threshold,
    /// without a key, or where something unlimited can serve.
    pub(super) fn share(&self, id: SetId, demand: &Demand) -> Option<Share> {
        let key = demand.key.as_ref()?;
        let set = self
            .all
            .get(id)
            .filter(|set| self.counts() && set.unlimited == 0)?;
        let own = set.active.get(&key.id).copied();
        let weight = own.map_or(u64::from(key.weight), |own| own.weight);
        Some(Share {
            capacity: set.capacity,
            in_flight: set.in_flight,
            mine: own.map_or(0, |own| own.held),
            weight,
            weights: set.weights + if own.is_some() { 0 } else { weight },
            threshold_pct: self.threshold_pct,
        })
    }

    /// A group waits for that set from now on.
    pub(super) fn join(&mut self, id: SetId, group: usize) {
        if let Some(set) = self.all.get_mut(id) {
            set.groups.push(group);
        }
    }

    /// A group waits no more.
    pub(super) fn leave(&mut self, id: SetId, group: usize) {
        if let Some(set) = self.all.get_mut(id) {
            set.groups.retain(|g| *g != group);
        }
    }

    /// The sets that any of these subjects is a member of, each once.
    pub(super) fn on(&self, subjects: &[u32]) -> Vec<SetId> {
        let members = subjects
            .iter()
            .filter_map(|s| self.by_subject.get(*s as usize));
        let mut sets: Vec<SetId> = members.flatten().map(|(id, _)| *id).collect();
        sets.sort_unstable();
        sets.dedup();
        sets
    }
}

/// Whether a subject is a member of a set that can serve now.
fn serves(by_subject: &[Vec<(SetId, usize)>], (id, set): (SetId, &Set), subject: u32) -> bool {
    let sets = by_subject.get(subject as usize);
    let found = sets.and_then(|sets| sets.iter().find(|(set, _)| *set == id));
    found.is_some_and(|(_, place)| set.members.get(*place).is_some_and(|m| m.serves))
}

/// How many of each key's streams on a subject the set counts anyway, by something else that they are on.
fn counted_elsewhere(
    together: Option<&Together>,
    by_subject: &[Vec<(SetId, usize)>],
    set: (SetId, &Set),
    subject: u32,
) -> FxHashMap<KeyId, u32> {
    let is_counted = |others: &[u32]| {
        let mut others = others.iter().filter(|other| **other != subject);
        others.any(|other| serves(by_subject, set, *other))
    };
    together.map_or_else(FxHashMap::default, |t| t.held_on(subject, is_counted))
}
