//! What the judge makes of evidence and of time: cooldowns and breakers, kept by the rules alone.
use super::{
    Event, Verdict,
    books::{Books, Breaker, Cooldown, Lease, Phase, Things},
    must,
};
use crate::{
    machine::{Given, Thing, Told},
    plan::Ask,
};
use fairlane::domain::{
    admission::{Evidence, LeaseId, Part},
    breaker,
    cooldown::Stage,
    moment::Moment,
};

/// How long a single shot may be out, and how long an endpoint rests.
const VERDICT_MS: u64 = 15_000;
const REST_MS: u64 = 60_000;

/// The longest hint that is believed without a look in between.
const TRUSTED_MS: u64 = 3_600_000;

impl Phase {
    const fn ends_at(self) -> Option<u64> {
        match self {
            Self::Due => None,
            Self::Resting { until } | Self::Probing { until, .. } => Some(until),
        }
    }

    fn is_shot_of(self, lease: LeaseId) -> bool {
        matches!(self, Self::Probing { shot, .. } if shot == lease)
    }

    /// The single shot goes out with that lease, if it is due.
    fn take(&mut self, now: u64, lease: LeaseId) {
        if *self == Self::Due {
            *self = Self::Probing {
                shot: lease,
                until: now + VERDICT_MS,
            };
        }
    }

    fn pass(&mut self, lease: LeaseId) {
        if self.is_shot_of(lease) {
            *self = Self::Due;
        }
    }
}

impl Books {
    /// What an event changes before anybody is let in for it, and what has to be told of that.
    pub(super) fn apply(&mut self, now: u64, event: &Event) -> Result<Vec<Told>, String> {
        match event {
            Event::Asked(..) => Ok(Vec::new()),
            Event::Observed(lease, evidence) => Ok(self.observed(now, *lease, *evidence)),
            Event::Released(lease, part) => {
                self.released(*lease, *part);
                Ok(Vec::new())
            }
            Event::Withdrew(waiter, was_there) => {
                let waits = self.waiters.remove(waiter).is_some();
                must(waits == *was_there, || {
                    format!("{waiter:?} left; the machine says {was_there}")
                })?;
                Ok(Vec::new())
            }
            Event::Cleared(thing) => {
                let cools = self.cooling.keys().copied();
                let cleared: Vec<_> = cools.filter(|(t, _)| t == thing).collect();
                Ok(cleared.into_iter().map(|one| self.open_up(one)).collect())
            }
            Event::Reconfigured(plan) => {
                self.turn_to(plan);
                Ok(Vec::new())
            }
            Event::TimedOut => Ok(self.timed_out(now)),
        }
    }

    fn open_up(&mut self, one: (Thing, Option<usize>)) -> Told {
        self.cooling.remove(&one);
        Told::Opened {
            thing: one.0,
            model: one.1,
        }
    }

    /// A lease begins, with whatever single shots are due on its way.
    pub(super) fn take(&mut self, now: u64, ask: &Ask, given: Given) -> Verdict {
        let comes_back = ask.is_reattach && ask.owner.is_some();
        let limited = if comes_back {
            Vec::new()
        } else {
            self.limited_by(ask, given.credential).collect()
        };
        for one in &limited {
            if let Some(cooldown) = self.cooling.get_mut(one) {
                cooldown.phase.take(now, given.lease);
            }
        }
        if let Breaker::Out(phase) = &mut self.breakers[given.endpoint] {
            phase.take(now, given.lease);
        }
        let things: Things = self.things_of(given.credential);
        let lease = Lease {
            key: ask.key,
            endpoint: given.endpoint,
            held: ask.slots,
            things,
            limited,
            granted_at: now,
        };
        let known = self.leases.insert(given.lease, lease);
        must(known.is_none(), || {
            format!("{:?} was granted twice", given.lease)
        })
    }

    fn released(&mut self, id: LeaseId, part: Part) {
        let Some(lease) = self.leases.get_mut(&id) else {
            return;
        };
        if part == Part::Create {
            lease.held[1] = false;
            return;
        }
        let lease = self.leases.remove(&id).unwrap();
        self.pass_shots(id, &lease);
        if let Breaker::Out(phase) = &mut self.breakers[lease.endpoint] {
            phase.pass(id);
        }
    }

    fn pass_shots(&mut self, id: LeaseId, lease: &Lease) {
        for one in &lease.limited {
            if let Some(cooldown) = self.cooling.get_mut(one) {
                cooldown.phase.pass(id);
            }
        }
    }

    fn observed(&mut self, now: u64, id: LeaseId, evidence: Evidence) -> Vec<Told> {
        let Some(lease) = self.leases.get(&id).cloned() else {
            return Vec::new();
        };
        let mut told = self.judge_endpoint(now, id, &lease, evidence);
        match evidence {
            Evidence::Success => {
                for one in &lease.limited {
                    let began_at = self.cooling.get(one).map(|c| c.began_at);
                    if began_at.is_some_and(|began_at| lease.granted_at > began_at) {
                        told.push(self.open_up(*one));
                    }
                }
            }
            Evidence::Limited { wait_ms, .. } => {
                for one in &lease.limited {
                    self.note_limit(now, *one, &lease, wait_ms);
                    told.push(Told::Cooled {
                        thing: one.0,
                        model: one.1,
                        ends_in: 0,
                    });
                }
            }
            Evidence::Failed | Evidence::Answered => self.pass_shots(id, &lease),
        }
        told
    }

