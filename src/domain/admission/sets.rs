//! Candidate sets: the accounts that could serve a request by its protocol, its model and its key's
//! scope, before anything else narrows them; and who holds and wants streams there.
//!
//! A set is made when it is first needed: to stand in a lane, or to ask for a fair share. From
//! then on its sums are kept up with every event, so that a decision reads them. Where nobody is
//! held back for the sake of others nothing is counted.
//!
//! Invariant: what is kept equals what a count from scratch would give (a test compares them).
use super::{demand::Demand, fair_share::Share, selection::View};
use crate::domain::{
    ids::{AccountId, KeyId},
    pool::EdgeIndex,
    protocol::Protocol,
};
use slab::Slab;
use std::{collections::HashMap, sync::Arc};

/// A place in the table of sets.
pub(super) type SetId = usize;

/// So many sets are kept at least; beyond that, those that nobody has needed lately are let go.
const KEPT: usize = 64;

/// One thing in a set that streams are counted on.
#[derive(Debug)]
struct Member {
    subject: u32,
    /// Streams that ordinary requests may hold; 0 = unlimited.
    ordinary: u32,
    edges: Vec<EdgeIndex>,
    /// Whether any of its edges can serve now.
    serves: bool,
}

impl Member {
    fn add(&mut self, edge: EdgeIndex, ordinary: u32) {
        self.edges.push(edge);
        // Two caps on one thing: the tighter one holds.
        if ordinary > 0 && (self.ordinary == 0 || ordinary < self.ordinary) {
            self.ordinary = ordinary;
        }
    }
}

/// A key in a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Active {
    /// Streams that it holds where the set can serve.
    held: u64,
    /// Sets that overlap with this one and in which it waits for a stream.
    waits: u32,
    weight: u64,
}

/// One candidate set.
#[derive(Debug, Default)]
pub(super) struct Set {
    /// What its requests ask for, where cooldowns are by model.
    model: Option<Arc<str>>,
    members: Vec<Member>,
    accounts: u32,
    needs_several: bool,
    serving: u32,
    /// Of those that can serve, how many are unlimited.
    unlimited: u32,
    capacity: u64,
    in_flight: u64,
    active: HashMap<KeyId, Active>,
    weights: u64,
    /// Who waits for a stream in this set: how many requests, and the key's weight.
    waiting: HashMap<KeyId, (u32, u64)>,
    /// Members that can serve and belong to the other set too.
    overlaps: HashMap<SetId, u32>,
    groups: Vec<usize>,
    is_used: bool,
}

impl Set {
    /// Whether anything in it can serve now.
    pub(super) fn serves(&self) -> bool {
        self.serving > 0
    }

    /// How many accounts, or credentials that are limited by themselves, are in it.
    pub(super) fn candidates(&self) -> u32 {
        self.accounts
    }

    /// Whether every edge takes slots on several accounts at once.
    pub(super) fn needs_several(&self) -> bool {
        self.needs_several
    }

    /// The groups that wait for it.
    pub(super) fn groups(&self) -> &[usize] {
        &self.groups
    }

    fn change(&mut self, key: KeyId, weight: u64, change: impl FnOnce(&mut Active)) {
        let active = self.active.entry(key).or_insert_with(|| {
            self.weights += weight;
            Active {
                weight,
                ..Active::default()
            }
        });
        change(active);
        if active.held == 0 && active.waits == 0 {
            self.weights -= active.weight;
            self.active.remove(&key);
        }
    }

    fn count(&mut self, member: usize, sign: i64) {
        let Some(member) = self.members.get(member) else {
            return;
        };
        self.serving = self
            .serving
            .saturating_add_signed(if sign > 0 { 1 } else { -1 });
        if member.ordinary == 0 {
            self.unlimited = self
                .unlimited
                .saturating_add_signed(if sign > 0 { 1 } else { -1 });
        }
        let ordinary = i64::from(member.ordinary);
        self.capacity = self.capacity.saturating_add_signed(ordinary * sign);
    }
}

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
    by_asked: HashMap<Asked, HashMap<Box<str>, SetId>>,
    by_edges: HashMap<Box<[EdgeIndex]>, SetId>,
    /// By subject: the sets that it is a member of, and as which.
    by_subject: Vec<Vec<(SetId, usize)>>,
    /// By subject: who holds how many streams on it; kept only while keys are held back.
    holders: Vec<HashMap<Option<KeyId>, (u32, u64)>>,
    scopes: HashMap<KeyId, u32>,
    scope_numbers: HashMap<Vec<AccountId>, u32>,
}

impl Sets {
    /// Forgets every set, and who holds what.
    pub(super) fn clear(&mut self, threshold_pct: u32) {
        *self = Self {
            threshold_pct,
            ..Self::default()
        };
    }

    const fn counts(&self) -> bool {
        self.threshold_pct > 0
    }

    pub(super) fn get(&self, set: SetId) -> Option<&Set> {
        self.all.get(set)
    }

