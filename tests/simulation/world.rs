//! The world: clients that come, wait, are served and leave, upstreams that answer, limit, fail and
//! die, and an operator who changes things; all of it from one seed, in a time that jumps from event
//! to event.
//!
//! Invariants: a run is the same whenever its seed is; time never goes back; a run has an end.
mod operator;
mod requests;
pub(crate) mod setting;

use crate::{
    judge::{Event, Judge},
    machine::{Given, Machine, Outcome},
    plan::{Ask, Plan},
    rng::Rng,
};
use fairlane::domain::admission::WaiterId;
use rustc_hash::FxHashMap;
use std::{cmp::Reverse, collections::BinaryHeap};

/// How often the judge looks at everything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looks {
    /// At every event until so many requests have come.
    pub(crate) closely_until: u64,
    /// And then at one of so many events, and at those that follow it.
    pub(crate) then_every: u64,
}

/// After a look in passing so many events are judged one by one.
const IN_A_ROW: u64 = 20;

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) requests: u64,
    pub(crate) events: u64,
    pub(crate) granted: u64,
    pub(crate) parked: u64,
    pub(crate) refused: u64,
    pub(crate) ran_out: u64,
    pub(crate) left: u64,
    pub(crate) limited: u64,
    pub(crate) failed: u64,
    pub(crate) held_back: u64,
    pub(crate) changes: u64,
    pub(crate) looks: u64,
    pub(crate) simulated_ms: u64,
}

impl Totals {
    /// Both together.
    pub(crate) fn and(mut self, other: &Self) -> Self {
        let sums = [
            (&mut self.requests, other.requests),
            (&mut self.events, other.events),
            (&mut self.granted, other.granted),
            (&mut self.parked, other.parked),
            (&mut self.refused, other.refused),
            (&mut self.ran_out, other.ran_out),
            (&mut self.left, other.left),
            (&mut self.limited, other.limited),
            (&mut self.failed, other.failed),
            (&mut self.held_back, other.held_back),
            (&mut self.changes, other.changes),
            (&mut self.looks, other.looks),
            (&mut self.simulated_ms, other.simulated_ms),
        ];
        for (sum, more) in sums {
            *sum += more;
        }
        self
    }
}

/// Which rule broke, where.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) seed: u64,
    pub(crate) event: u64,
    pub(crate) rule: String,
}

/// Something that is to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// The next requests of a client.
    Arrival(usize),
    /// Upstream's headers to a lease.
    Headers(u64),
    /// Five seconds after a request was written its create slot goes back.
    Written(u64),
    /// The response has ended.
    End(u64),
    /// The client has gone.
    Leaves(u64),
    /// Its patience is over.
    RunsOut(u64),
    /// The operator does something.
    Operator,
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Waiting(WaiterId),
    Holding(Given),
}

struct Request {
    ask: Ask,
    place: Place,
    attempts: u32,
}

/// Who sends requests, and how.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) key: Option<usize>,
    /// So many requests at once,
    pub(crate) volley: u64,
    /// so far apart in the mean.
    pub(crate) every_ms: u64,
    /// How long one takes in the mean.
    pub(crate) length_ms: u64,
}

/// One run.
pub(crate) struct World<M> {
    machine: M,
    judge: Judge,
    plan: Plan,
    clients: Vec<Client>,
    rng: Rng,
    seed: u64,
    now: u64,
    looks: Looks,
    wanted: u64,
    queue: BinaryHeap<Reverse<(u64, u64, Due)>>,
    queued: u64,
    requests: FxHashMap<u64, Request>,
    waiting: FxHashMap<WaiterId, u64>,
    /// Until when an account answers 429 to everything, and an endpoint 503.
    sick_accounts: Vec<u64>,
    sick_endpoints: Vec<u64>,
    totals: Totals,
}

type Step = Result<(), String>;

impl<M: Machine> World<M> {
    pub(crate) fn new(machine: M, seed: u64, looks: Looks) -> Self {
        let (plan, clients) = setting::of(seed);
        Self {
            judge: Judge::new(&plan),
            sick_accounts: vec![0; plan.accounts.len()],
            sick_endpoints: vec![0; plan.endpoints.len()],
            machine,
            plan,
            clients,
            rng: Rng::new(seed ^ 0x5eed),
            seed,
            now: 1_000_000,
            looks,
            wanted: 0,
            queue: BinaryHeap::new(),
            queued: 0,
            requests: FxHashMap::default(),
            waiting: FxHashMap::default(),
            totals: Totals::default(),
        }
    }

