//! The units in the order in which they are chosen.
//!
//! Invariant: a unit stands here exactly while its accounts take work and nothing that it shares
//! cools; its place follows its usage at once, so that the best choice is the first that fits.
use super::strategy::Strategy;
use super::{
    layout::{Gates, Layout},
    subjects::Subjects,
};
use std::collections::BTreeSet;

/// A unit's place; smaller is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) priority: i32,
    /// Whether it has no room for an ordinary generating request.
    pub(super) is_full: bool,
    first: u64,
    second: u64,
    pub(super) unit: u32,
}

#[derive(Debug, Default)]
pub(super) struct Order {
    places: BTreeSet<Place>,
    by_unit: Vec<Option<Place>>,
}

/// Shares are compared as whole numbers of this part. Two different fractions with denominators up
/// to a hundred thousand, the largest cap, are at least 10^-10 apart, and so never become equal.
const SHARE: u64 = 1 << 40;

impl Order {
    /// Places every unit anew.
    pub(super) fn rebuild(&mut self, layout: &Layout, subjects: &Subjects) {
        let units = 0..layout.units();
        self.by_unit = units.map(|n| place(layout, subjects, n)).collect();
        self.places = self.by_unit.iter().flatten().copied().collect();
    }

    /// Places one unit anew.
    pub(super) fn update(&mut self, layout: &Layout, subjects: &Subjects, unit: u32) {
        let Some(slot) = self.by_unit.get_mut(unit as usize) else {
            return;
        };
        let new = place(layout, subjects, unit);
        if *slot == new {
            return;
        }
        if let Some(old) = slot.take() {
            self.places.remove(&old);
        }
        *slot = new;
        self.places.extend(new);
    }

    /// Where a unit stands; `None` if it takes no work now.
    pub(super) fn place(&self, unit: u32) -> Option<Place> {
        self.by_unit.get(unit as usize).copied().flatten()
    }

    /// The best unit after `last`.
    pub(super) fn next(&self, last: Option<Place>) -> Option<Place> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = last.map_or(Unbounded, Excluded);
        self.places.range((from, Unbounded)).next().copied()
    }

    /// The best unit of a later priority.
    pub(super) fn skip(&self, priority: i32) -> Option<Place> {
        let first = Place {
            priority: priority.checked_add(1)?,
            is_full: false,
            first: 0,
            second: 0,
            unit: 0,
        };
        self.places.range(first..).next().copied()
    }
}

fn place(layout: &Layout, subjects: &Subjects, n: u32) -> Option<Place> {
    let unit = layout.unit(n)?;
    let gates = layout.unit_gates(n)?;
    let cools = |l: &super::layout::Limited| !subjects.cooldown(l.subject).lets_pass();
    if !unit.takes_work || gates.limited.iter().any(cools) {
        return None;
    }
    let turn = subjects.usage(gates.turn()).turn;
    let (first, second) = match layout.limits.strategy {
        Strategy::LeastLoaded => (share(gates, subjects), turn),
        Strategy::RoundRobin => (turn, 0),
        Strategy::FillFirst => (0, 0),
    };
    Some(Place {
        priority: unit.priority,
        is_full: !subjects.has_room(gates),
        first,
        second,
        unit: n,
    })
}

/// In use of the tightest shared cap of streams; without a cap no share of it is in use.
fn share(gates: &Gates, subjects: &Subjects) -> u64 {
    let share = |gate: &super::layout::Gate| {
        let used = u64::from(subjects.usage(gate.subject).stream);
        match u64::from(gate.ordinary) {
            0 => 0,
            cap => (used * SHARE).checked_div(cap).unwrap_or(u64::MAX),
        }
    };
    gates.shared.iter().map(share).max().unwrap_or(0)
}
