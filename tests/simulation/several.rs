//! Requests that need a slot on two accounts at once, under a steady load of those that need one: the
//! two are never free at the same moment, since others take each as it comes.
//!
//! Invariant: every event is judged, and somebody always waits for the next slot of either account.
use crate::{
    judge::{Event, Judge},
    machine::{Answer, Given, Machine, Outcome, Real},
    plan::{Account, Ask, Caps, Credential, Endpoint, Key, Plan, STREAM},
    rng::Rng,
};
use fairlane::domain::admission::{Part, WaiterId};
use rustc_hash::FxHashMap;
use std::{cmp::Reverse, collections::BinaryHeap};

const DURATION_MS: u64 = 600_000;
/// The longest stream: within it a slot of each account comes free.
const LONGEST_MS: u64 = 1_000;
const SLOTS: u32 = 2;
/// Two more than there are slots: whatever one of them gives back another takes.
const SINGLES: usize = 6;
/// The models that are served on one account, and on both at once.
const ONE: usize = 0;
const BOTH: usize = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Asks(usize),
    Ends(usize),
    /// The patience of the request of that number is over.
    RunsOut(usize, u64),
}

#[derive(Clone, Copy, Debug, Default)]
struct Client {
    needs_both: bool,
    patience_ms: u64,
    asked: u64,
    asked_at: u64,
    waits: Option<WaiterId>,
    holds: Option<Given>,
}

/// What became of those who need both.
#[derive(Debug, Default)]
struct Doubles {
    /// How long those waited that were served.
    waits: Vec<u64>,
    ran_out: u64,
}

struct Crowd {
    machine: Real,
    judge: Judge,
    rng: Rng,
    now: u64,
    clients: Vec<Client>,
    waiting: FxHashMap<WaiterId, usize>,
    queue: BinaryHeap<Reverse<(u64, u64, Due)>>,
    queued: u64,
    asked: u64,
    doubles: Doubles,
}

fn plan(keys: usize) -> Plan {
    let account = Account::plain();
    let credential = |accounts: &[usize], model| Credential {
        accounts: accounts.to_vec(),
        endpoints: vec![0],
        models: Some(vec![model]),
        stream: None,
        create: None,
        job: None,
        is_active: true,
    };
    let key = Key {
        weight: 1,
        accounts: None,
    };
    Plan {
        accounts: vec![account; 2],
        credentials: vec![
            credential(&[0], ONE),
            credential(&[1], ONE),
            credential(&[0, 1], BOTH),
        ],
        endpoints: vec![Endpoint {
            models: None,
            is_active: true,
        }],
        keys: vec![key; keys],
        caps: Caps {
            stream: SLOTS,
            create: 0,
            job: 0,
            reserve: 0,
            threshold_pct: 0,
            waiters_per_key: 20,
            may_park: true,
            breaker: 5,
        },
    }
}

impl Crowd {
    /// What becomes of those who need both, so many at a time and each as patient as that.
    fn play(doubles: usize, patience_ms: u64) -> Doubles {
        let single = Client {
            patience_ms: DURATION_MS,
            ..Client::default()
        };
        let double = Client {
            needs_both: true,
            patience_ms,
            ..Client::default()
        };
        let mut clients = vec![single; SINGLES];
        clients.extend(vec![double; doubles]);
        let plan = plan(clients.len());
        let mut crowd = Self {
            machine: Real::new(&plan),
            judge: Judge::new(&plan),
            rng: Rng::new(2),
            now: 0,
            clients,
            waiting: FxHashMap::default(),
            queue: BinaryHeap::new(),
            queued: 0,
            asked: 0,
            doubles: Doubles::default(),
        };
        crowd.run();
        crowd.doubles
    }

    fn schedule(&mut self, in_ms: u64, due: Due) {
        self.queued += 1;
        self.queue
            .push(Reverse((self.now + in_ms, self.queued, due)));
    }