    /// The set of a request's candidates.
    pub(super) fn of(&mut self, view: View<'_>, demand: &Demand) -> SetId {
        let scope = self.scope_of(demand);
        let offers = view.layout.offers(demand);
        let model = demand.model.as_deref();
        // Models that no catalog lists are served alike, unless each has its own cooldown.
        let is_apart = offers.is_listed() || view.layout.is_per_model;
        let name = model.filter(|_| is_apart).unwrap_or_default();
        let asked = Asked {
            protocol: demand.protocol,
            scope,
            has_model: model.is_some(),
        };
        let known = self.by_asked.get(&asked).and_then(|names| names.get(name));
        let known = known.copied();
        let id = known.unwrap_or_else(|| self.make(view, demand));
        if known.is_none() {
            let names = self.by_asked.entry(asked).or_default();
            names.insert(name.into(), id);
        }
        if let Some(set) = self.all.get_mut(id) {
            set.is_used = true;
        }
        id
    }

    fn scope_of(&mut self, demand: &Demand) -> u32 {
        let Some((key, accounts)) = demand
            .key
            .as_ref()
            .and_then(|k| Some((k.id, k.accounts.as_ref()?)))
        else {
            return 0;
        };
        if let Some(known) = self.scopes.get(&key) {
            return *known;
        }
        let mut accounts = accounts.clone();
        accounts.sort_unstable();
        let next = u32::try_from(self.scope_numbers.len() + 1).unwrap_or(u32::MAX);
        let number = *self.scope_numbers.entry(accounts).or_insert(next);
        self.scopes.insert(key, number);
        number
    }

    fn make(&mut self, view: View<'_>, demand: &Demand) -> SetId {
        let pool = &view.layout.pool;
        let in_scope = |edge: &EdgeIndex| pool.is_in_scope(pool.edge(*edge), demand.scope());
        let edges: Vec<EdgeIndex> = view
            .layout
            .offers(demand)
            .edges()
            .filter(in_scope)
            .collect();
        let model = demand.model.clone().filter(|_| view.layout.is_per_model);
        if model.is_none()
            && let Some(id) = self.by_edges.get(edges.as_slice())
        {
            return *id;
        }
        self.let_go();
        let mut set = Set {
            needs_several: !edges.is_empty(),
            model,
            ..Set::default()
        };
        let mut places: HashMap<u32, usize> = HashMap::new();
        for edge in &edges {
            let gates = view.layout.gates(*edge);
            set.needs_several &= gates.spans_several();
            for gate in &gates.shared {
                let place = *places.entry(gate.subject).or_insert(set.members.len());
                match set.members.get_mut(place) {
                    Some(member) => member.add(*edge, gate.ordinary),
                    None => set.members.push(Member {
                        subject: gate.subject,
                        ordinary: gate.ordinary,
                        edges: vec![*edge],
                        serves: false,
                    }),
                }
            }
        }
        set.accounts = u32::try_from(set.members.len()).unwrap_or(u32::MAX);
        let is_shared = set.model.is_none();
        let id = self.all.insert(set);
        if is_shared {
            self.by_edges.insert(edges.into(), id);
        }
        self.enrol(view, id);
        id
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
        let holders = self.holders.get(subject as usize);
        for (key, (held, weight)) in holders.into_iter().flatten() {
            if let Some(key) = key {
                let held = i64::from(*held) * sign;
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
        for subject in subjects {
            self.note_holder(*subject, (key, weight), sign);
            let n = *subject as usize;
            let Some(members) = self.by_subject.get(n) else {
                continue;
            };
            for (id, place) in members {
                let Some(set) = self.all.get_mut(*id) else {
                    continue;
                };
                if !set.members.get(*place).is_some_and(|m| m.serves) {
                    continue;
                }
                set.in_flight = set.in_flight.saturating_add_signed(sign);
                if let Some(key) = key {
                    set.change(key, weight, |a| a.held = a.held.saturating_add_signed(sign));
                }
            }
        }
    }

    fn note_holder(&mut self, subject: u32, (key, weight): (Option<KeyId>, u64), sign: i64) {
        let n = subject as usize;
        if self.holders.len() <= n {
            self.holders.resize_with(n + 1, HashMap::new);
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

    /// Makes room: those that nobody waits for and nobody has asked for since the last time go.
    fn let_go(&mut self) {
        if self.all.len() < KEPT {
            return;
        }
        let is_idle = |set: &Set| set.groups.is_empty() && !set.is_used;
        let idle = self.all.iter().filter(|(_, set)| is_idle(set));
        let idle: Vec<SetId> = idle.map(|(id, _)| id).collect();
        for id in &idle {
            self.forget(*id);
        }
        for (_, set) in &mut self.all {
            set.is_used = false;
        }
        self.by_asked.retain(|_, names| {
            names.retain(|_, id| !idle.contains(id));
            !names.is_empty()
        });
        self.by_edges.retain(|_, id| !idle.contains(id));
    }

    fn forget(&mut self, id: SetId) {
        let Some(set) = self.all.try_remove(id) else {
            return;
        };
        for member in &set.members {
            if let Some(sets) = self.by_subject.get_mut(member.subject as usize) {
                sets.retain(|(set, _)| *set != id);
            }
        }
        for (_, other) in &mut self.all {
            other.overlaps.remove(&id);
        }
    }
}
