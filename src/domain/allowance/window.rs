//! How many requests began in the last minute.
//!
//! A log of every moment would be exact and as long as the traffic is heavy. Counts of whole seconds
//! take the same room for every key, and err on the safe side by less than a second: what began in
//! a second is counted until 60 whole seconds have followed it, so that never more than the limit
//! began in *any* 60 seconds, and a place is free again after 60 to 61. A client is told to return in
//! whole seconds anyway.
//!
//! Invariant: the total is the sum of the seconds.
use crate::domain::moment::Moment;

/// The second that runs, and the 60 before it.
const SECONDS: u64 = 61;
const PLACES: usize = 61;

/// How long a request is counted at most.
pub const SPAN_MS: u64 = SECONDS * 1000;

/// The counts of the last seconds.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// One count a second, at its remainder; all of them are within the last [`SECONDS`].
    counts: [u32; PLACES],
    newest: u64,
    total: u64,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            counts: [0; PLACES],
            newest: 0,
            total: 0,
        }
    }
}

impl Window {
    /// Counts so many requests that began at `at`; nothing, if that is too long ago.
    pub(super) fn add(&mut self, at: Moment, count: u32) {
        let second = second_of(at);
        self.advance(second);
        if second + SECONDS <= self.newest {
            return;
        }
        let place = self.place(second);
        let before = *place;
        *place = before.saturating_add(count);
        let added = *place - before;
        self.total += u64::from(added);
    }

    /// How many began in the last minute.
    pub(super) fn count(&mut self, now: Moment) -> u64 {
        self.advance(second_of(now));
        self.total
    }

    /// In how many milliseconds fewer than `limit` will be left; 0 if fewer are.
    pub(super) fn free_in_ms(&mut self, now: Moment, limit: u64) -> u64 {
        self.advance(second_of(now));
        let mut left = self.total;
        let oldest = (self.newest + 1).saturating_sub(SECONDS);
        for second in oldest..=self.newest {
            if left < limit {
                break;
            }
            left -= u64::from(*self.place(second));
            if left < limit {
                return Moment::from_millis((second + SECONDS) * 1000).since(now);
            }
        }
        0
    }

    fn place(&mut self, second: u64) -> &mut u32 {
        // A remainder is less than the length.
        &mut self.counts[usize::try_from(second % SECONDS).unwrap_or(0)]
    }

    fn advance(&mut self, second: u64) {
        if second >= self.newest.saturating_add(SECONDS) {
            *self = Self {
                newest: second,
                ..Self::default()
            };
        }
        while self.newest < second {
            self.newest += 1;
            let gone = std::mem::take(self.place(self.newest));
            self.total -= u64::from(gone);
        }
    }
}

const fn second_of(at: Moment) -> u64 {
    at.as_millis() / 1000
}
