//! What upstream's answers do to cooldowns and breakers, and the single shots of both.
use super::{
    Admission, Effects, Healed, LeaseId, LeaseRow, Share,
    layout::{Gates, Limited, Subject},
    pass::Scope,
};
use crate::domain::{
    breaker::Breaker,
    cooldown::{Cooldown, Kept, Limit},
    ids::{EndpointId, KeyId, RequestId},
    moment::Moment,
};
use std::sync::Arc;

/// What an answer, or its failing to come, says of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The work was taken up.
    Success,
    /// A limit was met.
    Limited {
        /// How long to wait, in milliseconds, if upstream said so.
        wait_ms: Option<u64>,
        /// Whether a quota is used up until then.
        is_quota: bool,
    },
    /// The endpoint failed.
    Failed,
    /// The endpoint answered, and the answer says nothing of a limit.
    Answered,
}

/// Something that happened to the pool, to be logged, counted and kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A 429 began or prolonged a cooldown.
    Cooled {
        /// What cools.
        subject: Subject,
        /// Which of its models, where limits are by model.
        model: Option<Arc<str>>,
        /// What is to outlive the process.
        kept: Kept,
    },
    /// A cooldown is over.
    Opened {
        /// What it was of.
        subject: Subject,
        /// Which of its models.
        model: Option<Arc<str>>,
    },
    /// The single shot of a cooldown has been settled.
    Probed {
        /// How.
        outcome: Probe,
    },
    /// Fair share holds a request back that could have gone otherwise; told once of each request.
    HeldBack {
        /// Which.
        request: RequestId,
        /// Whose it is.
        key: KeyId,
        /// The numbers.
        share: Share,
    },
    /// An endpoint rests.
    Tripped(EndpointId),
    /// An endpoint is back.
    Closed(EndpointId),
    /// Counts had gone wrong, and are right now.
    Healed(Healed),
}

/// How a single shot ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Probe {
    /// It succeeded.
    Success,
    /// It met a 429.
    Limited,
    /// It had no answer in time, and counts as not limited.
    Slow,
    /// It said nothing; the next request has it.
    Passed,
}

impl Probe {
    /// The word in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Limited => "limited",
            Self::Slow => "slow",
            Self::Passed => "passed",
        }
    }
}

impl Gates {
    pub(super) fn is_per_model(&self) -> bool {
        self.limited.iter().any(|l| l.is_per_model)
    }
}

impl LeaseRow {
    /// The cooldown that a limit of the lease belongs to: the subject's, or that of its one model.
    fn model_of(&self, limited: Limited) -> Option<&Arc<str>> {
        self.model.as_ref().filter(|_| limited.is_per_model)
    }
}

impl Admission {
    /// Takes whatever single shots are due on the way of a lease, and gives whether there were any.
    /// Requests that say nothing of a limit pass without taking those of cooldowns.
    pub(super) fn take_shots(&mut self, now: Moment, lease: LeaseId, row: &LeaseRow) -> bool {
        let mut has_taken = false;
        if row.is_evidence {
            for limited in &row.gates.limited {
                for model in [None, row.model_of(*limited)] {
                    let is_due = match model {
                        None => self.subjects.cooldown(limited.subject),
                        Some(model) => self.subjects.model_cooldown(limited.subject, model),
                    } != Cooldown::default();
                    if is_due {
                        has_taken = true;
                        self.subjects.with_cooldown(limited.subject, model, |c| {
                            c.take_shot(now, lease.shot())
                        });
                    }
                }
            }
        }
        if self.subjects.breaker(row.breaker) == Breaker::Due {
            has_taken = true;
            self.subjects
                .with_breaker(row.breaker, |b| b.take_shot(now, lease.shot()));
        }
        has_taken
    }

