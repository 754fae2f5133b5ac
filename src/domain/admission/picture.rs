//! Who holds what and who waits, at one moment.
//!
//! Invariant: a picture is a copy; whatever is made of it is made outside of the lock.
use super::{Admission, Kinds, LeaseId, Refusal, WaiterId, lanes::GroupId};
use crate::domain::{
    ids::{KeyId, RequestId},
    moment::Moment,
    pool::EdgeRef,
};
use std::{collections::HashMap, sync::Arc};

/// A lease as it is held.
#[derive(Clone, Debug)]
pub struct HeldLease {
    /// Its name.
    pub lease: LeaseId,
    /// The request that holds it.
    pub holder: RequestId,
    /// Whose that is; `None` for requests without a client key.
    pub key: Option<KeyId>,
    /// What of it is still held.
    pub held: Kinds,
    /// Where.
    pub edge: EdgeRef,
    /// Since when.
    pub granted_at: Moment,
}

/// A request that waits.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// Its name.
    pub waiter: WaiterId,
    /// The request.
    pub holder: RequestId,
    /// Whose it is; `None` for requests without a client key.
    pub key: Option<KeyId>,
    /// Since when.
    pub parked_at: Moment,
    /// Until when at most.
    pub until: Moment,
    /// What it waits for.
    pub why: Refusal,
}

impl Admission {
    /// Every lease, in no order.
    pub fn held(&self) -> Vec<HeldLease> {
        let leases = self.leases.iter();
        let held = leases.map(|(lease, row)| HeldLease {
            lease: *lease,
            holder: row.holder,
            key: row.key,
            held: row.held,
            edge: row.edge.clone(),
            granted_at: row.granted_at,
        });
        held.collect()
    }

    /// Everyone who waits, oldest first.
    pub fn waiting(&mut self) -> Vec<Waiting> {
        // What one waits for, its whole lane waits for.
        let mut known: HashMap<(GroupId, Option<KeyId>), Refusal> = HashMap::new();
        let demands = self.waiters.values().map(|row| (row.group, &row.demand));
        let demands: Vec<_> = demands.map(|(g, d)| (g, Arc::clone(d))).collect();
        for (group, demand) in demands {
            let lane = (group, demand.key_id());
            known.entry(lane).or_insert_with(|| self.why_not(&demand));
        }
        let waiting = self.waiters.iter().filter_map(|(waiter, row)| {
            let key = row.demand.key_id();
            Some(Waiting {
                waiter: *waiter,
                holder: row.demand.holder,
                key,
                parked_at: row.parked_at,
                until: row.demand.until,
                why: *known.get(&(row.group, key))?,
            })
        });
        waiting.collect()
    }
}
