//! How requests come to wait, leave, and are told that waiting is over for them.
use super::{
    Admission, Decision, Demand, Denial, Effects, Note, Owner, Refusal, Settled, Share, Waiter,
    WaiterId,
    blocked::Blocked,
    lanes::{Group, GroupId, GroupKey, Reach},
    pass::Scope,
    sets::{Set, SetId},
};
use crate::domain::{moment::Moment, pool::EdgeIndex, reason::Reason};
use std::sync::Arc;

impl Admission {
    /// The candidate set of a request.
    fn set_of(&mut self, demand: &Demand) -> SetId {
        let (view, sets) = self.split();
        sets.of(view, demand)
    }

    /// The group in which somebody waits already in the lane that the request would stand in.
    pub(super) fn lane_of(&mut self, demand: &Demand) -> Option<&Group> {
        let set = self.set_of(demand);
        let group = self.lanes.find(&GroupKey::of(set, demand))?;
        let group = self.lanes.group(group)?;
        group.has_lane(demand.key_id()).then_some(group)
    }

    /// A request that may not go now waits, if that can help and there is room for it.
    pub(super) fn park_or_refuse(
        &mut self,
        now: Moment,
        demand: &Arc<Demand>,
        denial: Denial,
    ) -> Decision {
        let set = self.set_of(demand);
        // Where something could serve it but for its caps, there is hope without a closer look.
        let is_hopeful = demand.owner == Owner::Nobody
            && demand.tried.is_empty()
            && self.sets.get(set).is_some_and(Set::serves);
        let blocked = match denial {
            Denial::FairShare(share) => Some(Blocked::ForNow(Refusal::fair_share(&share))),
            Denial::NoRoom if is_hopeful || self.view().select(demand).is_some() => None,
            Denial::NoRoom => Some(self.view().blocked(demand)),
        };
        let is_in_vain = blocked.is_some_and(|blocked| !blocked.passes_by(demand.until));
        if is_in_vain || !self.layout.limits.may_park {
            let blocked = blocked.unwrap_or_else(|| self.view().blocked(demand));
            return Decision::Refused(blocked.why());
        }
        let waiting = self.lanes.waiting(demand.key_id());
        let most = self.layout.limits.waiters_per_key;
        if waiting >= most {
            return Decision::Refused(Refusal::limit(Reason::QueueFull, most, waiting));
        }
        self.minted += 1;
        let id = WaiterId(self.minted);
        let waiter = Waiter {
            demand: Arc::clone(demand),
            parked_at: now,
            group: self.join(id, demand, set),
            is_told: matches!(denial, Denial::FairShare(_)),
        };
        if waiter.is_told
            && let Some(group) = self.lanes.group_mut(waiter.group)
        {
            group.is_held_back = true;
        }
        self.expect_hold(now, id, &waiter);
        self.waiters.insert(id, waiter);
        Decision::Parked(id)
    }

    fn join(&mut self, id: WaiterId, demand: &Demand, set: SetId) -> GroupId {
        let key = GroupKey::of(set, demand);
        let found = self.lanes.find(&key);
        let group = if let Some(group) = found {
            group
        } else {
            let reach = self.reach(demand, set);
            for unit in &reach.owned {
                *self.wanted.entry(*unit).or_default() += 1;
            }
            let group = self.lanes.add_group(key, reach);
            self.sets.join(set, group);
            group
        };
        self.lanes.join(group, id, demand);
        self.sets.wait(set, demand, 1);
        group
    }

    fn reach(&self, demand: &Demand, set: SetId) -> Reach {
        let found = self.sets.get(set);
        let pool = &self.layout.pool;
        let Owner::Bound(credential) = demand.owner else {
            return Reach {
                candidates: found.map_or(0, Set::candidates),
                owned: Box::default(),
                needs_several: found.is_some_and(Set::needs_several),
            };
        };
        let offers = self.layout.offers(demand);
        let view = self.view();
        let edges = pool.edges_of(credential);
        let edges: Vec<_> = edges.filter(|edge| view.offered(offers, *edge)).collect();
        // Whatever else counts on the same accounts takes room there as well.
        let gates = edges
            .iter()
            .flat_map(|edge| &self.layout.gates(*edge).shared);
        let units = gates.flat_map(|gate| self.layout.dependents(gate.subject));
        let mut units: Vec<u32> = units.copied().collect();
        units.sort_unstable();
        units.dedup();
        let spans = |edge: &EdgeIndex| self.layout.gates(*edge).spans_several();
        Reach {
            candidates: 1,
            owned: units.into(),
            needs_several: !edges.is_empty() && edges.iter().all(spans),
        }
    }

    /// A parked request leaves. `false` if it waits no more.
    pub fn withdraw(&mut self, now: Moment, waiter: WaiterId, effects: &mut Effects) -> bool {
        let Some(row) = self.waiters.remove(&waiter) else {
            return false;
        };
        let had_hold = self.drop_hold_of(waiter);
        self.leave(waiter, &row);
        self.has_shifted |= had_hold;
        self.pass_if_shifted(now, effects);
        true
    }