    /// A lease ends: the shots that it still has go to the next. Gives whether it had any.
    pub(super) fn pass_shots(
        &mut self,
        lease: LeaseId,
        row: &LeaseRow,
        effects: &mut Effects,
    ) -> bool {
        let has_passed = self.pass_cooldown_shots(lease, row, effects);
        let rests = !matches!(self.subjects.breaker(row.breaker), Breaker::Passing { .. });
        let breaker = rests.then(|| {
            self.subjects
                .with_breaker(row.breaker, |b| b.pass_shot(lease.shot()))
        });
        has_passed | breaker.flatten().unwrap_or(false)
    }

    fn pass_cooldown_shots(
        &mut self,
        lease: LeaseId,
        row: &LeaseRow,
        effects: &mut Effects,
    ) -> bool {
        let mut has_passed = false;
        for limited in row.gates.limited.iter().filter(|_| row.is_evidence) {
            for model in [None, row.model_of(*limited)] {
                if self.is_open(limited.subject, model) {
                    continue;
                }
                let passed = self
                    .subjects
                    .with_cooldown(limited.subject, model, |c| c.pass_shot(lease.shot()));
                if passed == Some(true) {
                    has_passed = true;
                    let outcome = Probe::Passed;
                    effects.notes.push(Note::Probed { outcome });
                }
            }
        }
        has_passed
    }

    /// Whether nothing that a lease counts on cools or rests, nor did so lately.
    fn is_well(&self, row: &LeaseRow) -> bool {
        let is_open = |limited: &Limited| {
            let of_model = row.model_of(*limited);
            self.is_open(limited.subject, None)
                && of_model.is_none_or(|model| self.is_open(limited.subject, Some(model)))
        };
        self.subjects.breaker(row.breaker) == Breaker::default()
            && row.gates.limited.iter().all(is_open)
    }

    pub(super) fn is_open(&self, subject: u32, model: Option<&Arc<str>>) -> bool {
        let cooldown = match model {
            None => self.subjects.cooldown(subject),
            Some(model) => self.subjects.model_cooldown(subject, model),
        };
        cooldown == Cooldown::default()
    }

    /// An answer came, or failed to. A lease that is not held any more says nothing.
    pub fn observe(
        &mut self,
        now: Moment,
        lease: LeaseId,
        evidence: Evidence,
        effects: &mut Effects,
    ) {
        // The ordinary answer changes nothing, and costs a look.
        let is_good = matches!(evidence, Evidence::Success | Evidence::Answered);
        let is_news = |row: &LeaseRow| !(is_good && self.is_well(row));
        if !self.leases.get(&lease).is_some_and(is_news) {
            return;
        }
        let Some(row) = self.leases.remove(&lease) else {
            return;
        };
        let told = effects.notes.len();
        let mut has_changed = self.judge_endpoint((now, lease), &row, evidence, effects);
        if row.is_evidence {
            has_changed |= match evidence {
                Evidence::Success => self.succeed(lease, &row, effects),
                Evidence::Limited { wait_ms, is_quota } => {
                    let limit = Limit {
                        sent_at: row.granted_at,
                        wait_ms,
                        is_quota,
                        is_trusted: false,
                    };
                    self.limit((now, lease), &row, limit, effects);
                    true
                }
                Evidence::Failed | Evidence::Answered => {
                    self.pass_cooldown_shots(lease, &row, effects)
                }
            };
        }
        let gates = Arc::clone(&row.gates);
        self.leases.insert(lease, row);
        let news = effects.notes.get(told..).unwrap_or_default();
        let has_turned = |note: &Note| matches!(note, Note::Tripped(_) | Note::Closed(_));
        let has_turned = news.iter().any(has_turned);
        self.reassess(&gates, has_turned);
        let scope = Scope::after(&gates, has_turned);
        let takes_away = |note: &Note| matches!(note, Note::Cooled { .. } | Note::Tripped(_));
        let is_less = news.iter().any(takes_away);
        if has_changed || is_less {
            self.follow(&gates);
            self.pass(now, &scope, effects);
        }
        if is_less {
            self.refuse_the_hopeless(&scope, effects);
            self.pass_if_shifted(now, effects);
        }
    }

