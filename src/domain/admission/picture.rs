//! Who holds what and who waits, at one moment.
//!
//! Invariant: a picture is a copy; whatever is made of it is made outside of the lock.
use super::{Admission, Kinds, LeaseId, Refusal, WaiterId, lanes::GroupId};
use crate::domain::{
    ids::{KeyId, RequestId},
    moment::Moment,
    pool::EdgeRef,
};
use rustc_hash::FxHashMap;

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
        // What keeps one of a group from going keeps all of them, but for their keys' shares.
        let mut known: FxHashMap<GroupId, Option<Refusal>> = FxHashMap::default();
        let rows = self.waiters.iter();
        let rows: Vec<_> = rows.map(|(id, row)| (*id, row.clone())).collect();
        let waiting = rows.into_iter().map(|(waiter, row)| {
            let of_group = known.entry(row.group).or_insert_with(|| {
                let view = self.view();
                let could_go = view.select(&row.demand).is_some();
                (!could_go).then(|| view.blocked(&row.demand).why())
            });
            let why = of_group.unwrap_or_else(|| {
                let share = self.held_back(&row.demand);
                let why = share.as_ref().map(Refusal::fair_share);
                why.unwrap_or_else(|| self.view().blocked(&row.demand).why())
            });
            Waiting {
                waiter,
                holder: row.demand.holder,
                key: row.demand.key_id(),
                parked_at: row.parked_at,
                until: row.demand.until,
                why,
            }
        });
        waiting.collect()
    }
}