    /// Takes a request out of its lane.
    pub(super) fn leave(&mut self, waiter: WaiterId, row: &Waiter) {
        let set = self.lanes.group(row.group).map(Group::set);
        if let Some(group) = self.lanes.leave(row.group, waiter, &row.demand) {
            self.sets.leave(group.set(), row.group);
            for unit in &group.reach().owned {
                let wanted = self.wanted.get_mut(unit).map(|n| {
                    *n -= 1;
                    *n
                });
                if wanted == Some(0) {
                    self.wanted.remove(unit);
                }
            }
        }
        if let Some(set) = set {
            // One key less to share with.
            self.has_shifted |= self.sets.wait(set, &row.demand, -1);
        }
    }

    /// Why a parked request waits, or `None` if it waits no more. Looks at every candidate, and so
    /// is for those whose client is still there to be told.
    pub fn why_waiting(&mut self, waiter: WaiterId, effects: &mut Effects) -> Option<Refusal> {
        let demand = self.demand_of(waiter)?;
        Some(match self.denial(&demand) {
            Some(Denial::FairShare(share)) => {
                self.tell_once(waiter, &demand, share, effects);
                Refusal::fair_share(&share)
            }
            Some(Denial::NoRoom) | None => self.view().blocked(&demand).why(),
        })
    }

    /// Says of a parked request that fair share holds it back, unless that was said before.
    pub(super) fn tell_once(
        &mut self,
        waiter: WaiterId,
        demand: &Demand,
        share: Share,
        effects: &mut Effects,
    ) {
        let row = self.waiters.get_mut(&waiter);
        if row.is_some_and(|row| !std::mem::replace(&mut row.is_told, true)) {
            tell_held_back(demand, share, effects);
        }
    }

    /// Puts everyone who waits into the lanes that the pool and their keys give them now, in the
    /// order in which they came; refuses those whose keys have no right to wait any more.
    pub(super) fn requeue(&mut self, now: Moment, effects: &mut Effects) {
        self.lanes.clear();
        self.wanted.clear();
        let ids: Vec<WaiterId> = self.waiters.keys().copied().collect();
        for id in ids {
            let Some(mut row) = self.waiters.remove(&id) else {
                continue;
            };
            match row.demand.renewed(&self.layout.pool) {
                Ok(None) => (),
                Ok(Some(demand)) => row.demand = Arc::new(demand),
                Err(reason) => {
                    let answer = Err(Refusal::bare(reason));
                    effects.settled.push(Settled { waiter: id, answer });
                    continue;
                }
            }
            let demand = Arc::clone(&row.demand);
            let set = self.set_of(&demand);
            row.group = self.join(id, &demand, set);
            self.expect_hold(now, id, &row);
            self.waiters.insert(id, row);
        }
    }

    /// Everyone who waits is refused for one and the same reason.
    pub fn dismiss(&mut self, why: Refusal, effects: &mut Effects) {
        self.drop_hold();
        while let Some((waiter, row)) = self.waiters.pop_first() {
            self.leave(waiter, &row);
            let answer = Err(why);
            effects.settled.push(Settled { waiter, answer });
        }
        self.has_shifted = false;
    }

    /// Refuses those for whom nothing is left that could become free in time.
    pub(super) fn refuse_the_hopeless(&mut self, scope: &Scope<'_>, effects: &mut Effects) {
        for group in self.groups_in(scope) {
            for (waiter, why) in self.hopeless(group) {
                let answer = Err(why);
                if let Some(row) = self.waiters.remove(&waiter) {
                    self.drop_hold_of(waiter);
                    self.leave(waiter, &row);
                    effects.settled.push(Settled { waiter, answer });
                }
            }
        }
    }

    fn hopeless(&self, id: GroupId) -> Vec<(WaiterId, Refusal)> {
        let Some(group) = self.lanes.group(id) else {
            return Vec::new();
        };
        let set = self.sets.get(group.set());
        if !group.is_owned() && !group.has_tried() && set.is_some_and(Set::serves) {
            return Vec::new();
        }
        let head = group
            .next(None)
            .and_then(|stand| self.waiters.get(&stand.head));
        let Some(head) = head else {
            return Vec::new();
        };
        // One whom only fair share holds back waits for no edge.
        if self.view().select(&head.demand).is_some() {
            return Vec::new();
        }
        let blocked = self.view().blocked(&head.demand);
        let hopeless = match blocked {
            Blocked::ForNow(_) => Vec::new(),
            Blocked::Until(free_at, _) => group.impatient(free_at),
            Blocked::ForGood(_) => group.all(),
        };
        let why = blocked.why();
        hopeless.into_iter().map(|waiter| (waiter, why)).collect()
    }
}

/// Says that fair share holds a request back that could have gone otherwise.
pub(super) fn tell_held_back(demand: &Demand, share: Share, effects: &mut Effects) {
    if let Some(key) = demand.key_id() {
        effects.notes.push(Note::HeldBack {
            request: demand.holder,
            key,
            share,
        });
    }
}
