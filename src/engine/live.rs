//! Requests in flight, each with the stage that it has reached: the last one tells which wait it
//! is in.
//!
//! Invariant: a request is in the registry exactly as long as its [`Live`] guard exists.
use crate::{
    clock::{Instant, unix_millis},
    domain::ids::{KeyId, RequestId},
};
use std::sync::{
    Arc, Mutex, OnceLock, PoisonError,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};
use tokio::sync::Notify;

/// What a request has reached, in the order of its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Stage {
    /// Its head has been read.
    Received,
    /// Its client key is known.
    Authenticated,
    /// Its body has been read and looked into.
    Parsed,
    /// It asks for an edge.
    Selected,
    /// It waits for capacity.
    Parked,
    /// It holds its slots.
    Admitted,
    /// It is on its way to upstream.
    Dispatched,
    /// Upstream's headers are there.
    UpstreamHeaders,
    /// The first byte of the body is there.
    FirstByte,
    /// It is over.
    Finished,
}

impl Stage {
    /// Every stage, in order.
    pub const ALL: [Self; 10] = [
        Self::Received,
        Self::Authenticated,
        Self::Parsed,
        Self::Selected,
        Self::Parked,
        Self::Admitted,
        Self::Dispatched,
        Self::UpstreamHeaders,
        Self::FirstByte,
        Self::Finished,
    ];

    /// The word in logs, API and pages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Authenticated => "authenticated",
            Self::Parsed => "parsed",
            Self::Selected => "selected",
            Self::Parked => "parked",
            Self::Admitted => "admitted",
            Self::Dispatched => "dispatched",
            Self::UpstreamHeaders => "upstream_headers",
            Self::FirstByte => "first_byte",
            Self::Finished => "finished",
        }
    }
}

/// When a request reached what, readable while it goes on.
#[derive(Debug)]
pub struct Progress {
    /// Its id.
    pub id: RequestId,
    /// When its head had been read.
    pub received_at: Instant,
    /// The same on the wall clock, in milliseconds since 1970.
    pub received_unix_ms: i64,
    /// Microseconds since then, plus one; 0 means "not reached".
    marks: [AtomicU64; Stage::ALL.len()],
    /// The same for the last byte that came from upstream.
    last_byte: AtomicU64,
    attempts: AtomicU32,
    is_committed: AtomicBool,
    key: OnceLock<KeyId>,
    is_traced: bool,
}

impl Progress {
    /// Notes whose request it is. Only the first word counts: a request never changes its key.
    pub fn is_from(&self, key: KeyId) {
        self.key.get_or_init(|| key);
    }

    /// The client key it came with, if that is known.
    pub fn key(&self) -> Option<KeyId> {
        self.key.get().copied()
    }

    /// Notes that `stage` is reached now. A stage met again (on a second attempt) counts anew.
    pub fn reach(&self, stage: Stage) {
        let (micros, mark) = self.mark();
        self.marks[stage as usize].store(mark, Ordering::Relaxed);
        if self.is_traced {
            let request = self.id.tail();
            let ms = micros / 1000;
            tracing::info!(target: "fairlane::stage", request, stage = stage.name(), ms);
        }
    }

    fn mark(&self) -> (u128, u64) {
        let micros = self.received_at.elapsed().as_micros();
        let mark = u64::try_from(micros).map_or(u64::MAX, |us| us.saturating_add(1));
        (micros, mark)
    }

    /// Notes that bytes have come from upstream now.
    pub fn moved(&self) {
        self.last_byte.store(self.mark().1, Ordering::Relaxed);
    }

    /// Microseconds between the request's arrival and the last sign that it moves on: a stage, or
    /// bytes from upstream.
    pub fn last_progress_micros(&self) -> u64 {
        let byte = self.last_byte.load(Ordering::Relaxed).saturating_sub(1);
        let stage = self.micros(self.stage()).unwrap_or(0);
        byte.max(stage)
    }

    /// Notes that it is sent upstream now, for the first time or again.
    pub fn attempt(&self) {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        self.reach(Stage::Dispatched);
    }

    /// How many times it was sent upstream.
    pub fn attempts(&self) -> u32 {
        self.attempts.load(Ordering::Relaxed)
    }

    /// Notes that its client has been answered with success before there was an answer.
    pub fn commit(&self) {
        self.is_committed.store(true, Ordering::Relaxed);
    }

    /// Whether it was.
    pub fn is_committed(&self) -> bool {
        self.is_committed.load(Ordering::Relaxed)
    }

    /// Microseconds between the request's arrival and `stage`, if it was reached.
    pub fn micros(&self, stage: Stage) -> Option<u64> {
        self.marks[stage as usize]
            .load(Ordering::Relaxed)
            .checked_sub(1)
    }

    /// The stage reached last.
    pub fn stage(&self) -> Stage {
        let last = Stage::ALL
            .into_iter()
            .filter_map(|s| self.micros(s).map(|at| (at, s)))
            .max();
        last.map_or(Stage::Received, |(_, stage)| stage)
    }
}

/// The registry's guard: the request is live while this exists.
#[derive(Debug)]
pub struct Live {
    progress: Arc<Progress>,
    desk: Desk,
    place: usize,
}

impl std::ops::Deref for Live {
    type Target = Progress;

    fn deref(&self) -> &Progress {
        &self.progress
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.desk.leave(self.place);
    }
}

/// Every request in flight; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    desks: Arc<Mutex<Vec<Desk>>>,
    draining: Arc<Draining>,
}

/// Whether somebody waits for the last request to leave.
#[derive(Debug, Default)]
struct Draining {
    is_on: AtomicBool,
    is_cut_off: AtomicBool,
    left: Notify,
}

