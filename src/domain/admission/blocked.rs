//! Why nothing can take a request now, and whether waiting could help.
use super::{
    Demand, Owner, Refusal,
    selection::{View, Why},
    subjects::Full,
};
use crate::domain::{
    cooldown::Stage,
    moment::Moment,
    pool::{EdgeIndex, State},
    reason::Reason,
};

/// Why no edge could be chosen.
#[derive(Clone, Copy, Debug)]
pub(super) enum Blocked {
    /// Something is full, or a verdict is awaited; room may come at any moment.
    ForNow(Refusal),
    /// Everything cools, the first until then.
    Until(Moment, Refusal),
    /// Nothing that could come in time would help.
    ForGood(Refusal),
}

impl Blocked {
    /// The reason, whether or not waiting could help.
    pub(super) const fn why(self) -> Refusal {
        let (Self::ForNow(why) | Self::Until(_, why) | Self::ForGood(why)) = self;
        why
    }

    /// Whether whoever waits until `until` at most may hope.
    pub(super) fn passes_by(self, until: Moment) -> bool {
        match self {
            Self::ForNow(_) => true,
            Self::Until(free_at, _) => free_at <= until,
            Self::ForGood(_) => false,
        }
    }
}

impl View<'_> {
    /// Why nothing can take the request now.
    pub(super) fn blocked(self, demand: &Demand) -> Blocked {
        let pool = &self.layout.pool;
        let offers = self.layout.offers(demand);
        let mut seen = Seen::default();
        match demand.owner {
            Owner::Unknown if !self.has_one_account(demand) => {
                return Blocked::ForGood(Refusal::bare(Reason::OwnerUnknown));
            }
            Owner::Bound(credential) => {
                for edge in pool.edges_of(credential) {
                    if self.offered(offers, edge) {
                        self.look(edge, demand, &mut seen);
                    }
                }
            }
            Owner::Unknown | Owner::Nobody => {
                for edge in offers.edges() {
                    self.look(edge, demand, &mut seen);
                    // Something will be free sooner or later; how the others stand is no matter.
                    if seen.full.is_some() {
                        break;
                    }
                }
            }
        }
        seen.blocked(demand)
    }

    fn look(self, index: EdgeIndex, demand: &Demand, seen: &mut Seen) {
        let pool = &self.layout.pool;
        if !pool.is_in_scope(pool.edge(index), demand.scope()) {
            return;
        }
        seen.in_scope += 1;
        match self.why_not(index, demand) {
            // It could be taken: only a caller that has not tried gets here.
            None | Some(Why::Tried) => (),
            Some(Why::OutOfService(State::Disabled(_))) => seen.disabled += 1,
            Some(Why::OutOfService(_)) => seen.draining += 1,
            Some(Why::Resting { free_at }) => {
                seen.resting += 1;
                seen.rests_until = Some(earliest(seen.rests_until, free_at));
            }
            Some(Why::Cooling { free_at, is_quota }) => {
                seen.cooling += 1;
                seen.is_quota_alone &= is_quota;
                seen.cools_until = Some(earliest(seen.cools_until, free_at));
                seen.expects_verdict |= self.expects_verdict(index, demand);
            }
            Some(Why::Full {
                reason,
                limit,
                used,
            }) => {
                seen.full.get_or_insert((reason, limit, used));
            }
        }
    }

    /// Whether all that holds an edge back is a shot that is out: its verdict may come at any moment.
    fn expects_verdict(self, index: EdgeIndex, demand: &Demand) -> bool {
        let pool = &self.layout.pool;
        let asked = demand.model.as_deref();
        let asked = asked.map(|model| pool.upstream_model(pool.edge(index), model));
        self.layout.gates(index).limited.iter().all(|limited| {
            let model = asked.filter(|_| limited.is_per_model);
            let of_model = model.map(|m| self.subjects.model_cooldown(limited.subject, m));
            let whole = self.subjects.cooldown(limited.subject);
            let mut all = of_model.iter().chain([&whole]);
            all.all(|cooldown| !matches!(cooldown.stage(), Stage::Cooling(_)))
        })
    }
}

fn earliest(known: Option<Moment>, new: Moment) -> Moment {
    known.map_or(new, |k| k.min(new))
}

/// What was seen of the candidates that could not be chosen.
#[derive(Debug)]
struct Seen {
    in_scope: u32,
    disabled: u32,
    draining: u32,
    resting: u32,
    cooling: u32,
    rests_until: Option<Moment>,
    cools_until: Option<Moment>,
    is_quota_alone: bool,
    expects_verdict: bool,
    full: Option<Full>,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            in_scope: 0,
            disabled: 0,
            draining: 0,
            resting: 0,
            cooling: 0,
            rests_until: None,
            cools_until: None,
            is_quota_alone: true,
            expects_verdict: false,
            full: None,
        }
    }
}

impl Seen {
    fn refusal(&self, reason: Reason) -> Refusal {
        Refusal {
            candidates: self.in_scope,
            disabled: self.disabled,
            draining: self.draining,
            resting: self.resting,
            cooling: self.cooling,
            ..Refusal::bare(reason)
        }
    }

    fn blocked(&self, demand: &Demand) -> Blocked {
        let is_owned = matches!(demand.owner, Owner::Bound(_));
        if let Some((reason, cap, used)) = self.full {
            let reason = if is_owned {
                Reason::OwnerSaturated
            } else {
                reason
            };
            return Blocked::ForNow(Refusal {
                limit: Some((cap as usize, used as usize)),
                ..self.refusal(reason)
            });
        }
        if let Some(free_at) = self.cools_until {
            let is_used_up = self.is_quota_alone && !self.expects_verdict;
            let reason = if is_used_up {
                Reason::UsageLimitReached
            } else {
                Reason::AccountCooling
            };
            let refusal = Refusal {
                free_at: Some(free_at),
                ..self.refusal(reason)
            };
            return match (is_used_up, self.expects_verdict) {
                (true, _) => Blocked::ForGood(refusal),
                (false, true) => Blocked::ForNow(refusal),
                (false, false) => Blocked::Until(free_at, refusal),
            };
        }
        let reason = match (&demand.model, self.in_scope) {
            _ if is_owned => Reason::OwnerUnavailable,
            (Some(_), 0) => Reason::ModelNotFound,
            _ => Reason::NoServiceableAccount,
        };
        Blocked::ForGood(Refusal {
            free_at: self.rests_until,
            ..self.refusal(reason)
        })
    }
}
