//! What the world plays against: the product's admission, or something broken on purpose.
use crate::plan::{Ask, Plan, Slots, place_of};
use fairlane::domain::{
    admission::{
        Admission, Decision, Effects, Evidence, Grant, LeaseId, Note, Numbers, Part, Settled,
        Subject, WaiterId,
    },
    breaker::Breaker,
    cooldown::Stage,
    ids::{AccountId, CredentialId},
    moment::Moment,
    pool::{ClientKey, Pool},
    reason::Reason,
};
use std::sync::Arc;

/// Whatever slots are counted on and whatever cools, by its place in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Thing {
    Account(usize),
    Credential(usize),
}

/// A slot given: the lease, the credential and the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) lease: LeaseId,
    pub(crate) credential: usize,
    pub(crate) endpoint: usize,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Granted(Given),
    Parked(WaiterId),
    Refused(Reason),
}

/// Something that was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Cooled {
        thing: Thing,
        model: Option<usize>,
        ends_in: u64,
    },
    Opened {
        thing: Thing,
        model: Option<usize>,
    },
    HeldBack {
        holder: u64,
        key: usize,
    },
    Tripped(usize),
    Closed(usize),
}

/// What an event brought about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) settled: Vec<(WaiterId, Result<Given, Reason>)>,
    pub(crate) told: Vec<Told>,
}

/// How one thing stands: streams, creates, and the stages of its cooldowns that are not open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) thing: Thing,
    pub(crate) streams: u32,
    pub(crate) creates: u32,
    pub(crate) stages: Vec<(Option<usize>, Stage)>,
}

/// What the machine says it holds.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) held: Vec<(LeaseId, Option<usize>, Slots)>,
    pub(crate) waiters: usize,
    pub(crate) standings: Vec<Standing>,
    pub(crate) breakers: Vec<Breaker>,
}

/// An admission, in the plan's words.
pub(crate) trait Machine {
    fn request(&mut self, now: u64, ask: &Ask) -> (Answer, Outcome);
    fn observe(&mut self, now: u64, lease: LeaseId, evidence: Evidence) -> Outcome;
    fn release(&mut self, now: u64, lease: LeaseId, part: Part) -> Outcome;
    fn withdraw(&mut self, now: u64, waiter: WaiterId) -> (bool, Outcome);
    fn clear_cooldown(&mut self, now: u64, thing: Thing) -> Outcome;
    fn reconfigure(&mut self, now: u64, plan: &Plan) -> Outcome;
    fn handle_timeout(&mut self, now: u64) -> Outcome;
    fn next_wakeup(&self) -> Option<u64>;
    fn picture(&self) -> Picture;
    fn left(&self) -> (usize, usize);
}

/// The product's.
pub(crate) struct Real {
    numbers: Numbers,
    admission: Admission,
    keys: Vec<Arc<ClientKey>>,
}

impl Real {
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut numbers = Numbers::default();
        let pool = Arc::new(Pool::new(plan.contents()));
        let keys = pool.keys().to_vec();
        let admission = Admission::new(numbers.layout(pool, plan.limits()));
        Self {
            numbers,
            admission,
            keys,
        }
    }
}

fn model_place(name: &str) -> usize {
    name.trim_start_matches("model-").parse().unwrap()
}

fn thing(subject: Subject) -> Thing {
    match subject {
        Subject::Account(id) => Thing::Account(place_of(id.as_u128())),
        Subject::Credential(id) => Thing::Credential(place_of(id.as_u128())),
    }
}

fn given(grant: &Grant) -> Given {
    Given {
        lease: grant.lease,
        credential: place_of(grant.edge.credential().id.as_u128()),
        endpoint: place_of(grant.edge.endpoint().id.as_u128()),
    }
}

fn told(note: Note) -> Option<Told> {
    let place = |model: Option<Arc<str>>| model.map(|m| model_place(&m));
    match note {
        Note::Cooled {
            subject,
            model,
            kept,
        } => Some(Told::Cooled {
            thing: thing(subject),
            model: place(model),
            ends_in: kept.ends_in_ms,
        }),
        Note::Opened { subject, model } => Some(Told::Opened {
            thing: thing(subject),
            model: place(model),
        }),
        Note::HeldBack { request, key, .. } => Some(Told::HeldBack {
            holder: request.as_u128() as u64,
            key: place_of(key.as_u128()),
        }),
        Note::Tripped(id) => Some(Told::Tripped(place_of(id.as_u128()))),
        Note::Closed(id) => Some(Told::Closed(place_of(id.as_u128()))),
        Note::Probed { .. } | Note::Healed(_) => None,
    }
}