    fn run(&mut self) {
        for n in 0..self.clients.len() {
            self.schedule(n as u64, Due::Asks(n));
        }
        while let Some(Reverse((at, _, due))) = self.queue.pop() {
            while let Some(wakeup) = self.machine.next_wakeup().filter(|w| *w <= at) {
                self.now = self.now.max(wakeup);
                let outcome = self.machine.handle_timeout(self.now);
                self.hear(&Event::TimedOut, outcome);
            }
            self.now = at;
            if at >= DURATION_MS {
                return;
            }
            match due {
                Due::Asks(n) => self.ask(n),
                Due::Ends(n) => self.end(n),
                Due::RunsOut(n, asked) => self.run_out(n, asked),
            }
        }
    }

    fn hear(&mut self, event: &Event, outcome: Outcome) {
        self.judge.hear(self.now, event, &outcome).unwrap();
        self.judge.check_idle(self.now).unwrap();
        let wakeup = self.machine.next_wakeup();
        self.judge.check_wakeup(wakeup).unwrap();
        for (waiter, answer) in outcome.settled {
            let n = self.waiting.remove(&waiter).unwrap();
            self.begin(n, answer.unwrap());
        }
    }

    fn ask(&mut self, n: usize) {
        self.asked += 1;
        let client = &mut self.clients[n];
        (client.asked, client.asked_at) = (self.asked, self.now);
        let (patience, model) = (client.patience_ms, usize::from(client.needs_both));
        let ask = Ask {
            holder: self.asked,
            key: Some(n),
            model,
            slots: STREAM,
            is_reattach: false,
            owner: None,
            preferred: None,
            tried_accounts: Vec::new(),
            tried_credentials: Vec::new(),
            until: self.now + patience,
            is_moving: false,
        };
        let (answer, outcome) = self.machine.request(self.now, &ask);
        match answer {
            Answer::Granted(given) => self.begin(n, given),
            Answer::Parked(waiter) => {
                self.clients[n].waits = Some(waiter);
                self.waiting.insert(waiter, n);
                self.schedule(patience, Due::RunsOut(n, self.asked));
            }
            Answer::Refused(reason) => panic!("{} to {ask:?}", reason.code()),
        }
        self.hear(&Event::Asked(ask, answer), outcome);
    }

    fn begin(&mut self, n: usize, given: Given) {
        let client = &mut self.clients[n];
        (client.waits, client.holds) = (None, Some(given));
        if client.needs_both {
            self.doubles.waits.push(self.now - client.asked_at);
        }
        let length = self.rng.within(1, LONGEST_MS);
        self.schedule(length, Due::Ends(n));
    }

    fn end(&mut self, n: usize) {
        let lease = self.clients[n].holds.take().unwrap().lease;
        let outcome = self.machine.release(self.now, lease, Part::All);
        self.hear(&Event::Released(lease, Part::All), outcome);
        self.ask(n);
    }

    fn run_out(&mut self, n: usize, asked: u64) {
        let client = &mut self.clients[n];
        let Some(waiter) = client.waits.filter(|_| client.asked == asked) else {
            return;
        };
        client.waits = None;
        self.waiting.remove(&waiter);
        self.doubles.ran_out += u64::from(client.needs_both);
        let (was_there, outcome) = self.machine.withdraw(self.now, waiter);
        self.hear(&Event::Withdrew(waiter, was_there), outcome);
        self.ask(n);
    }
}

const PATIENCE_MS: u64 = 20_000;

#[test]
fn who_needs_two_accounts_at_once_is_served_soon_after_half_its_patience() {
    let doubles = Crowd::play(1, PATIENCE_MS);
    assert_eq!(doubles.ran_out, 0);
    assert!(doubles.waits.len() > 40, "{doubles:?}");
    let half = PATIENCE_MS / 2;
    let is_in_time = |wait: &u64| (half..=half + LONGEST_MS).contains(wait);
    assert!(doubles.waits.iter().all(is_in_time), "{doubles:?}");
}

#[test]
fn several_who_need_two_accounts_at_once_are_all_served() {
    let doubles = Crowd::play(3, PATIENCE_MS);
    assert_eq!(doubles.ran_out, 0);
    assert!(doubles.waits.len() > 120, "{doubles:?}");
}

#[test]
fn before_half_its_patience_the_load_leaves_nothing_for_who_needs_two_accounts() {
    let doubles = Crowd::play(1, DURATION_MS * 2);
    assert_eq!((doubles.waits.len(), doubles.ran_out), (0, 0));
}
