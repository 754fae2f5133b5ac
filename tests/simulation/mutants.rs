//! Machines that are broken on purpose: whoever judges has to notice each of them.
use crate::{
    CLOSELY,
    machine::{Answer, Machine, Outcome, Picture, Real, Thing},
    plan::{Ask, Plan},
    world::{World, setting},
};
use fairlane::domain::{
    admission::{Evidence, LeaseId, Part, WaiterId},
    reason::Reason,
};
use std::collections::HashMap;

/// What is wrong with a machine.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// It goes by another plan than the one it is given.
    Plan(fn(&mut Plan)),
    /// Every tenth release is lost.
    LosesReleases,
    /// What is freed by a client that leaves is kept.
    LosesWithdrawals,
    /// Two of a lane are let in the other way round.
    SwapsWaiters,
    /// Every fifth of those that are let in never hears of it.
    ForgetsWaiters,
    /// Who is let in hears of it twice.
    AnswersTwice,
    /// A 429 changes nothing.
    IgnoresLimits,
    /// Failures change nothing.
    IgnoresFailures,
    /// Time changes nothing.
    SleepsOn,
    /// Who should wait is refused.
    Refuses,
    /// Whatever is changed, it goes on as before.
    IgnoresChanges,
}

/// The product's machine with one fault.
struct Faulty {
    inner: Real,
    fault: Fault,
    count: u64,
    /// Who goes by whose name.
    names: HashMap<WaiterId, WaiterId>,
    last: Option<(Ask, WaiterId)>,
}

impl Faulty {
    fn new(plan: &Plan, fault: Fault) -> Self {
        Self {
            inner: Real::new(&distorted(plan, fault)),
            fault,
            count: 0,
            names: HashMap::new(),
            last: None,
        }
    }

    fn is_turn(&mut self, of: u64) -> bool {
        self.count += 1;
        self.count.is_multiple_of(of)
    }

    fn name(&self, waiter: WaiterId) -> WaiterId {
        self.names.get(&waiter).copied().unwrap_or(waiter)
    }

    fn spoil(&mut self, mut outcome: Outcome) -> Outcome {
        match self.fault {
            Fault::ForgetsWaiters => outcome.settled.retain(|_| !self.is_turn(5)),
            Fault::AnswersTwice => outcome.settled.extend(outcome.settled.clone()),
            Fault::SwapsWaiters => {
                for (waiter, _) in &mut outcome.settled {
                    *waiter = self.name(*waiter);
                }
            }
            _ => (),
        }
        outcome
    }

    /// Those who ask for the same one after the other go by each other's names.
    fn swap(&mut self, ask: &Ask, waiter: WaiterId) {
        let alike = |a: &Ask| a.key == ask.key && a.model == ask.model && a.slots == ask.slots;
        let is_plain = ask.owner.is_none() && !ask.is_moving;
        if !is_plain {
            return;
        }
        if let Some((before, other)) = self.last.take()
            && alike(&before)
        {
            self.names.insert(waiter, other);
            self.names.insert(other, waiter);
        } else {
            self.last = Some((ask.clone(), waiter));
        }
    }
}

fn distorted(plan: &Plan, fault: Fault) -> Plan {
    let mut plan = plan.clone();
    if let Fault::Plan(distort) = fault {
        distort(&mut plan);
    }
    plan
}

impl Machine for Faulty {
    fn request(&mut self, now: u64, ask: &Ask) -> (Answer, Outcome) {
        let (answer, outcome) = self.inner.request(now, ask);
        let answer = match answer {
            Answer::Parked(waiter) if matches!(self.fault, Fault::Refuses) => {
                self.inner.withdraw(now, waiter);
                Answer::Refused(Reason::AccountStreamCap)
            }
            Answer::Parked(waiter) if matches!(self.fault, Fault::SwapsWaiters) => {
                self.swap(ask, waiter);
                answer
            }
            _ => answer,
        };
        (answer, self.spoil(outcome))
    }

    fn observe(&mut self, now: u64, lease: LeaseId, evidence: Evidence) -> Outcome {
        let is_ignored = match evidence {
            Evidence::Limited { .. } => matches!(self.fault, Fault::IgnoresLimits),
            Evidence::Failed => matches!(self.fault, Fault::IgnoresFailures),
            Evidence::Success | Evidence::Answered => false,
        };
        if is_ignored {
            return Outcome::default();
        }
        let outcome = self.inner.observe(now, lease, evidence);
        self.spoil(outcome)
    }

    fn release(&mut self, now: u64, lease: LeaseId, part: Part) -> Outcome {
        if matches!(self.fault, Fault::LosesReleases) && self.is_turn(10) {
            return Outcome::default();
        }
        let outcome = self.inner.release(now, lease, part);
        self.spoil(outcome)
    }

    fn withdraw(&mut self, now: u64, waiter: WaiterId) -> (bool, Outcome) {
        if matches!(self.fault, Fault::LosesWithdrawals) {
            return (true, Outcome::default());
        }
        let (was_there, outcome) = self.inner.withdraw(now, self.name(waiter));
        (was_there, self.spoil(outcome))
    }

    fn clear_cooldown(&mut self, now: u64, thing: Thing) -> Outcome {
        let outcome = self.inner.clear_cooldown(now, thing);
        self.spoil(outcome)
    }

