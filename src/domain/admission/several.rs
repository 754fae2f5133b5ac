//! Those who need slots on several accounts at once, and would never find all of them free at the same
//! moment while others take each as it comes.
//!
//! The best-ranked of them, once half its patience is over, has what it could take already set
//! aside for it. One request at a time: two that each waited for what the other has would wait
//! for ever.
//!
//! Invariant: what is set aside is room that exists, and goes to its request or back to all.
use super::{
    Admission, Effects, Waiter, WaiterId,
    lanes::{GroupId, Stand},
    subjects::Timer,
};
use crate::domain::{moment::Moment, pool::EdgeIndex};
use std::sync::Arc;

/// For whom slots are set aside, and on which edge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    waiter: WaiterId,
    edge: EdgeIndex,
}

/// When half of a request's patience is over.
fn half_time(row: &Waiter) -> Moment {
    let patience = row.demand.until.since(row.parked_at);
    row.parked_at.plus(patience / 2)
}

impl Admission {
    /// Has a parked request looked at when half its patience is over, if it may hold slots then.
    pub(super) fn expect_hold(&mut self, now: Moment, waiter: WaiterId, row: &Waiter) {
        if self.needs_several(row.group) {
            let at = half_time(row).max(now);
            self.subjects.remind(at, Timer::Hold(waiter));
        }
    }

    fn needs_several(&self, group: GroupId) -> bool {
        let group = self.lanes.group(group);
        group.is_some_and(|group| group.reach().needs_several)
    }

    /// Grants what is complete, sets aside what has come free, and finds the next in turn.
    pub(super) fn advance_hold(&mut self, now: Moment, effects: &mut Effects) {
        while self.hold.is_some() || self.lanes.needs_several() {
            let Some(hold) = self.hold.or_else(|| self.next_hold(now)) else {
                return;
            };
            let was_aside = self.hold.is_some();
            self.drop_hold();
            if !self.complete(now, hold, effects) {
                self.set_aside(hold);
                return;
            }
            // What was set aside and not taken is there for anybody, wherever that is.
            self.has_shifted |= was_aside;
        }
    }

    /// Grants a hold that has everything. Gives whether it is over, in one way or another: where
    /// its edge cannot serve any more, another is looked for.
    fn complete(&mut self, now: Moment, hold: Hold, effects: &mut Effects) -> bool {
        let Some(demand) = self.demand_of(hold.waiter) else {
            return true;
        };
        if !self.view().serves(hold.edge, demand.model.as_deref()) {
            return true;
        }
        if self.held_back(&demand).is_some() {
            return true;
        }
        if self.view().why_not(hold.edge, &demand).is_some() {
            return false;
        }
        let grant = self.grant(now, &demand, hold.edge);
        self.settle(hold.waiter, Ok(grant), effects);
        true
    }

    fn set_aside(&mut self, hold: Hold) {
        let Some(demand) = self.demand_of(hold.waiter) else {
            return;
        };
        let gates = Arc::clone(self.layout.gates(hold.edge));
        self.subjects.set_aside(&gates, demand.kinds);
        self.hold = Some(hold);
        self.follow(&gates);
    }

    /// Gives back what is set aside.
    pub(super) fn drop_hold(&mut self) {
        self.hold = None;
        for subject in self.subjects.take_set_aside() {
            self.follow_subject(subject);
        }
    }

    /// The same if it is for that request. Gives whether it was.
    pub(super) fn drop_hold_of(&mut self, waiter: WaiterId) -> bool {
        let is_its = self.hold.is_some_and(|hold| hold.waiter == waiter);
        if is_its {
            self.drop_hold();
        }
        is_its
    }

    /// The best-ranked request that may hold slots by now, with the edge that lacks least.
    fn next_hold(&mut self, now: Moment) -> Option<Hold> {
        let groups = self.lanes.groups().filter(|(_, g)| g.reach().needs_several);
        let stands = groups.flat_map(|(_, group)| {
            std::iter::successors(group.next(None), move |stand| group.next(Some(*stand)))
        });
        let is_due = |stand: &Stand| {
            let row = self.waiters.get(&stand.head);
            row.is_some_and(|row| half_time(row) <= now)
        };
        let mut due: Vec<Stand> = stands.filter(is_due).collect();
        due.sort_unstable();
        due.into_iter().find_map(|stand| {
            let demand = self.demand_of(stand.head)?;
            if self.held_back(&demand).is_some() {
                return None;
            }
            let edge = self.view().nearest(&demand)?;
            Some(Hold {
                waiter: stand.head,
                edge,
            })
        })
    }
}
