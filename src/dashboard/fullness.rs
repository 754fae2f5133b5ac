//! How full the pool has been: a look every few seconds, kept in memory for the window of the charts.
//!
//! Invariant: a stretch without a look is a gap, never a zero. After a start there is nothing yet,
//! and if the task that looks should end, what it has seen grows old and leaves.
use super::State;
use crate::{clock, engine::picture::Picture};
use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// The time between looks: twice in each step, so that a late one leaves no gap.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// One step of the chart.
pub(super) const STEP_MS: i64 = 10_000;

/// Steps that are kept: a quarter of an hour.
pub(super) const STEPS: i64 = 90;

/// What was seen in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// The step, counted since 1970.
    pub(super) step: i64,
    /// The most streams that a look found in flight.
    pub(super) in_flight: u64,
    /// What ordinary requests might hold at the last look; `None` where that was unlimited.
    pub(super) capacity: Option<u64>,
}

/// What was seen, oldest first.
#[derive(Debug, Default)]
pub(super) struct Fullness(Mutex<VecDeque<Seen>>);

impl Fullness {
    pub(super) fn note(&self, now_ms: i64, in_flight: u64, capacity: Option<u64>) {
        let step = now_ms / STEP_MS;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A wall clock that was set back must not leave steps of the future.
        all.retain(|seen| (step - STEPS + 1..=step).contains(&seen.step));
        match all.back_mut() {
            Some(last) if last.step == step => {
                last.in_flight = last.in_flight.max(in_flight);
                last.capacity = capacity;
            }
            _ => all.push_back(Seen {
                step,
                in_flight,
                capacity,
            }),
        }
    }

    /// The steps up to `now_ms`, oldest first; `None` where nobody looked.
    pub(super) fn window(&self, now_ms: i64) -> Vec<Option<Seen>> {
        let last = now_ms / STEP_MS;
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = |step| all.iter().find(|seen| seen.step == step).copied();
        (last - STEPS + 1..=last).map(at).collect()
    }
}

impl State {
    /// Looks at how full the pool is, for ever.
    pub async fn watch_fullness(self) {
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            let now_ms = clock::unix_millis();
            let totals = Picture::take(self.reload().configuration(), now_ms).totals;
            self.fullness()
                .note(now_ms, totals.in_flight, totals.capacity);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(fullness: &Fullness, now_ms: i64) -> Vec<(usize, u64)> {
        let window = fullness.window(now_ms);
        assert_eq!(window.len(), 90);
        let seen = window.iter().enumerate();
        seen.filter_map(|(n, seen)| Some((n, seen.as_ref()?.in_flight)))
            .collect()
    }

    #[test]
    fn a_step_shows_its_most_and_a_stretch_without_a_look_is_a_gap() {
        let fullness = Fullness::default();
        assert_eq!(shown(&fullness, 1_000_000), []);
        fullness.note(1_000_000, 3, Some(8));
        fullness.note(1_005_000, 2, Some(9));
        fullness.note(1_020_000, 0, None);
        assert_eq!(shown(&fullness, 1_025_000), [(87, 3), (89, 0)]);
        let capacities = fullness.window(1_025_000);
        assert_eq!(capacities[87].unwrap().capacity, Some(9));
        assert_eq!(capacities[89].unwrap().capacity, None);
    }

    #[test]
    fn what_is_old_or_of_a_future_that_was_taken_back_goes() {
        let fullness = Fullness::default();
        fullness.note(1_000_000, 1, None);
        fullness.note(1_900_000, 2, None);
        assert_eq!(shown(&fullness, 1_900_000), [(89, 2)]);
        fullness.note(1_000_000, 5, None);
        assert_eq!(shown(&fullness, 1_000_000), [(89, 5)]);
    }
}
