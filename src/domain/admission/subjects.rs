//! What is in use, what cools and what rests, by number.
//!
//! Invariant: nothing here knows the pool; numbers come from the layout and stay valid for ever.
use super::{
    Kinds, LeaseId, WaiterId,
    layout::{Gate, Gates},
};
use crate::domain::{breaker::Breaker, cooldown::Cooldown, moment::Moment, reason::Reason};
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    sync::Arc,
};

/// What is in use on one subject, and when it last had its turn (see [`Subjects::take`]).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    pub(super) stream: u32,
    pub(super) create: u32,
    pub(super) job: u32,
    pub(super) turn: u64,
}

#[derive(Debug, Default)]
struct Row {
    usage: Usage,
    cooldown: Cooldown,
    /// Cooldowns of single models.
    models: HashMap<Arc<str>, Cooldown>,
}

/// A full gate: the reason, the cap and what is in use.
pub(super) type Full = (Reason, u32, u32);

/// What time alone changes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    Subject(u32),
    Model(u32, Arc<str>),
    Breaker(u32),
    /// Half the patience of a request that needs several slots at once is over.
    Hold(WaiterId),
}

#[derive(Debug, Default)]
pub(super) struct Subjects {
    rows: Vec<Row>,
    breakers: Vec<Breaker>,
    /// Some may be out of date: what they name is looked at when they come.
    timers: BinaryHeap<Reverse<(Moment, Timer)>>,
    now: u64,
    /// Slots that are kept for one request until it has all that it needs.
    aside: Vec<u32>,
    aside_kinds: Kinds,
}

/// One turn of a subject of weight 1: divisible by every small weight, so that shares come out
/// exact.
const TURN: u64 = 5040;

impl Subjects {
    pub(super) fn grow(&mut self, subjects: usize, breakers: usize) {
        if self.rows.len() < subjects {
            self.rows.resize_with(subjects, Row::default);
        }
        if self.breakers.len() < breakers {
            self.breakers.resize_with(breakers, Breaker::default);
        }
    }

    pub(super) fn usage(&self, subject: u32) -> Usage {
        self.rows
            .get(subject as usize)
            .map(|row| row.usage)
            .unwrap_or_default()
    }

    pub(super) fn cooldown(&self, subject: u32) -> Cooldown {
        self.rows
            .get(subject as usize)
            .map(|row| row.cooldown)
            .unwrap_or_default()
    }

    pub(super) fn model_cooldown(&self, subject: u32, model: &str) -> Cooldown {
        let row = self.rows.get(subject as usize);
        row.and_then(|row| row.models.get(model))
            .copied()
            .unwrap_or_default()
    }

    /// Every cooldown of a single model of a subject.
    pub(super) fn model_cooldowns(
        &self,
        subject: u32,
    ) -> impl Iterator<Item = (&Arc<str>, &Cooldown)> {
        let row = self.rows.get(subject as usize);
        row.into_iter().flat_map(|row| &row.models)
    }

    pub(super) fn breaker(&self, number: u32) -> Breaker {
        self.breakers
            .get(number as usize)
            .copied()
            .unwrap_or_default()
    }

    /// Changes one cooldown, and has it looked at when time changes it.
    pub(super) fn with_cooldown<T>(
        &mut self,
        subject: u32,
        model: Option<&Arc<str>>,
        change: impl FnOnce(&mut Cooldown) -> T,
    ) -> Option<T> {
        let row = self.rows.get_mut(subject as usize)?;
        let cooldown = match model {
            None => &mut row.cooldown,
            Some(model) => row.models.entry(Arc::clone(model)).or_default(),
        };
        let result = change(cooldown);
        if let Some(at) = cooldown.next_wakeup() {
            let timer = match model {
                None => Timer::Subject(subject),
                Some(model) => Timer::Model(subject, Arc::clone(model)),
            };
            self.timers.push(Reverse((at, timer)));
        }
        let is_idle = *cooldown == Cooldown::default();
        if let Some(model) = model.filter(|_| is_idle) {
            row.models.remove(model);
        }
        Some(result)
    }

    pub(super) fn with_breaker<T>(
        &mut self,
        number: u32,
        change: impl FnOnce(&mut Breaker) -> T,
    ) -> Option<T> {
        let breaker = self.breakers.get_mut(number as usize)?;
        let result = change(breaker);
        if let Some(at) = breaker.next_wakeup() {
            self.timers.push(Reverse((at, Timer::Breaker(number))));
        }
        Some(result)
    }

    /// Has something looked at when its time has come.
    pub(super) fn remind(&mut self, at: Moment, timer: Timer) {
        self.timers.push(Reverse((at, timer)));
    }

