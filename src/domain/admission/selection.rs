//! The choice of an edge: lowest priority number first, then the lowest share of its cap in use,
//! then whoever had its turn longest ago in relation to its weight.
use super::{
    Demand, Kinds, Refusal,
    gates::{Gates, Subjects},
};
use crate::domain::{
    pool::{Edge, EdgeIndex, Pool, State},
    reason::Reason,
};
use std::cmp::Ordering;

/// Why no edge could be chosen.
#[derive(Clone, Copy, Debug)]
pub(super) enum Blocked {
    /// Something is full; room may come.
    ForNow(Refusal),
    /// Nothing that could come would help.
    ForGood(Refusal),
}

/// How good a candidate is; smaller is better.
#[derive(Clone, Copy, Debug)]
struct Rank {
    priority: i32,
    /// In use of the tightest cap, as numerator and denominator.
    share: (u32, u32),
    turns: (u64, u64),
}

impl Rank {
    fn of(edge: &Edge, gates: &Gates, subjects: &Subjects, kinds: Kinds) -> Self {
        let mut share = (0, 1);
        for gate in &gates.caps {
            let used = subjects.usage(gate.subject);
            let one = if kinds.create && !kinds.stream {
                (used.create, gate.create)
            } else {
                (used.stream, gate.ordinary)
            };
            // Without a cap no share of it is in use.
            if one.1 > 0 && compare(one, share) == Ordering::Greater {
                share = one;
            }
        }
        let turn = |n: Option<&u32>| n.map_or(0, |n| subjects.usage(*n).turn);
        Self {
            priority: edge.priority,
            share,
            turns: (turn(gates.subjects.first()), turn(gates.subjects.last())),
        }
    }

    fn is_better_than(&self, other: &Self) -> bool {
        let order = self
            .priority
            .cmp(&other.priority)
            .then_with(|| compare(self.share, other.share))
            .then_with(|| self.turns.cmp(&other.turns));
        order == Ordering::Less
    }
}

/// Compares two fractions with positive denominators.
fn compare(a: (u32, u32), b: (u32, u32)) -> Ordering {
    (u64::from(a.0) * u64::from(b.1)).cmp(&(u64::from(b.0) * u64::from(a.1)))
}

/// What was seen of the candidates that could not be chosen.
#[derive(Debug, Default)]
struct Seen {
    in_scope: usize,
    tried: usize,
    disabled: usize,
    draining: usize,
    full: Option<super::gates::Full>,
}

/// The best edge for `demand` that can take it now.
pub(super) fn select(
    pool: &Pool,
    gates: &[Gates],
    subjects: &Subjects,
    demand: &Demand,
) -> Result<EdgeIndex, Blocked> {
    if demand.needs_owner && !has_one_account(pool, demand) {
        return Err(Blocked::ForGood(Refusal::bare(Reason::OwnerUnknown)));
    }
    let mut best: Option<(Rank, EdgeIndex)> = None;
    let mut seen = Seen::default();
    for index in pool.candidates(demand.protocol, demand.model.as_deref()) {
        let edge = pool.edge(index);
        if !pool.is_in_scope(edge, demand.scope()) {
            continue;
        }
        seen.in_scope += 1;
        if !seen.lets_pass(pool, edge, demand) {
            continue;
        }
        let gates = &gates[index.position()];
        if let Some(full) = subjects.full(gates, demand.kinds, demand.reattach) {
            seen.full.get_or_insert(full);
            continue;
        }
        let rank = Rank::of(edge, gates, subjects, demand.kinds);
        if best.as_ref().is_none_or(|(b, _)| rank.is_better_than(b)) {
            best = Some((rank, index));
        }
    }
    best.map(|(_, index)| index)
        .ok_or_else(|| seen.blocked(demand))
}

/// Whether exactly one account of those in scope speaks the protocol: then an id that fairlane
/// has never seen can only be that account's.
fn has_one_account(pool: &Pool, demand: &Demand) -> bool {
    let mut only = None;
    pool.candidates(demand.protocol, None)
        .map(|index| pool.edge(index))
        .filter(|edge| pool.is_in_scope(edge, demand.scope()))
        .all(|edge| *only.get_or_insert(&edge.accounts) == &edge.accounts)
        && only.is_some()
}

impl Seen {
    /// Whether the edge is one that could take the work, were there room.
    fn lets_pass(&mut self, pool: &Pool, edge: &Edge, demand: &Demand) -> bool {
        let was_tried = !demand.tried.is_empty()
            && pool.accounts_of(edge).any(|a| demand.tried.contains(&a.id));
        if was_tried {
            self.tried += 1;
            return false;
        }
        if pool.takes_work(edge) {
            return true;
        }
        let states = [pool.credential(edge).state, pool.endpoint(edge).state]
            .into_iter()
            .chain(pool.accounts_of(edge).map(|a| a.state));
        match states.into_iter().find(|s| matches!(s, State::Disabled(_))) {
            Some(_) => self.disabled += 1,
            None => self.draining += 1,
        }
        false
    }

    fn blocked(self, demand: &Demand) -> Blocked {
        let refusal = |reason| Refusal {
            candidates: self.in_scope,
            out_of_service: (self.disabled, self.draining),
            ..Refusal::bare(reason)
        };
        if let Some((reason, cap, used)) = self.full {
            let reason = if demand.needs_owner {
                Reason::OwnerSaturated
            } else {
                reason
            };
            return Blocked::ForNow(Refusal {
                limit: Some((cap as usize, used as usize)),
                ..refusal(reason)
            });
        }
        let reason = match (&demand.model, self.in_scope) {
            (Some(_), 0) => Reason::ModelNotFound,
            _ => Reason::NoServiceableAccount,
        };
        Blocked::ForGood(refusal(reason))
    }
}
