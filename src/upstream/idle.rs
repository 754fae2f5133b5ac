//! Connections that wait for their next request.
//!
//! Invariant: a connection that rests here has answered its last request completely; whether the
//! peer has closed it meanwhile is looked at before it is used again.
use super::exchange::Connection;
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// Providers keep idle connections for a minute or more; half of that leaves room for clocks that
/// differ and for the time on the way.
const KEPT_FOR: Duration = Duration::from_secs(30);

/// Idle connections kept per origin: beyond it they cost memory and save little.
const KEPT_PER_ORIGIN: usize = 512;

/// Where a connection leads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    pub(super) is_tls: bool,
    pub(super) host: Box<str>,
    pub(super) port: u16,
}

#[derive(Debug, Default)]
pub(super) struct Idle(Mutex<HashMap<Origin, Vec<(Connection, Instant)>>>);

impl Idle {
    /// The connection that was used last: the one least likely to have been closed.
    pub(super) fn take(&self, origin: &Origin, now: Instant) -> Option<Connection> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let list = all.get_mut(origin)?;
        let (connection, since) = list.pop()?;
        if now.duration_since(since) < KEPT_FOR {
            return Some(connection);
        }
        // Those below have rested even longer.
        list.clear();
        None
    }

    pub(super) fn put(&self, origin: &Origin, connection: Connection, now: Instant) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get_mut(origin) {
            Some(list) if list.len() >= KEPT_PER_ORIGIN => (),
            Some(list) => list.push((connection, now)),
            None => {
                all.insert(origin.clone(), vec![(connection, now)]);
            }
        }
    }

    /// Closes what has rested for too long.
    pub(super) fn sweep(&self, now: Instant) {
        let mut closed = Vec::new();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, list| {
            let fresh = list.partition_point(|(_, since)| now.duration_since(*since) >= KEPT_FOR);
            closed.extend(list.drain(..fresh));
            !list.is_empty()
        });
        drop(all);
        // Closing sockets takes system calls, which the lock need not wait for.
        drop(closed);
    }

    pub(super) fn count(&self) -> usize {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.values().map(Vec::len).sum()
    }
}
