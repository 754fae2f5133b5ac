//! What every key's share is at this moment: of the accounts that it may use, those that serve now, parted by weight among the keys that hold or wait there.
use super::{Caps, OfKey, Places, places, serving::Serving};
use crate::domain::{
    admission::{HeldLease, Share},
    ids::{AccountId, KeyId},
    pool::Pool,
};
use std::collections::{BTreeSet, HashMap};

/// Accounts that a key may use; `None` means all.
type Scope = Option<Vec<AccountId>>;

/// Everything that shares are reckoned from.
pub(super) struct Shares {
    by_key: HashMap<KeyId, (Scope, u64)>,
    scopes: HashMap<Scope, Among>,
}

/// What is parted within one scope, and among whom.
struct Among {
    /// `None` where it is unlimited.
    capacity: Option<u64>,
    active: BTreeSet<KeyId>,
    weights: u64,
}

/// Who is active where.
struct Activity<'a> {
    serving: &'a Serving,
    /// The places of accounts where each key holds streams.
    holds: HashMap<KeyId, BTreeSet<usize>>,
    waits: BTreeSet<KeyId>,
    by_key: &'a HashMap<KeyId, (Scope, u64)>,
    /// The places of accounts that serve now and are in a scope.
    reaches: HashMap<Scope, BTreeSet<usize>>,
}

impl Shares {
    pub(super) fn new(
        pool: &Pool,
        serving: &Serving,
        (leases, keys): (&[HeldLease], &[OfKey]),
    ) -> Self {
        let at: Places = places(pool.accounts().iter().map(|account| account.id));
        let by_key = scopes(pool);
        let mut reaches: HashMap<Scope, BTreeSet<usize>> = HashMap::new();
        for (scope, _) in by_key.values() {
            if !reaches.contains_key(scope) {
                reaches.insert(scope.clone(), reach(scope, &at, serving));
            }
        }
        let waits = keys.iter().filter(|key| key.waiting > 0);
        let activity = Activity {
            serving,
            holds: holds(leases, &at),
            waits: waits.filter_map(|key| key.key).collect(),
            by_key: &by_key,
            reaches,
        };
        let scopes = activity.reaches.iter();
        let scopes = scopes
            .map(|(scope, places)| (scope.clone(), activity.among(places)))
            .collect();
        Self { by_key, scopes }
    }

    pub(super) fn of(&self, key: &OfKey, threshold_pct: u32) -> Option<u64> {
        let id = key.key.filter(|_| threshold_pct > 0)?;
        let (scope, weight) = self.by_key.get(&id)?;
        let among = self.scopes.get(scope)?;
        let is_among = among.active.contains(&id);
        let own = if is_among { 0 } else { *weight };
        let share = Share {
            capacity: among.capacity?,
            in_flight: 0,
            mine: 0,
            weight: *weight,
            weights: among.weights + own,
            threshold_pct,
        };
        Some(share.streams())
    }
}

impl Activity<'_> {
    fn among(&self, places: &BTreeSet<usize>) -> Among {
        let mut capacity = Some(0);
        for place in places {
            let serves = self.serving.accounts.get(*place).and_then(Option::as_ref);
            let ordinary = serves.and_then(Caps::ordinary);
            capacity = capacity.zip(ordinary).map(|(sum, more)| sum + more);
        }
        let holders = self.holds.iter();
        let holders = holders.filter(|(_, on)| !on.is_disjoint(places));
        let mut active: BTreeSet<KeyId> = holders.map(|(key, _)| *key).collect();
        active.extend(self.waits.iter().filter(|key| {
            let scope = self.by_key.get(key).map(|(scope, _)| scope);
            let theirs = scope.and_then(|scope| self.reaches.get(scope));
            theirs.is_some_and(|theirs| !theirs.is_disjoint(places))
        }));
        // A key that was removed still holds what it holds; its weight is not known any more.
        let weight = |key: &KeyId| self.by_key.get(key).map_or(1, |(_, weight)| *weight);
        Among {
            capacity,
            weights: active.iter().map(weight).sum(),
            active,
        }
    }
}

/// The scope and the weight of every key.
fn scopes(pool: &Pool) -> HashMap<KeyId, (Scope, u64)> {
    let keys = pool.keys().iter();
    keys.map(|key| {
        let mut scope = key.accounts.clone();
        if let Some(scope) = &mut scope {
            scope.sort_unstable();
        }
        (key.id, (scope, u64::from(key.weight)))
    })
    .collect()
}

fn reach(scope: &Scope, at: &Places, serving: &Serving) -> BTreeSet<usize> {
    let in_scope: Vec<usize> = match scope {
        None => (0..serving.accounts.len()).collect(),
        Some(ids) => ids.iter().filter_map(|id| at.get(id).copied()).collect(),
    };
    let serves = |n: &usize| serving.accounts.get(*n).is_some_and(Option::is_some);
    in_scope.into_iter().filter(serves).collect()
}

/// Where each key holds streams.
fn holds(leases: &[HeldLease], at: &Places) -> HashMap<KeyId, BTreeSet<usize>> {
    let mut holds: HashMap<KeyId, BTreeSet<usize>> = HashMap::new();
    for held in leases.iter().filter(|held| held.held.stream) {
        let Some(key) = held.key else {
            continue;
        };
        let places = held.edge.accounts().filter_map(|a| at.get(&a.id).copied());
        holds.entry(key).or_default().extend(places);
    }
    holds
}
