//! How fast slots come free, and what that says to whoever is to come again.
//!
//! Invariant: each kind of slot has a pace of its own, since a stream lasts for minutes where the
//! start of a request takes a second.
use super::RETRY_AFTER_MAX_SECONDS;
use crate::{
    clock::Instant,
    domain::{
        admission::{Kinds, Refusal},
        reason::Reason,
    },
};

/// How fast slots have been coming free in the whole pool: the base of every `Retry-After` for which
/// nothing better is known.
#[derive(Debug)]
pub(super) struct Pace {
    stream: Rate,
    create: Rate,
    job: Rate,
}

/// Who is in front of somebody who comes again, and what there is for them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    /// Requests that hold slots.
    pub(super) leases: usize,
    /// Requests that wait.
    pub(super) waiters: usize,
}

impl Pace {
    /// Nothing has come free yet.
    pub(super) const fn new() -> Self {
        Self {
            stream: Rate::new(),
            create: Rate::new(),
            job: Rate::new(),
        }
    }

    /// Slots have come free.
    pub(super) fn note(&mut self, freed: Kinds, now: Instant) {
        for (is_freed, rate) in [
            (freed.stream, &mut self.stream),
            (freed.create, &mut self.create),
            (freed.job, &mut self.job),
        ] {
            if is_freed {
                rate.note(now);
            }
        }
    }

    /// When it may be the turn of a request of those kinds that was refused so and comes again, in
    /// whole seconds.
    pub(super) fn seconds_for(
        &self,
        refusal: &Refusal,
        kinds: Kinds,
        queue: Queue,
        now: Instant,
    ) -> u64 {
        let short = short_of(refusal.reason, kinds);
        let every_ms = [
            (short.stream, &self.stream),
            (short.create, &self.create),
            (short.job, &self.job),
        ]
        .into_iter()
        .filter(|(is_short, _)| *is_short)
        .map(|(_, rate)| rate.every_ms(now))
        .max()
        .unwrap_or(GUESS_MS);
        (every_ms.saturating_mul(turns(refusal, queue)))
            .div_ceil(1000)
            .clamp(1, RETRY_AFTER_MAX_SECONDS)
    }
}

/// How many slots of the pool come free until it is somebody's turn.
fn turns(refusal: &Refusal, queue: Queue) -> u64 {
    let (leases, waiters) = (queue.leases as u64, queue.waiters as u64);
    match (refusal.reason, refusal.limit) {
        // Only every so many-th of them is the owner's own, and so is every so many-th waiter.
        (Reason::OwnerSaturated, Some((_, used))) => {
            leases.div_ceil((used as u64).max(1)).max(1) + waiters
        }
        _ => waiters + 1,
    }
}

/// The kinds of which there were too few.
fn short_of(reason: Reason, kinds: Kinds) -> Kinds {
    match reason {
        Reason::AccountStreamCap | Reason::ApiKeyStreamFairShare => Kinds::STREAM,
        Reason::AccountCreateCap => Kinds::CREATE,
        Reason::AccountJobCap => Kinds {
            job: true,
            ..Kinds::NONE
        },
        _ => kinds,
    }
}

/// What is taken for the time between two releases while nothing is known.
const GUESS_MS: u64 = 1000;

/// How fast slots of one kind have been coming free.
#[derive(Debug)]
struct Rate {
    last: Option<Instant>,
    /// Moving average of the time between two releases.
    average_ms: u64,
}

impl Rate {
    const fn new() -> Self {
        Self {
            last: None,
            average_ms: GUESS_MS,
        }
    }

    fn note(&mut self, now: Instant) {
        if let Some(last) = self.last.replace(now) {
            self.average_ms = (self.average_ms * 7 + gap_ms(last, now)) / 8;
        }
    }

    /// The time between two releases; what has not come for longer than usual is slower than usual.
    fn every_ms(&self, now: Instant) -> u64 {
        let since = self.last.map_or(0, |last| gap_ms(last, now));
        self.average_ms.max(since)
    }
}