    /// A 429: its end is what the machine says, within the rules (see [`Books::cool`]).
    fn note_limit(
        &mut self,
        now: u64,
        one: (Thing, Option<usize>),
        lease: &Lease,
        wait_ms: Option<u64>,
    ) {
        let told = now + wait_ms.unwrap_or(0).min(TRUSTED_MS);
        let known = self.cooling.get(&one).copied();
        let is_news = known.is_none_or(|c| lease.granted_at > c.began_at);
        let until = match known.map(|c| c.phase) {
            Some(Phase::Resting { until }) => until.max(told),
            _ => told,
        };
        let cooldown = Cooldown {
            phase: Phase::Resting { until },
            began_at: if is_news {
                now
            } else {
                known.map_or(now, |c| c.began_at)
            },
        };
        self.cooling.insert(one, cooldown);
    }

    /// A cooldown lasts a second and as long as it was told to, and its end never moves back.
    pub(super) fn cool(&mut self, now: u64, one: (Thing, Option<usize>), ends_in: u64) -> Verdict {
        let Some(cooldown) = self.cooling.get_mut(&one) else {
            return Err(format!("{one:?} cools without a 429"));
        };
        let least = cooldown.phase.ends_at().unwrap_or(0).max(now + 1000);
        let until = now + ends_in;
        cooldown.phase = Phase::Resting { until };
        must(until >= least, || {
            format!("{one:?} cools until {until}, not {least}")
        })
    }

    fn judge_endpoint(
        &mut self,
        now: u64,
        id: LeaseId,
        lease: &Lease,
        evidence: Evidence,
    ) -> Vec<Told> {
        let failed = evidence == Evidence::Failed;
        let threshold = self.plan.caps.breaker;
        let breaker = &mut self.breakers[lease.endpoint];
        let trips = match breaker {
            Breaker::Passing(failures) if failed => {
                *failures += 1;
                *failures >= threshold
            }
            Breaker::Passing(failures) => {
                *failures = 0;
                false
            }
            Breaker::Out(phase) if phase.is_shot_of(id) && !failed => {
                *breaker = Breaker::Passing(0);
                return vec![Told::Closed(lease.endpoint)];
            }
            Breaker::Out(phase) => phase.is_shot_of(id),
        };
        if !trips {
            return Vec::new();
        }
        *breaker = Breaker::Out(Phase::Resting {
            until: now + REST_MS,
        });
        vec![Told::Tripped(lease.endpoint)]
    }

    fn timed_out(&mut self, now: u64) -> Vec<Told> {
        let is_over = |phase: Phase| phase.ends_at().is_some_and(|at| at <= now);
        let mut slow = Vec::new();
        for (one, cooldown) in &mut self.cooling {
            match cooldown.phase {
                phase @ Phase::Resting { .. } if is_over(phase) => cooldown.phase = Phase::Due,
                phase @ Phase::Probing { .. } if is_over(phase) => slow.push(*one),
                _ => (),
            }
        }
        for breaker in &mut self.breakers {
            if matches!(breaker, Breaker::Out(phase) if is_over(*phase)) {
                *breaker = Breaker::Out(Phase::Due);
            }
        }
        slow.into_iter().map(|one| self.open_up(one)).collect()
    }

    /// When time alone changes something next.
    pub(super) fn next_turn(&self) -> Option<u64> {
        let cooling = self.cooling.values().map(|c| c.phase);
        let resting = self.breakers.iter().filter_map(|b| match b {
            Breaker::Out(phase) => Some(*phase),
            Breaker::Passing(_) => None,
        });
        cooling.chain(resting).filter_map(Phase::ends_at).min()
    }

    /// Every cooldown of a thing, in the product's words.
    pub(super) fn stages(&self, thing: Thing) -> Vec<(Option<usize>, Stage)> {
        let cooling = self.cooling.iter().filter(|((t, _), _)| *t == thing);
        let mut all: Vec<_> = cooling
            .map(|((_, model), cooldown)| {
                let stage = match cooldown.phase {
                    Phase::Resting { until } => Stage::Cooling(Moment::from_millis(until)),
                    Phase::Due => Stage::Due,
                    Phase::Probing { until, .. } => Stage::Probing(Moment::from_millis(until)),
                };
                (*model, stage)
            })
            .collect();
        all.sort_by_key(|(model, _)| *model);
        all
    }

    pub(super) fn check_breakers(&self, shown: &[breaker::Breaker]) -> Verdict {
        let alike = |(known, shown): (&Breaker, &breaker::Breaker)| match (known, shown) {
            (Breaker::Passing(n), breaker::Breaker::Passing { failures }) => n == failures,
            (Breaker::Out(Phase::Resting { until }), breaker::Breaker::Resting { until: at })
            | (
                Breaker::Out(Phase::Probing { until, .. }),
                breaker::Breaker::Probing { verdict_by: at, .. },
            ) => *until == at.as_millis(),
            (Breaker::Out(Phase::Due), breaker::Breaker::Due) => true,
            _ => false,
        };
        must(self.breakers.iter().zip(shown).all(alike), || {
            format!(
                "breakers stand at {:?}, the machine says {shown:?}",
                self.breakers
            )
        })
    }
}
