//! What is configured now: settings and pool, as snapshots that are swapped whole.
//!
//! Invariant: a swap reaches admission in the same call, so that no request is admitted by rules
//! that are older than those a later request has seen. What a large pool means is worked out before
//! the lock of admission is taken.
use super::{admission::Admission, allowance::Allowance};
use crate::domain::{
    admission::{Limits, Numbers, Strategy},
    pool::Pool,
    settings::{Layer, Name, Settings},
};
use arc_swap::ArcSwap;
use std::sync::{Arc, Mutex, PoisonError};

/// The configuration in force; cheap to clone.
#[derive(Clone, Debug)]
pub struct Configuration(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    environment: Layer,
    settings: ArcSwap<Settings>,
    pool: ArcSwap<Pool>,
    numbers: Mutex<Numbers>,
    admission: Admission,
    allowance: Allowance,
}

impl Configuration {
    /// The first configuration, and the admission that follows it.
    pub fn new(environment: Layer, overrides: &Layer, pool: Pool) -> Self {
        let settings = Settings::resolve(&environment, overrides);
        let pool = Arc::new(pool);
        let mut numbers = Numbers::default();
        let layout = numbers.layout(Arc::clone(&pool), limits(&settings));
        Self(Arc::new(Shared {
            environment,
            settings: ArcSwap::from_pointee(settings),
            pool: ArcSwap::new(pool),
            numbers: Mutex::new(numbers),
            admission: Admission::new(layout),
            allowance: Allowance::default(),
        }))
    }

    /// Swaps both. Takes a while for a large pool, and so is not for a runtime's thread.
    pub fn swap(&self, overrides: &Layer, pool: Pool) {
        let settings = Settings::resolve(&self.0.environment, overrides);
        let pool = Arc::new(pool);
        // Held to the end, so that layouts reach admission in the order in which they were made.
        let mut numbers = self
            .0
            .numbers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let layout = numbers.layout(Arc::clone(&pool), limits(&settings));
        self.0.settings.store(Arc::new(settings));
        self.0.allowance.follow(&pool);
        self.0.pool.store(pool);
        self.0.admission.reconfigure(layout);
    }

    /// The settings in force.
    pub fn settings(&self) -> arc_swap::Guard<Arc<Settings>> {
        self.0.settings.load()
    }

    /// The pool in force.
    pub fn pool(&self) -> arc_swap::Guard<Arc<Pool>> {
        self.0.pool.load()
    }

    /// What admission takes from the settings in force.
    pub fn limits(&self) -> Limits {
        limits(&self.settings())
    }

    /// What the environment says of the settings.
    pub fn environment(&self) -> &Layer {
        &self.0.environment
    }

    /// The one admission.
    pub fn admission(&self) -> &Admission {
        &self.0.admission
    }

    /// What client keys have used of their own limits.
    pub fn allowance(&self) -> &Allowance {
        &self.0.allowance
    }
}

/// What admission needs of the settings.
fn limits(settings: &Settings) -> Limits {
    let count = |name| u32::try_from(settings.integer(name)).unwrap_or(u32::MAX);
    Limits {
        stream: count(Name::AccountStreamLimit),
        create: count(Name::AccountCreateLimit),
        job: count(Name::AccountJobLimit),
        fair_share_pct: count(Name::FairShareCongestionThresholdPct),
        reserve: count(Name::AccountStreamReserve),
        waiters_per_key: count(Name::WaitersPerKey) as usize,
        may_park: settings.integer(Name::CapacityWaitSeconds) > 0,
        strategy: Strategy::from_word(settings.text(Name::SelectionStrategy)),
        breaker_threshold: count(Name::BreakerFailureThreshold),
    }
}
