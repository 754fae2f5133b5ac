//! The choice of an edge: the best unit that fits, and in it the best credential.
//!
//! Units are walked in the [`Order`] of the strategy, so that the first that
//! fits is the best; where few serve what is asked for, those alone are looked at. Nothing is
//! allocated on the way. Why nothing fits is worked out separately, since that needs a look at
//! every candidate.
use super::{
    Demand, Owner, Tried,
    layout::{Gates, Layout, Limited},
    order::{Order, Place},
    subjects::{Full, Subjects},
};
use crate::domain::{
    cooldown::Cooldown,
    moment::Moment,
    pool::{Edge, EdgeIndex, Offers, State},
    reason::Reason,
};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;

/// Up to so many units it is quicker to look at each than to walk the order.
const FEW: usize = 32;

/// Why one edge cannot take a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The request has been there, or is kept from there.
    Tried,
    /// Credential, endpoint or account take no new work.
    OutOfService(State),
    /// It cools, or its single shot is out, until then at the latest.
    Cooling {
        /// When it is expected to be free.
        free_at: Moment,
        /// Whether a quota is used up.
        is_quota: bool,
    },
    /// Its endpoint's breaker rests.
    Resting {
        /// When it is expected to be free.
        free_at: Moment,
    },
    /// A cap is reached.
    Full {
        /// Which.
        reason: Reason,
        /// The cap.
        limit: u32,
        /// How much of it is in use.
        used: u32,
    },
}

/// What a choice is made from.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) layout: &'a Layout,
    pub(super) subjects: &'a Subjects,
    pub(super) order: &'a Order,
    /// Units that owners' waiters need, with how many each.
    pub(super) wanted: &'a FxHashMap<u32, u32>,
}

/// How good an edge is within its unit; smaller is better.
#[derive(Clone, Copy, Debug)]
struct Rank {
    /// In use of the credential's own cap, as numerator and denominator.
    share: (u32, u32),
    turn: u64,
}

impl Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (self.share, other.share);
        let share = (u64::from(a.0) * u64::from(b.1)).cmp(&(u64::from(b.0) * u64::from(a.1)));
        share.then(self.turn.cmp(&other.turn))
    }
}

