//! What waits for the writer, and how it fares.
//!
//! Invariant: both queues are bounded. A change that finds its queue full is refused at once; a
//! queued row is dropped and counted. The mutex is held for pushes and pops only, never over the disk.
use super::WriteObserver;
use crate::{
    clock::{self, Instant},
    domain::{ledger::Entry, owners::OwnerRow},
    store::error::StoreError,
};
use rusqlite::Connection;
use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::oneshot;

/// Changes that may wait: sixteen full commits, a few seconds' worth on a slow disk.
const JOBS: usize = 4096;
/// Changes per commit: beyond this the gain per change is gone and the wait grows.
const JOBS_PER_COMMIT: usize = 256;
/// Log rows that may wait: some seconds of heavy traffic, a few MiB of memory.
const ROWS: usize = 8192;
/// Rows of any kind that may wait: owners still have room where log rows have none left, since what
/// becomes of a later request hangs on them.
const ALL_ROWS: usize = 2 * ROWS;
/// Rows per commit: about ten milliseconds of the writer's time.
const ROWS_PER_COMMIT: usize = 1024;
/// How long a row may wait for company before it is written.
const ROW_DELAY: Duration = Duration::from_millis(250);
/// How long rows rest after the disk refused them.
const ROW_REST: Duration = Duration::from_secs(1);

/// A row that nobody waits for.
#[derive(Debug)]
pub(super) enum QueuedRow {
    /// Of the request log.
    Log(Box<Entry>),
    /// Of the owners.
    Owner(Box<OwnerRow>),
}

impl QueuedRow {
    /// How many rows may wait before one of this kind is dropped.
    fn room(&self) -> usize {
        match self {
            Self::Log(_) => ROWS,
            Self::Owner(_) => ALL_ROWS,
        }
    }
}

/// One change on its way.
pub(super) trait Job: Send {
    /// Makes the change. Says whether it is to be kept.
    fn run(&mut self, tx: &Connection) -> bool;
    /// Tells whoever asked: `failure` is what became of the whole commit.
    fn answer(self: Box<Self>, failure: Option<&StoreError>);
    /// Its own error, once it has run.
    fn failure(&self) -> Option<&StoreError>;
    /// When it was asked for.
    fn asked_at(&self) -> Instant;
}

/// A change with the type of its result.
pub(super) struct Typed<T, F> {
    work: Option<F>,
    result: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
    asked_at: Instant,
}

impl<T, F> Typed<T, F> {
    pub(super) fn new(
        work: F,
        reply: oneshot::Sender<Result<T, StoreError>>,
        asked_at: Instant,
    ) -> Self {
        Self {
            work: Some(work),
            result: None,
            reply,
            asked_at,
        }
    }
}

impl<T, F> Job for Typed<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> Result<T, StoreError> + Send,
{
    fn run(&mut self, tx: &Connection) -> bool {
        self.result = self.work.take().map(|work| work(tx));
        matches!(self.result, Some(Ok(_)))
    }

    fn answer(self: Box<Self>, failure: Option<&StoreError>) {
        let result = match (failure, self.result) {
            (None, Some(result)) => result,
            (None, None) => Err(StoreError::Panicked),
            (Some(_), Some(Err(own))) => Err(own),
            (Some(failure), _) => Err(failure.clone()),
        };
        // Whoever asked may have left; the change stands all the same.
        drop(self.reply.send(result));
    }

    fn failure(&self) -> Option<&StoreError> {
        self.result.as_ref()?.as_ref().err()
    }

    fn asked_at(&self) -> Instant {
        self.asked_at
    }
}

/// How the writer fares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Changes that wait.
    pub queued: usize,
    /// Rows that wait without anybody waiting for them.
    pub rows_queued: usize,
    /// How long the oldest change has been without an answer, one that is being written included.
    pub oldest_unanswered: Option<Duration>,
    /// When the last commit succeeded, in milliseconds since 1970.
    pub last_success_at: Option<i64>,
    /// The trouble that the disk made at the last commit; `None` once a commit succeeded again.
    pub trouble: Option<StoreError>,
}

/// What the writer is to do next.
pub(super) struct Work {
    pub(super) jobs: Vec<Box<dyn Job>>,
    pub(super) rows: VecDeque<QueuedRow>,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Box<dyn Job>>,
    rows: VecDeque<QueuedRow>,
    rows_rest_until: Option<Instant>,
    is_closing: bool,
    oldest_running: Option<Instant>,
    last_success_at: Option<i64>,
    trouble: Option<StoreError>,
}