    fn reconfigure(&mut self, now: u64, plan: &Plan) -> Outcome {
        if matches!(self.fault, Fault::IgnoresChanges) {
            return Outcome::default();
        }
        let plan = distorted(plan, self.fault);
        let outcome = self.inner.reconfigure(now, &plan);
        self.spoil(outcome)
    }

    fn handle_timeout(&mut self, now: u64) -> Outcome {
        let outcome = self.inner.handle_timeout(now);
        if matches!(self.fault, Fault::SleepsOn) {
            return Outcome::default();
        }
        self.spoil(outcome)
    }

    fn next_wakeup(&self) -> Option<u64> {
        self.inner.next_wakeup()
    }

    fn picture(&self) -> Picture {
        self.inner.picture()
    }

    fn left(&self) -> (usize, usize) {
        self.inner.left()
    }
}

/// In one world or another of a few, the fault is noticed, and as what it is.
fn check(fault: Fault, expected: &str) {
    let mut rules = Vec::new();
    let is_found = (0..12).any(|seed| {
        let (plan, _) = setting::of(seed);
        let world = World::new(Faulty::new(&plan, fault), seed, CLOSELY);
        let rule = world.run(600).err().map(|broken| broken.rule);
        rules.extend(rule);
        rules.last().is_some_and(|rule| rule.contains(expected))
    });
    assert!(is_found, "{fault:?} was noticed as {rules:#?}");
}

#[test]
fn the_judge_notices_a_cap_that_is_exceeded() {
    check(Fault::Plan(|p| p.caps.stream += 1), "beyond a cap");
    check(Fault::Plan(|p| p.caps.create += 1), "beyond a cap");
    check(Fault::Plan(|p| p.caps.job += 1), "beyond a cap");
    let lift = |p: &mut Plan| p.credentials.iter_mut().for_each(|c| c.stream = None);
    check(Fault::Plan(lift), "beyond a cap");
}

#[test]
fn the_judge_notices_a_reserve_that_is_given_away_or_too_large() {
    check(Fault::Plan(|p| p.caps.reserve = 0), "beyond a cap");
    check(Fault::Plan(|p| p.caps.reserve += 1), "would take it");
}

#[test]
fn the_judge_notices_an_account_that_is_left_out_of_a_credentials_several() {
    let first_alone = |p: &mut Plan| {
        for credential in &mut p.credentials {
            credential.accounts.truncate(1);
        }
    };
    check(Fault::Plan(first_alone), "beyond a cap");
}

#[test]
fn the_judge_notices_a_share_that_is_exceeded() {
    let off = |p: &mut Plan| p.caps.threshold_pct = 0;
    check(Fault::Plan(off), "beyond its share");
    let late = |p: &mut Plan| p.caps.threshold_pct = p.caps.threshold_pct.max(1).midpoint(100);
    check(Fault::Plan(late), "beyond its share");
}

#[test]
fn the_judge_notices_who_is_held_back_without_need() {
    let early = |p: &mut Plan| p.caps.threshold_pct = 1;
    check(Fault::Plan(early), "would take it");
}

#[test]
fn the_judge_notices_an_order_that_is_not_that_of_shares() {
    let equal = |p: &mut Plan| p.keys.iter_mut().for_each(|k| k.weight = 1);
    check(Fault::Plan(equal), "was let in before");
}

#[test]
fn the_judge_notices_who_overtakes_within_a_lane() {
    check(Fault::SwapsWaiters, "was let in before");
}

#[test]
fn the_judge_notices_a_slot_that_is_never_given_back() {
    check(Fault::LosesReleases, "leases are in use");
    check(Fault::LosesWithdrawals, "wait, the machine has");
}

#[test]
fn the_judge_notices_who_is_never_answered_or_twice() {
    check(Fault::ForgetsWaiters, "would take it");
    check(Fault::AnswersTwice, "does not wait");
}

#[test]
fn the_judge_notices_limits_failures_and_times_that_change_nothing() {
    check(Fault::IgnoresLimits, "expected to be told [\"cooled");
    check(Fault::IgnoresFailures, "machine says");
    check(Fault::SleepsOn, "would take it");
}

#[test]
fn the_judge_notices_who_is_refused_instead_of_parked() {
    check(Fault::Refuses, "although only room is short");
    check(
        Fault::Plan(|p| p.caps.may_park = false),
        "although only room",
    );
    let short = |p: &mut Plan| p.caps.waiters_per_key = 2;
    check(Fault::Plan(short), "refused with 2 of its key waiting");
}

#[test]
fn the_judge_notices_changes_that_do_not_come_into_force() {
    check(Fault::IgnoresChanges, "");
    let all = |p: &mut Plan| p.accounts.iter_mut().for_each(|a| a.is_active = true);
    check(Fault::Plan(all), "which may not take it");
    let one = |p: &mut Plan| p.accounts.iter_mut().for_each(|a| a.priority = 0);
    check(Fault::Plan(one), "with a better priority free");
    let wide = |p: &mut Plan| p.keys.iter_mut().for_each(|k| k.accounts = None);
    check(Fault::Plan(wide), "which may not take it");
}
