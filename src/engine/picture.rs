//! Who holds what and who waits for what, worked out of one moment's copy of admission's state.
//!
//! Whatever shows a number of the pool takes it from here, so that it has one definition. Everything
//! is counted from the leases themselves, outside of admission's lock.
//!
//! Invariant: a picture is of one moment; `accounts` and `credentials` stand in the pool's order.
mod caps;
mod serving;
mod share;
mod waits;

pub use self::{
    caps::Caps,
    waits::{Frees, Waits},
};

use self::{caps::Quota, serving::Serving, share::Shares};
use super::{configuration::Configuration, live::Progress, look::Look};
use crate::domain::{
    admission::{HeldLease, Kinds, Limits, Waiting},
    ids::{AccountId, CredentialId, KeyId, RequestId},
    moment::Moment,
    pool::Pool,
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// Slots in use, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Until a response has ended.
    pub streams: u64,
    /// Until upstream's headers.
    pub creates: u64,
    /// Until a job has ended.
    pub jobs: u64,
}

impl Used {
    fn add(&mut self, held: Kinds) {
        self.streams += u64::from(held.stream);
        self.creates += u64::from(held.create);
        self.jobs += u64::from(held.job);
    }

    /// Whether nothing is in use.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// The pool as a whole: the accounts that take work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Streams that ordinary requests may hold; `None` where some account is unlimited.
    pub capacity: Option<u64>,
    /// Of these, what can serve now and does not cool or rest; `None` where that is unlimited.
    pub serving: Option<u64>,
    /// Streams held.
    pub in_flight: u64,
    /// Of these, the ones held on what can serve now.
    pub in_flight_serving: u64,
    /// Streams that only those may hold who come back to a running response.
    pub reserve: u64,
    /// From how many percent of the capacity on it is congested; 0 = never.
    pub threshold_pct: u32,
    /// Requests that hold slots, anywhere.
    pub leases: usize,
    /// Requests that wait.
    pub waiters: usize,
    /// How long the one has waited that waits longest.
    pub oldest_wait_ms: Option<u64>,
}

impl Totals {
    /// From how many streams in flight on it is congested, where that can be. What cools counts for
    /// nothing in this, so that what is held there comes on top.
    pub fn congested_from(&self) -> Option<u64> {
        let threshold = u64::from(self.threshold_pct);
        let serving = self.serving.filter(|all| threshold > 0 && *all > 0)?;
        let elsewhere = self.in_flight.saturating_sub(self.in_flight_serving);
        Some((serving * threshold).div_ceil(100) + elsewhere)
    }

    /// Whether keys are held to their shares now.
    pub fn is_congested(&self) -> bool {
        self.congested_from()
            .is_some_and(|from| self.in_flight >= from)
    }
}

/// What is held on an account.
#[derive(Clone, Debug, Default)]
pub struct OnAccount {
    /// What may be held on it.
    pub caps: Caps,
    /// What is.
    pub used: Used,
    /// Streams by key, most first; `None` stands for requests without a key.
    pub by_key: Vec<(Option<KeyId>, u64)>,
}

/// What a client key holds and waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfKey {
    /// Which; `None` stands for requests without a key.
    pub key: Option<KeyId>,
    /// Its weight; `None` for a key that was removed.
    pub weight: Option<u32>,
    /// What it holds.
    pub used: Used,
    /// Streams that it may hold while the pool is congested; `None` where keys are not held to
    /// shares, and for requests without a key.
    pub share: Option<u64>,
    /// Requests of it that wait.
    pub waiting: usize,
    /// How long the one has waited that waits longest.
    pub oldest_wait_ms: Option<u64>,
}

impl OfKey {
    /// Whether it holds more than its share.
    pub fn is_over(&self) -> bool {
        self.share.is_some_and(|share| self.used.streams > share)
    }

    /// Whether it neither holds nor waits.
    pub fn is_idle(&self) -> bool {
        self.used.is_none() && self.waiting == 0
    }
}

/// Who holds what and who waits for what.
#[derive(Debug, Default)]
pub struct Picture {
    /// The pool that it is of.
    pub pool: Arc<Pool>,
    /// What cools and what rests.
    pub look: Look,
    /// When, on the process's own time line.
    pub now: Moment,
    /// The pool as a whole.
    pub totals: Totals,
    /// Every account of the pool, in its order.
    pub accounts: Vec<OnAccount>,
    /// What is held with every credential of the pool, in its order.
    pub credentials: Vec<Used>,
    /// Every key of the pool in its order, then whoever else holds or waits.
    pub keys: Vec<OfKey>,
    /// Those who wait, by key and reason; oldest first.
    pub waits: Vec<Waits>,
    /// Every lease, oldest first.
    pub leases: Vec<HeldLease>,
}

impl Picture {
    /// Looks; `now_ms` is now in milliseconds since 1970.
    pub fn take(configuration: &Configuration, now_ms: i64) -> Self {
        let admission = configuration.admission();
        let look = Look::new(admission, now_ms);
        let pool = Arc::clone(&configuration.pool());
        Self::of(pool, configuration.limits(), look, admission.picture())
    }

