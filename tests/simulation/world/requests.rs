//! The life of a request: it asks, waits or holds its slot, is answered in one way or another, and
//! ends, leaves or runs out of patience.
//!
//! Invariant: whatever a request holds or waits for, it gives up exactly once.
use super::{Client, Due, Place, Request, Step, World, setting};
use crate::{
    judge::Event,
    machine::{Answer, Given, Machine, Thing},
    plan::{Ask, CREATE, GENERATE, JOB, STREAM},
};
use fairlane::domain::admission::{Evidence, LeaseId, Part, WaiterId};

impl<M: Machine> World<M> {
    pub(super) fn compose(&mut self, who: &Client) -> Ask {
        let rng = &mut self.rng;
        let slots = match rng.below(100) {
            0..70 => GENERATE,
            70..82 => CREATE,
            82..90 => STREAM,
            _ => JOB,
        };
        let credentials = self.plan.credentials.len();
        let is_reattach = rng.chance(40);
        let is_owned = is_reattach || rng.chance(80);
        let slots = if is_reattach { STREAM } else { slots };
        Ask {
            holder: self.totals.requests,
            key: who.key,
            model: rng.place(setting::MODELS),
            slots,
            is_reattach,
            owner: is_owned.then(|| rng.place(credentials)),
            preferred: (!is_owned && rng.chance(100)).then(|| rng.place(credentials)),
            tried_accounts: Vec::new(),
            tried_credentials: Vec::new(),
            until: self.now + rng.of(&[500, 5_000, 15_000, 30_000, 30_000, 60_000]),
            is_moving: false,
        }
    }

    pub(super) fn ask(&mut self, ask: Ask, attempts: u32) -> Step {
        let (answer, outcome) = self.machine.request(self.now, &ask);
        let id = ask.holder;
        match answer {
            Answer::Granted(given) => {
                let place = Place::Holding(given);
                let request = Request {
                    ask: ask.clone(),
                    place,
                    attempts,
                };
                self.requests.insert(id, request);
                self.begin(id, given);
            }
            Answer::Parked(waiter) => {
                self.totals.parked += 1;
                let place = Place::Waiting(waiter);
                let request = Request {
                    ask: ask.clone(),
                    place,
                    attempts,
                };
                self.requests.insert(id, request);
                self.waiting.insert(waiter, id);
                self.schedule(ask.until.saturating_sub(self.now), Due::RunsOut(id));
                if self.rng.chance(150) {
                    let patience = self.rng.length(8_000);
                    self.schedule(patience, Due::Leaves(id));
                }
            }
            Answer::Refused(_) => self.totals.refused += 1,
        }
        self.hear(&Event::Asked(ask, answer), outcome)
    }

    /// A request has its slot.
    pub(super) fn begin(&mut self, id: u64, given: Given) {
        self.totals.granted += 1;
        let Some(request) = self.requests.get_mut(&id) else {
            return;
        };
        request.place = Place::Holding(given);
        let creates = request.ask.slots[1];
        // Some answers take so long that a probe's verdict runs out.
        let headers = if self.rng.chance(20) {
            20_000
        } else {
            self.rng.length(400)
        };
        self.schedule(headers, Due::Headers(id));
        if creates && headers > 5_000 {
            self.schedule(5_000, Due::Written(id));
        }
        if self.rng.chance(60) {
            let stays = self.rng.length(2_000);
            self.schedule(stays, Due::Leaves(id));
        }
    }

    fn lease_of(&self, id: u64) -> Option<Given> {
        match self.requests.get(&id)?.place {
            Place::Holding(given) => Some(given),
            Place::Waiting(_) => None,
        }
    }

    fn observe(&mut self, lease: LeaseId, evidence: Evidence) -> Step {
        let outcome = self.machine.observe(self.now, lease, evidence);
        self.hear(&Event::Observed(lease, evidence), outcome)
    }

    fn release(&mut self, lease: LeaseId, part: Part) -> Step {
        let outcome = self.machine.release(self.now, lease, part);
        self.hear(&Event::Released(lease, part), outcome)
    }

