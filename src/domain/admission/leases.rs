//! What is held: how slots are taken, what follows from that, and how they are given back.
//!
//! Invariant: what a lease has taken it gives back once, and to the things it took it from.
use super::{Admission, Demand, Effects, Grant, Kinds, LeaseId, lanes, layout::Gates, pass::Scope};
use crate::domain::{
    breaker::Breaker,
    ids::{KeyId, RequestId},
    moment::Moment,
    pool::{EdgeIndex, EdgeRef},
};
use std::sync::Arc;

/// Which part of a lease is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The slot for starting a request alone.
    Create,
    /// Everything.
    All,
}

#[derive(Debug)]
pub(super) struct LeaseRow {
    pub(super) holder: RequestId,
    pub(super) key: Option<KeyId>,
    /// The key's weight; 1 without a key.
    pub(super) weight: u32,
    /// What it was granted on.
    pub(super) edge: EdgeRef,
    pub(super) gates: Arc<Gates>,
    pub(super) held: Kinds,
    pub(super) breaker: u32,
    /// The model as upstream knows it, where limits are by model.
    pub(super) model: Option<Arc<str>>,
    pub(super) granted_at: Moment,
    /// Whether its answer says anything of a limit.
    pub(super) is_evidence: bool,
}

impl Admission {
    pub(super) fn grant(&mut self, now: Moment, demand: &Demand, index: EdgeIndex) -> Grant {
        let pool = Arc::clone(&self.layout.pool);
        let edge = pool.edge(index);
        let gates = Arc::clone(self.layout.gates(index));
        self.minted += 1;
        let lease = LeaseId(self.minted);
        let asked = demand.model.as_deref().filter(|_| gates.is_per_model());
        let (key, weight) = lanes::key_of(demand);
        let row = LeaseRow {
            holder: demand.holder,
            key,
            weight,
            edge: EdgeRef::new(Arc::clone(&pool), index),
            breaker: self.layout.breaker(edge),
            model: asked.map(|model| pool.upstream_model(edge, model).into()),
            held: demand.kinds,
            granted_at: now,
            is_evidence: demand.is_evidence(),
            gates,
        };
        self.subjects.take(&row.gates, demand.kinds, edge.weight);
        self.lanes.took((key, weight), demand.kinds);
        if demand.kinds.stream {
            self.sets.hold(&row.gates.subjects, (key, weight), 1);
        }
        let was_due = self.subjects.breaker(row.breaker) == Breaker::Due;
        let has_shot = self.take_shots(now, lease, &row);
        self.follow(&row.gates);
        if has_shot {
            self.reassess(&row.gates, was_due);
            // What awaits a verdict does not serve: the rest may be less tight without it.
            self.has_shifted |= self.layout.limits.fair_share_pct > 0;
        }
        self.leases.insert(lease, row);
        Grant {
            lease,
            edge: EdgeRef::new(pool, index),
        }
    }

    /// Places anew whatever stands or falls with the subjects of a lease.
    pub(super) fn follow(&mut self, gates: &Gates) {
        for subject in &gates.subjects {
            self.follow_subject(*subject);
        }
    }

    pub(super) fn follow_subject(&mut self, subject: u32) {
        for unit in self.layout.dependents(subject) {
            self.order.update(&self.layout, &self.subjects, *unit);
        }
    }

    /// What cools on the way of a lease has changed, and with it what can serve; where its breaker
    /// has turned, that is so for all that it is the breaker of.
    pub(super) fn reassess(&mut self, gates: &Gates, has_turned: bool) {
        if has_turned {
            return self.reassess_all();
        }
        for limited in &gates.limited {
            self.reassess_subject(limited.subject);
        }
    }

    pub(super) fn reassess_subject(&mut self, subject: u32) {
        let (view, sets) = self.split();
        sets.refresh(view, view.layout.dependents(subject));
    }

    pub(super) fn reassess_all(&mut self) {
        let (view, sets) = self.split();
        sets.refresh_all(view);
    }

    /// Gives a lease, or a part of it, back, and tells which slots that has freed. A lease that is
    /// not held any more is left alone.
    pub fn release(
        &mut self,
        now: Moment,
        lease: LeaseId,
        part: Part,
        effects: &mut Effects,
    ) -> Kinds {
        let Some(row) = self.leases.get_mut(&lease) else {
            return Kinds::NONE;
        };
        let freed = match part {
            Part::Create => Kinds {
                create: row.held.create,
                ..Kinds::NONE
            },
            Part::All => row.held,
        };
        row.held = row.held.without(freed);
        let (gates, key) = (Arc::clone(&row.gates), (row.key, row.weight));
        self.give_back(&gates, key, freed);
        let mut scope = (freed != Kinds::NONE).then_some(Scope::Freed(&gates, freed));
        if part == Part::All
            && let Some(row) = self.leases.remove(&lease)
        {
            let before = self.subjects.breaker(row.breaker);
            if self.pass_shots(lease, &row, effects) {
                let has_turned = self.subjects.breaker(row.breaker) != before;
                self.reassess(&gates, has_turned);
                scope = Some(Scope::after(&gates, has_turned));
            }
        }
        if let Some(scope) = scope {
            self.follow(&gates);
            self.pass(now, &scope, effects);
        }
        freed
    }

    fn give_back(&mut self, gates: &Gates, (key, weight): (Option<KeyId>, u32), freed: Kinds) {
        self.subjects.give_back(gates, freed);
        self.lanes.gave(key, freed);
        if freed.stream {
            self.sets.hold(&gates.subjects, (key, weight), -1);
        }
    }

    /// How many leases are held.
    pub fn leases(&self) -> usize {
        self.leases.len()
    }
}
