//! The scheduler pass: lets in those who can go, again and again the one whose turn it is.
//!
//! Whose turn it is: the lowest of (what the key holds of that kind + 1) / its weight; among equals
//! the one that has fewer accounts to go to, then the oldest. A pass looks only at groups that what
//! has changed can matter to, and leaves a group as soon as it has no room, because a grant only
//! ever takes room away.
use super::{
    Admission, Demand, Denial, Effects, Settled, WaiterId,
    lanes::{GroupId, Stand},
    layout::Gates,
    sets::{Set, SetId},
};
use crate::domain::moment::Moment;
use std::sync::Arc;

/// What has changed.
#[derive(Debug)]
pub(super) enum Scope<'a> {
    /// What a lease counts on.
    Lease(&'a Gates),
    /// Anything.
    All,
}

/// A group on its way through a pass: where it is looked at next.
struct Turn {
    group: GroupId,
    stand: Stand,
}

impl Admission {
    /// The groups that a change can matter to.
    pub(super) fn groups_in(&self, scope: &Scope<'_>) -> Vec<GroupId> {
        let of = |sets: &[SetId]| {
            let sets = sets.iter().filter_map(|set| self.sets.get(*set));
            sets.flat_map(Set::groups).copied().collect()
        };
        match scope {
            Scope::All => self.lanes.groups().map(|(id, _)| id).collect(),
            Scope::Lease(gates) => {
                let units: Vec<u32> = gates
                    .subjects
                    .iter()
                    .flat_map(|subject| self.layout.dependents(*subject))
                    .copied()
                    .collect();
                let mut groups: Vec<GroupId> = of(&self.sets.on(&gates.subjects));
                groups.retain(|id| {
                    let group = self.lanes.group(*id);
                    group.is_some_and(|g| g.is_held_back || !g.is_elsewhere(&units))
                });
                groups
            }
        }
    }

    /// Lets in everyone who can be, best first. Where that itself lets others have more, their turn
    /// comes too.
    pub(super) fn pass(&mut self, now: Moment, scope: &Scope<'_>, effects: &mut Effects) {
        if !self.waiters.is_empty() {
            self.pass_once(now, scope, effects);
        }
        self.pass_if_shifted(now, effects);
    }

    /// The same where shares may have grown.
    pub(super) fn pass_if_shifted(&mut self, now: Moment, effects: &mut Effects) {
        while std::mem::take(&mut self.has_shifted) && !self.waiters.is_empty() {
            self.pass_once(now, &Scope::All, effects);
        }
    }

    fn pass_once(&mut self, now: Moment, scope: &Scope<'_>, effects: &mut Effects) {
        self.advance_hold(now, effects);
        let mut turns: Vec<Turn> = Vec::new();
        for group in self.groups_in(scope) {
            if let Some(row) = self.lanes.group_mut(group) {
                row.is_held_back = false;
                turns.extend(row.next(None).map(|stand| Turn { group, stand }));
            }
        }
        while let Some(n) = best(&turns) {
            let Turn { group, stand } = turns[n];
            let is_over = match self.try_head(now, group, stand, effects) {
                // Who was held back before may stand first now.
                Tried::Granted if self.has_shifted => return,
                Tried::Granted => false,
                Tried::HeldBack => {
                    if let Some(group) = self.lanes.group_mut(group) {
                        group.is_held_back = true;
                    }
                    false
                }
                Tried::NoRoom => true,
            };
            let next = self.lanes.group(group).filter(|_| !is_over);
            match next.and_then(|group| group.next(Some(stand))) {
                Some(stand) => turns[n].stand = stand,
                None => drop(turns.swap_remove(n)),
            }
        }
    }

    fn try_head(
        &mut self,
        now: Moment,
        group: GroupId,
        stand: Stand,
        effects: &mut Effects,
    ) -> Tried {
        // What its key was given in another group has put it further back.
        let is_there = self.lanes.group(group).is_some_and(|g| g.has(&stand));
        let Some(demand) = self.demand_of(stand.head).filter(|_| is_there) else {
            // Its place has just changed; what is there now comes next.
            return Tried::Granted;
        };
        match self.try_grant(now, &demand) {
            Ok(grant) => {
                self.settle(stand.head, Ok(grant), effects);
                Tried::Granted
            }
            Err(Denial::NoRoom) => Tried::NoRoom,
            Err(Denial::FairShare(share)) => {
                self.tell_once(stand.head, &demand, share, effects);
                Tried::HeldBack
            }
        }
    }

    pub(super) fn demand_of(&self, waiter: WaiterId) -> Option<Arc<Demand>> {
        self.waiters.get(&waiter).map(|row| Arc::clone(&row.demand))
    }

    /// Somebody who waits has its answer.
    pub(super) fn settle(
        &mut self,
        waiter: WaiterId,
        answer: Result<super::Grant, super::Refusal>,
        effects: &mut Effects,
    ) {
        if let Some(row) = self.waiters.remove(&waiter) {
            self.leave(waiter, &row);
            effects.settled.push(Settled { waiter, answer });
        }
    }
}

/// What became of the first in a lane.
enum Tried {
    Granted,
    HeldBack,
    NoRoom,
}

/// The turn of whoever is next among all groups.
fn best(turns: &[Turn]) -> Option<usize> {
    let turns = turns.iter().enumerate();
    turns.min_by_key(|(_, turn)| turn.stand).map(|(n, _)| n)
}
