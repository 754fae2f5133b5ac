//! What one request holds of admission: a place in the queue, then slots. Both give themselves back.
use super::Admission;
use crate::{
    clock::Instant,
    domain::{
        admission::{Evidence, Grant, Part, Refusal, WaiterId},
        pool::EdgeRef,
    },
};
use std::mem;

/// A place in the queue; gives itself up on drop.
#[derive(Debug)]
pub(super) struct Parked {
    pub(super) admission: Admission,
    pub(super) waiter: Option<WaiterId>,
}

impl Parked {
    /// Gives the place up for want of patience, and says why it was waiting; `None` if it has been
    /// settled already.
    pub(super) fn give_up(&mut self) -> Option<Refusal> {
        let waiter = self.waiter.take()?;
        self.admission.run(|state, now, effects| {
            let why = state.machine.why_waiting(waiter, effects);
            state.answers.remove(&waiter);
            state.machine.withdraw(now, waiter, effects);
            why
        })
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        // Nobody is there any more who would ask why.
        if let Some(waiter) = self.waiter.take() {
            self.admission.run(|state, now, effects| {
                state.answers.remove(&waiter);
                state.machine.withdraw(now, waiter, effects);
            });
        }
    }
}

/// Slots held on an edge, given back on drop.
#[must_use = "dropping a lease gives its slots back"]
#[derive(Debug)]
pub struct Lease {
    pub(super) admission: Admission,
    pub(super) grant: Grant,
    pub(super) holds_create: bool,
}

impl Lease {
    /// The edge to use.
    pub fn edge(&self) -> &EdgeRef {
        &self.grant.edge
    }

    /// Gives back the slot for starting a request; the rest is kept.
    pub fn release_create(&mut self) {
        if mem::take(&mut self.holds_create) {
            self.give_back(Part::Create);
        }
    }

    /// Upstream has answered, or failed to: what that says of the pool, and the slot for starting a
    /// request given back. The rest is kept.
    pub fn answered(&mut self, evidence: Evidence) {
        let lease = self.grant.lease;
        let holds_create = mem::take(&mut self.holds_create);
        self.admission.run(|state, now, effects| {
            state.machine.observe(now, lease, evidence, effects);
            if holds_create {
                let freed = state.machine.release(now, lease, Part::Create, effects);
                state.pace.note(freed, Instant::now());
            }
        });
    }

    fn give_back(&self, part: Part) {
        let lease = self.grant.lease;
        self.admission.run(|state, now, effects| {
            let freed = state.machine.release(now, lease, part, effects);
            state.pace.note(freed, Instant::now());
        });
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.give_back(Part::All);
    }
}