/// One thread's part of the registry, so that threads do not wait for one another.
#[derive(Clone, Debug)]
pub struct Desk {
    places: Arc<Mutex<Places>>,
    draining: Arc<Draining>,
}

#[derive(Debug, Default)]
struct Places {
    taken: Vec<Option<Arc<Progress>>>,
    free: Vec<usize>,
}

impl Places {
    fn count(&self) -> usize {
        self.taken.len() - self.free.len()
    }
}

impl Desk {
    /// A request has arrived.
    pub fn enter(&self, id: RequestId, is_traced: bool) -> Live {
        let progress = Arc::new(Progress {
            id,
            received_at: Instant::now(),
            received_unix_ms: unix_millis(),
            marks: Default::default(),
            last_byte: AtomicU64::new(0),
            attempts: AtomicU32::new(0),
            is_committed: AtomicBool::new(false),
            key: OnceLock::new(),
            is_traced,
        });
        progress.reach(Stage::Received);
        let place = {
            let mut places = lock(&self.places);
            let entry = Some(Arc::clone(&progress));
            if let Some(place) = places.free.pop() {
                places.taken[place] = entry;
                place
            } else {
                places.taken.push(entry);
                places.taken.len() - 1
            }
        };
        Live {
            progress,
            desk: self.clone(),
            place,
        }
    }

    fn leave(&self, place: usize) {
        let left = {
            let mut places = lock(&self.places);
            places.free.push(place);
            places.taken.get_mut(place).and_then(Option::take)
        };
        drop(left);
        if self.draining.is_on.load(Ordering::Acquire) {
            self.draining.left.notify_waiters();
        }
    }
}

impl Registry {
    /// A part of the registry for one thread.
    pub fn desk(&self) -> Desk {
        let desk = Desk {
            places: Arc::default(),
            draining: Arc::clone(&self.draining),
        };
        lock(&self.desks).push(desk.clone());
        desk
    }

    /// How many requests are in flight.
    pub fn count(&self) -> usize {
        let desks = lock(&self.desks);
        desks.iter().map(|d| lock(&d.places).count()).sum()
    }

    /// Every request in flight, in no order.
    pub fn snapshot(&self) -> Vec<Arc<Progress>> {
        let desks = lock(&self.desks);
        let of = |desk: &Desk| lock(&desk.places).taken.iter().flatten().cloned().collect();
        desks.iter().flat_map(|d| -> Vec<_> { of(d) }).collect()
    }

    /// How many requests of that client key are in flight.
    pub fn count_of(&self, key: KeyId) -> usize {
        let is_its = |request: &&Arc<Progress>| request.key() == Some(key);
        let desks = lock(&self.desks);
        let of = |desk: &Desk| {
            lock(&desk.places)
                .taken
                .iter()
                .flatten()
                .filter(is_its)
                .count()
        };
        desks.iter().map(of).sum()
    }

    /// Returns when nothing is in flight any more.
    pub async fn drained(&self) {
        self.draining.is_on.store(true, Ordering::Release);
        loop {
            let left = self.draining.left.notified();
            tokio::pin!(left);
            // Listening before looking, so that the last to leave is not missed.
            left.as_mut().enable();
            if self.count() == 0 {
                return;
            }
            left.await;
        }
    }

    /// What ends unfinished from now on was ended by fairlane, and not by its client.
    pub fn cut_off(&self) {
        self.draining.is_cut_off.store(true, Ordering::Release);
    }

    /// Whether requests in flight are being cut off.
    pub fn is_cut_off(&self) -> bool {
        self.draining.is_cut_off.load(Ordering::Acquire)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn the_stage_reached_last_is_shown_with_its_time() {
        let registry = Registry::default();
        let live = registry.desk().enter(RequestId::from_u128(1), false);
        tokio::time::advance(Duration::from_millis(3)).await;
        live.reach(Stage::Parked);
        assert_eq!(registry.snapshot()[0].stage(), Stage::Parked);
        assert_eq!(live.micros(Stage::Parked), Some(3000));
        assert_eq!(live.micros(Stage::Admitted), None);
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_are_progress_as_stages_are() {
        let live = Registry::default()
            .desk()
            .enter(RequestId::from_u128(1), false);
        tokio::time::advance(Duration::from_millis(2)).await;
        live.reach(Stage::FirstByte);
        assert_eq!(live.last_progress_micros(), 2000);
        tokio::time::advance(Duration::from_millis(3)).await;
        live.moved();
        assert_eq!(live.last_progress_micros(), 5000);
        assert_eq!(live.stage(), Stage::FirstByte);
    }

    #[tokio::test]
    async fn requests_are_counted_by_their_key_while_they_last() {
        let registry = Registry::default();
        let (desk, key) = (registry.desk(), KeyId::from_u128(7));
        let first = desk.enter(RequestId::from_u128(1), false);
        let other = desk.enter(RequestId::from_u128(2), false);
        assert_eq!(registry.count_of(key), 0);
        first.is_from(key);
        other.is_from(KeyId::from_u128(8));
        assert_eq!(registry.count_of(key), 1);
        drop(first);
        assert_eq!(registry.count_of(key), 0);
    }

    #[tokio::test]
    async fn draining_ends_with_the_last_request() {
        let registry = Registry::default();
        let live = registry.desk().enter(RequestId::from_u128(1), false);
        let drained = registry.drained();
        tokio::pin!(drained);
        assert!(futures_util::poll!(&mut drained).is_pending());
        drop(live);
        drained.await;
        assert_eq!(registry.count(), 0);
    }
}
