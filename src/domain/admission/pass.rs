//! The scheduler pass: lets in those who can go, again and again the one whose turn it is.
//!
//! Whose turn it is: the lowest of (what the key holds of that kind + 1) / its weight; among equals
//! the one that has fewer accounts to go to, then the oldest. A pass looks only at groups that what
//! has changed can matter to, and leaves a group as soon as it has no room, because a grant only
//! ever takes room away. Before an event nobody who waits had room, but for those whom fair share
//! holds back; so after it the others find room only where something has changed, and only that is
//! looked at for them.
use super::{
    Admission, Demand, Denial, Effects, Kinds, Settled, WaiterId,
    lanes::{GroupId, Stand},
    layout::Gates,
    sets::Set,
};
use crate::domain::moment::Moment;
use std::{cmp::Reverse, collections::BinaryHeap, sync::Arc};

/// What has changed.
#[derive(Debug)]
pub(super) enum Scope<'a> {
    /// Slots of these kinds came free on what a lease counts on, and that is all.
    Freed(&'a Gates, Kinds),
    /// What a lease counts on, in any way.
    Lease(&'a Gates),
    /// Anything.
    All,
}

impl<'a> Scope<'a> {
    /// What cools or rests on the way of a lease has changed; a breaker that has turned matters to
    /// others too that it is the breaker of.
    pub(super) const fn after(gates: &'a Gates, has_turned: bool) -> Self {
        if has_turned {
            Self::All
        } else {
            Self::Lease(gates)
        }
    }

    const fn gates(&self) -> Option<&'a Gates> {
        match self {
            Self::Freed(gates, _) | Self::Lease(gates) => Some(gates),
            Self::All => None,
        }
    }

    /// Whether it can matter to requests that need slots of these kinds.
    fn concerns(&self, kinds: Kinds) -> bool {
        match self {
            Self::Freed(_, freed) => kinds.without(*freed) != kinds,
            Self::Lease(_) | Self::All => true,
        }
    }
}

/// A group on its way through a pass: where it is looked at next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    stand: Stand,
    group: GroupId,
    /// After how many grants of the pass it was known to have room.
    has_room_after: Option<u32>,
}

impl Admission {
    /// The groups that a change can matter to.
    pub(super) fn groups_in(&self, scope: &Scope<'_>) -> Vec<GroupId> {
        self.groups_near(scope, self.units_in(scope).as_deref())
    }

    /// The same, with the units that it may change the room of.
    fn groups_near(&self, scope: &Scope<'_>, units: Option<&[u32]>) -> Vec<GroupId> {
        let (Some(gates), Some(units)) = (scope.gates(), units) else {
            return self.lanes.groups().map(|(id, _)| id).collect();
        };
        let sets = self.sets.on(&gates.subjects).into_iter();
        let groups = sets.filter_map(|set| self.sets.get(set).map(Set::groups));
        let is_concerned = |id: &GroupId| {
            let group = self.lanes.group(*id);
            group.is_some_and(|g| {
                scope.concerns(g.kinds()) && (g.is_held_back || !g.is_elsewhere(units))
            })
        };
        groups.flatten().copied().filter(is_concerned).collect()
    }

    /// The units whose room a change may change; `None` stands for all.
    fn units_in(&self, scope: &Scope<'_>) -> Option<Vec<u32>> {
        let subjects = scope.gates()?.subjects.iter();
        let units = subjects.flat_map(|subject| self.layout.dependents(*subject));
        Some(units.copied().collect())
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
        let mut turns = self.turns(scope);
        let mut grants = 0;
        while let Some(Reverse(mut turn)) = turns.pop() {
            let has_room = turn.has_room_after == Some(grants);
            match self.try_head(now, &turn, has_room, effects) {
                Tried::Granted => grants += 1,
                Tried::HeldBack => {
                    turn.has_room_after = Some(grants);
                    if let Some(group) = self.lanes.group_mut(turn.group) {
                        group.is_held_back = true;
                    }
                }
                Tried::Moved => (),
                Tried::NoRoom => continue,
            }
            // Who was held back before may stand first now.
            if self.has_shifted {
                return;
            }
            let group = self.lanes.group(turn.group);
            if let Some(stand) = group.and_then(|group| group.next(Some(turn.stand))) {
                turn.stand = stand;
                turns.push(Reverse(turn));
            }
        }
    }

    /// The groups that a pass goes through.
    fn turns(&mut self, scope: &Scope<'_>) -> BinaryHeap<Reverse<Turn>> {
        let units = self.units_in(scope);
        let mut turns = BinaryHeap::new();
        for group in self.groups_near(scope, units.as_deref()) {
            let Some(row) = self.lanes.group_mut(group) else {
                continue;
            };
            let was_held_back = std::mem::take(&mut row.is_held_back);
            let Some(stand) = row.next(None) else {
                continue;
            };
            let is_near = !was_held_back && !row.is_owned();
            if let Some(units) = units.as_deref().filter(|_| is_near)
                && !self.has_room_on(units, stand.head)
            {
                continue;
            }
            turns.push(Reverse(Turn {
                stand,
                group,
                has_room_after: None,
            }));
        }
        turns
    }

    fn has_room_on(&self, units: &[u32], waiter: WaiterId) -> bool {
        let row = self.waiters.get(&waiter);
        row.is_some_and(|row| self.view().has_room_on(units, &row.demand))
    }

    /// Lets the first in a lane in if it can go.
    fn try_head(
        &mut self,
        now: Moment,
        turn: &Turn,
        has_room: bool,
        effects: &mut Effects,
    ) -> Tried {
        let head = turn.stand.head;
        // What its key was given in another group has put it further back.
        let group = self.lanes.group(turn.group);
        let is_there = group.is_some_and(|group| group.has(&turn.stand));
        let Some(demand) = self.demand_of(head).filter(|_| is_there) else {
            return Tried::Moved;
        };
        // Where there is room, the share is all that can be in the way.
        let share = if has_room {
            self.held_back(&demand)
        } else {
            None
        };
        let tried = match share {
            Some(share) => Err(Denial::FairShare(share)),
            None => self.try_grant(now, &demand),
        };
        match tried {
            Ok(grant) => {
                self.settle(head, Ok(grant), effects);
                Tried::Granted
            }
            Err(Denial::NoRoom) => Tried::NoRoom,
            Err(Denial::FairShare(share)) => {
                self.tell_once(head, &demand, share, effects);
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
    /// It stands elsewhere by now; what is there now comes next.
    Moved,
}
