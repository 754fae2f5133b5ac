//! The incident: fourteen accounts of eight slots, one key that wants 150 streams, eight that hold 55
//! between them, five with two at most, and one account lost to 429 midway.
//!
//! Every client is a closed loop: it wants a stream, waits or tries again until it has one, and comes
//! back when that has ended.
use super::figures::{Figures, Sample};
use crate::{
    machine::{Answer, Given, Machine, Outcome, Real},
    plan::{Account, Ask, Caps, Credential, Endpoint, GENERATE, Key, Plan},
    rng::Rng,
};
use fairlane::domain::admission::{Evidence, Part, WaiterId};
use rustc_hash::FxHashMap;
use std::{cmp::Reverse, collections::BinaryHeap};

const ACCOUNTS: usize = 14;
const SLOTS: u32 = 8;
const BURSTY: usize = 150;
const STEADY: [usize; 8] = [7, 7, 7, 7, 7, 7, 7, 6];
const INTERACTIVE: usize = 5;
pub(super) const KEYS: usize = 1 + STEADY.len() + INTERACTIVE;

/// The whole of it; the burst begins after a sixth, the account is sick from a half to two thirds.
pub(super) const DURATION_MS: u64 = 120_000;
const BURST_MS: u64 = DURATION_MS / 6;
const SICK_MS: std::ops::Range<u64> = DURATION_MS / 2..DURATION_MS / 3 * 2;
/// Figures are taken from when the burst has settled.
pub(super) const SETTLED_MS: u64 = BURST_MS + 3_000;

const STREAM_MS: u64 = 3_000;
const SHORT_MS: u64 = 300;
const HEADERS_MS: u64 = 50;
const RETRY_MS: u64 = 1_000;
const PATIENCE_MS: u64 = 30_000;
const SAMPLE_MS: u64 = 100;

/// How slots are given out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arm {
    pub(crate) name: &'static str,
    pub(crate) may_park: bool,
    pub(crate) threshold_pct: u32,
    /// The bursty key's weight; all others have 1.
    pub(crate) weight: u32,
}