/// A pause in the work is no sign of slow slots, so that the longest one counts as the longest wait
/// that anybody is told.
fn gap_ms(last: Instant, now: Instant) -> u64 {
    let gap = u64::try_from(now.duration_since(last).as_millis()).unwrap_or(u64::MAX);
    gap.min(RETRY_AFTER_MAX_SECONDS * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const JOB: Kinds = Kinds {
        job: true,
        ..Kinds::NONE
    };

    /// After slots of `freed` have come free every so many milliseconds, `idle_ms` ago at last.
    fn check(
        (freed, every_ms, idle_ms): (Kinds, u64, u64),
        (refusal, kinds): (Refusal, Kinds),
        (leases, waiters): (usize, usize),
        expect: u64,
    ) {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut pace = Pace::new();
        for n in 0..100 {
            pace.note(freed, at(n * every_ms));
        }
        let queue = Queue { leases, waiters };
        let now = at(99 * every_ms + idle_ms);
        let seconds = pace.seconds_for(&refusal, kinds, queue, now);
        assert_eq!(seconds, expect, "{refusal:?} {kinds:?}");
    }

    fn short(reason: Reason) -> Refusal {
        Refusal::limit(reason, 8, 8)
    }

    #[test]
    fn whoever_comes_again_is_told_of_the_slots_that_were_short() {
        let stream = (short(Reason::AccountStreamCap), Kinds::GENERATE);
        let create = (short(Reason::AccountCreateCap), Kinds::GENERATE);
        let share = (short(Reason::ApiKeyStreamFairShare), Kinds::STREAM);
        let any = (short(Reason::CredentialCap), Kinds::CREATE);
        let job = (short(Reason::AccountJobCap), JOB);
        check((Kinds::STREAM, 4000, 0), stream, (8, 0), 4);
        check((Kinds::STREAM, 4000, 0), share, (8, 2), 12);
        check((Kinds::STREAM, 4000, 0), create, (8, 0), 1);
        check((Kinds::CREATE, 7000, 0), create, (8, 0), 7);
        check((Kinds::CREATE, 7000, 0), any, (8, 1), 14);
        check((Kinds::CREATE, 7000, 0), stream, (8, 0), 1);
        check((JOB, 9000, 0), job, (8, 1), 18);
    }

    #[test]
    fn it_is_between_a_second_and_a_minute_whatever_happens() {
        let stream = (short(Reason::AccountStreamCap), Kinds::GENERATE);
        check((Kinds::STREAM, 1, 0), stream, (8, 3), 1);
        check((Kinds::STREAM, 4000, 0), stream, (8, 500), 60);
        check((Kinds::STREAM, 90_000, 0), stream, (8, 0), 60);
        check((Kinds::STREAM, 10, 3_600_000), stream, (8, 0), 60);
        let none = (Refusal::bare(Reason::NoServiceableAccount), Kinds::NONE);
        check((Kinds::STREAM, 90_000, 0), none, (8, 0), 1);
    }

    #[test]
    fn slots_that_have_stopped_coming_free_are_slow_ones() {
        let stream = (short(Reason::AccountStreamCap), Kinds::GENERATE);
        check((Kinds::STREAM, 100, 20_000), stream, (8, 0), 20);
    }

    #[test]
    fn an_owner_has_but_its_part_of_what_comes_free() {
        let owner = |used| {
            (
                Refusal::limit(Reason::OwnerSaturated, 8, used),
                Kinds::STREAM,
            )
        };
        check((Kinds::STREAM, 1000, 0), owner(8), (8, 0), 1);
        check((Kinds::STREAM, 1000, 0), owner(8), (80, 0), 10);
        check((Kinds::STREAM, 1000, 0), owner(8), (80, 5), 15);
        check((Kinds::STREAM, 1000, 0), owner(0), (0, 0), 1);
    }
}
