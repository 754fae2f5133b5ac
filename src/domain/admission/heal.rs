//! What the operator can do should admission ever go wrong: count everything anew from the leases
//! that are held, and take one lease away.
//!
//! Invariant: leases are what is true. A recount changes no lease; what it finds to differ from them
//! is put right, and whoever can be let in then is.
use super::{Admission, Effects, Kinds, LeaseId, Note, Part, layout::Gates, pass};
use crate::domain::moment::Moment;
use std::{fmt, str::FromStr};

/// What a recount put right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Healed {
    /// Slots that were counted and not held, or held and not counted.
    pub slots: u64,
    /// Parked requests that were let in.
    pub granted: u64,
}

/// A text that names no lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a lease: expected `lease_` followed by its number")]
pub struct NoLease;

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lease_{}", self.0)
    }
}

impl FromStr for LeaseId {
    type Err = NoLease;

    /// Reads the one way in which it is written, and no other.
    fn from_str(text: &str) -> Result<Self, NoLease> {
        let number = text.strip_prefix("lease_").ok_or(NoLease)?;
        let lease = Self(number.parse().map_err(|_| NoLease)?);
        if lease.to_string() == text {
            Ok(lease)
        } else {
            Err(NoLease)
        }
    }
}

impl Admission {
    /// Counts everything anew from the leases, and lets in whoever can be.
    pub fn recount(&mut self, now: Moment, effects: &mut Effects) -> Healed {
        let settled = effects.settled.len();
        self.drop_hold();
        let slots = self.recount_subjects() + self.recount_keys();
        self.order.rebuild(&self.layout, &self.subjects);
        self.requeue(now, effects);
        self.pass(now, &pass::Scope::All, effects);
        let answers = effects.settled.iter().skip(settled);
        let healed = Healed {
            slots,
            granted: answers.filter(|one| one.answer.is_ok()).count() as u64,
        };
        if healed != Healed::default() {
            effects.notes.push(Note::Healed(healed));
        }
        healed
    }

    /// Gives back everything that a lease holds, now; its request runs on. `false` if it is not held.
    pub fn evict(&mut self, now: Moment, lease: LeaseId, effects: &mut Effects) -> bool {
        let is_held = self.leases.contains_key(&lease);
        self.release(now, lease, Part::All, effects);
        is_held
    }

    /// What is in use on each account and credential.
    fn recount_subjects(&mut self) -> u64 {
        let mut held = vec![[0_u32; 3]; self.layout.subjects.len()];
        for row in self.leases.values() {
            for subject in &row.gates.subjects {
                for (count, is_held) in held
                    .get_mut(*subject as usize)
                    .into_iter()
                    .flatten()
                    .zip(row.held.each())
                {
                    *count += u32::from(is_held);
                }
            }
        }
        let mut wrong = 0;
        for (subject, held) in (0..).zip(held) {
            let used = self.subjects.usage(subject);
            let used = [used.stream, used.create, used.job];
            for (kind, (used, held)) in EACH.into_iter().zip(used.into_iter().zip(held)) {
                wrong += u64::from(used.abs_diff(held));
                self.correct(subject, kind, (used, held));
            }
        }
        wrong
    }

    fn correct(&mut self, subject: u32, kind: Kinds, (used, held): (u32, u32)) {
        let alone = Gates {
            subjects: [subject].into(),
            shared: Box::default(),
            own: None,
            limited: Box::default(),
        };
        for _ in held..used {
            self.subjects.give_back(&alone, kind);
        }
        for _ in used..held {
            self.subjects.take(&alone, kind, u32::MAX);
        }
    }

    /// What each key holds, and what fair share is reckoned from.
    fn recount_keys(&mut self) -> u64 {
        let before = self.holdings();
        self.recount_sets();
        self.lanes = super::Lanes::default();
        for row in self.leases.values() {
            self.lanes.took((row.key, row.weight), row.held);
        }
        let after = self.holdings();
        let streams = |of: &std::collections::HashMap<_, super::Holding>, key| {
            of.get(key).map_or(0, |holding| holding.streams)
        };
        let keys = before
            .keys()
            .chain(after.keys().filter(|k| !before.contains_key(k)));
        keys.map(|key| streams(&before, key).abs_diff(streams(&after, key)) as u64)
            .sum()
    }
}

