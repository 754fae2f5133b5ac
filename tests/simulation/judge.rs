//! The judge: hears of every event and every answer, keeps its own [`Books`] of them, and says what
//! broke which rule. Shares no code with what it judges.
//!
//! Invariant: of two things that the product says at once, what was told comes before what was granted;
//! grants are judged one by one in their order, each by what held just before it.
pub(crate) mod books;
mod caps;
mod limits;

use self::books::{Books, Lease, Usage, Waiter, by_rank};
use crate::{
    machine::{Answer, Given, Outcome, Picture, Thing, Told},
    plan::{Ask, Plan},
};
use fairlane::domain::{
    admission::{Evidence, LeaseId, Part, WaiterId},
    reason::Reason,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Which rule was broken, and how.
pub(crate) type Verdict = Result<(), String>;

/// Something that came to pass.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Asked(Ask, Answer),
    Observed(LeaseId, Evidence),
    Released(LeaseId, Part),
    Withdrew(WaiterId, bool),
    Cleared(Thing),
    Reconfigured(Box<Plan>),
    TimedOut,
}

pub(crate) struct Judge {
    books: Books,
    told_back: FxHashSet<u64>,
    /// What was granted since the last look at everything; a look at each costs too much where
    /// events are many.
    looks_closely: bool,
}

fn must(holds: bool, rule: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(rule()) }
}