impl View<'_> {
    /// The best edge for `demand` that can take it now. Whoever has somewhere else to go leaves
    /// alone what an owner's waiter needs.
    pub(super) fn select(self, demand: &Demand) -> Option<EdgeIndex> {
        if !self.wanted.is_empty() && demand.owner == Owner::Nobody {
            let elsewhere = self.choose(demand, true);
            if elsewhere.is_some() {
                return elsewhere;
            }
        }
        self.choose(demand, false)
    }

    fn choose(self, demand: &Demand, leaves_wanted: bool) -> Option<EdgeIndex> {
        let offers = self.layout.offers(demand);
        let is_open = |unit: u32| !(leaves_wanted && self.wanted.contains_key(&unit));
        match demand.owner {
            Owner::Bound(credential) => {
                let edges = self.layout.pool.edges_of(credential);
                return self.best_of(edges.filter(|e| self.offered(offers, *e)), demand, true);
            }
            Owner::Unknown if !self.has_one_account(demand) => return None,
            Owner::Unknown if demand.reaches_owner() => {
                return self.best_of(offers.edges(), demand, true);
            }
            Owner::Unknown | Owner::Nobody => (),
        }
        if let Some(preferred) = demand.preferred {
            let edges = self.layout.pool.edges_of(preferred);
            let edges = edges
                .filter(|e| is_open(self.layout.pool.edge(*e).unit) && self.offered(offers, *e));
            if let Some(edge) = self.best_of(edges, demand, true) {
                return Some(edge);
            }
        }
        if offers.len() <= FEW {
            self.look_at_each(offers, demand, is_open)
        } else {
            self.walk(offers, demand, is_open)
        }
    }

    /// Whether any of these units can take a request that has no owner.
    pub(super) fn has_room_on(self, units: &[u32], demand: &Demand) -> bool {
        let offers = self.layout.offers(demand);
        let mut units = units
            .iter()
            .filter(|unit| self.order.place(**unit).is_some());
        units.any(|unit| self.best_in(*unit, offers, demand).is_some())
    }

    pub(super) fn offered(self, offers: Offers<'_>, edge: EdgeIndex) -> bool {
        let unit = self.layout.pool.edge(edge).unit;
        offers.of(unit).any(|e| e == edge)
    }

    fn look_at_each(
        self,
        offers: Offers<'_>,
        demand: &Demand,
        is_open: impl Fn(u32) -> bool,
    ) -> Option<EdgeIndex> {
        let is_ordinary = demand.is_ordinary();
        let mut best: Option<(Place, EdgeIndex)> = None;
        for unit in offers.units() {
            let Some(place) = self.order.place(unit) else {
                continue;
            };
            let is_full = place.is_full && is_ordinary;
            if is_full || !is_open(unit) || best.is_some_and(|(b, _)| b <= place) {
                continue;
            }
            if let Some(edge) = self.best_in(unit, offers, demand) {
                best = Some((place, edge));
            }
        }
        best.map(|(_, edge)| edge)
    }

    fn walk(
        self,
        offers: Offers<'_>,
        demand: &Demand,
        is_open: impl Fn(u32) -> bool,
    ) -> Option<EdgeIndex> {
        let is_ordinary = demand.is_ordinary();
        let mut place = self.order.next(None)?;
        loop {
            if place.is_full && is_ordinary {
                place = self.order.skip(place.priority)?;
                continue;
            }
            if is_open(place.unit)
                && let Some(edge) = self.best_in(place.unit, offers, demand)
            {
                return Some(edge);
            }
            place = self.order.next(Some(place))?;
        }
    }

    fn best_in(self, unit: u32, offers: Offers<'_>, demand: &Demand) -> Option<EdgeIndex> {
        // Where much is in use that is what keeps most units out, and it is soon told.
        let gates = self.layout.unit_gates(unit)?;
        let full = self.subjects.full(gates, demand.kinds, demand.reattach);
        if full.is_some() {
            return None;
        }
        let mut edges = offers.of(unit).peekable();
        let first = *edges.peek()?;
        let pool = &self.layout.pool;
        if !pool.is_in_scope(pool.edge(first), demand.scope()) {
            return None;
        }
        self.best_of(edges, demand, false)
    }

    /// The best of some edges; `checks_unit` if nothing is known of their units yet.
    fn best_of(
        self,
        edges: impl Iterator<Item = EdgeIndex>,
        demand: &Demand,
        checks_unit: bool,
    ) -> Option<EdgeIndex> {
        let mut best: Option<(Rank, EdgeIndex)> = None;
        for index in edges {
            let edge = self.layout.pool.edge(index);
            let gates = self.layout.gates(index);
            if checks_unit
                && (!self.layout.pool.is_in_scope(edge, demand.scope())
                    || self.unit_is_blocked(edge, gates, demand).is_some())
            {
                continue;
            }
            if self.edge_is_blocked(edge, gates, demand).is_some() {
                continue;
            }
            let rank = self.rank(gates);
            if best
                .as_ref()
                .is_none_or(|(b, _)| rank.cmp(b) == Ordering::Less)
            {
                best = Some((rank, index));
            }
        }
        best.map(|(_, index)| index)
    }

    fn rank(self, gates: &Gates) -> Rank {
        let usage = self.subjects.usage(gates.credential());
        let cap = gates.own.as_ref().map_or(0, |own| own.stream);
        Rank {
            share: if cap == 0 {
                (0, 1)
            } else {
                (usage.stream, cap)
            },
            turn: usage.turn,
        }
    }

    /// What holds back every edge of the unit.
    fn unit_is_blocked(self, edge: &Edge, gates: &Gates, demand: &Demand) -> Option<Why> {
        let unit = self.layout.unit(edge.unit)?;
        if !unit.takes_work && !demand.reaches_owner() {
            let accounts = self.layout.pool.accounts_of(edge);
            return out_of_service(accounts.map(|a| a.state));
        }
        let limited = gates
            .limited
            .iter()
            .map(|l| self.subjects.cooldown(l.subject));
        let cools = limited
            .filter(|c| !c.lets_pass())
            .max_by_key(Cooldown::free_at);
        if let Some(cooldown) = cools.filter(|_| demand.is_limited()) {
            return Some(Why::Cooling {
                free_at: cooldown.free_at().unwrap_or_default(),
                is_quota: cooldown.is_quota(),
            });
        }
        let full = self.subjects.full(gates, demand.kinds, demand.reattach);
        full.map(Why::of)
    }

    /// What holds back this edge alone.
    fn edge_is_blocked(self, edge: &Edge, gates: &Gates, demand: &Demand) -> Option<Why> {
        let pool = &self.layout.pool;
        let (credential, endpoint) = (pool.credential(edge), pool.endpoint(edge));
        if !demand.tried.is_empty() {
            let was_there = |tried: &Tried| match tried {
                Tried::Account(id) => pool.accounts_of(edge).any(|a| a.id == *id),
                Tried::Credential(id) => credential.id == *id,
                Tried::Endpoint(id) => endpoint.id == *id,
            };
            if demand.tried.iter().any(was_there) {
                return Some(Why::Tried);
            }
        }
        let is_active = credential.state.takes_work() && endpoint.state.takes_work();
        if !is_active && !demand.reaches_owner() {
            return out_of_service([credential.state, endpoint.state].into_iter());
        }
        if let Some(free_at) = self.subjects.breaker(self.layout.breaker(edge)).free_at() {
            return Some(Why::Resting { free_at });
        }
        if let Some(why) = self.model_cools(edge, gates, demand) {
            return Some(why);
        }
        self.subjects.full_own(gates, demand.kinds).map(Why::of)
    }

    fn model_cools(self, edge: &Edge, gates: &Gates, demand: &Demand) -> Option<Why> {
        let model = demand.model.as_deref().filter(|_| demand.is_limited())?;
        let mut per_model = gates.limited.iter().filter(|l| l.is_per_model).peekable();
        per_model.peek()?;
        let asked = self.layout.pool.upstream_model(edge, model);
        let cooldowns = per_model.map(|l| self.subjects.model_cooldown(l.subject, asked));
        let cools = cooldowns
            .filter(|c| !c.lets_pass())
            .max_by_key(Cooldown::free_at)?;
        Some(Why::Cooling {
            free_at: cools.free_at()?,
            is_quota: cools.is_quota(),
        })
    }

    /// Whether an edge can serve at all now: it is active, its endpoint does not rest, and nothing
    /// of it cools or awaits a verdict. Whether there is room is another question.
    pub(super) fn serves(self, index: EdgeIndex, model: Option<&str>) -> bool {
        let pool = &self.layout.pool;
        let edge = pool.edge(index);
        let gates = self.layout.gates(index);
        let passes = |l: &Limited| {
            let asked = model.filter(|_| l.is_per_model);
            let asked = asked.map(|model| pool.upstream_model(edge, model));
            self.subjects.cooldown(l.subject).lets_pass()
                && asked.is_none_or(|m| self.subjects.model_cooldown(l.subject, m).lets_pass())
        };
        pool.takes_work(edge)
            && self
                .subjects
                .breaker(self.layout.breaker(edge))
                .free_at()
                .is_none()
            && gates.limited.iter().all(passes)
    }

    /// Of the edges that could serve a request, the one on which it lacks the fewest slots.
    pub(super) fn nearest(self, demand: &Demand) -> Option<EdgeIndex> {
        let pool = &self.layout.pool;
        let offers = self.layout.offers(demand);
        let could = |edge: &EdgeIndex| {
            let is_its = match demand.owner {
                Owner::Bound(credential) => pool.credential(pool.edge(*edge)).id == credential,
                Owner::Nobody | Owner::Unknown => true,
            };
            is_its
                && pool.is_in_scope(pool.edge(*edge), demand.scope())
                && self.serves(*edge, demand.model.as_deref())
                && self.why_not(*edge, demand) != Some(Why::Tried)
        };
        let lacking = |edge: &EdgeIndex| {
            let gates = self.layout.gates(*edge);
            self.subjects.lacking(gates, demand.kinds)
        };
        offers.edges().filter(could).min_by_key(lacking)
    }

    /// What keeps an edge from taking the request; `None` if nothing does.
    pub(super) fn why_not(self, index: EdgeIndex, demand: &Demand) -> Option<Why> {
        let edge = self.layout.pool.edge(index);
        let gates = self.layout.gates(index);
        self.edge_is_blocked(edge, gates, demand)
            .or_else(|| self.unit_is_blocked(edge, gates, demand))
    }

    /// Where an edge that can take the request stands among the others.
    pub(super) fn rank_of(self, index: EdgeIndex) -> (Option<Place>, (u64, u64), u64) {
        let rank = self.rank(self.layout.gates(index));
        let place = self.order.place(self.layout.pool.edge(index).unit);
        // Parts in a million are fine enough for an order that is only shown.
        let share = u64::from(rank.share.0) * 1_000_000 / u64::from(rank.share.1.max(1));
        (place, (share, rank.turn), u64::from(index.raw()))
    }

    /// Whether exactly one account of those in scope speaks the protocol: then an id that fairlane
    /// has never seen can only be that account's.
    pub(super) fn has_one_account(self, demand: &Demand) -> bool {
        let pool = &self.layout.pool;
        let mut only = None;
        pool.candidates(demand.protocol, None)
            .map(|index| pool.edge(index))
            .filter(|edge| pool.is_in_scope(edge, demand.scope()))
            .all(|edge| *only.get_or_insert(&edge.accounts) == &edge.accounts)
            && only.is_some()
    }
}

impl Why {
    fn of((reason, limit, used): Full) -> Self {
        Self::Full {
            reason,
            limit,
            used,
        }
    }
}

/// The state that keeps something out of service: what disables it before what drains it.
fn out_of_service(states: impl Iterator<Item = State>) -> Option<Why> {
    let out = states.filter(|s| !s.takes_work());
    let worst = out.max_by_key(|s| matches!(s, State::Disabled(_)));
    worst.map(Why::OutOfService)
}
