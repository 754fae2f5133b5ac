//! Whose turn it is: what a key holds, in relation to its weight.
//!
//! Invariant: compared as fractions, so that no rounding decides.
use std::cmp::Ordering;

/// Leases in relation to a weight: the lower, the sooner it is a key's turn.
#[derive(Clone, Copy, Debug)]
pub(in crate::domain::admission) struct Rank {
    pub(super) leases: u64,
    pub(super) weight: u64,
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.leases * other.weight).cmp(&(other.leases * self.weight))
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Rank {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Rank {}
