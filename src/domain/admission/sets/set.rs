//! One candidate set, and the sums that are kept of it.
//!
//! Invariant: the sums count the members that can serve now, and no others.
use super::SetId;
use crate::domain::{ids::KeyId, pool::EdgeIndex};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// One thing in a set that streams are counted on.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) subject: u32,
    /// Streams that ordinary requests may hold; 0 = unlimited.
    pub(super) ordinary: u32,
    pub(super) edges: Vec<EdgeIndex>,
    /// Whether any of its edges can serve now.
    pub(super) serves: bool,
}

impl Member {
    pub(super) fn add(&mut self, edge: EdgeIndex, ordinary: u32) {
        self.edges.push(edge);
        // Two caps on one thing: the tighter one holds.
        if ordinary > 0 && (self.ordinary == 0 || ordinary < self.ordinary) {
            self.ordinary = ordinary;
        }
    }
}

/// A key in a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Active {
    /// Streams that it holds where the set can serve; one that takes slots on several members is one.
    pub(super) held: u64,
    /// Sets that overlap with this one and in which it waits for a stream.
    pub(super) waits: u32,
    pub(super) weight: u64,
}

/// One candidate set.
#[derive(Debug, Default)]
pub(in crate::domain::admission) struct Set {
    /// What its requests ask for, where cooldowns are by model.
    pub(super) model: Option<Arc<str>>,
    pub(super) members: Vec<Member>,
    pub(super) accounts: u32,
    pub(super) needs_several: bool,
    pub(super) serving: u32,
    /// Of those that can serve, how many are unlimited.
    pub(super) unlimited: u32,
    pub(super) capacity: u64,
    pub(super) in_flight: u64,
    pub(super) active: FxHashMap<KeyId, Active>,
    pub(super) weights: u64,
    /// Who waits for a stream in this set: how many requests, and the key's weight.
    pub(super) waiting: FxHashMap<KeyId, (u32, u64)>,
    /// Members that can serve and belong to the other set too.
    pub(super) overlaps: FxHashMap<SetId, u32>,
    pub(super) groups: Vec<usize>,
    pub(super) is_used: bool,
}

impl Set {
    /// Whether anything in it can serve now.
    pub(in crate::domain::admission) fn serves(&self) -> bool {
        self.serving > 0
    }

    /// How many accounts, or credentials that are limited by themselves, are in it.
    pub(in crate::domain::admission) fn candidates(&self) -> u32 {
        self.accounts
    }

    /// Whether every edge takes slots on several accounts at once.
    pub(in crate::domain::admission) fn needs_several(&self) -> bool {
        self.needs_several
    }

    /// The groups that wait for it.
    pub(in crate::domain::admission) fn groups(&self) -> &[usize] {
        &self.groups
    }

    pub(super) fn change(&mut self, key: KeyId, weight: u64, change: impl FnOnce(&mut Active)) {
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

    pub(super) fn count(&mut self, member: usize, sign: i64) {
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