    /// So many requests, until all of them are over.
    pub(crate) fn run(mut self, requests: u64) -> Result<Totals, Broken> {
        self.wanted = requests;
        let outcome = self.play();
        self.totals.simulated_ms = self.now - 1_000_000;
        match outcome {
            Ok(()) => Ok(self.totals),
            Err(rule) => Err(Broken {
                seed: self.seed,
                event: self.totals.events,
                rule,
            }),
        }
    }

    fn play(&mut self) -> Step {
        for client in 0..self.clients.len() {
            let first = self.rng.below(self.clients[client].every_ms);
            self.schedule(first, Due::Arrival(client));
        }
        self.schedule(20_000, Due::Operator);
        while let Some(Reverse((at, _, _))) = self.queue.peek() {
            let at = *at;
            let wakeup = self.machine.next_wakeup();
            if let Some(wakeup) = wakeup.filter(|wakeup| *wakeup <= at) {
                self.now = self.now.max(wakeup);
                self.time_out()?;
            } else {
                self.now = self.now.max(at);
                if let Some(Reverse((_, _, due))) = self.queue.pop() {
                    self.happen(due)?;
                }
            }
            // A request brings some twenty events at most: beyond that something runs in circles.
            if self.totals.events > self.wanted * 40 + 100_000 {
                return Err("it has no end".into());
            }
        }
        self.judge.check_end()?;
        match self.machine.left() {
            (0, 0) => self.judge.check_picture(&self.machine.picture()),
            left => Err(format!("the machine keeps {left:?} leases and waiters")),
        }
    }

    fn schedule(&mut self, in_ms: u64, due: Due) {
        self.queued += 1;
        self.queue
            .push(Reverse((self.now + in_ms, self.queued, due)));
    }

    fn happen(&mut self, due: Due) -> Step {
        match due {
            Due::Arrival(client) => self.arrive(client),
            Due::Headers(id) => self.headers(id),
            Due::Written(id) => self.written(id),
            Due::End(id) => self.end(id),
            Due::Leaves(id) => self.leave(id),
            Due::RunsOut(id) => self.run_out(id),
            Due::Operator => self.operate(),
        }
    }

    /// What the machine did is heard by the judge, and becomes the requests' business.
    fn hear(&mut self, event: &Event, outcome: Outcome) -> Step {
        self.totals.events += 1;
        let n = self.totals.events;
        let looks = self.totals.requests <= self.looks.closely_until
            || n % self.looks.then_every < IN_A_ROW;
        self.judge.look_closely(looks);
        let what = |rule: String| format!("{rule}\nafter {event:?}: {outcome:?}");
        self.judge.hear(self.now, event, &outcome).map_err(what)?;
        if looks {
            self.totals.looks += 1;
            self.judge.check_idle(self.now).map_err(what)?;
            self.judge.check_wakeup(self.machine.next_wakeup())?;
            self.judge.check_picture(&self.machine.picture())?;
        }
        let told = outcome.told.iter();
        let held_back = told.filter(|t| matches!(t, crate::machine::Told::HeldBack { .. }));
        self.totals.held_back += held_back.count() as u64;
        for (waiter, answer) in outcome.settled {
            let Some(id) = self.waiting.remove(&waiter) else {
                continue;
            };
            if let Ok(given) = answer {
                self.begin(id, given);
            } else {
                self.totals.refused += 1;
                self.requests.remove(&id);
            }
        }
        Ok(())
    }

    fn time_out(&mut self) -> Step {
        let outcome = self.machine.handle_timeout(self.now);
        self.hear(&Event::TimedOut, outcome)
    }

    fn arrive(&mut self, client: usize) -> Step {
        let who = self.clients[client].clone();
        for _ in 0..who.volley {
            if self.totals.requests < self.wanted {
                self.totals.requests += 1;
                let ask = self.compose(&who);
                self.ask(ask, 1)?;
            }
        }
        if self.totals.requests < self.wanted {
            let next = 1 + self.rng.length(who.every_ms);
            self.schedule(next, Due::Arrival(client));
        }
        Ok(())
    }
}
