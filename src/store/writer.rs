//! The one thread that may write, and the queue in front of it.
//!
//! Invariant: a change is answered with success only after the commit that holds it. A change that
//! fails or panics takes nothing of its neighbours with it; rows that nobody waits for, of the request
//! log and of owners, have a queue of their own, may be shed, and never share a transaction with
//! changes.
mod batch;
mod queue;

use super::error::StoreError;
use crate::{
    clock::Instant,
    domain::{ledger::Entry, owners::OwnerRow},
};
use queue::{Job, QueuedRow, Shared, Typed};
use rusqlite::Connection;
use std::{
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};
use tokio::sync::oneshot;

pub use queue::Health;

/// What is told of every answered change: how long it took from being asked for to its commit.
pub type WriteObserver = dyn Fn(Duration) + Send + Sync;

/// Hands changes to the thread that owns the one writable connection.
#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The answer to a change that is on its way.
pub(super) type Answer<T> = oneshot::Receiver<Result<T, StoreError>>;

impl Writer {
    pub(super) fn spawn(conn: Connection) -> Result<Self, StoreError> {
        let shared = Arc::new(Shared::default());
        let served = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || batch::serve(&served, conn))
            .map_err(|_| StoreError::Closed)?;
        Ok(Self {
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Queues a change. It is made even if nobody waits for the answer.
    pub(super) fn submit<T, F>(&self, work: F) -> Result<Answer<T>, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job: Box<dyn Job> = Box::new(Typed::new(work, reply, Instant::now()));
        self.shared.push(job)?;
        Ok(answer)
    }

    /// Queues a row of the request log, or drops and counts it. Says whether it was queued.
    pub(super) fn try_log(&self, entry: Box<Entry>) -> bool {
        self.shared.push_row(QueuedRow::Log(entry))
    }

    /// Queues a row of the owners, or drops and counts it. Says whether it was queued.
    pub(super) fn try_bind(&self, row: Box<OwnerRow>) -> bool {
        self.shared.push_row(QueuedRow::Owner(row))
    }

    pub(super) fn rows_waiting(&self) -> usize {
        self.shared.rows_waiting()
    }

    pub(super) fn log_dropped(&self) -> u64 {
        self.shared.log_dropped()
    }

    pub(super) fn owners_dropped(&self) -> u64 {
        self.shared.owners_dropped()
    }

    pub(super) fn health(&self) -> Health {
        self.shared.health(Instant::now())
    }

    pub(super) fn observe(&self, observer: Box<WriteObserver>) -> bool {
        self.shared.observe(observer)
    }

    /// Takes nothing more, writes what is queued, and waits for the thread to end.
    pub(super) fn close(&self) {
        self.shared.close();
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // The last handle may be dropped inside a change, on the writer's own thread.
        if let Some(thread) = thread.filter(|t| t.thread().id() != thread::current().id())
            && thread.join().is_err()
        {
            tracing::error!("the store's writer ended with a panic");
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests;