    /// Works it out.
    pub fn of(
        pool: Arc<Pool>,
        limits: Limits,
        look: Look,
        (now, mut leases, waiting): (Moment, Vec<HeldLease>, Vec<Waiting>),
    ) -> Self {
        leases.sort_unstable_by_key(|held| held.lease);
        let quotas = caps::quotas(&pool, limits);
        let accounts = on_accounts(&pool, &quotas, &leases);
        let credentials = with_credentials(&pool, &leases);
        let serving = Serving::find((&pool, &look), &quotas, (&accounts, &credentials));
        let mut totals = totals(&pool, limits, &accounts);
        totals.serving = serving.capacity();
        totals.in_flight_serving = serving.in_flight;
        totals.leases = leases.len();
        totals.waiters = waiting.len();
        totals.oldest_wait_ms = waiting.iter().map(|w| now.since(w.parked_at)).max();
        let mut keys = of_keys(&pool, &leases, (&waiting, now));
        let shares = Shares::new(&pool, &serving, (&leases, &keys));
        for key in &mut keys {
            key.share = shares.of(key, limits.fair_share_pct);
        }
        Self {
            totals,
            accounts,
            credentials,
            keys,
            waits: waits::group(waiting, now),
            leases,
            pool,
            look,
            now,
        }
    }

    /// These requests in flight, oldest first, each with the lease that it holds.
    pub fn live(&self, mut live: Vec<Arc<Progress>>) -> Vec<(Arc<Progress>, Option<&HeldLease>)> {
        let held = self.leases.iter().map(|lease| (lease.holder, lease));
        let held: HashMap<RequestId, &HeldLease> = held.collect();
        live.sort_unstable_by_key(|request| (Reverse(request.received_at.elapsed()), request.id));
        let joined = live.into_iter();
        joined
            .map(|request| {
                let lease = held.get(&request.id).copied();
                (request, lease)
            })
            .collect()
    }

    /// Whether keys are held to shares.
    pub fn has_shares(&self) -> bool {
        self.keys.iter().any(|key| key.share.is_some())
    }

    /// A moment in milliseconds since 1970.
    pub fn unix_ms(&self, moment: Moment) -> i64 {
        self.look.unix_ms(moment)
    }
}

fn on_accounts(pool: &Pool, quotas: &[Vec<Quota>], leases: &[HeldLease]) -> Vec<OnAccount> {
    let with = |quotas: &Vec<Quota>| OnAccount {
        caps: caps::together(quotas),
        ..OnAccount::default()
    };
    let mut accounts: Vec<OnAccount> = quotas.iter().map(with).collect();
    let places = places(pool.accounts().iter().map(|account| account.id));
    let mut by_key: Vec<BTreeMap<Option<KeyId>, u64>> = vec![BTreeMap::new(); accounts.len()];
    for held in leases {
        for account in held.edge.accounts() {
            let Some(place) = places.get(&account.id) else {
                continue;
            };
            if let Some(account) = accounts.get_mut(*place) {
                account.used.add(held.held);
            }
            if let Some(by_key) = by_key.get_mut(*place).filter(|_| held.held.stream) {
                *by_key.entry(held.key).or_default() += 1;
            }
        }
    }
    for (account, by_key) in accounts.iter_mut().zip(by_key) {
        account.by_key = by_key.into_iter().collect();
        account.by_key.sort_by_key(|(_, streams)| Reverse(*streams));
    }
    accounts
}

fn with_credentials(pool: &Pool, leases: &[HeldLease]) -> Vec<Used> {
    let places: HashMap<CredentialId, usize> = places(pool.credentials().iter().map(|c| c.id));
    let mut used = vec![Used::default(); pool.credentials().len()];
    for held in leases {
        let place = places.get(&held.edge.credential().id);
        if let Some(used) = place.and_then(|place| used.get_mut(*place)) {
            used.add(held.held);
        }
    }
    used
}

fn totals(pool: &Pool, limits: Limits, accounts: &[OnAccount]) -> Totals {
    let mut totals = Totals {
        capacity: Some(0),
        threshold_pct: limits.fair_share_pct,
        ..Totals::default()
    };
    let all = pool.accounts().iter().zip(accounts);
    for (_, on) in all.filter(|(account, _)| account.state.takes_work()) {
        totals.in_flight += on.used.streams;
        totals.reserve += on.caps.reserve;
        let ordinary = on.caps.ordinary();
        totals.capacity = totals.capacity.zip(ordinary).map(|(sum, more)| sum + more);
    }
    totals
}

fn of_keys(pool: &Pool, leases: &[HeldLease], (waiting, now): (&[Waiting], Moment)) -> Vec<OfKey> {
    let new = |key, weight| OfKey {
        key,
        weight,
        used: Used::default(),
        share: None,
        waiting: 0,
        oldest_wait_ms: None,
    };
    let known = pool.keys().iter();
    let mut keys: Vec<OfKey> = known.map(|k| new(Some(k.id), Some(k.weight))).collect();
    let mut places = places(keys.iter().map(|k| k.key));
    let mut with = |key: Option<KeyId>, change: &dyn Fn(&mut OfKey)| {
        let place = *places.entry(key).or_insert_with(|| {
            // Without a key, all requests together weigh 1.
            keys.push(new(key, key.is_none().then_some(1)));
            keys.len() - 1
        });
        if let Some(key) = keys.get_mut(place) {
            change(key);
        }
    };
    for held in leases {
        with(held.key, &|key| key.used.add(held.held));
    }
    for one in waiting {
        let waited = now.since(one.parked_at);
        with(one.key, &|key| {
            key.waiting += 1;
            key.oldest_wait_ms = Some(key.oldest_wait_ms.map_or(waited, |ms| ms.max(waited)));
        });
    }
    keys
}

fn places<T: Eq + std::hash::Hash>(ids: impl Iterator<Item = T>) -> HashMap<T, usize> {
    ids.enumerate().map(|(n, id)| (id, n)).collect()
}

/// Where an account stands in the pool.
type Places = HashMap<AccountId, usize>;

#[cfg(test)]
mod tests;
