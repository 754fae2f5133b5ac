//! Which endpoints do not speak WebSocket, for all threads together.
//!
//! Invariant: the lock is held for one event or one look and never across an await.
use crate::{
    clock::Instant,
    domain::{
        ids::EndpointId,
        moment::Moment,
        pool::{Endpoint, Pool},
        unspoken::{SocketKind, Unspoken as Machine},
    },
};
use rustc_hash::FxHashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What upgrades have shown; cheap to clone. It is not kept beyond the process.
#[derive(Clone, Debug)]
pub struct Unspoken(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    machine: Mutex<Machine>,
    /// The beginning of the time line.
    origin: Instant,
}

impl Default for Unspoken {
    /// Nothing is known yet.
    fn default() -> Self {
        Self(Arc::new(Shared {
            machine: Mutex::default(),
            origin: Instant::now(),
        }))
    }
}

impl Unspoken {
    /// An endpoint has refused an upgrade as one that does not speak WebSocket. Gives whether that
    /// is news.
    pub fn refused(&self, endpoint: &Endpoint, kind: SocketKind) -> bool {
        let now = self.now();
        self.lock().refused(now, endpoint, kind)
    }

    /// An upgrade at that endpoint has succeeded.
    pub fn agreed(&self, endpoint: EndpointId, kind: SocketKind) {
        self.lock().agreed(endpoint, kind);
    }

    /// The endpoints of `pool` that are not to be asked for a socket of that kind now.
    pub fn of(&self, pool: &Pool, kind: SocketKind) -> FxHashSet<EndpointId> {
        let now = self.now();
        self.lock().among(now, pool.endpoints(), kind)
    }

    fn now(&self) -> Moment {
        let ms = self.0.origin.elapsed().as_millis();
        Moment::from_millis(u64::try_from(ms).unwrap_or(u64::MAX))
    }

    fn lock(&self) -> MutexGuard<'_, Machine> {
        self.0
            .machine
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
