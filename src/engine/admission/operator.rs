//! What the operator can do to admission by hand.
use super::{Admission, Machine};
use crate::domain::admission::{Healed, LeaseId};

impl Admission {
    /// Counts everything anew from the leases that are held, and lets in whoever can be.
    pub fn recount(&self) -> Healed {
        self.event(Machine::recount)
    }

    /// Gives back everything that a lease holds, now; its request runs on. `false` if it is not held.
    pub fn evict(&self, lease: LeaseId) -> bool {
        self.event(|machine, now, effects| machine.evict(now, lease, effects))
    }
}
