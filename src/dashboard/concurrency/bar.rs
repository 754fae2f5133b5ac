//! The bar of an account: one cell a slot where they are few, in proportion where they are many.
//!
//! A run of cells is one stroke whose dashes are the cells, so that a bar costs a few bytes however
//! many slots there are. Colours are classes, since widths and styles of elements are not allowed.
use super::strip::Paints;
use crate::{
    domain::ids::KeyId,
    engine::picture::{Caps, OnAccount},
};
use std::fmt::Write as _;

/// More slots than that are drawn in proportion.
const CELLS: u64 = 24;

/// The widest bar, in pixels.
const WIDTH: u64 = 142;

/// One stroke.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The class of its colour.
    pub(super) paint: &'static str,
    /// Where it goes.
    pub(super) path: String,
}

/// A drawn bar; nothing is drawn where nothing is limited.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bar {
    /// How wide it is, and how high so far, in pixels.
    width: u64,
    height: u64,
    /// The class that makes dashes of its strokes.
    pub(super) cells: &'static str,
    pub(super) runs: Vec<Run>,
}

/// How wide a cell is with its gap, and the class of strokes that are cut so.
fn cell(slots: u64) -> (u64, &'static str) {
    match slots {
        0..=12 => (12, "c12"),
        13..=18 => (8, "c8"),
        _ => (6, "c6"),
    }
}

impl Bar {
    pub(super) fn new(on: &OnAccount, paints: &Paints) -> Option<Self> {
        // Where each credential has a quota of its own and there is none, nothing may be held.
        let slots = on.caps.streams.filter(|slots| *slots > 0)?;
        let mut bar = Self::empty(slots);
        let held = parts(&on.by_key, paints);
        let mut at = 0;
        for (paint, streams) in held {
            bar.run(paint, (at, streams), slots);
            at += streams;
        }
        // What is held is drawn first; the reserve is at the end, as far as it is free.
        let ordinary = slots - on.caps.reserve;
        bar.run("free", (at, ordinary.saturating_sub(at)), slots);
        let reserved = at.max(ordinary);
        bar.run("kept", (reserved, slots.saturating_sub(reserved)), slots);
        bar.thin(on, on.caps);
        Some(bar)
    }

    fn empty(slots: u64) -> Self {
        let (step, cells) = cell(slots);
        let (width, cells) = if slots > CELLS {
            (WIDTH, "c0")
        } else {
            (step * slots - 2, cells)
        };
        Self {
            width,
            height: 12,
            cells,
            runs: Vec::new(),
        }
    }

    /// Where so many slots begin, in pixels.
    fn place(&self, slots: u64, all: u64) -> u64 {
        if self.cells == "c0" {
            slots.min(all) * WIDTH / all.max(1)
        } else {
            cell(all).0 * slots.min(all)
        }
    }

    fn run(&mut self, paint: &'static str, (from, count): (u64, u64), all: u64) {
        let (begin, end) = (self.place(from, all), self.place(from + count, all));
        // The gap behind a cell belongs to it, but is not drawn.
        let gap = if self.cells == "c0" { 0 } else { 2 };
        if end > begin {
            let path = format!("M{begin} 6h{}", end - begin - gap);
            self.runs.push(Run { paint, path });
        }
    }

    /// Requests being started and jobs are thin lines below, where there are any.
    fn thin(&mut self, on: &OnAccount, caps: Caps) {
        let kinds = [
            ("thin", on.used.creates, caps.creates),
            ("thin job", on.used.jobs, caps.jobs),
        ];
        for (paint, used, cap) in kinds {
            if used == 0 {
                continue;
            }
            let length = match cap {
                Some(cap) => used.min(cap) * self.width / cap.max(1),
                None => self.width,
            };
            let mut path = String::new();
            // Writing to a string cannot fail.
            let _ = write!(path, "M0 {}h{length}", self.height + 3);
            self.height += 5;
            self.runs.push(Run { paint, path });
        }
    }
}

/// What is held, in the order of the colours: each of those that have one, then all others.
fn parts(by_key: &[(Option<KeyId>, u64)], paints: &Paints) -> Vec<(&'static str, u64)> {
    let mut parts: Vec<(usize, &'static str, u64)> = Vec::new();
    for (key, streams) in by_key {
        let (rank, paint) = paints.of(*key);
        match parts.iter_mut().find(|(known, ..)| *known == rank) {
            Some((.., sum)) => *sum += streams,
            None => parts.push((rank, paint, *streams)),
        }
    }
    parts.sort_unstable_by_key(|(rank, ..)| *rank);
    let parts = parts.into_iter();
    parts.map(|(_, paint, streams)| (paint, streams)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::picture::Used;

    fn drawn(streams: u64, reserve: u64, held: u64, creates: u64) -> Vec<(&'static str, String)> {
        let on = OnAccount {
            caps: Caps {
                streams: Some(streams),
                reserve,
                creates: Some(4),
                jobs: Some(2),
            },
            used: Used {
                streams: held,
                creates,
                jobs: 0,
            },
            by_key: vec![(None, held)],
        };
        let bar = Bar::new(&on, &Paints::default()).unwrap();
        let runs = bar.runs.into_iter();
        runs.map(|run| (run.paint, run.path)).collect()
    }

    fn check(shown: &[(&'static str, String)], expect: &[(&'static str, &str)]) {
        let shown: Vec<_> = shown.iter().map(|(p, d)| (*p, &**d)).collect();
        assert_eq!(shown, expect);
    }

    #[test]
    fn every_slot_is_a_cell_held_ones_first_and_the_reserve_last() {
        check(
            &drawn(8, 1, 3, 0),
            &[
                ("rest", "M0 6h34"),
                ("free", "M36 6h46"),
                ("kept", "M84 6h10"),
            ],
        );
        check(&drawn(8, 1, 8, 0), &[("rest", "M0 6h94")]);
        check(&drawn(2, 0, 0, 0), &[("free", "M0 6h22")]);
    }

    #[test]
    fn many_slots_are_drawn_in_proportion_and_more_than_the_cap_fills_it() {
        check(
            &drawn(142, 42, 50, 0),
            &[
                ("rest", "M0 6h50"),
                ("free", "M50 6h50"),
                ("kept", "M100 6h42"),
            ],
        );
        check(&drawn(4, 1, 6, 0), &[("rest", "M0 6h46")]);
    }

    #[test]
    fn requests_being_started_are_a_thin_line_below_where_there_are_any() {
        let shown = drawn(8, 0, 8, 2);
        check(&shown, &[("rest", "M0 6h94"), ("thin", "M0 15h47")]);
    }

    #[test]
    fn without_a_limit_there_is_nothing_to_be_full_of() {
        let caps = Caps {
            streams: None,
            ..Caps::default()
        };
        let on = OnAccount {
            caps,
            ..OnAccount::default()
        };
        assert_eq!(Bar::new(&on, &Paints::default()), None);
    }
}