fn outcome(effects: Effects) -> Outcome {
    let answer = |s: Settled| {
        let answer = s.answer.map(|g| given(&g)).map_err(|r| r.reason);
        (s.waiter, answer)
    };
    Outcome {
        settled: effects.settled.into_iter().map(answer).collect(),
        told: effects.notes.into_iter().filter_map(told).collect(),
    }
}

const fn at(now: u64) -> Moment {
    Moment::from_millis(now)
}

impl Machine for Real {
    fn request(&mut self, now: u64, ask: &Ask) -> (Answer, Outcome) {
        let mut effects = Effects::default();
        let demand = ask.demand(&self.keys);
        let decision = self.admission.request(at(now), &demand, &mut effects);
        let answer = match decision {
            Decision::Granted(grant) => Answer::Granted(given(&grant)),
            Decision::Parked(waiter) => Answer::Parked(waiter),
            Decision::Refused(refusal) => Answer::Refused(refusal.reason),
        };
        (answer, outcome(effects))
    }

    fn observe(&mut self, now: u64, lease: LeaseId, evidence: Evidence) -> Outcome {
        let mut effects = Effects::default();
        self.admission
            .observe(at(now), lease, evidence, &mut effects);
        outcome(effects)
    }

    fn release(&mut self, now: u64, lease: LeaseId, part: Part) -> Outcome {
        let mut effects = Effects::default();
        self.admission.release(at(now), lease, part, &mut effects);
        outcome(effects)
    }

    fn withdraw(&mut self, now: u64, waiter: WaiterId) -> (bool, Outcome) {
        let mut effects = Effects::default();
        let was_there = self.admission.withdraw(at(now), waiter, &mut effects);
        (was_there, outcome(effects))
    }

    fn clear_cooldown(&mut self, now: u64, thing: Thing) -> Outcome {
        let mut effects = Effects::default();
        let subject = match thing {
            Thing::Account(n) => Subject::Account(AccountId::from_u128(n as u128)),
            Thing::Credential(n) => Subject::Credential(CredentialId::from_u128(n as u128)),
        };
        self.admission
            .clear_cooldown(at(now), subject, &mut effects);
        outcome(effects)
    }

    fn reconfigure(&mut self, now: u64, plan: &Plan) -> Outcome {
        let mut effects = Effects::default();
        let pool = Arc::new(Pool::new(plan.contents()));
        self.keys = pool.keys().to_vec();
        let layout = self.numbers.layout(pool, plan.limits());
        self.admission.reconfigure(at(now), layout, &mut effects);
        outcome(effects)
    }

    fn handle_timeout(&mut self, now: u64) -> Outcome {
        let mut effects = Effects::default();
        self.admission.handle_timeout(at(now), &mut effects);
        outcome(effects)
    }

    fn next_wakeup(&self) -> Option<u64> {
        self.admission.next_wakeup().map(Moment::as_millis)
    }

    fn picture(&self) -> Picture {
        let held = self.admission.held().into_iter().map(|row| {
            let key = row.key.map(|id| place_of(id.as_u128()));
            let slots = [row.held.stream, row.held.create, row.held.job];
            (row.lease, key, slots)
        });
        let standings = self.admission.standings().into_iter().map(|(subject, s)| {
            let models = s.models.iter();
            let models = models.map(|(name, c)| (Some(model_place(name)), c.stage()));
            let stages = [(None, s.cooldown.stage())].into_iter().chain(models);
            Standing {
                thing: thing(subject),
                streams: s.streams,
                creates: s.creates,
                stages: stages.filter(|(_, stage)| *stage != Stage::Open).collect(),
            }
        });
        let breakers = self.admission.breakers().into_iter();
        Picture {
            held: held.collect(),
            waiters: self.admission.waiters(),
            standings: standings.collect(),
            breakers: breakers.map(|(_, breaker)| breaker).collect(),
        }
    }

    fn left(&self) -> (usize, usize) {
        (self.admission.leases(), self.admission.waiters())
    }
}
