//! The circuit breaker of an endpoint.
//!
//! It exists so that an endpoint that is down costs each request nothing instead of an attempt.
//! Failures in a row trip it; it rests for [`REST_MS`], then exactly one request is let through,
//! whose answer closes it or trips it again. A 429 and what is the client's own fault are answers,
//! not failures: they show that the endpoint is there.
//!
//! Invariant: at most one shot is out; only that shot's answer ends a rest.
use super::{cooldown::Shot, moment::Moment};

/// How long it rests.
pub const REST_MS: u64 = 60_000;

/// How long a shot may go without an answer before the next request has it.
const VERDICT_MS: u64 = 15_000;

/// One endpoint's breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breaker {
    /// Requests pass; so many failed in a row.
    Passing {
        /// Failures in a row.
        failures: u32,
    },
    /// Nothing passes until then.
    Resting {
        /// When the single shot is due.
        until: Moment,
    },
    /// The single shot may be taken.
    Due,
    /// The single shot is out.
    Probing {
        /// Whose.
        shot: Shot,
        /// When it passes to the next.
        verdict_by: Moment,
    },
}

impl Default for Breaker {
    fn default() -> Self {
        Self::Passing { failures: 0 }
    }
}

impl Breaker {
    /// Whether a request may go now, if only as the single shot.
    pub const fn lets_pass(&self) -> bool {
        matches!(self, Self::Passing { .. } | Self::Due)
    }

    /// When it is expected to let requests pass; `None` where it does so now.
    pub const fn free_at(&self) -> Option<Moment> {
        match self {
            Self::Passing { .. } | Self::Due => None,
            Self::Resting { until } => Some(*until),
            Self::Probing { verdict_by, .. } => Some(*verdict_by),
        }
    }

    /// The request `shot` failed in a way that is the endpoint's. Gives whether that tripped it.
    pub fn fail(&mut self, now: Moment, shot: Shot, threshold: u32) -> bool {
        let trips = match self {
            Self::Passing { failures } => {
                *failures = failures.saturating_add(1);
                *failures >= threshold
            }
            Self::Probing { shot: out, .. } => *out == shot,
            Self::Resting { .. } | Self::Due => false,
        };
        if trips {
            *self = Self::Resting {
                until: now.plus(REST_MS),
            };
        }
        trips
    }

    /// The request `shot` was answered. Gives whether that ended a rest.
    pub fn succeed(&mut self, shot: Shot) -> bool {
        match self {
            Self::Passing { failures } => {
                *failures = 0;
                false
            }
            Self::Probing { shot: out, .. } if *out == shot => {
                *self = Self::default();
                true
            }
            _ => false,
        }
    }

    /// The request `shot` goes out; it has the single shot if that is due.
    pub const fn take_shot(&mut self, now: Moment, shot: Shot) -> bool {
        if !matches!(self, Self::Due) {
            return false;
        }
        *self = Self::Probing {
            shot,
            verdict_by: now.plus(VERDICT_MS),
        };
        true
    }

    /// The request `shot` ended without an answer that says anything. Gives whether it had the
    /// single shot.
    pub fn pass_shot(&mut self, shot: Shot) -> bool {
        let has_it = matches!(self, Self::Probing { shot: out, .. } if *out == shot);
        if has_it {
            *self = Self::Due;
        }
        has_it
    }

    /// When time alone changes something.
    pub const fn next_wakeup(&self) -> Option<Moment> {
        self.free_at()
    }

    /// Time has passed. Gives whether that changed anything.
    pub fn handle_timeout(&mut self, now: Moment) -> bool {
        let is_over = self.next_wakeup().is_some_and(|at| at <= now);
        if is_over {
            *self = Self::Due;
        }
        is_over
    }
}

#[cfg(test)]
mod tests;
