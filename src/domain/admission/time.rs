//! What time alone changes, what the operator ends, and what an earlier process kept.
use super::{
    Admission, Effects,
    evidence::{Note, Probe},
    layout::Subject,
    pass::Scope,
    subjects::Timer,
};
use crate::domain::{
    cooldown::{Cooldown, Kept},
    moment::Moment,
};
use std::sync::Arc;

impl Admission {
    /// When time alone changes something; it may turn out that nothing did.
    pub fn next_wakeup(&self) -> Option<Moment> {
        self.subjects.next_wakeup()
    }

    /// Time has passed: cooldowns and rests that are over let their single shots out.
    pub fn handle_timeout(&mut self, now: Moment, effects: &mut Effects) {
        let mut has_changed = false;
        while let Some(timer) = self.subjects.due(now) {
            has_changed |= self.time_out(now, timer, effects);
        }
        if has_changed {
            self.pass(now, &Scope::All, effects);
        }
    }

    fn time_out(&mut self, now: Moment, timer: Timer, effects: &mut Effects) -> bool {
        let (subject, model) = match timer {
            Timer::Breaker(n) => {
                let turned = self.subjects.with_breaker(n, |b| b.handle_timeout(now));
                self.reassess_all();
                return turned == Some(true);
            }
            Timer::Hold(waiter) => return self.waiters.contains_key(&waiter),
            Timer::Subject(subject) => (subject, None),
            Timer::Model(subject, model) => (subject, Some(model)),
        };
        if self.is_open(subject, model.as_ref()) {
            return false;
        }
        let change = |c: &mut Cooldown| c.handle_timeout(now).then(|| c.kept(now).is_none());
        let changed = self.subjects.with_cooldown(subject, model.as_ref(), change);
        let Some(Some(has_opened)) = changed else {
            return false;
        };
        if has_opened {
            let outcome = Probe::Slow;
            effects.notes.push(Note::Probed { outcome });
            self.note_opened(subject, model, effects);
        }
        self.follow_subject(subject);
        self.reassess_subject(subject);
        true
    }

    /// The operator ends the cooldowns of a subject, those of its models too. Gives whether there
    /// were any.
    pub fn clear_cooldown(&mut self, now: Moment, subject: Subject, effects: &mut Effects) -> bool {
        let Some(n) = self.layout.number(subject) else {
            return false;
        };
        let models = self.subjects.model_cooldowns(n).map(|(m, _)| Arc::clone(m));
        let models: Vec<Option<Arc<str>>> = models.map(Some).chain([None]).collect();
        let mut has_cleared = false;
        for model in models {
            let cleared = self
                .subjects
                .with_cooldown(n, model.as_ref(), Cooldown::clear);
            if cleared == Some(true) {
                has_cleared = true;
                effects.notes.push(Note::Opened { subject, model });
            }
        }
        self.follow_subject(n);
        self.reassess_subject(n);
        if has_cleared {
            self.pass(now, &Scope::All, effects);
        }
        has_cleared
    }

    /// Takes up a cooldown that an earlier process kept; one of something that is gone is left.
    pub fn restore(&mut self, now: Moment, subject: Subject, model: Option<&Arc<str>>, kept: Kept) {
        let Some(n) = self.layout.number(subject) else {
            return;
        };
        self.subjects
            .with_cooldown(n, model, |c| *c = Cooldown::restored(now, kept));
        self.follow_subject(n);
        self.reassess_subject(n);
    }
}
