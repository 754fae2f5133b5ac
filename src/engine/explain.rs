//! What would become of a request: which edges it would be tried on, in which order, and why not on
//! the others.
//!
//! Invariant: nothing is sent and nothing is taken.
use super::configuration::Configuration;
use crate::domain::{
    admission::{Demand, Explained, Foreseen, Kinds, Owner, Refusal, Why},
    ids::RequestId,
    moment::Moment,
    pool::{ClientKey, DisabledReason, Pool, State},
    protocol::Protocol,
    reason::Reason,
    settings::Name,
};
use std::sync::Arc;

/// A request that is thought of: one that generates something.
#[derive(Clone, Debug)]
pub struct Question {
    /// Whose it is; with `None` nothing is out of scope.
    pub key: Option<Arc<ClientKey>>,
    /// What it speaks.
    pub protocol: Protocol,
    /// What it asks for; `None` means any model.
    pub model: Option<Arc<str>>,
    /// Whether it comes back to a running response, and so may use the reserve.
    pub is_reattach: bool,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Every edge that serves it: first those that could take it now, in the order in which they
    /// would be tried.
    pub edges: Vec<Explained>,
    /// What would become of it.
    pub then: Foreseen,
    /// When that was so, on the process's own time line and in milliseconds since 1970.
    pub at: (Moment, i64),
}

impl Explanation {
    /// A moment in milliseconds since 1970.
    pub fn unix_ms(&self, moment: Moment) -> i64 {
        unix_ms(self.at, moment)
    }
}

/// A moment in milliseconds since 1970, where `now` is one that is known in both ways.
pub fn unix_ms((now, now_ms): (Moment, i64), moment: Moment) -> i64 {
    let ahead = i64::try_from(moment.since(now)).unwrap_or(i64::MAX);
    let behind = i64::try_from(now.since(moment)).unwrap_or(i64::MAX);
    now_ms.saturating_add(ahead).saturating_sub(behind)
}

/// What keeps an edge from taking a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The request's key may not use one of its accounts.
    OutOfScope,
    /// The request has been there.
    Tried,
    /// Something of it drains.
    Draining,
    /// Something of it is disabled.
    Disabled(DisabledReason),
    /// Something of it cools, until then in milliseconds since 1970.
    Cooling {
        /// When it is expected to be free.
        until_ms: i64,
        /// Whether a quota is used up.
        is_quota: bool,
    },
    /// Its endpoint rests after failures, until then in milliseconds since 1970.
    Resting(i64),
    /// A cap is reached.
    Full {
        /// Which.
        reason: Reason,
        /// The cap.
        limit: u32,
        /// How much of it is in use.
        used: u32,
    },
}

impl Obstacle {
    /// The word in API and pages: where clients are told a reason, that.
    pub const fn code(self) -> &'static str {
        match self {
            Self::OutOfScope => "out_of_scope",
            Self::Tried => "tried",
            Self::Draining => "draining",
            Self::Disabled(_) => "disabled",
            Self::Cooling { is_quota: true, .. } => Reason::UsageLimitReached.code(),
            Self::Cooling { .. } => Reason::AccountCooling.code(),
            Self::Resting(_) => "endpoint_resting",
            Self::Full { reason, .. } => reason.code(),
        }
    }
}

impl Explanation {
    /// What keeps an edge from taking the request; `None` if nothing does.
    pub fn obstacle(&self, explained: &Explained) -> Option<Obstacle> {
        if explained.is_out_of_scope {
            return Some(Obstacle::OutOfScope);
        }
        Some(match explained.why_not? {
            Why::Tried => Obstacle::Tried,
            Why::OutOfService(State::Disabled(by)) => Obstacle::Disabled(by),
            Why::OutOfService(State::Active | State::Draining) => Obstacle::Draining,
            Why::Cooling { free_at, is_quota } => Obstacle::Cooling {
                until_ms: self.unix_ms(free_at),
                is_quota,
            },
            Why::Resting { free_at } => Obstacle::Resting(self.unix_ms(free_at)),
            Why::Full {
                reason,
                limit,
                used,
            } => Obstacle::Full {
                reason,
                limit,
                used,
            },
        })
    }
}

/// The client key of that id or name.
pub fn key(pool: &Pool, named: &str) -> Option<Arc<ClientKey>> {
    let id = named.parse().ok();
    let mut keys = pool.keys().iter();
    let found = keys.find(|key| id == Some(key.id) || &*key.name == named);
    found.cloned()
}

/// Works it out; `now_ms` is now in milliseconds since 1970.
pub fn explain(configuration: &Configuration, question: Question, now_ms: i64) -> Explanation {
    let admission = configuration.admission();
    let now = admission.now();
    let patience = configuration.settings().integer(Name::CapacityWaitSeconds);
    let forbidden = forbidden(&question, now_ms);
    let demand = Demand {
        key: question.key,
        protocol: question.protocol,
        model: question.model,
        kinds: if question.is_reattach {
            Kinds::STREAM
        } else {
            Kinds::GENERATE
        },
        reattach: question.is_reattach,
        owner: Owner::Nobody,
        preferred: None,
        tried: Vec::new(),
        until: now.plus(patience.saturating_mul(1000)),
        is_moving: false,
        holder: RequestId::from_u128(0),
    };
    let (edges, then) = admission.explain(&demand);
    Explanation {
        edges,
        then: forbidden.map_or(then, |reason| Foreseen::Refused(Refusal::bare(reason))),
        at: (now, now_ms),
    }
}

/// Why its key may not ask for it at all.
fn forbidden(question: &Question, now_ms: i64) -> Option<Reason> {
    let key = question.key.as_ref()?;
    if key.is_expired(now_ms) {
        return Some(Reason::ClientKeyExpired);
    }
    let model = question.model.as_deref()?;
    (!key.may_use_model(model)).then_some(Reason::ModelNotAllowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::pool::edges::sample;

    #[test]
    fn moments_before_and_after_now_become_times() {
        let now = (Moment::from_millis(5_000), 1_000_000);
        assert_eq!(unix_ms(now, Moment::from_millis(6_000)), 1_001_000);
        assert_eq!(unix_ms(now, Moment::from_millis(4_000)), 999_000);
    }

    #[test]
    fn a_key_is_found_by_id_and_by_name() {
        let pool = Pool::new(sample::contents(1));
        let wanted = sample::key(1);
        for named in [wanted.id.to_string(), wanted.name.to_string()] {
            assert_eq!(key(&pool, &named), Some(Arc::clone(&wanted)));
        }
        assert_eq!(key(&pool, "nobody"), None);
    }
}