    pub(super) fn headers(&mut self, id: u64) -> Step {
        let Some(given) = self.lease_of(id) else {
            return Ok(());
        };
        let evidence = self.evidence(given);
        self.observe(given.lease, evidence)?;
        match evidence {
            Evidence::Success => (),
            Evidence::Limited { .. } => {
                self.totals.limited += 1;
                return self.move_on(id, given, false);
            }
            Evidence::Failed => {
                self.totals.failed += 1;
                return self.move_on(id, given, false);
            }
            // A refused credential: its neighbours may do.
            Evidence::Answered => return self.move_on(id, given, true),
        }
        let (creates, keeps, key) = match self.requests.get(&id) {
            Some(row) => (
                row.ask.slots[1],
                row.ask.slots[0] || row.ask.slots[2],
                row.ask.key,
            ),
            None => return Ok(()),
        };
        if creates {
            self.release(given.lease, Part::Create)?;
        }
        let client = self.clients.iter().find(|c| c.key == key);
        let mean = client.map_or(1_000, |c| c.length_ms);
        let length = if keeps { self.rng.length(mean) } else { 1 };
        self.schedule(length, Due::End(id));
        Ok(())
    }

    /// How upstream answers.
    fn evidence(&mut self, given: Given) -> Evidence {
        let mut accounts = self.plan.credentials[given.credential].accounts.iter();
        let is_sick = accounts.any(|n| self.sick_accounts[*n] > self.now);
        let rng = &mut self.rng;
        if is_sick || rng.chance(8) {
            let hint = rng.of(&[
                None,
                None,
                Some(300),
                Some(2_000),
                Some(7_000),
                Some(40_000),
            ]);
            return Evidence::Limited {
                wait_ms: hint,
                is_quota: hint.is_some_and(|ms| ms > 20_000) && rng.chance(300),
            };
        }
        if self.sick_endpoints[given.endpoint] > self.now || rng.chance(5) {
            return Evidence::Failed;
        }
        if rng.chance(5) {
            return Evidence::Answered;
        }
        Evidence::Success
    }

    /// The slot goes back, and the request asks for another.
    fn move_on(&mut self, id: u64, given: Given, is_credential: bool) -> Step {
        let Some(request) = self.requests.remove(&id) else {
            return Ok(());
        };
        self.release(given.lease, Part::All)?;
        let mut ask = request.ask;
        if ask.owner.is_some() || request.attempts >= 3 {
            return Ok(());
        }
        if is_credential {
            ask.tried_credentials.push(given.credential);
        } else {
            let accounts = &self.plan.credentials[given.credential].accounts;
            ask.tried_accounts.extend(accounts);
        }
        ask.is_moving = true;
        ask.preferred = None;
        self.ask(ask, request.attempts + 1)
    }

    pub(super) fn written(&mut self, id: u64) -> Step {
        match self.lease_of(id) {
            Some(given) => self.release(given.lease, Part::Create),
            None => Ok(()),
        }
    }

    /// Well or broken off by upstream: the slots go back.
    pub(super) fn end(&mut self, id: u64) -> Step {
        let Some(given) = self.lease_of(id) else {
            return Ok(());
        };
        self.requests.remove(&id);
        if self.rng.chance(30) {
            self.observe(given.lease, Evidence::Failed)?;
        }
        self.release(given.lease, Part::All)
    }

    pub(super) fn leave(&mut self, id: u64) -> Step {
        let Some(request) = self.requests.remove(&id) else {
            return Ok(());
        };
        self.totals.left += 1;
        match request.place {
            Place::Holding(given) => self.release(given.lease, Part::All),
            Place::Waiting(waiter) => self.withdraw(waiter),
        }
    }

    pub(super) fn run_out(&mut self, id: u64) -> Step {
        let place = self.requests.get(&id).map(|r| (r.place, r.ask.until));
        let Some((Place::Waiting(waiter), until)) = place else {
            return Ok(());
        };
        if until > self.now {
            return Ok(());
        }
        self.requests.remove(&id);
        self.totals.ran_out += 1;
        self.withdraw(waiter)
    }

    fn withdraw(&mut self, waiter: WaiterId) -> Step {
        self.waiting.remove(&waiter);
        let (was_there, outcome) = self.machine.withdraw(self.now, waiter);
        self.hear(&Event::Withdrew(waiter, was_there), outcome)
    }

    pub(super) fn clear(&mut self, thing: Thing) -> Step {
        let outcome = self.machine.clear_cooldown(self.now, thing);
        self.hear(&Event::Cleared(thing), outcome)
    }
}
