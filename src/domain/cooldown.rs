//! The cooldown of whatever a provider limits: an account, a credential, or one model of either.
//!
//! It exists because a 429 says something about all who share a quota, not only about the request
//! that met it. A 429 trips it. When its time is over exactly one request is let through, the
//! *shot*; its answer decides: success opens, another 429 cools for twice as long. A shot that says
//! nothing of the limit is passed to the next request, and one that has no answer after
//! [`VERDICT_MS`] counts as not limited, so that a slow answer holds nobody up.
//!
//! Invariants: at most one shot is out; while it cools its end only moves later; a hint of more
//! than [`TRUSTED_MS`] is checked every [`TRUSTED_MS`], unless the operator trusts it. Evidence is
//! judged by when its request was sent: a success of one that was sent before the cooldown began
//! proves nothing.
use super::moment::Moment;

/// The shortest cooldown.
pub const FLOOR_MS: u64 = 1_000;

/// The longest cooldown that nobody asked for.
const BACKOFF_MAX_MS: u64 = 60_000;

/// The longest hint that is believed without a look in between: providers are known to state
/// resets days away that an upgrade or a correction makes untrue.
pub const TRUSTED_MS: u64 = 3_600_000;

/// How long a shot may go without an answer before it counts as not limited.
pub const VERDICT_MS: u64 = 15_000;

/// Names the request that has the single shot.
pub type Shot = u64;

/// A 429, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// When the request that met it was sent.
    pub sent_at: Moment,
    /// How long to wait, in milliseconds, if upstream said so.
    pub wait_ms: Option<u64>,
    /// Whether a quota is used up until then, rather than a rate exceeded.
    pub is_quota: bool,
    /// Whether the operator believes hints of any length.
    pub is_trusted: bool,
}

/// One subject's cooldown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cooldown {
    phase: Phase,
    /// How long the last cooldown was to be; 0 after a success.
    length_ms: u64,
    /// The latest 429's request was sent no later than this.
    began_at: Moment,
    /// The end that upstream stated, where that is later than the next look.
    told_until: Option<Moment>,
    is_quota: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Open,
    Cooling {
        until: Moment,
    },
    Due,
    Probing {
        shot: Shot,
        verdict_by: Moment,
    },
}

/// A cooldown as it outlives the process: spans from now instead of moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Milliseconds until the shot is due.
    pub ends_in_ms: u64,
    /// Milliseconds until the end that upstream stated, where that is later.
    pub told_in_ms: Option<u64>,
    /// How long the cooldown was to be.
    pub length_ms: u64,
    /// Whether a quota is used up.
    pub is_quota: bool,
}

/// What a cooldown looks like from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nothing is limited.
    Open,
    /// Limited until then.
    Cooling(Moment),
    /// The single shot may be taken.
    Due,
    /// The single shot is out; without an answer it counts as not limited from then on.
    Probing(Moment),
}

impl Cooldown {
    /// Where it stands.
    pub const fn stage(&self) -> Stage {
        match self.phase {
            Phase::Open => Stage::Open,
            Phase::Cooling { until } => Stage::Cooling(until),
            Phase::Due => Stage::Due,
            Phase::Probing { verdict_by, .. } => Stage::Probing(verdict_by),
        }
    }

