//! What client keys have used of their own limits: requests in a minute, requests at once, tokens in
//! a day.
//!
//! A [`Reservation`] is taken once per request, before anything is asked of the pool, and settled
//! once, whatever happens between. Every key is counted from its first request on, whether it has
//! limits or not: a limit that is set later then holds what was used before it at once, and in full,
//! requests in flight included. What an earlier process saw comes by [`Allowance::restore`]; since it
//! began before anything was counted here, nothing is counted twice.
//!
//! * A minute is any 60 seconds, counted in whole seconds: see [`window`]. What was reserved counts,
//!   whatever came of it.
//! * A day is the calendar's day in UTC, so that everybody knows when it ends. Tokens count for the
//!   day on which their request began, as in the request log. They are known at a request's end
//!   alone: a request may start while any are left, and so those in flight may exceed the budget.
//!   What upstream does not report is not counted.
//!
//! Invariants: no key has more in flight, or more reservations in any 60 seconds, than its limits let
//! it have; a refusal takes nothing; counts of flights return to zero; the tokens of a day are the
//! sum of what was settled for it.
pub mod window;

use self::window::Window;
use super::{ids::KeyId, moment::Moment, pool::KeyLimits, reason::Reason};
use std::collections::HashMap;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// This moment, on the process's own time line and on the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// What minutes are measured by.
    pub at: Moment,
    /// What days are told by, in milliseconds since 1970.
    pub unix_ms: i64,
}

impl Now {
    fn day(self) -> Day {
        Day(self.unix_ms.div_euclid(DAY_MS))
    }
}

/// A day in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(i64);

impl Day {
    /// The day of a moment in milliseconds since 1970.
    pub const fn of(unix_ms: i64) -> Self {
        Self(unix_ms.div_euclid(DAY_MS))
    }

    /// Its first millisecond since 1970.
    pub const fn starts_at(self) -> i64 {
        self.0.saturating_mul(DAY_MS)
    }

    /// The first millisecond of the next one.
    pub const fn ends_at(self) -> i64 {
        Self(self.0.saturating_add(1)).starts_at()
    }
}

/// The right of one request to go on, to be settled exactly once.
#[must_use = "a reservation that is not settled is in flight for ever"]
#[derive(Debug, PartialEq, Eq)]
pub struct Reservation {
    key: KeyId,
    at: Moment,
    day: Day,
}

/// A limit that would be exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excess {
    /// Which limit.
    pub reason: Reason,
    /// Its value.
    pub limit: u64,
    /// What is used of it now.
    pub used: u64,
    /// When there will be room again, in milliseconds from now: known for a minute and a day, for
    /// requests at once guessed from how long the key's requests last, if any has ended.
    pub free_in_ms: Option<u64>,
}

/// What a key uses now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Requests of the last minute.
    pub requests: u64,
    /// Requests in flight.
    pub in_flight: u64,
    /// Tokens of today.
    pub tokens: u64,
}

/// What an earlier process saw of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Earlier {
    /// The key.
    pub key: KeyId,
    /// Tokens of the requests that began on the day.
    pub tokens: u64,
    /// Requests of the last minute: how many began at which moment in milliseconds since 1970.
    pub starts: Vec<(i64, u32)>,
}

/// What is to be found out of what an earlier process saw; all in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The beginning of the day whose tokens are wanted.
    pub day_from_ms: i64,
    /// Since when the beginnings of requests are wanted.
    pub minute_from_ms: i64,
    /// What began at or after this was counted already.
    pub until_ms: i64,
}

/// The counts of every key.
#[derive(Debug, Default)]
pub struct Allowance {
    meters: HashMap<KeyId, Meter>,
}

impl Allowance {
    /// Takes a reservation; all limits are looked at before anything is taken. Where several would
    /// be exceeded, the one that lasts longest is told, since to wait for another would be in vain.
    pub fn reserve(
        &mut self,
        now: Now,
        key: KeyId,
        limits: &KeyLimits,
    ) -> Result<Reservation, Excess> {
        let meter = self.meter(now, key);
        if let Some(excess) = meter.excess(now, limits) {
            return Err(excess);
        }
        meter.window.add(now.at, 1);
        meter.in_flight += 1;
        Ok(Reservation {
            key,
            at: now.at,
            day: now.day(),
        })
    }