/// The class of a key, by its place.
pub(super) const fn class_of(key: usize) -> usize {
    match key {
        0 => 0,
        1..=8 => 1,
        _ => 2,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Wants(usize),
    Again(usize),
    Headers(usize),
    Ended(usize),
    RunsOut(usize, u64),
    Sample,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Nothing,
    Waiting(WaiterId),
    Resting,
    Starting(Given),
    Streaming(Given),
}

#[derive(Clone, Debug)]
struct Worker {
    key: usize,
    doing: Doing,
    /// Since when it has wanted the stream that it has or wants.
    since: u64,
    tries: u64,
}

pub(super) struct Incident {
    machine: Real,
    arm: Arm,
    rng: Rng,
    now: u64,
    workers: Vec<Worker>,
    waiting: FxHashMap<WaiterId, usize>,
    queue: BinaryHeap<Reverse<(u64, u64, Due)>>,
    queued: u64,
    tries: u64,
    figures: Figures,
}

fn plan(arm: Arm) -> Plan {
    let account = Account::plain();
    let credential = |n| Credential {
        accounts: vec![n],
        endpoints: vec![0],
        models: None,
        stream: None,
        create: None,
        job: None,
        is_active: true,
    };
    let key = |n| Key {
        weight: if n == 0 { arm.weight } else { 1 },
        accounts: None,
    };
    Plan {
        accounts: vec![account; ACCOUNTS],
        credentials: (0..ACCOUNTS).map(credential).collect(),
        endpoints: vec![Endpoint {
            models: None,
            is_active: true,
        }],
        keys: (0..KEYS).map(key).collect(),
        caps: Caps {
            stream: SLOTS,
            create: 4,
            job: 2,
            reserve: 1,
            threshold_pct: arm.threshold_pct,
            waiters_per_key: 200,
            may_park: arm.may_park,
            breaker: 5,
        },
    }
}

fn workers() -> Vec<Worker> {
    let steady = STEADY.iter().zip(1..).map(|(n, key)| (key, *n));
    let people = (0..INTERACTIVE).map(|n| (1 + STEADY.len() + n, 2));
    let all = [(0, BURSTY)].into_iter().chain(steady).chain(people);
    let worker = |key| Worker {
        key,
        doing: Doing::Nothing,
        since: 0,
        tries: 0,
    };
    all.flat_map(|(key, n)| vec![worker(key); n]).collect()
}

impl Incident {
    pub(super) fn play(arm: Arm) -> Figures {
        let mut incident = Self {
            machine: Real::new(&plan(arm)),
            arm,
            rng: Rng::new(14 * 8),
            now: 0,
            workers: workers(),
            waiting: FxHashMap::default(),
            queue: BinaryHeap::new(),
            queued: 0,
            tries: 0,
            figures: Figures::default(),
        };
        incident.run();
        incident.figures
    }

    fn schedule(&mut self, in_ms: u64, due: Due) {
        self.queued += 1;
        let at = self.now + in_ms;
        self.queue.push(Reverse((at, self.queued, due)));
    }

    fn run(&mut self) {
        for n in 0..self.workers.len() {
            let first = self.rng.below(1_000);
            let burst = if self.workers[n].key == 0 {
                BURST_MS
            } else {
                0
            };
            self.schedule(burst + first, Due::Wants(n));
        }
        self.schedule(SETTLED_MS, Due::Sample);
        while let Some(Reverse((at, _, due))) = self.queue.pop() {
            while let Some(wakeup) = self.machine.next_wakeup().filter(|w| *w <= at) {
                self.now = self.now.max(wakeup);
                let outcome = self.machine.handle_timeout(self.now);
                self.settle(outcome);
            }
            self.now = at;
            if at >= DURATION_MS {
                return;
            }
            self.happen(due);
        }
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::Wants(n) => {
                self.workers[n].since = self.now;
                self.ask(n, None);
            }
            Due::Again(n) => self.ask(n, None),
            Due::Headers(n) => self.headers(n),
            Due::Ended(n) => self.ended(n),
            Due::RunsOut(n, tries) => self.run_out(n, tries),
            Due::Sample => {
                self.sample();
                self.schedule(SAMPLE_MS, Due::Sample);
            }
        }
    }

    fn ask(&mut self, n: usize, left: Option<usize>) {
        self.tries += 1;
        let ask = Ask {
            holder: self.tries,
            key: Some(self.workers[n].key),
            model: 0,
            slots: GENERATE,
            is_reattach: false,
            owner: None,
            preferred: None,
            tried_accounts: left.into_iter().collect(),
            tried_credentials: Vec::new(),
            until: self.now + PATIENCE_MS,
            is_moving: left.is_some(),
        };
        self.workers[n].tries = self.tries;
        let (answer, outcome) = self.machine.request(self.now, &ask);
        match answer {
            Answer::Granted(given) => self.begin(n, given),
            Answer::Parked(waiter) => {
                self.workers[n].doing = Doing::Waiting(waiter);
                self.waiting.insert(waiter, n);
                self.schedule(PATIENCE_MS, Due::RunsOut(n, self.tries));
            }
            Answer::Refused(_) => self.refused(n),
        }
        self.settle(outcome);
    }

    fn begin(&mut self, n: usize, given: Given) {
        self.workers[n].doing = Doing::Starting(given);
        self.schedule(HEADERS_MS, Due::Headers(n));
    }

    fn refused(&mut self, n: usize) {
        self.workers[n].doing = Doing::Resting;
        if self.workers[n].since >= SETTLED_MS {
            self.figures.refused[class_of(self.workers[n].key)] += 1;
        }
        self.schedule(RETRY_MS, Due::Again(n));
    }

    fn settle(&mut self, outcome: Outcome) {
        for (waiter, answer) in outcome.settled {
            let Some(n) = self.waiting.remove(&waiter) else {
                continue;
            };
            match answer {
                Ok(given) => {
                    self.check_first(n);
                    self.begin(n, given);
                }
                Err(_) => self.refused(n),
            }
        }
    }

    /// Nobody who has two streams is let in while one waits who has fewer.
    fn check_first(&mut self, n: usize) {
        let holds = |key| self.held(key) >= 2;
        let is_rich = holds(self.workers[n].key);
        let mut others = self.waiting.values().map(|n| self.workers[*n].key);
        if is_rich && self.arm.weight == 1 && others.any(|key| !holds(key)) {
            self.figures.overtaken += 1;
        }
    }

    fn held(&self, key: usize) -> u64 {
        let holds = |w: &&Worker| matches!(w.doing, Doing::Starting(_) | Doing::Streaming(_));
        let all = self.workers.iter().filter(|w| w.key == key);
        all.filter(holds).count() as u64
    }

    fn headers(&mut self, n: usize) {
        let Doing::Starting(given) = self.workers[n].doing else {
            return;
        };
        if given.credential == 0 && SICK_MS.contains(&self.now) {
            let evidence = Evidence::Limited {
                wait_ms: Some(SICK_MS.end - self.now),
                is_quota: false,
            };
            self.workers[n].doing = Doing::Resting;
            let outcome = self.machine.observe(self.now, given.lease, evidence);
            self.settle(outcome);
            let outcome = self.machine.release(self.now, given.lease, Part::All);
            self.settle(outcome);
            return self.ask(n, Some(0));
        }
        let worker = &mut self.workers[n];
        worker.doing = Doing::Streaming(given);
        if worker.since >= SETTLED_MS {
            let waited = self.now - HEADERS_MS - worker.since;
            self.figures.waits[class_of(worker.key)].push(waited);
        }
        let mean = if class_of(worker.key) == 2 {
            SHORT_MS
        } else {
            STREAM_MS
        };
        let outcome = self
            .machine
            .observe(self.now, given.lease, Evidence::Success);
        self.settle(outcome);
        let outcome = self.machine.release(self.now, given.lease, Part::Create);
        self.settle(outcome);
        let length = 1 + self.rng.length(mean);
        self.schedule(length, Due::Ended(n));
    }

    fn ended(&mut self, n: usize) {
        let Doing::Streaming(given) = self.workers[n].doing else {
            return;
        };
        self.workers[n].doing = Doing::Nothing;
        let outcome = self.machine.release(self.now, given.lease, Part::All);
        self.settle(outcome);
        let pause = match class_of(self.workers[n].key) {
            2 => self.rng.within(250, 750),
            _ => 1,
        };
        self.schedule(pause, Due::Wants(n));
    }

    fn run_out(&mut self, n: usize, tries: u64) {
        let Doing::Waiting(waiter) = self.workers[n].doing else {
            return;
        };
        if self.workers[n].tries == tries {
            self.waiting.remove(&waiter);
            let (_, outcome) = self.machine.withdraw(self.now, waiter);
            self.refused(n);
            self.settle(outcome);
        }
    }

    fn sample(&mut self) {
        let is_sick = SICK_MS.contains(&self.now);
        let mut sample = Sample::default();
        let mut used = [0u64; ACCOUNTS];
        for worker in &self.workers {
            match worker.doing {
                Doing::Nothing => continue,
                Doing::Waiting(_) | Doing::Resting => {
                    sample.is_wanted |= self.now - worker.since > 100;
                }
                Doing::Starting(given) | Doing::Streaming(given) => {
                    sample.held[worker.key] += 1;
                    used[given.credential] += 1;
                }
            }
            sample.wanted[worker.key] += 1;
        }
        let ordinary = u64::from(SLOTS) - 1;
        for (n, used) in used.into_iter().enumerate() {
            // What runs on the sick account runs on, but nothing new can go there.
            let room = if is_sick && n == 0 { used } else { ordinary };
            sample.capacity += room;
            sample.free += room - used.min(room);
        }
        sample.weights = [1; KEYS];
        sample.weights[0] = u64::from(self.arm.weight);
        self.figures.add(&sample);
    }
}
