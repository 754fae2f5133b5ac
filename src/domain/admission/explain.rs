//! What admission looks like from outside: how each account stands, and which edges a request would
//! be tried on.
use super::{Admission, Demand, Denial, Refusal, Subject, Why, blocked::Blocked};
use crate::domain::{
    breaker::Breaker,
    cooldown::Cooldown,
    ids::{EndpointId, KeyId},
    pool::{EdgeIndex, EdgeRef},
    reason::Reason,
};
use std::{collections::HashMap, sync::Arc};

/// How one subject stands.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// Streams in flight.
    pub streams: u32,
    /// Requests being started.
    pub creates: u32,
    /// Its cooldown.
    pub cooldown: Cooldown,
    /// Cooldowns of single models.
    pub models: Vec<(Arc<str>, Cooldown)>,
}

/// What one client key holds and waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// Streams held.
    pub streams: usize,
    /// Requests parked.
    pub waiting: usize,
}

/// One candidate of a request.
#[derive(Clone, Debug)]
pub struct Explained {
    /// Which edge.
    pub edge: EdgeRef,
    /// What keeps it from taking the request; `None` if nothing does.
    pub why_not: Option<Why>,
    /// Whether the request's key may not use its accounts.
    pub is_out_of_scope: bool,
}

/// What would become of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreseen {
    /// It would go at once.
    Goes,
    /// It would wait.
    Waits(Refusal),
    /// It would be refused at once.
    Refused(Refusal),
}

impl Admission {
    /// What would become of a request that came now. Nothing is taken.
    pub fn foresee(&mut self, demand: &Demand) -> Foreseen {
        let blocked = match self.denial(demand) {
            None => return Foreseen::Goes,
            Some(Denial::FairShare(share)) => Blocked::ForNow(Refusal::fair_share(&share)),
            Some(Denial::NoRoom) => self.view().blocked(demand),
        };
        let why = blocked.why();
        if !blocked.passes_by(demand.until) || !self.layout.limits.may_park {
            return Foreseen::Refused(why);
        }
        let waiting = self.lanes.waiting(demand.key_id());
        let most = self.layout.limits.waiters_per_key;
        if waiting >= most {
            return Foreseen::Refused(Refusal::limit(Reason::QueueFull, most, waiting));
        }
        Foreseen::Waits(why)
    }

    /// How a subject stands; nothing is known of one that was never in the pool.
    pub fn standing(&self, subject: Subject) -> Option<Standing> {
        let n = self.layout.number(subject)?;
        let usage = self.subjects.usage(n);
        let models = self.subjects.model_cooldowns(n);
        Some(Standing {
            streams: usage.stream,
            creates: usage.create,
            cooldown: self.subjects.cooldown(n),
            models: models.map(|(m, c)| (Arc::clone(m), *c)).collect(),
        })
    }

    /// How every subject stands that has a number.
    pub fn standings(&self) -> Vec<(Subject, Standing)> {
        let subjects = self.layout.subjects.iter().zip(0u32..);
        let standing = |(subject, n): (&Subject, u32)| {
            let usage = self.subjects.usage(n);
            let models = self.subjects.model_cooldowns(n);
            let standing = Standing {
                streams: usage.stream,
                creates: usage.create,
                cooldown: self.subjects.cooldown(n),
                models: models.map(|(m, c)| (Arc::clone(m), *c)).collect(),
            };
            (*subject, standing)
        };
        subjects.map(standing).collect()
    }

    /// Leases held at each endpoint of the pool that has any.
    pub fn at_endpoints(&self) -> HashMap<EndpointId, usize> {
        let mut held: HashMap<u32, usize> = HashMap::new();
        for lease in self.leases.values() {
            *held.entry(lease.breaker).or_default() += 1;
        }
        let endpoints = self.layout.pool.endpoints().iter().enumerate();
        let count = |n| held.get(&self.layout.breaker_at(n)).copied();
        endpoints
            .filter_map(|(n, e)| Some((e.id, count(n)?)))
            .collect()
    }

    /// The breaker of every endpoint in the pool.
    pub fn breakers(&self) -> Vec<(EndpointId, Breaker)> {
        let endpoints = self.layout.pool.endpoints().iter().enumerate();
        let breaker = |n| self.subjects.breaker(self.layout.breaker_at(n));
        endpoints.map(|(n, e)| (e.id, breaker(n))).collect()
    }

    /// Every edge that serves what is asked for: first those that could take it now, in the order
    /// in which they would be tried, then the others with what keeps them from it. Nothing is taken.
    pub fn explain(&self, demand: &Demand) -> Vec<Explained> {
        let view = self.view();
        let pool = &self.layout.pool;
        let offers = pool.offers(demand.protocol, demand.model.as_deref());
        let mut all: Vec<(EdgeIndex, bool, Option<Why>)> = offers
            .edges()
            .map(|index| {
                let is_outside = !pool.is_in_scope(pool.edge(index), demand.scope());
                (index, is_outside, view.why_not(index, demand))
            })
            .collect();
        let first = view.select(demand);
        all.sort_by_cached_key(|(index, is_outside, why)| {
            let can = !is_outside && why.is_none();
            (!can, Some(*index) != first, view.rank_of(*index))
        });
        let explained = |(index, is_out_of_scope, why_not)| Explained {
            edge: EdgeRef::new(Arc::clone(pool), index),
            why_not,
            is_out_of_scope,
        };
        all.into_iter().map(explained).collect()
    }

    /// What every client key holds and waits for; `None` stands for requests without a key. Whoever
    /// does neither is not in it.
    pub fn holdings(&self) -> HashMap<Option<KeyId>, Holding> {
        let holders = self.lanes.holders();
        let holding = |(key, streams, waiting)| {
            let streams = streams as usize;
            (key, Holding { streams, waiting })
        };
        holders
            .map(holding)
            .filter(|(_, h)| *h != Holding::default())
            .collect()
    }
}