    /// What the answer says of the endpoint. Gives whether requests may pass now that could not.
    fn judge_endpoint(
        &mut self,
        (now, lease): (Moment, LeaseId),
        row: &LeaseRow,
        evidence: Evidence,
        effects: &mut Effects,
    ) -> bool {
        // The ordinary case costs one look.
        let is_well = self.subjects.breaker(row.breaker) == Breaker::default();
        if is_well && evidence != Evidence::Failed {
            return false;
        }
        let threshold = self.layout.limits.breaker_threshold;
        let shot = lease.shot();
        let turned = self.subjects.with_breaker(row.breaker, |b| match evidence {
            Evidence::Failed => b.fail(now, shot, threshold),
            _ => b.succeed(shot),
        });
        if turned != Some(true) {
            return false;
        }
        let has_tripped = evidence == Evidence::Failed;
        if let Some(endpoint) = self.endpoint_of(row.breaker) {
            effects.notes.push(if has_tripped {
                Note::Tripped(endpoint)
            } else {
                Note::Closed(endpoint)
            });
        }
        !has_tripped
    }

    fn endpoint_of(&self, breaker: u32) -> Option<EndpointId> {
        let endpoints = self.layout.pool.endpoints().iter().enumerate();
        let mut named = endpoints.filter(|(n, _)| self.layout.breaker_at(*n) == breaker);
        named.next().map(|(_, e)| e.id)
    }

    fn succeed(&mut self, lease: LeaseId, row: &LeaseRow, effects: &mut Effects) -> bool {
        let mut has_opened = false;
        for limited in &row.gates.limited {
            for model in [None, row.model_of(*limited)] {
                if self.is_open(limited.subject, model) {
                    continue;
                }
                let change =
                    |c: &mut Cooldown| (c.pass_shot(lease.shot()), c.succeed(row.granted_at));
                let changed = self.subjects.with_cooldown(limited.subject, model, change);
                let Some((was_shot, true)) = changed else {
                    continue;
                };
                has_opened = true;
                if was_shot {
                    let outcome = Probe::Success;
                    effects.notes.push(Note::Probed { outcome });
                }
                self.note_opened(limited.subject, model.cloned(), effects);
            }
        }
        has_opened
    }

    fn limit(
        &mut self,
        (now, lease): (Moment, LeaseId),
        row: &LeaseRow,
        limit: Limit,
        effects: &mut Effects,
    ) {
        for limited in &row.gates.limited {
            // A shot of the whole subject that meets the limit of one model has said nothing of
            // the subject.
            let model = row.model_of(*limited);
            if model.is_some() {
                self.subjects
                    .with_cooldown(limited.subject, None, |c| c.pass_shot(lease.shot()));
            }
            let change = |c: &mut Cooldown| {
                let was_shot = c.pass_shot(lease.shot());
                c.limit(
                    now,
                    Limit {
                        is_trusted: limited.is_trusted,
                        ..limit
                    },
                );
                (was_shot, c.kept(now))
            };
            let changed = self.subjects.with_cooldown(limited.subject, model, change);
            let Some((was_shot, Some(kept))) = changed else {
                continue;
            };
            if was_shot {
                let outcome = Probe::Limited;
                effects.notes.push(Note::Probed { outcome });
            }
            if let Some(subject) = self.layout.subjects.get(limited.subject as usize) {
                effects.notes.push(Note::Cooled {
                    subject: *subject,
                    model: model.cloned(),
                    kept,
                });
            }
        }
    }

    pub(super) fn note_opened(&self, subject: u32, model: Option<Arc<str>>, effects: &mut Effects) {
        if let Some(subject) = self.layout.subjects.get(subject as usize).copied() {
            effects.notes.push(Note::Opened { subject, model });
        }
    }
}
