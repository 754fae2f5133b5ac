//! Waits for admission on behalf of one request, and holds what was granted.
//!
//! Invariants: the lock is held for one event of the machine and never across an await; answers
//! are delivered after it has been let go; a [`Lease`] gives itself back on every way out, a
//! waiter that nobody awaits any more withdraws itself.
mod held;
mod lock;
mod operator;
mod pace;

pub use self::held::Lease;

use self::{
    held::Parked,
    lock::{Mutex, MutexGuard},
    pace::{Pace, Queue},
};
use crate::{
    clock::Instant,
    domain::{
        admission::{
            Admission as Machine, Decision, Demand, Effects, Explained, Foreseen, Grant, HeldLease,
            Kinds, Layout, Refusal, Standing, Subject, WaiterId, Waiting,
        },
        breaker::Breaker,
        cooldown::Kept,
        ids::EndpointId,
        moment::Moment,
        reason::Reason,
    },
    ports::PoolWatch,
};
use std::{
    collections::HashMap,
    sync::{Arc, OnceLock, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Notify, oneshot},
    time::timeout,
};

/// The one admission of the process.
#[derive(Clone)]
pub struct Admission(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// The beginning of the time line.
    origin: Instant,
    /// Says that something is due earlier than was known.
    earlier: Notify,
    /// Who is told what happens to the pool; nobody before the process is put together.
    watch: OnceLock<Arc<dyn PoolWatch>>,
}

impl std::fmt::Debug for Admission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admission").finish_non_exhaustive()
    }
}

type Answer = Result<Lease, Refusal>;

#[derive(Debug)]
struct State {
    machine: Machine,
    answers: HashMap<WaiterId, oneshot::Sender<Answer>>,
    pace: Pace,
    is_closed: bool,
    /// When the timer's task is awake next.
    awake_at: Option<Moment>,
}

/// The longest wait that is ever told to a client: beyond it some give up and some sleep for good.
pub const RETRY_AFTER_MAX_SECONDS: u64 = 60;

/// A request that may not go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denied {
    /// Why.
    pub refusal: Refusal,
    /// How long it had waited.
    pub waited: Duration,
    /// When to come again, in whole seconds, before spreading.
    pub retry_after_seconds: u64,
    /// When a candidate is expected to be free again, in milliseconds from now, where that is known.
    pub free_in_ms: Option<u64>,
}

impl Admission {
    /// Nothing held, nobody waiting.
    pub fn new(layout: Layout) -> Self {
        Self(Arc::new(Shared {
            state: Mutex::new(State {
                machine: Machine::new(layout),
                answers: HashMap::new(),
                pace: Pace::new(),
                is_closed: false,
                awake_at: None,
            }),
            origin: Instant::now(),
            earlier: Notify::new(),
            watch: OnceLock::new(),
        }))
    }

    /// Who is told what happens to the pool. `false` if somebody is told already.
    pub fn watched_by(&self, watch: Arc<dyn PoolWatch>) -> bool {
        self.0.watch.set(watch).is_ok()
    }

    /// This moment on the process's time line.
    pub fn now(&self) -> Moment {
        let ms = self.0.origin.elapsed().as_millis();
        Moment::from_millis(u64::try_from(ms).unwrap_or(u64::MAX))
    }

    /// Lets time do its part, for ever.
    pub async fn keep_time(self) {
        loop {
            let next = {
                let mut state = self.lock();
                state.awake_at = state.machine.next_wakeup();
                state.awake_at
            };
            match next {
                None => self.0.earlier.notified().await,
                Some(at) => {
                    let at = self.0.origin + Duration::from_millis(at.as_millis());
                    let sleep = tokio::time::sleep_until(at);
                    tokio::select! {
                        () = sleep => self.event(Machine::handle_timeout),
                        () = self.0.earlier.notified() => (),
                    }
                }
            }
        }
    }

    /// Gets a lease for `demand`, waiting for at most `patience`; `on_park` is called if it has
    /// to wait. Dropping the future leaves the queue.
    pub async fn admit(
        &self,
        demand: &Arc<Demand>,
        patience: Duration,
        on_park: impl FnOnce(),
    ) -> Result<Lease, Denied> {
        let (mut parked, mut answer) = match self.ask(demand) {
            Asked::Answered(answer) => {
                return answer.map_err(|refusal| self.denied(demand, refusal, Duration::ZERO));
            }
            Asked::Parked(parked, answer) => (parked, answer),
        };
        on_park();
        let since = Instant::now();
        let answered = match timeout(patience, &mut answer).await {
            Ok(answered) => answered,
            Err(_) => match parked.give_up() {
                Some(refusal) => Ok(Err(refusal)),
                // Settled at this very moment: its answer is on the way.
                None => answer.await,
            },
        };
        // The sender goes without an answer only when the process does.
        answered
            .unwrap_or(Err(Refusal::bare(Reason::ShuttingDown)))
            .map_err(|refusal| self.denied(demand, refusal, since.elapsed()))
    }

    fn ask(&self, demand: &Arc<Demand>) -> Asked {
        self.run(|state, now, effects| {
            if state.is_closed {
                return Asked::Answered(Err(Refusal::bare(Reason::ShuttingDown)));
            }
            match state.machine.request(now, demand, effects) {
                Decision::Granted(grant) => Asked::Answered(Ok(self.lease(grant))),
                Decision::Refused(refusal) => Asked::Answered(Err(refusal)),
                Decision::Parked(waiter) => {
                    let (sender, answer) = oneshot::channel();
                    state.answers.insert(waiter, sender);
                    let parked = Parked {
                        admission: self.clone(),
                        waiter: Some(waiter),
                    };
                    Asked::Parked(parked, answer)
                }
            }
        })
    }

