//! How fast slots come free, and what that says to whoever is to come again.
use super::RETRY_AFTER_MAX_SECONDS;
use crate::clock::Instant;

/// How fast stream slots have been coming free: the base of every `Retry-After`.
#[derive(Debug)]
pub(super) struct Pace {
    last: Option<Instant>,
    /// Moving average of the time between two releases, in milliseconds.
    every_ms: u64,
}

impl Pace {
    /// Nothing is known yet: a second is a fair guess.
    pub(super) const fn new() -> Self {
        Self {
            last: None,
            every_ms: 1000,
        }
    }

    /// When `ahead` slots have come free, in whole seconds.
    pub(super) fn seconds_for(&self, ahead: u64) -> u64 {
        (self.every_ms * ahead)
            .div_ceil(1000)
            .clamp(1, RETRY_AFTER_MAX_SECONDS)
    }

    pub(super) fn note(&mut self, now: Instant) {
        if let Some(last) = self.last.replace(now) {
            let gap = u64::try_from(now.duration_since(last).as_millis()).unwrap_or(u64::MAX);
            // A pause in the work is no sign of slow slots.
            let gap = gap.min(RETRY_AFTER_MAX_SECONDS * 1000);
            self.every_ms = (self.every_ms * 7 + gap) / 8;
        }
    }
}