    pub(super) fn next_wakeup(&self) -> Option<Moment> {
        self.timers.peek().map(|Reverse((at, _))| *at)
    }

    /// The next timer that is due; what it names may have changed since it was set.
    pub(super) fn due(&mut self, now: Moment) -> Option<Timer> {
        let Reverse((at, _)) = self.timers.peek()?;
        if *at > now {
            return None;
        }
        self.timers.pop().map(|Reverse((_, timer))| timer)
    }

    /// Takes one slot of each kind on every subject, and moves the subjects' turns on: the lower
    /// its turn, the longer ago a subject was chosen in relation to its weight.
    pub(super) fn take(&mut self, gates: &Gates, kinds: Kinds, weight: u32) {
        for subject in &gates.subjects {
            let Some(row) = self.rows.get_mut(*subject as usize) else {
                continue;
            };
            let usage = &mut row.usage;
            usage.stream += u32::from(kinds.stream);
            usage.create += u32::from(kinds.create);
            usage.job += u32::from(kinds.job);
            // One that was idle for long starts from now, or it would catch up all at once.
            self.now = self.now.max(usage.turn);
            usage.turn = self.now + TURN / u64::from(weight.max(1));
        }
    }

    pub(super) fn give_back(&mut self, gates: &Gates, kinds: Kinds) {
        for subject in &gates.subjects {
            if let Some(row) = self.rows.get_mut(*subject as usize) {
                row.usage.stream -= u32::from(kinds.stream);
                row.usage.create -= u32::from(kinds.create);
                row.usage.job -= u32::from(kinds.job);
            }
        }
    }

    /// Keeps a slot of each kind on every shared gate that has one to spare.
    pub(super) fn set_aside(&mut self, gates: &Gates, kinds: Kinds) {
        let shared = gates.shared.iter().filter(|gate| {
            let reasons = [Reason::AccountStreamCap; 3];
            self.full_gate(gate, kinds, false, reasons).is_none()
        });
        self.aside = shared.map(|gate| gate.subject).collect();
        self.aside_kinds = kinds;
    }

    /// Keeps nothing any more. Gives where something was kept.
    pub(super) fn take_set_aside(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.aside)
    }

    /// How many shared gates have no room for an ordinary request of `kinds`.
    pub(super) fn lacking(&self, gates: &Gates, kinds: Kinds) -> usize {
        let reasons = [Reason::AccountStreamCap; 3];
        let shared = gates.shared.iter();
        shared
            .filter(|gate| self.full_gate(gate, kinds, false, reasons).is_some())
            .count()
    }

    /// The first shared gate that has no room for `kinds`.
    pub(super) fn full(&self, gates: &Gates, kinds: Kinds, reattach: bool) -> Option<Full> {
        let reasons = [
            Reason::AccountStreamCap,
            Reason::AccountCreateCap,
            Reason::AccountJobCap,
        ];
        let mut shared = gates.shared.iter();
        shared.find_map(|gate| self.full_gate(gate, kinds, reattach, reasons))
    }

    /// The credential's own gate, if that has no room for `kinds`.
    pub(super) fn full_own(&self, gates: &Gates, kinds: Kinds) -> Option<Full> {
        let reasons = [Reason::CredentialCap; 3];
        let own = gates.own.as_ref()?;
        self.full_gate(own, kinds, true, reasons)
    }

    fn full_gate(
        &self,
        gate: &Gate,
        kinds: Kinds,
        reattach: bool,
        [stream, create, job]: [Reason; 3],
    ) -> Option<Full> {
        let mut used = self.usage(gate.subject);
        if self.aside.contains(&gate.subject) {
            used.stream += u32::from(self.aside_kinds.stream);
            used.create += u32::from(self.aside_kinds.create);
            used.job += u32::from(self.aside_kinds.job);
        }
        let streams = if reattach { gate.stream } else { gate.ordinary };
        if kinds.stream && streams > 0 && used.stream >= streams {
            Some((stream, streams, used.stream))
        } else if kinds.create && gate.create > 0 && used.create >= gate.create {
            Some((create, gate.create, used.create))
        } else if kinds.job && gate.job > 0 && used.job >= gate.job {
            Some((job, gate.job, used.job))
        } else {
            None
        }
    }

    /// Whether every shared gate lets an ordinary request of both kinds in.
    pub(super) fn has_room(&self, gates: &Gates) -> bool {
        self.full(gates, Kinds::GENERATE, false).is_none()
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> impl Iterator<Item = Usage> + '_ {
        self.rows.iter().map(|row| row.usage)
    }
}

impl LeaseId {
    /// The lease's number as the name of a shot.
    pub(super) const fn shot(self) -> crate::domain::cooldown::Shot {
        self.0
    }
}