    fn denied(&self, demand: &Demand, refusal: Refusal, waited: Duration) -> Denied {
        let now = self.now();
        let free_in_ms = refusal.free_at.map(|at| at.since(now));
        let seconds = free_in_ms.map(|ms| ms.div_ceil(1000).clamp(1, RETRY_AFTER_MAX_SECONDS));
        Denied {
            refusal,
            waited,
            retry_after_seconds: seconds
                .unwrap_or_else(|| self.retry_after_seconds(&refusal, demand.kinds)),
            free_in_ms,
        }
    }

    /// When a slot may be free for somebody who was refused so and comes again, in whole seconds.
    fn retry_after_seconds(&self, refusal: &Refusal, kinds: Kinds) -> u64 {
        let state = self.lock();
        let queue = Queue {
            leases: state.machine.leases(),
            waiters: state.machine.waiters(),
        };
        state
            .pace
            .seconds_for(refusal, kinds, queue, Instant::now())
    }

    /// A new pool or new limits take effect for whatever comes and for whoever waits.
    pub fn reconfigure(&self, layout: Layout) {
        self.event(|machine, now, effects| machine.reconfigure(now, layout, effects));
    }

    /// The operator ends the cooldowns of a subject. Gives whether there were any.
    pub fn clear_cooldown(&self, subject: Subject) -> bool {
        self.event(|machine, now, effects| machine.clear_cooldown(now, subject, effects))
    }

    /// Takes up what an earlier process kept.
    pub fn restore(&self, kept: impl IntoIterator<Item = (Subject, Option<Arc<str>>, Kept)>) {
        self.event(|machine, now, _| {
            for (subject, model, kept) in kept {
                machine.restore(now, subject, model.as_ref(), kept);
            }
        });
    }

    /// How a subject stands; nothing is known of one that was never in the pool.
    pub fn standing(&self, subject: Subject) -> Option<Standing> {
        self.lock().machine.standing(subject)
    }

    /// How every subject stands.
    pub fn standings(&self) -> Vec<(Subject, Standing)> {
        self.lock().machine.standings()
    }

    /// Requests in flight at each endpoint that has any.
    pub fn at_endpoints(&self) -> HashMap<EndpointId, usize> {
        self.lock().machine.at_endpoints()
    }

    /// The breaker of every endpoint.
    pub fn breakers(&self) -> Vec<(EndpointId, Breaker)> {
        self.lock().machine.breakers()
    }

    /// Which edges a request would be tried on and why not on the others, and what would become of
    /// it, at one moment. Nothing is taken.
    pub fn explain(&self, demand: &Demand) -> (Vec<Explained>, Foreseen) {
        let mut state = self.lock();
        (state.machine.explain(demand), state.machine.foresee(demand))
    }

    /// Nobody is let in any more; everyone parked is answered.
    pub fn close(&self) {
        self.run(|state, _, effects| {
            state.is_closed = true;
            let why = Refusal::bare(Reason::ShuttingDown);
            state.machine.dismiss(why, effects);
        });
    }

    /// (leases, waiters) at this moment.
    pub fn counts(&self) -> (usize, usize) {
        let state = self.lock();
        (state.machine.leases(), state.machine.waiters())
    }

    /// Who holds what and who waits for what, at one moment.
    pub fn picture(&self) -> (Moment, Vec<HeldLease>, Vec<Waiting>) {
        let now = self.now();
        let mut state = self.lock();
        (now, state.machine.held(), state.machine.waiting())
    }

    /// One event of the machine, and the delivery of what came of it.
    fn event<T>(&self, event: impl FnOnce(&mut Machine, Moment, &mut Effects) -> T) -> T {
        self.run(|state, now, effects| event(&mut state.machine, now, effects))
    }

    fn run<T>(&self, act: impl FnOnce(&mut State, Moment, &mut Effects) -> T) -> T {
        let now = self.now();
        let mut effects = Effects::default();
        let mut deliveries = Vec::new();
        let mut state = self.lock();
        let result = act(&mut state, now, &mut effects);
        for one in effects.settled {
            let answer = one.answer.map(|grant| self.lease(grant));
            deliveries.push((state.answers.remove(&one.waiter), answer));
        }
        self.wake_earlier(&mut state);
        drop(state);
        for (sender, answer) in deliveries {
            // A lease that finds nobody gives itself back.
            if let Some(sender) = sender {
                let _ = sender.send(answer);
            }
        }
        if let Some(watch) = self.0.watch.get() {
            for note in &effects.notes {
                watch.noted(note);
            }
        }
        result
    }

    /// Wakes the timer's task if something is due before it would wake by itself.
    fn wake_earlier(&self, state: &mut State) {
        let next = state.machine.next_wakeup();
        let is_earlier = next.is_some_and(|next| state.awake_at.is_none_or(|at| next < at));
        if is_earlier {
            state.awake_at = next;
            self.0.earlier.notify_one();
        }
    }

    fn lease(&self, grant: Grant) -> Lease {
        Lease {
            admission: self.clone(),
            grant,
            holds_create: true,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Asked {
    Answered(Answer),
    Parked(Parked, oneshot::Receiver<Answer>),
}

#[cfg(test)]
mod tests;

/// Every order in which threads can come.
#[cfg(all(test, feature = "shuttle"))]
mod interleaved;