const EACH: [Kinds; 3] = [
    Kinds::STREAM,
    Kinds::CREATE,
    Kinds {
        job: true,
        ..Kinds::NONE
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{
        admission::{Decision, Demand, Layout, Limits, Numbers, Owner, Strategy},
        ids::RequestId,
        pool::{Pool, edges::sample},
        protocol::Protocol,
    };
    use std::sync::Arc;

    const NOW: Moment = Moment::from_millis(1_000);

    fn layout() -> Layout {
        let limits = Limits {
            stream: 3,
            create: 3,
            job: 2,
            reserve: 1,
            fair_share_pct: 80,
            waiters_per_key: 10,
            may_park: true,
            strategy: Strategy::LeastLoaded,
            breaker_threshold: 5,
        };
        Numbers::default().layout(Arc::new(Pool::new(sample::contents(1))), limits)
    }

    fn demand() -> Arc<Demand> {
        Arc::new(Demand {
            holder: RequestId::from_u128(1),
            key: Some(sample::key(1)),
            protocol: Protocol::OpenAi,
            model: Some("m".into()),
            kinds: Kinds::GENERATE,
            reattach: false,
            owner: Owner::Nobody,
            preferred: None,
            tried: Vec::new(),
            until: NOW.plus(60_000),
            is_moving: false,
        })
    }

    /// An account of two ordinary slots with `count` requests for it, of which those beyond two wait.
    fn asked(count: usize) -> (Admission, Vec<Decision>) {
        let mut admission = Admission::new(layout());
        let ask = |_| admission.request(NOW, &demand(), &mut Effects::default());
        let decisions = (0..count).map(ask).collect();
        (admission, decisions)
    }

    fn lease(decision: &Decision) -> LeaseId {
        match decision {
            Decision::Granted(grant) => grant.lease,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_count_that_has_gone_wrong_is_put_right_and_lets_in_who_waited_for_it() {
        let (mut admission, decisions) = asked(3);
        // One lease vanishes, its slots do not.
        admission.leases.remove(&lease(&decisions[0]));
        let mut effects = Effects::default();
        let healed = admission.recount(NOW, &mut effects);
        // A stream and a create on the account and on the credential, a stream of the key.
        assert_eq!((healed.slots, healed.granted), (5, 1));
        assert_eq!(effects.notes, [Note::Healed(healed)]);
        assert_eq!(admission.leases(), 2);
        let again = admission.recount(NOW, &mut effects);
        assert_eq!(again, Healed::default());
        assert_eq!(effects.notes.len(), 1);
    }

    #[test]
    fn a_recount_of_what_is_right_changes_nothing() {
        let (mut admission, _) = asked(3);
        let before = admission.holdings();
        let healed = admission.recount(NOW, &mut Effects::default());
        assert_eq!(healed, Healed::default());
        assert_eq!(admission.holdings(), before);
        assert_eq!((admission.leases(), admission.waiters()), (2, 1));
    }

    #[test]
    fn a_lease_that_is_taken_away_lets_the_next_in_and_is_not_given_back_twice() {
        let (mut admission, decisions) = asked(3);
        let first = lease(&decisions[0]);
        let mut effects = Effects::default();
        assert!(admission.evict(NOW, first, &mut effects));
        assert_eq!(effects.settled.len(), 1);
        assert!(!admission.evict(NOW, first, &mut effects));
        admission.release(NOW, first, Part::All, &mut effects);
        assert_eq!(admission.leases(), 2);
    }

    #[test]
    fn a_lease_is_read_back_from_its_text_and_nothing_else_is() {
        let lease = LeaseId(42);
        assert_eq!(lease.to_string().parse(), Ok(lease));
        for text in [
            "42",
            "lease_",
            "lease_042",
            "lease_+42",
            "lease_42 ",
            "Lease_42",
        ] {
            assert_eq!(text.parse::<LeaseId>(), Err(NoLease), "{text}");
        }
    }
}