impl Judge {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            books: Books::new(plan),
            told_back: FxHashSet::default(),
            looks_closely: true,
        }
    }

    /// Whether every grant is judged, or only the books are kept.
    pub(crate) const fn look_closely(&mut self, looks_closely: bool) {
        self.looks_closely = looks_closely;
    }

    /// One event, and everything that it brought about.
    pub(crate) fn hear(&mut self, now: u64, event: &Event, outcome: &Outcome) -> Verdict {
        let expected = self.books.apply(now, event)?;
        self.check_told(now, &expected, &outcome.told)?;
        if let Event::Asked(ask, answer) = event {
            self.asked(now, ask, *answer)?;
        }
        for (waiter, answer) in &outcome.settled {
            self.settled(now, *waiter, *answer)?;
        }
        self.check_held_back(&outcome.told)
    }

    fn asked(&mut self, now: u64, ask: &Ask, answer: Answer) -> Verdict {
        match answer {
            Answer::Granted(given) => self.granted(now, ask, None, given),
            Answer::Refused(Reason::QueueFull) => self.check_queue(ask, true),
            Answer::Refused(reason) => self.refused(ask, reason),
            Answer::Parked(id) => {
                self.check_queue(ask, false)?;
                let waiter = Waiter {
                    candidates: self.books.candidates(ask),
                    ask: ask.clone(),
                    parked_at: now,
                };
                let known = self.books.waiters.insert(id, waiter);
                must(known.is_none(), || format!("{id:?} parked twice"))
            }
        }
    }

    /// Whether as many wait of the key as may, or not.
    fn check_queue(&self, ask: &Ask, is_full: bool) -> Verdict {
        if !self.looks_closely {
            return Ok(());
        }
        let (caps, waiters) = (&self.books.plan.caps, self.books.waiters.values());
        let waiting = waiters.filter(|w| w.ask.key == ask.key).count();
        let fills = !caps.may_park || waiting >= caps.waiters_per_key;
        must(fills == is_full, || {
            let took = if is_full { "refused" } else { "parked" };
            format!("{took} with {waiting} of its key waiting")
        })
    }

    fn settled(&mut self, now: u64, id: WaiterId, answer: Result<Given, Reason>) -> Verdict {
        let Some(waiter) = self.books.waiters.get(&id).cloned() else {
            return Err(format!("{id:?} was answered but does not wait"));
        };
        match answer {
            Ok(given) => self.granted(now, &waiter.ask, Some((id, &waiter)), given)?,
            Err(reason) => self.refused(&waiter.ask, reason)?,
        }
        self.books.waiters.remove(&id);
        Ok(())
    }

    /// Refusing is for those for whom waiting would be in vain.
    fn refused(&self, ask: &Ask, reason: Reason) -> Verdict {
        if !self.looks_closely {
            return Ok(());
        }
        if reason == Reason::ApiKeyStreamFairShare {
            let mine = |l: &&Lease| l.key == ask.key && l.held[0];
            let mine = self.books.leases.values().filter(mine).count();
            must(mine >= 2, || {
                format!("fair share refused a key with {mine} streams")
            })?;
        }
        let usage = self.books.usage();
        must(self.books.way(&usage, ask, 0).is_none(), || {
            format!("refused ({}) although it could be let in", reason.code())
        })?;
        let is_hopeless = self.books.open(ask).next().is_none();
        must(is_hopeless || !self.books.plan.caps.may_park, || {
            let code = reason.code();
            format!("refused ({code}) although only room is short: {ask:?}")
        })
    }

    fn granted(
        &mut self,
        now: u64,
        ask: &Ask,
        waiter: Option<(WaiterId, &Waiter)>,
        given: Given,
    ) -> Verdict {
        if self.looks_closely {
            let usage = self.books.usage();
            self.check_edge(&usage, ask, given)?;
            if let Some((id, waiter)) = waiter {
                self.check_turn(now, &usage, id, waiter)?;
            }
            must(self.books.is_within_share(&usage, ask), || {
                format!("{:?} was let in beyond its share", ask.key)
            })?;
        }
        self.books.take(now, ask, given)
    }

    /// The edge may take the request, has room for it, and is among the best.
    fn check_edge(&self, usage: &Usage, ask: &Ask, given: Given) -> Verdict {
        let edge = (given.credential, given.endpoint);
        let books = &self.books;
        must(books.open(ask).any(|e| e == edge), || {
            format!("granted on {edge:?}, which may not take it")
        })?;
        must(books.has_room(usage, ask, given.credential), || {
            format!("granted on {edge:?} beyond a cap")
        })?;
        let ways = books.open(ask);
        let ways: Vec<_> = ways.filter(|e| books.has_room(usage, ask, e.0)).collect();
        let owned = books.owned();
        let touches = |credential| ask.owner.is_none() && books.shared(credential) & owned != 0;
        let leaves = ways.iter().any(|e| !touches(e.0));
        must(!leaves || !touches(given.credential), || {
            format!("granted on {edge:?}, which an owner's waiter needs, of {ways:?}: {ask:?}")
        })?;
        let best = ways.iter().map(|e| books.priority(e.0)).min();
        let is_free = ask.preferred.is_none() && owned == 0;
        must(!is_free || Some(books.priority(edge.0)) == best, || {
            format!("granted on {edge:?} with a better priority free")
        })
    }

    /// Nobody who could be let in as well stands before the one who was.
    fn check_turn(&self, now: u64, usage: &Usage, id: WaiterId, waiter: &Waiter) -> Verdict {
        let books = &self.books;
        if books.may_hold(waiter, now) {
            return Ok(());
        }
        let rank = books.rank(id, waiter);
        let aside = books.aside(now);
        for (other_id, other) in &books.waiters {
            let other_rank = books.rank(*other_id, other);
            if by_rank(&other_rank, &rank).is_lt() {
                let way = books.way(usage, &other.ask, aside);
                must(way.is_none(), || {
                    format!("{rank:?} was let in before {other_rank:?}, which {way:?} would take")
                })?;
            }
        }
        Ok(())
    }

    /// What fair share held back is told once of each request, and never of who holds fewer than
    /// two streams.
    fn check_held_back(&mut self, told: &[Told]) -> Verdict {
        for note in told {
            let Told::HeldBack { holder, key } = note else {
                continue;
            };
            must(self.told_back.insert(*holder), || {
                format!("request {holder} was told twice to be held back")
            })?;
            let mine = |l: &&Lease| l.key == Some(*key) && l.held[0];
            let mine = self.books.leases.values().filter(mine).count();
            must(mine >= 2, || {
                format!("fair share held back a key with {mine} streams")
            })?;
        }
        Ok(())
    }

    /// Cooldowns and breakers turned when they had to, and only then.
    fn check_told(&mut self, now: u64, expected: &[Told], told: &[Told]) -> Verdict {
        let turns = told.iter().filter(|t| !matches!(t, Told::HeldBack { .. }));
        let name = |told: &Told| match told {
            Told::Cooled { thing, model, .. } => format!("cooled {thing:?} {model:?}"),
            other => format!("{other:?}"),
        };
        let mut names: Vec<String> = turns.clone().map(name).collect();
        let mut wanted: Vec<String> = expected.iter().map(name).collect();
        names.sort();
        wanted.sort();
        must(names == wanted, || {
            format!("expected to be told {wanted:?}, was told {names:?}")
        })?;
        for note in turns {
            if let Told::Cooled {
                thing,
                model,
                ends_in,
            } = note
            {
                self.books.cool(now, (*thing, *model), *ends_in)?;
            }
        }
        Ok(())
    }

    /// Never a free slot while a waiter could be let in.
    pub(crate) fn check_idle(&self, now: u64) -> Verdict {
        let (usage, aside) = (self.books.usage(), self.books.aside(now));
        let mut seen = FxHashSet::default();
        for (id, waiter) in &self.books.waiters {
            let ask = &waiter.ask;
            // Those who ask for the same of the same have the same answer.
            let alike = Ask {
                holder: 0,
                until: 0,
                preferred: None,
                ..ask.clone()
            };
            if !seen.insert(alike) {
                continue;
            }
            let way = self.books.way(&usage, ask, aside);
            must(way.is_none(), || {
                format!("{id:?} waits although {way:?} would take it: {ask:?}")
            })?;
        }
        Ok(())
    }

    /// The machine wakes up no later than time changes something.
    pub(crate) fn check_wakeup(&self, wakeup: Option<u64>) -> Verdict {
        let needed = self.books.next_turn();
        let is_late = needed.is_some_and(|at| wakeup.is_none_or(|w| w > at));
        must(!is_late, || {
            format!("wakes up at {wakeup:?}, needed at {needed:?}")
        })
    }

    /// What the machine says it holds is what it gave.
    pub(crate) fn check_picture(&self, picture: &Picture) -> Verdict {
        let books = &self.books;
        let known = books.leases.iter();
        let known: FxHashMap<_, _> = known.map(|(id, l)| (*id, (l.key, l.held))).collect();
        let shown = picture.held.iter();
        let shown: FxHashMap<_, _> = shown.map(|(id, key, held)| (*id, (*key, *held))).collect();
        must(known == shown, || {
            let (known, shown) = (known.len(), shown.len());
            format!("{known} leases are in use, the machine holds {shown}, or others")
        })?;
        let waiting = books.waiters.len();
        must(waiting == picture.waiters, || {
            format!("{waiting} wait, the machine has {}", picture.waiters)
        })?;
        let usage = books.usage();
        for standing in &picture.standings {
            let [streams, creates, _] = usage[books::bit_of(standing.thing)];
            let stages = books.stages(standing.thing);
            let mut shown = standing.stages.clone();
            shown.sort_by_key(|(model, _)| *model);
            let counts = (standing.streams, standing.creates);
            must(counts == (streams, creates) && shown == stages, || {
                format!("{standing:?}, counted {streams} and {creates}, {stages:?}")
            })?;
        }
        self.books.check_breakers(&picture.breakers)
    }

    /// Everybody was answered and nothing is held.
    pub(crate) fn check_end(&self) -> Verdict {
        let left = (self.books.leases.len(), self.books.waiters.len());
        must(left == (0, 0), || {
            format!("{left:?} leases and waiters are left")
        })
    }
}