    /// Whether a request may go now, if only as the single shot.
    pub const fn lets_pass(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Due)
    }

    /// When it is expected to let requests pass; `None` where it does so now.
    pub fn free_at(&self) -> Option<Moment> {
        match self.phase {
            Phase::Open | Phase::Due => None,
            Phase::Cooling { until } if self.is_quota => Some(self.told_until.unwrap_or(until)),
            Phase::Cooling { until } => Some(until),
            Phase::Probing { verdict_by, .. } => Some(verdict_by),
        }
    }

    /// When it began; one that an earlier process kept, when this one took it up.
    pub const fn began_at(&self) -> Moment {
        self.began_at
    }

    /// Whether a quota is used up until a stated time.
    pub const fn is_quota(&self) -> bool {
        self.is_quota
    }

    /// The end that upstream stated, where it is looked at earlier.
    pub const fn told_until(&self) -> Option<Moment> {
        self.told_until
    }

    /// How long the last cooldown was to be, in milliseconds.
    pub const fn length_ms(&self) -> u64 {
        self.length_ms
    }

    /// A request met a 429.
    pub fn limit(&mut self, now: Moment, limit: Limit) {
        let is_news = self.phase == Phase::Open || limit.sent_at > self.began_at;
        let asked = limit.wait_ms.map(|ms| ms.max(FLOOR_MS));
        if is_news {
            self.began_at = now;
            self.is_quota = limit.is_quota && asked.is_some();
            let doubled = (self.length_ms.saturating_mul(2)).clamp(FLOOR_MS, BACKOFF_MAX_MS);
            self.length_ms = asked.unwrap_or(doubled);
            // What upstream says now replaces what it said before.
            self.told_until = self.told_until.filter(|_| asked.is_none());
        } else {
            // Many requests that meet the same limit at once are one step, not many.
            self.is_quota |= limit.is_quota && asked.is_some();
            self.length_ms = self.length_ms.max(asked.unwrap_or(FLOOR_MS));
        }
        let stated = now.plus(asked.unwrap_or(self.length_ms));
        self.told_until = self.told_until.max(Some(stated)).filter(|end| *end > now);
        let told = self.told_until.unwrap_or(stated);
        let next = if limit.is_trusted {
            told
        } else {
            told.min(now.plus(TRUSTED_MS))
        };
        let until = match self.phase {
            Phase::Cooling { until } => until.max(next),
            _ => next,
        };
        self.phase = Phase::Cooling { until };
        self.told_until = self.told_until.filter(|end| *end > until);
    }

    /// A request of the limited kind succeeded. Gives whether that ended the cooldown.
    pub fn succeed(&mut self, sent_at: Moment) -> bool {
        if self.phase == Phase::Open {
            self.length_ms = 0;
            return false;
        }
        if sent_at <= self.began_at {
            return false;
        }
        *self = Self::default();
        true
    }

    /// The operator says that it is over. Gives whether there was anything to end.
    pub fn clear(&mut self) -> bool {
        let was_closed = self.phase != Phase::Open;
        *self = Self::default();
        was_closed
    }

    /// The request `shot` goes out; it has the single shot if that is due.
    pub const fn take_shot(&mut self, now: Moment, shot: Shot) -> bool {
        if !matches!(self.phase, Phase::Due) {
            return false;
        }
        self.phase = Phase::Probing {
            shot,
            verdict_by: now.plus(VERDICT_MS),
        };
        true
    }

    /// The request `shot` ended without saying anything of the limit: the next may try. Gives
    /// whether it had the single shot.
    pub fn pass_shot(&mut self, shot: Shot) -> bool {
        let has_it = matches!(self.phase, Phase::Probing { shot: out, .. } if out == shot);
        if has_it {
            self.phase = Phase::Due;
        }
        has_it
    }

    /// When time alone changes something.
    pub const fn next_wakeup(&self) -> Option<Moment> {
        match self.phase {
            Phase::Open | Phase::Due => None,
            Phase::Cooling { until } => Some(until),
            Phase::Probing { verdict_by, .. } => Some(verdict_by),
        }
    }

    /// Time has passed. Gives whether that changed anything.
    pub fn handle_timeout(&mut self, now: Moment) -> bool {
        match self.phase {
            Phase::Cooling { until } if until <= now => self.phase = Phase::Due,
            Phase::Probing { verdict_by, .. } if verdict_by <= now => {
                // Not limited, as far as can be told; how long it was last is kept for a 429 to come.
                self.phase = Phase::Open;
                self.told_until = None;
                self.is_quota = false;
            }
            _ => return false,
        }
        true
    }

    /// What is to outlive the process; `None` if nothing is limited.
    pub fn kept(&self, now: Moment) -> Option<Kept> {
        let ends_in_ms = match self.phase {
            Phase::Open => return None,
            Phase::Cooling { until } => until.since(now),
            Phase::Due | Phase::Probing { .. } => 0,
        };
        Some(Kept {
            ends_in_ms,
            told_in_ms: self.told_until.map(|end| end.since(now)),
            length_ms: self.length_ms,
            is_quota: self.is_quota,
        })
    }

    /// The cooldown that an earlier process kept.
    pub fn restored(now: Moment, kept: Kept) -> Self {
        let phase = match kept.ends_in_ms {
            0 => Phase::Due,
            ms => Phase::Cooling {
                until: now.plus(ms),
            },
        };
        Self {
            phase,
            length_ms: kept.length_ms,
            began_at: now,
            told_until: kept.told_in_ms.map(|ms| now.plus(ms)),
            is_quota: kept.is_quota,
        }
    }
}

#[cfg(test)]
mod tests;