    /// The request is over; `tokens` are what it used, as far as that is known.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "taken whole, so that nobody can settle it twice"
    )]
    pub fn settle(&mut self, now: Now, reservation: Reservation, tokens: Option<u64>) {
        let Reservation { key, at, day } = reservation;
        let meter = self.meter(now, key);
        meter.in_flight = meter.in_flight.saturating_sub(1);
        meter.lasted(now.at.since(at));
        meter.spend(day, tokens.unwrap_or(0));
    }

    /// Adds what an earlier process saw, which was read for the day `of`.
    pub fn restore(&mut self, now: Now, of: Day, earlier: &[Earlier]) {
        for row in earlier {
            let meter = self.meter(now, row.key);
            meter.spend(of, row.tokens);
            for (began_at, count) in &row.starts {
                let ago = u64::try_from(now.unix_ms.saturating_sub(*began_at)).unwrap_or(0);
                let at = now.at.as_millis().checked_sub(ago);
                if let Some(at) = at.map(Moment::from_millis) {
                    meter.window.add(at, *count);
                }
            }
        }
    }

    /// What that key uses now.
    pub fn used(&mut self, now: Now, key: KeyId) -> Used {
        if !self.meters.contains_key(&key) {
            return Used::default();
        }
        let meter = self.meter(now, key);
        Used {
            requests: meter.window.count(now.at),
            in_flight: meter.in_flight,
            tokens: meter.tokens,
        }
    }

    /// Forgets the keys that are gone, unless they have something in flight still.
    pub fn retain(&mut self, is_there: impl Fn(KeyId) -> bool) {
        self.meters
            .retain(|key, meter| meter.in_flight > 0 || is_there(*key));
    }

    fn meter(&mut self, now: Now, key: KeyId) -> &mut Meter {
        let today = now.day();
        let meter = self.meters.entry(key).or_insert_with(|| Meter::new(today));
        // Not "later": a clock that was wrong and is put back must not leave a budget spent for good.
        if meter.day != today {
            meter.day = today;
            meter.tokens = 0;
        }
        meter
    }
}

/// The counts of one key: a few hundred bytes, however much it is used.
#[derive(Debug)]
struct Meter {
    window: Window,
    in_flight: u64,
    day: Day,
    tokens: u64,
    /// How long its requests last on average, the newest counting most; `None` before the first end.
    mean_ms: Option<u64>,
}

impl Meter {
    fn new(today: Day) -> Self {
        Self {
            window: Window::default(),
            in_flight: 0,
            day: today,
            tokens: 0,
            mean_ms: None,
        }
    }

    fn excess(&mut self, now: Now, limits: &KeyLimits) -> Option<Excess> {
        let over = |reason, limit, used, free_in_ms| {
            Some(Excess {
                reason,
                limit,
                used,
                free_in_ms,
            })
        };
        if let Some(limit) = limits.tokens_per_day.filter(|most| self.tokens >= *most) {
            let left = self.day.ends_at().saturating_sub(now.unix_ms);
            let left = u64::try_from(left).ok();
            return over(Reason::KeyBudgetExhausted, limit, self.tokens, left);
        }
        if let Some(limit) = limits.requests_per_minute.map(u64::from) {
            let used = self.window.count(now.at);
            if used >= limit {
                let free = self.window.free_in_ms(now.at, limit);
                return over(Reason::KeyRateLimited, limit, used, Some(free));
            }
        }
        if let Some(limit) = limits.concurrency.map(u64::from)
            && self.in_flight >= limit
        {
            // So many that began at all times end at such distances.
            let free = self.mean_ms.map(|mean| mean / self.in_flight.max(1));
            return over(Reason::KeyConcurrencyCap, limit, self.in_flight, free);
        }
        None
    }

    fn lasted(&mut self, ms: u64) {
        let mean = self.mean_ms.unwrap_or(ms);
        self.mean_ms = Some(mean - mean / 8 + ms / 8);
    }

    fn spend(&mut self, on: Day, tokens: u64) {
        if on == self.day {
            self.tokens = self.tokens.saturating_add(tokens);
        }
    }
}

#[cfg(test)]
mod tests;
