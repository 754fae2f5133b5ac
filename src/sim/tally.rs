//! Counts per credential, and the in-flight limits on them.
//!
//! Invariant: a request is counted in for exactly as long as its [`InFlight`] lives, against the
//! limit that stood when it came.
use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwapOption;
use serde::{Deserialize, Serialize};

use super::bell::Bell;

/// What a credential has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Requests that are being answered now.
    pub in_flight: u64,
    /// The most there were at once.
    pub peak: u64,
    /// Requests that were let in and are over, whatever their end.
    pub served: u64,
    /// Requests that an in-flight limit refused.
    pub refused: u64,
}

/// How many requests may be in flight at once; more are answered 429.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// The credentials that share the limit: one, or all of an account.
    pub credentials: Vec<String>,
    /// How many of them together; absent lifts the limit.
    #[serde(default)]
    pub max_in_flight: Option<u64>,
    /// What `Retry-After` says in seconds.
    #[serde(default = "one")]
    pub retry_after: u64,
}

const fn one() -> u64 {
    1
}

/// A limit and those counted against it.
pub(super) struct Gate {
    pub(super) max: u64,
    pub(super) retry_after: u64,
    in_flight: AtomicU64,
}

/// One credential's counts.
#[derive(Default)]
pub(super) struct Tally {
    in_flight: AtomicU64,
    peak: AtomicU64,
    served: AtomicU64,
    refused: AtomicU64,
    gate: ArcSwapOption<Gate>,
}

/// A request that is being answered.
#[must_use]
pub(super) struct InFlight {
    tally: Arc<Tally>,
    gate: Option<Arc<Gate>>,
    bell: Arc<Bell>,
}

impl InFlight {
    /// Counts a request in, or says which limit is reached.
    pub(super) fn enter(tally: &Arc<Tally>, bell: &Arc<Bell>) -> Result<Self, Arc<Gate>> {
        let gate = tally.gate.load_full();
        if let Some(gate) = &gate
            && gate.in_flight.fetch_add(1, Ordering::AcqRel) >= gate.max
        {
            gate.in_flight.fetch_sub(1, Ordering::AcqRel);
            tally.refused.fetch_add(1, Ordering::AcqRel);
            bell.ring();
            return Err(Arc::clone(gate));
        }
        let now = tally.in_flight.fetch_add(1, Ordering::AcqRel) + 1;
        tally.peak.fetch_max(now, Ordering::AcqRel);
        bell.ring();
        Ok(Self {
            tally: Arc::clone(tally),
            gate,
            bell: Arc::clone(bell),
        })
    }

    /// The limit it is counted against, and how much of it is left.
    pub(super) fn headroom(&self) -> Option<(u64, u64)> {
        let gate = self.gate.as_ref()?;
        let used = gate.in_flight.load(Ordering::Acquire);
        Some((gate.max, gate.max.saturating_sub(used)))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(gate) = &self.gate {
            gate.in_flight.fetch_sub(1, Ordering::AcqRel);
        }
        self.tally.served.fetch_add(1, Ordering::AcqRel);
        self.tally.in_flight.fetch_sub(1, Ordering::AcqRel);
        self.bell.ring();
    }
}

/// Every credential's counts.
#[derive(Default)]
pub(super) struct Tallies(RwLock<HashMap<String, Arc<Tally>>>);

impl Tallies {
    pub(super) fn of(&self, credential: &str) -> Arc<Tally> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(tally) = known.get(credential) {
            return Arc::clone(tally);
        }
        drop(known);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(credential.to_owned()).or_default())
    }

    /// Puts a limit on its credentials, or lifts it. Requests in flight already are not counted.
    pub(super) fn limit(&self, limit: &Limit) {
        let gate = limit.max_in_flight.map(|max| {
            Arc::new(Gate {
                max,
                retry_after: limit.retry_after,
                in_flight: AtomicU64::new(0),
            })
        });
        for credential in &limit.credentials {
            self.of(credential).gate.store(gate.clone());
        }
    }

    pub(super) fn stats(&self) -> BTreeMap<String, Stats> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let read = |count: &AtomicU64| count.load(Ordering::Acquire);
        known
            .iter()
            .map(|(credential, t)| {
                let stats = Stats {
                    in_flight: read(&t.in_flight),
                    peak: read(&t.peak),
                    served: read(&t.served),
                    refused: read(&t.refused),
                };
                (credential.clone(), stats)
            })
            .collect()
    }

    /// Lifts every limit and sets every count back, but for what is in flight.
    pub(super) fn reset(&self) {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        for tally in known.values() {
            tally.gate.store(None);
            tally.served.store(0, Ordering::Release);
            tally.refused.store(0, Ordering::Release);
            let now = tally.in_flight.load(Ordering::Acquire);
            tally.peak.store(now, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(max: Option<u64>, credentials: &[&str]) -> Tallies {
        let tallies = Tallies::default();
        tallies.limit(&Limit {
            credentials: credentials.iter().map(|c| (*c).to_owned()).collect(),
            max_in_flight: max,
            retry_after: 1,
        });
        tallies
    }

    #[test]
    fn a_limit_is_shared_by_all_its_credentials() {
        let tallies = limited(Some(2), &["a", "b"]);
        let bell = Arc::new(Bell::default());
        let first = InFlight::enter(&tallies.of("a"), &bell).ok();
        let _second = InFlight::enter(&tallies.of("b"), &bell).ok().unwrap();
        assert!(InFlight::enter(&tallies.of("b"), &bell).is_err());
        assert!(InFlight::enter(&tallies.of("c"), &bell).is_ok());
        drop(first);
        assert!(InFlight::enter(&tallies.of("b"), &bell).is_ok());
    }

    #[test]
    fn counts_follow_requests_in_and_out() {
        let tallies = limited(Some(2), &["a"]);
        let bell = Arc::new(Bell::default());
        let first = InFlight::enter(&tallies.of("a"), &bell).ok().unwrap();
        let second = InFlight::enter(&tallies.of("a"), &bell).ok().unwrap();
        assert_eq!(second.headroom(), Some((2, 0)));
        assert!(InFlight::enter(&tallies.of("a"), &bell).is_err());
        drop((first, second));
        let expect = Stats {
            in_flight: 0,
            peak: 2,
            served: 2,
            refused: 1,
        };
        assert_eq!(tallies.stats()["a"], expect);
        tallies.reset();
        assert_eq!(tallies.stats()["a"], Stats::default());
    }

    #[test]
    fn a_limit_of_zero_refuses_and_a_lifted_one_does_not() {
        let tallies = limited(Some(0), &["a"]);
        let bell = Arc::new(Bell::default());
        assert!(InFlight::enter(&tallies.of("a"), &bell).is_err());
        tallies.limit(&Limit {
            credentials: vec!["a".into()],
            ..Limit::default()
        });
        assert!(InFlight::enter(&tallies.of("a"), &bell).is_ok());
    }
}
