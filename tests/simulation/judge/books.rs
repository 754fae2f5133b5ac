//! What the judge knows: who holds what, who waits, what cools and rests; and what follows from it by
//! the rules, each time counted from nothing.
//!
//! Invariant: plain lists and loops. Nothing here is taken from the product but its tokens.
use super::caps::{Cap, caps_of, limited_of};
use crate::{
    machine::Thing,
    plan::{Ask, Plan, Slots},
};
use fairlane::domain::admission::{LeaseId, WaiterId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::{cmp::Ordering, collections::BTreeMap};

/// A set of things, one bit each.
pub(crate) type Things = u128;

pub(crate) const fn bit_of(thing: Thing) -> usize {
    match thing {
        Thing::Account(n) => n,
        Thing::Credential(n) => 32 + n,
    }
}

/// The place of every thing in a set.
fn bits(things: Things) -> impl Iterator<Item = usize> {
    let rest = |left: &Things| Some(left & (left - 1)).filter(|left| *left != 0);
    let first = Some(things).filter(|things| *things != 0);
    std::iter::successors(first, rest).map(|left| left.trailing_zeros() as usize)
}

pub(super) const fn one(thing: Thing) -> Things {
    1 << bit_of(thing)
}

#[derive(Clone, Debug)]
pub(crate) struct Lease {
    pub(crate) key: Option<usize>,
    pub(crate) endpoint: usize,
    pub(crate) held: Slots,
    /// Everything that it counts on.
    pub(crate) things: Things,
    /// What a 429 to it cools; nothing if its answer says nothing of a limit.
    pub(crate) limited: Vec<(Thing, Option<usize>)>,
    pub(crate) granted_at: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Waiter {
    pub(crate) ask: Ask,
    pub(crate) parked_at: u64,
    /// Where its candidates count their slots.
    pub(crate) candidates: Things,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Resting { until: u64 },
    Due,
    Probing { shot: LeaseId, until: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cooldown {
    pub(crate) phase: Phase,
    pub(crate) began_at: u64,
}

/// An endpoint: failures in a row, or how it rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breaker {
    Passing(u32),
    Out(Phase),
}

/// Slots in use, by thing and kind.
pub(crate) type Usage = Vec<[u32; 3]>;

#[derive(Debug)]
pub(crate) struct Books {
    pub(crate) plan: Plan,
    pub(crate) leases: FxHashMap<LeaseId, Lease>,
    pub(crate) waiters: BTreeMap<WaiterId, Waiter>,
    pub(crate) cooling: FxHashMap<(Thing, Option<usize>), Cooldown>,
    pub(crate) breakers: Vec<Breaker>,
    /// By credential: the caps on it, and the things that they are on apart from its own.
    caps: Vec<(Vec<Cap>, Things)>,
    /// By thing: the streams that ordinary requests may hold.
    ordinary: Vec<u32>,
    /// By credential: what a 429 cools, and whether one model of it alone.
    limited: Vec<Vec<(Thing, bool)>>,
    /// Where the candidates of a key's requests for a model are, as far as that was asked.
    candidates: FxHashMap<(Option<usize>, usize), Things>,
}

/// (Leases of the kind + 1, weight, candidate accounts, which): who is less goes first.
pub(crate) type Rank = (u64, u64, u32, WaiterId);

/// Who of two goes first.
pub(crate) fn by_rank(a: &Rank, b: &Rank) -> Ordering {
    let weighed = (a.0 * b.1).cmp(&(b.0 * a.1));
    weighed.then(a.2.cmp(&b.2)).then(a.3.cmp(&b.3))
}

impl Books {
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut books = Self {
            plan: plan.clone(),
            leases: FxHashMap::default(),
            waiters: BTreeMap::new(),
            cooling: FxHashMap::default(),
            breakers: vec![Breaker::Passing(0); plan.endpoints.len()],
            caps: Vec::new(),
            ordinary: Vec::new(),
            limited: Vec::new(),
            candidates: FxHashMap::default(),
        };
        books.turn_to(plan);
        books
    }

    /// Another plan holds from now on.
    pub(crate) fn turn_to(&mut self, plan: &Plan) {
        self.plan = plan.clone();
        let credentials = 0..plan.credentials.len();
        self.caps = credentials.clone().map(|n| caps_of(plan, n)).collect();
        self.limited = credentials.map(|n| limited_of(plan, n)).collect();
        self.candidates.clear();
        self.ordinary = vec![0; 128];
        for (caps, shared) in &self.caps {
            for cap in caps.iter().filter(|cap| shared & (1 << cap.bit) != 0) {
                let known = &mut self.ordinary[cap.bit];
                if *known == 0 || (cap.ordinary > 0 && cap.ordinary < *known) {
                    *known = cap.ordinary;
                }
            }
        }
        let places: Vec<WaiterId> = self.waiters.keys().copied().collect();
        for id in places {
            let ask = self.waiters[&id].ask.clone();
            let candidates = self.candidates(&ask);
            self.waiters.get_mut(&id).unwrap().candidates = candidates;
        }
    }

    pub(crate) fn usage(&self) -> Usage {
        let mut usage = vec![[0; 3]; 128];
        for lease in self.leases.values() {
            for bit in bits(lease.things) {
                for (used, held) in usage[bit].iter_mut().zip(lease.held) {
                    *used += u32::from(held);
                }
            }
        }
        usage
    }

    /// Everything that a lease of a credential counts on.
    pub(crate) fn things_of(&self, credential: usize) -> Things {
        let accounts = self.plan.credentials[credential].accounts.iter();
        accounts.fold(one(Thing::Credential(credential)), |all, n| {
            all | one(Thing::Account(*n))
        })
    }

    /// The things, its own caps apart, on which a credential's slots are limited.
    pub(crate) fn shared(&self, credential: usize) -> Things {
        self.caps[credential].1
    }

    /// What a 429 to a request on that credential cools.
    pub(crate) fn limited_by(
        &self,
        ask: &Ask,
        credential: usize,
    ) -> impl Iterator<Item = (Thing, Option<usize>)> {
        let model = ask.model;
        let limited = self.limited[credential].iter();
        limited.map(move |(thing, is_by_model)| (*thing, is_by_model.then_some(model)))
    }

    /// Every (credential, endpoint) that serves the model within the key's scope.
    fn offers<'a>(&'a self, ask: &'a Ask) -> impl Iterator<Item = (usize, usize)> + 'a {
        let scope = ask.key.and_then(|n| self.plan.keys[n].accounts.as_ref());
        let lists = |models: &Option<Vec<usize>>| {
            let models = models.as_ref();
            models.is_none_or(|models| models.contains(&ask.model))
        };
        let credentials = self.plan.credentials.iter().enumerate();
        let credentials = credentials.filter(move |(_, row)| {
            let mut accounts = row.accounts.iter();
            lists(&row.models)
                && accounts.all(|n| scope.is_none_or(|accounts| accounts.contains(n)))
        });
        credentials.flat_map(move |(n, row)| {
            let endpoints = row.endpoints.iter().copied();
            endpoints
                .filter(move |e| lists(&self.plan.endpoints[*e].models))
                .map(move |e| (n, e))
        })
    }

    /// Those of them that the request may go to by its owner.
    fn own_offers<'a>(&'a self, ask: &'a Ask) -> impl Iterator<Item = (usize, usize)> + 'a {
        let is_its = |(credential, _): &(usize, usize)| ask.owner.is_none_or(|n| n == *credential);
        self.offers(ask).filter(is_its)
    }

    pub(crate) fn candidates(&mut self, ask: &Ask) -> Things {
        let asked = (ask.key, ask.model);
        if let Some(known) = self.candidates.get(&asked) {
            return *known;
        }
        let offers = self.offers(ask);
        let all = offers.fold(0, |all, (n, _)| all | self.shared(n));
        self.candidates.insert(asked, all);
        all
    }

    fn is_in_service(&self, (credential, endpoint): (usize, usize)) -> bool {
        let row = &self.plan.credentials[credential];
        let mut accounts = row.accounts.iter();
        row.is_active
            && self.plan.endpoints[endpoint].is_active
            && accounts.all(|n| self.plan.accounts[*n].is_active)
    }

    fn passes_breaker(&self, endpoint: usize) -> bool {
        matches!(
            self.breakers[endpoint],
            Breaker::Passing(_) | Breaker::Out(Phase::Due)
        )
    }

    fn cools(&self, ask: &Ask, credential: usize) -> bool {
        let cools = |limited| {
            let cooldown = self.cooling.get(&limited);
            cooldown.is_some_and(|c| c.phase != Phase::Due)
        };
        !self.cooling.is_empty() && self.limited_by(ask, credential).any(cools)
    }

    /// Whether an edge takes work now, whatever is in use of it.
    fn serves(&self, ask: &Ask, edge: (usize, usize)) -> bool {
        self.is_in_service(edge) && self.passes_breaker(edge.1) && !self.cools(ask, edge.0)
    }

    /// The edges that would take the request if only they had room.
    pub(crate) fn open<'a>(&'a self, ask: &'a Ask) -> impl Iterator<Item = (usize, usize)> + 'a {
        let was_there = |credential: usize| {
            let mut accounts = self.plan.credentials[credential].accounts.iter();
            ask.tried_credentials.contains(&credential)
                || accounts.any(|n| ask.tried_accounts.contains(n))
        };
        let comes_back = ask.is_reattach && ask.owner.is_some();
        self.own_offers(ask).filter(move |edge| {
            let is_open = if comes_back {
                self.passes_breaker(edge.1)
            } else {
                self.serves(ask, *edge)
            };
            is_open && !was_there(edge.0)
        })
    }

    /// Whether every cap on a credential has room for the request.
    pub(crate) fn has_room(&self, usage: &Usage, ask: &Ask, credential: usize) -> bool {
        let (caps, shared) = &self.caps[credential];
        caps.iter().all(|cap| {
            let is_shared = shared & (1 << cap.bit) != 0;
            let [streams, creates, jobs] = cap.most;
            let streams = if is_shared && !ask.is_reattach {
                cap.ordinary
            } else {
                streams
            };
            let most = [streams, creates, jobs];
            let kinds = ask.slots.iter().zip(most).zip(usage[cap.bit]);
            let mut full =
                kinds.filter(|((wants, most), used)| **wants && *most > 0 && used >= most);
            full.next().is_none()
        })
    }

    /// Whether the fair share of its key lets the request in.
    pub(crate) fn is_within_share(&self, usage: &Usage, ask: &Ask) -> bool {
        let threshold = u64::from(self.plan.caps.threshold_pct);
        let is_gated = threshold > 0 && ask.slots[0] && !ask.is_reattach && !ask.is_moving;
        let Some(me) = ask.key.filter(|_| is_gated) else {
            return true;
        };
        let serving = self.offers(ask).filter(|edge| self.serves(ask, *edge));
        let serving = serving.fold(0, |all: Things, (n, _)| all | self.shared(n));
        if bits(serving).any(|bit| self.ordinary[bit] == 0) {
            return true;
        }
        let capacity: u64 = bits(serving).map(|bit| u64::from(self.ordinary[bit])).sum();
        let in_flight: u64 = bits(serving).map(|bit| u64::from(usage[bit][0])).sum();
        let there = |lease: &&Lease| lease.held[0] && lease.things & serving != 0;
        let streams = self.leases.values().filter(there);
        let mine = streams.clone().filter(|l| l.key == Some(me)).count() as u64;
        let wants = |w: &&Waiter| w.ask.slots[0] && w.candidates & serving != 0;
        let waiting = self.waiters.values().filter(wants).map(|w| w.ask.key);
        let keys = streams.map(|l| l.key).chain(waiting).chain([Some(me)]);
        let active: FxHashSet<usize> = keys.flatten().collect();
        let weight = |n: usize| u64::from(self.plan.keys[n].weight);
        let weights: u64 = active.into_iter().map(weight).sum();
        let share = (capacity * weight(me) / weights).max(2);
        in_flight * 100 < capacity * threshold || mine < share
    }

    /// An edge outside `aside` that would take the request now.
    pub(crate) fn way(&self, usage: &Usage, ask: &Ask, aside: Things) -> Option<(usize, usize)> {
        let edge = self
            .open(ask)
            .find(|(n, _)| self.shared(*n) & aside == 0 && self.has_room(usage, ask, *n))?;
        self.is_within_share(usage, ask).then_some(edge)
    }

    /// Where slots may be set aside: for those who need several accounts at once and have waited
    /// for half their patience.
    pub(crate) fn aside(&self, now: u64) -> Things {
        let due = self.waiters.values().filter(|w| self.may_hold(w, now));
        due.flat_map(|w| self.own_offers(&w.ask))
            .fold(0, |all, (n, _)| all | self.shared(n))
    }

    pub(crate) fn may_hold(&self, waiter: &Waiter, now: u64) -> bool {
        let half = waiter.ask.until.saturating_sub(waiter.parked_at) / 2;
        now >= waiter.parked_at + half
            && self
                .own_offers(&waiter.ask)
                .all(|(n, _)| self.shared(n).count_ones() > 1)
    }

    /// What a key holds pool-wide of the kind that a request wants, and one more.
    pub(crate) fn rank(&self, id: WaiterId, waiter: &Waiter) -> Rank {
        let ask = &waiter.ask;
        let kind = [0, 2, 1].into_iter().find(|kind| ask.slots[*kind]);
        let held = kind.map_or(0, |kind| {
            let same = self.leases.values().filter(|l| l.key == ask.key);
            same.filter(|l| l.held[kind]).count() as u64
        });
        let weight = ask.key.map_or(1, |n| u64::from(self.plan.keys[n].weight));
        let candidates = if ask.owner.is_some() {
            1
        } else {
            waiter.candidates.count_ones()
        };
        (held + 1, weight, candidates, id)
    }

    pub(crate) fn priority(&self, credential: usize) -> i32 {
        let accounts = self.plan.credentials[credential].accounts.iter();
        let priorities = accounts.map(|n| self.plan.accounts[*n].priority);
        priorities.max().unwrap_or(0)
    }

    /// What somebody waits for who can go nowhere else.
    pub(crate) fn owned(&self) -> Things {
        let owned = self.waiters.values().filter(|w| w.ask.owner.is_some());
        let ways = owned.flat_map(|w| self.own_offers(&w.ask));
        ways.fold(0, |all, (n, _)| all | self.shared(n))
    }
}
