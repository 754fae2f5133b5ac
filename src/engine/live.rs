//! Requests in flight, each with the stage that it has reached: the last one tells which wait it
//! is in.
//!
//! Invariant: a request is in the registry exactly as long as its [`Live`] guard exists.
use crate::{
    clock::{Instant, unix_millis},
    domain::ids::RequestId,
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
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
    marks: [AtomicU32; Stage::ALL.len()],
    is_traced: bool,
}

impl Progress {
    /// Notes that `stage` is reached now. A stage met again (on a second attempt) counts anew.
    pub fn reach(&self, stage: Stage) {
        let micros = self.received_at.elapsed().as_micros();
        let mark = u32::try_from(micros).unwrap_or(u32::MAX - 1) + 1;
        self.marks[stage as usize].store(mark, Ordering::Relaxed);
        if self.is_traced {
            let request = self.id.tail();
            let ms = micros / 1000;
            tracing::info!(target: "fairlane::stage", request, stage = stage.name(), ms);
        }
    }

    /// Microseconds between the request's arrival and `stage`, if it was reached. Past 71 minutes
    /// the value stays where it is.
    pub fn micros(&self, stage: Stage) -> Option<u32> {
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
    registry: Registry,
}

impl std::ops::Deref for Live {
    type Target = Progress;

    fn deref(&self) -> &Progress {
        &self.progress
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.registry.leave(self.progress.id);
    }
}

/// Every request in flight.
#[derive(Clone, Debug, Default)]
pub struct Registry(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    live: Mutex<HashMap<RequestId, Arc<Progress>>>,
    is_draining: AtomicBool,
    emptied: Notify,
}

impl Registry {
    /// A request has arrived.
    pub fn enter(&self, id: RequestId, is_traced: bool) -> Live {
        let progress = Arc::new(Progress {
            id,
            received_at: Instant::now(),
            received_unix_ms: unix_millis(),
            marks: Default::default(),
            is_traced,
        });
        progress.reach(Stage::Received);
        self.lock().insert(id, Arc::clone(&progress));
        Live {
            progress,
            registry: self.clone(),
        }
    }

    fn leave(&self, id: RequestId) {
        let is_empty = {
            let mut live = self.lock();
            live.remove(&id);
            live.is_empty()
        };
        if is_empty && self.0.is_draining.load(Ordering::Acquire) {
            self.0.emptied.notify_waiters();
        }
    }

    /// How many requests are in flight.
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    /// Every request in flight, in no order.
    pub fn snapshot(&self) -> Vec<Arc<Progress>> {
        self.lock().values().cloned().collect()
    }

    /// Returns when nothing is in flight any more.
    pub async fn drained(&self) {
        self.0.is_draining.store(true, Ordering::Release);
        loop {
            let emptied = self.0.emptied.notified();
            if self.count() == 0 {
                return;
            }
            emptied.await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<RequestId, Arc<Progress>>> {
        self.0.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn the_stage_reached_last_is_shown_with_its_time() {
        let registry = Registry::default();
        let live = registry.enter(RequestId::from_u128(1), false);
        tokio::time::advance(Duration::from_millis(3)).await;
        live.reach(Stage::Parked);
        assert_eq!(registry.snapshot()[0].stage(), Stage::Parked);
        assert_eq!(live.micros(Stage::Parked), Some(3000));
        assert_eq!(live.micros(Stage::Admitted), None);
    }

    #[tokio::test]
    async fn draining_ends_with_the_last_request() {
        let registry = Registry::default();
        let live = registry.enter(RequestId::from_u128(1), false);
        let drained = registry.drained();
        tokio::pin!(drained);
        assert!(futures_util::poll!(&mut drained).is_pending());
        drop(live);
        drained.await;
        assert_eq!(registry.count(), 0);
    }
}
