//! Counts what client keys use, and holds their requests to their own limits.
//!
//! Every request of a key is counted, so that a limit which is set at run time is true at once. What
//! an earlier process counted stands in the request log. It is read when somebody first needs it: a
//! request of a key that has limits, or a page that shows what is used. Such a request waits for
//! that one look; should the look fail, requests go on with what this process has counted, and it
//! is repeated until it succeeds. Until then what is [`used`](Allowance::used) is known as far as
//! this process has seen all of it. Only requests that began before this process did are read, and
//! all others were counted, so that none is lost and none is counted twice.
//!
//! Where no request log is kept (`request_log_retention_days` 0), counts begin anew with the process.
//!
//! Invariants: the lock is held for one event of the machine and never across an await; a
//! [`Reservation`] is settled exactly once, on every way out.
use crate::{
    clock::{Instant, unix_millis},
    domain::{
        allowance::{
            Allowance as Machine, Day, Earlier, Excess, Now, Reservation as Held, Wanted,
            window::SPAN_MS,
        },
        ids::KeyId,
        moment::Moment,
        pool::{ClientKey, Pool},
    },
};
use std::{
    collections::HashSet,
    fmt::Display,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::{Notify, watch};

/// How long to wait before the request log is asked again.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Where the process begins on its time line: what began a minute earlier needs a place there too.
const COUNTED_SINCE_MS: u64 = SPAN_MS;

/// What a key uses now of what may be limited, as far as that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Requests of the last minute.
    pub requests: Option<u64>,
    /// Requests in flight: only this process can have any.
    pub in_flight: u64,
    /// Tokens of today.
    pub tokens: Option<u64>,
}

/// Whether what an earlier process saw has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recalled {
    /// Nobody has looked: whoever needs it waits.
    Unasked,
    /// It could not be, so far: nobody waits for it.
    Unread,
    Read,
}

/// The one place where client keys are counted; cheap to clone.
#[derive(Clone, Debug)]
pub struct Allowance(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    machine: Mutex<Machine>,
    /// The beginning of the time line.
    origin: Instant,
    /// The same on the wall clock: what began earlier was not counted here.
    origin_unix_ms: i64,
    recalled: watch::Sender<Recalled>,
    wanted: Notify,
}

/// One request's right to go on. Dropped without a word, it is settled with tokens unknown.
#[must_use = "a request that drops its reservation is over"]
#[derive(Debug)]
pub struct Reservation {
    of: Allowance,
    held: Option<Held>,
}

impl Reservation {
    /// The request is over; `tokens` are what it used, as far as that is known.
    pub fn settle(mut self, tokens: Option<u64>) {
        self.give_back(tokens);
    }

    fn give_back(&mut self, tokens: Option<u64>) {
        if let Some(held) = self.held.take() {
            let now = self.of.now();
            self.of.lock().settle(now, held, tokens);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.give_back(None);
    }
}

impl Default for Allowance {
    /// Nothing counted yet, and nothing earlier to be known.
    fn default() -> Self {
        Self(Arc::new(Shared {
            machine: Mutex::default(),
            origin: Instant::now(),
            origin_unix_ms: unix_millis(),
            recalled: watch::Sender::new(Recalled::Read),
            wanted: Notify::new(),
        }))
    }
}

impl Allowance {
    /// Takes a reservation for one request of that key, or says which of its limits is in the way.
    /// For a key without limits it is always there, at the cost of a look.
    pub async fn reserve(&self, key: &ClientKey) -> Result<Reservation, Excess> {
        if !key.limits.is_none() {
            self.ready().await;
        }
        let now = self.now();
        let held = self.lock().reserve(now, key.id, &key.limits)?;
        Ok(Reservation {
            of: self.clone(),
            held: Some(held),
        })
    }

    /// What those keys use now, in their order.
    pub async fn used(&self, keys: &[KeyId]) -> Vec<Used> {
        self.ready().await;
        let now = self.now();
        let (is_minute_known, is_day_known) = self.known(now);
        let mut machine = self.lock();
        let used = keys.iter().map(|key| machine.used(now, *key));
        used.map(|used| Used {
            requests: is_minute_known.then_some(used.requests),
            in_flight: used.in_flight,
            tokens: is_day_known.then_some(used.tokens),
        })
        .collect()
    }

    /// Whether the whole of the last minute, and of today, was counted or read.
    fn known(&self, now: Now) -> (bool, bool) {
        let is_all_known = *self.0.recalled.borrow() == Recalled::Read;
        let counted_since = Moment::from_millis(COUNTED_SINCE_MS);
        (
            is_all_known || now.at.since(counted_since) >= SPAN_MS,
            is_all_known || Day::of(now.unix_ms).starts_at() >= self.0.origin_unix_ms,
        )
    }

    /// Forgets keys that are not in the pool any more.
    pub fn follow(&self, pool: &Pool) {
        let there: HashSet<KeyId> = pool.keys().iter().map(|key| key.id).collect();
        self.lock().retain(|key| there.contains(&key));
    }

    /// Learns what an earlier process saw, by `read`, once that is needed. To be called before the
    /// first request; the work is done by whoever awaits the answer.
    pub fn recall<R, F, E>(&self, read: R) -> impl Future<Output = ()> + Send + use<R, F, E>
    where
        R: Fn(Wanted) -> F + Send + Sync,
        F: Future<Output = Result<Vec<Earlier>, E>> + Send,
        E: Display + Send,
    {
        self.0.recalled.send_replace(Recalled::Unasked);
        let this = self.clone();
        async move {
            this.0.wanted.notified().await;
            while let Err(error) = this.look(&read).await {
                tracing::error!(%error, "what client keys used earlier could not be read; it is tried again, and their limits know of this process alone until then");
                this.0.recalled.send_replace(Recalled::Unread);
                tokio::time::sleep(TRY_AGAIN_AFTER).await;
            }
            this.0.recalled.send_replace(Recalled::Read);
        }
    }

    async fn look<F, E>(&self, read: impl Fn(Wanted) -> F) -> Result<(), E>
    where
        F: Future<Output = Result<Vec<Earlier>, E>>,
    {
        let now_ms = unix_millis();
        let day = Day::of(now_ms);
        let earlier = read(Wanted {
            day_from_ms: day.starts_at(),
            minute_from_ms: now_ms.saturating_sub_unsigned(SPAN_MS),
            until_ms: self.0.origin_unix_ms,
        });
        let earlier = earlier.await?;
        let now = self.now();
        self.lock().restore(now, day, &earlier);
        Ok(())
    }

    /// Returns when what an earlier process saw is known, or cannot be.
    async fn ready(&self) {
        let is_settled = |recalled: &Recalled| *recalled != Recalled::Unasked;
        if is_settled(&self.0.recalled.borrow()) {
            return;
        }
        self.0.wanted.notify_one();
        // The sender is here.
        let _ = self.0.recalled.subscribe().wait_for(is_settled).await;
    }

    fn now(&self) -> Now {
        let ms = self.0.origin.elapsed().as_millis();
        let ms = u64::try_from(ms).unwrap_or(u64::MAX);
        Now {
            at: Moment::from_millis(COUNTED_SINCE_MS).plus(ms),
            unix_ms: unix_millis(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Machine> {
        self.0
            .machine
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