#[derive(Default)]
pub(super) struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    log_dropped: AtomicU64,
    owners_dropped: AtomicU64,
    observer: OnceLock<Box<WriteObserver>>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, job: Box<dyn Job>) -> Result<(), StoreError> {
        let mut queue = self.queue();
        if queue.is_closing {
            return Err(StoreError::Closed);
        }
        if queue.jobs.len() >= JOBS {
            return Err(StoreError::Busy);
        }
        queue.jobs.push_back(job);
        drop(queue);
        self.wake.notify_one();
        Ok(())
    }

    pub(super) fn push_row(&self, row: QueuedRow) -> bool {
        let mut queue = self.queue();
        if queue.is_closing || queue.rows.len() >= row.room() {
            drop(queue);
            self.count_dropped(&row);
            return false;
        }
        queue.rows.push_back(row);
        let waiting = queue.rows.len();
        drop(queue);
        // A wake-up costs more than the row: once to start the delay, once when a batch is full.
        if waiting == 1 || waiting == ROWS_PER_COMMIT {
            self.wake.notify_one();
        }
        true
    }

    /// Waits for something to do. `None` once the queue is closed and empty.
    pub(super) fn next(&self) -> Option<Work> {
        let mut queue = self.queue();
        loop {
            let now = Instant::now();
            if let Some(work) = queue.take(now, false) {
                return Some(work);
            }
            if queue.is_closing {
                return None;
            }
            queue = match queue.delay(now) {
                None => self.wait(queue),
                Some(delay) => {
                    let (mut queue, timeout) = self
                        .wake
                        .wait_timeout(queue, delay)
                        .unwrap_or_else(PoisonError::into_inner);
                    if timeout.timed_out()
                        && let Some(work) = queue.take(Instant::now(), true)
                    {
                        return Some(work);
                    }
                    queue
                }
            };
        }
    }

    fn wait<'a>(&self, queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        self.wake
            .wait(queue)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes how a commit of changes went.
    pub(super) fn note_jobs(&self, error: Option<&StoreError>) {
        let mut queue = self.queue();
        queue.oldest_running = None;
        queue.note(error);
    }

    /// Notes how a commit of rows went.
    pub(super) fn note_rows(&self, error: Option<&StoreError>) {
        self.queue().note(error);
    }

    /// Puts rows back that the disk did not take, the newest first and as far as there is room, and
    /// lets them rest.
    pub(super) fn put_back(&self, rows: VecDeque<QueuedRow>) {
        let mut lost = Vec::new();
        let mut queue = self.queue();
        for row in rows.into_iter().rev() {
            if queue.is_closing || queue.rows.len() >= row.room() {
                lost.push(row);
            } else {
                queue.rows.push_front(row);
            }
        }
        queue.rows_rest_until = Some(Instant::now() + ROW_REST);
        drop(queue);
        for row in &lost {
            self.count_dropped(row);
        }
    }

    pub(super) fn count_dropped(&self, row: &QueuedRow) {
        let counter = match row {
            QueuedRow::Log(_) => &self.log_dropped,
            QueuedRow::Owner(_) => &self.owners_dropped,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn log_dropped(&self) -> u64 {
        self.log_dropped.load(Ordering::Relaxed)
    }

    pub(super) fn owners_dropped(&self) -> u64 {
        self.owners_dropped.load(Ordering::Relaxed)
    }

    pub(super) fn rows_waiting(&self) -> usize {
        self.queue().rows.len()
    }

    pub(super) fn close(&self) {
        self.queue().is_closing = true;
        self.wake.notify_all();
    }

    /// Lets go of whatever waits; those who wait for an answer are told that the store is closed.
    pub(super) fn abandon(&self) {
        let mut queue = self.queue();
        queue.is_closing = true;
        let jobs = std::mem::take(&mut queue.jobs);
        let rows = std::mem::take(&mut queue.rows);
        drop(queue);
        for row in &rows {
            self.count_dropped(row);
        }
        drop(jobs);
    }

    pub(super) fn observe(&self, observer: Box<WriteObserver>) -> bool {
        self.observer.set(observer).is_ok()
    }

    pub(super) fn observed(&self, took: Duration) {
        if let Some(observer) = self.observer.get() {
            observer(took);
        }
    }

    pub(super) fn health(&self, now: Instant) -> Health {
        let queue = self.queue();
        let waiting = queue.jobs.front().map(|job| job.asked_at());
        let oldest = [queue.oldest_running, waiting].into_iter().flatten().min();
        Health {
            queued: queue.jobs.len(),
            rows_queued: queue.rows.len(),
            oldest_unanswered: oldest.map(|at| now.saturating_duration_since(at)),
            last_success_at: queue.last_success_at,
            trouble: queue.trouble.clone(),
        }
    }
}

impl Queue {
    /// What can be done now; `is_due` says that the rows have waited long enough.
    fn take(&mut self, now: Instant, is_due: bool) -> Option<Work> {
        let may_write_rows = self.is_closing || self.rows_rest_until.is_none_or(|end| now >= end);
        let rows_go = may_write_rows
            && !self.rows.is_empty()
            && (is_due || self.is_closing || self.rows.len() >= ROWS_PER_COMMIT);
        if self.jobs.is_empty() && !rows_go {
            return None;
        }
        let jobs = self.jobs.len().min(JOBS_PER_COMMIT);
        let jobs: Vec<_> = self.jobs.drain(..jobs).collect();
        // Changes bring the rows before them along, so that whoever waits for one sees the other.
        let rows = if may_write_rows {
            self.rows.len().min(ROWS_PER_COMMIT)
        } else {
            0
        };
        let rows = self.rows.drain(..rows).collect();
        self.oldest_running = jobs.first().map(|job| job.asked_at());
        Some(Work { jobs, rows })
    }

    fn note(&mut self, error: Option<&StoreError>) {
        match error {
            None => {
                self.last_success_at = Some(clock::unix_millis());
                self.trouble = None;
            }
            Some(error) if error.is_disk() => self.trouble = Some(error.clone()),
            Some(_) => {}
        }
    }

    /// How long to wait before rows are due; `None` if there are none.
    fn delay(&self, now: Instant) -> Option<Duration> {
        if self.rows.is_empty() {
            return None;
        }
        let rest = self
            .rows_rest_until
            .map_or(Duration::ZERO, |end| end.saturating_duration_since(now));
        Some(ROW_DELAY.max(rest))
    }
}
