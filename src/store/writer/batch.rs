//! Group commit: whatever queued while the previous commit ran goes into the next one.
//!
//! Invariant: every change runs in a savepoint of its own; what is answered with success was
//! committed.
use super::queue::{Job, QueuedRow, Shared};
use crate::{
    clock::Instant,
    store::{error::StoreError, file::LOCK_PATIENCE, ledger, owners},
};
use rusqlite::{CachedStatement, Connection, Transaction, TransactionBehavior};
use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

/// After so many rows whoever waits for this core has it first: requests go on in microseconds, a whole
/// batch takes milliseconds.
const ROWS_AT_A_STRETCH: usize = 16;

/// How long queued rows wait for another process's lock: changes must not stand behind them.
const ROW_LOCK_PATIENCE: Duration = Duration::from_millis(100);

/// Answers those who wait when the thread ends, in whatever way.
struct Farewell<'a>(&'a Shared);

impl Drop for Farewell<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// The writer thread: until the queue is closed and empty.
pub(super) fn serve(shared: &Shared, mut conn: Connection) {
    let _farewell = Farewell(shared);
    while let Some(work) = shared.next() {
        // Rows first: they were queued before whoever now waits for a change.
        write_rows(shared, &mut conn, work.rows);
        write_jobs(shared, &mut conn, work.jobs);
    }
    if let Err((_, error)) = conn.close() {
        tracing::error!(%error, "the database could not be closed");
    }
}

fn write_jobs(shared: &Shared, conn: &mut Connection, mut jobs: Vec<Box<dyn Job>>) {
    if jobs.is_empty() {
        return;
    }
    let outcome = commit(conn, &mut jobs);
    if let Err(error) = &outcome {
        tracing::error!(%error, changes = jobs.len(), "changes could not be written");
    }
    // A change that found the disk full says as much about the disk as a commit that did.
    let own = jobs.iter().filter_map(|job| job.failure());
    let trouble = outcome.as_ref().err().into_iter().chain(own);
    shared.note_jobs(trouble.into_iter().find(|error| error.is_disk()));
    for job in jobs {
        let took = Instant::now().saturating_duration_since(job.asked_at());
        job.answer(outcome.as_ref().err());
        shared.observed(took);
    }
}

fn commit(conn: &mut Connection, jobs: &mut [Box<dyn Job>]) -> Result<(), StoreError> {
    let mut tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for job in jobs {
        run_apart(&mut tx, job.as_mut())?;
    }
    Ok(tx.commit()?)
}

/// Runs one change in a savepoint. An error means that the whole transaction is gone.
fn run_apart(tx: &mut Transaction<'_>, job: &mut dyn Job) -> Result<(), StoreError> {
    let mut point = tx.savepoint()?;
    let is_kept = catch_unwind(AssertUnwindSafe(|| job.run(&point))).unwrap_or_else(|_| {
        tracing::error!("a change to the database panicked");
        false
    });
    // A full or failing disk makes SQLite roll everything back by itself. Going on would run the
    // remaining changes without a transaction.
    if point.is_autocommit() {
        return Err(job.failure().cloned().unwrap_or(StoreError::Panicked));
    }
    if !is_kept {
        point.rollback()?;
    }
    Ok(point.commit()?)
}

fn write_rows(shared: &Shared, conn: &mut Connection, rows: VecDeque<QueuedRow>) {
    if rows.is_empty() {
        return;
    }
    match insert_rows(conn, &rows) {
        Ok(refused) => {
            for row in refused {
                shared.count_dropped(row);
            }
            shared.note_rows(None);
        }
        Err(error) => {
            tracing::warn!(%error, rows = rows.len(), "queued rows could not be written");
            shared.note_rows(Some(&error));
            shared.put_back(rows);
        }
    }
}

/// The statements for each kind of row.
struct Insertions<'c> {
    log: CachedStatement<'c>,
    owner: CachedStatement<'c>,
}

impl Insertions<'_> {
    fn insert(&mut self, row: &QueuedRow) -> Result<(), StoreError> {
        match row {
            QueuedRow::Log(entry) => ledger::insert(&mut self.log, entry),
            QueuedRow::Owner(row) => owners::insert(&mut self.owner, row),
        }
    }
}

/// Inserts what can be inserted; gives the rows that no table would take.
fn insert_rows<'r>(
    conn: &mut Connection,
    rows: &'r VecDeque<QueuedRow>,
) -> Result<Vec<&'r QueuedRow>, StoreError> {
    conn.busy_timeout(ROW_LOCK_PATIENCE)?;
    let begun = conn.transaction_with_behavior(TransactionBehavior::Immediate);
    let inserted = begun.map_err(StoreError::from).and_then(|tx| {
        let mut refused = Vec::new();
        let mut insertions = Insertions {
            log: ledger::insertion(&tx)?,
            owner: owners::insertion(&tx)?,
        };
        for (n, row) in rows.iter().enumerate() {
            if n % ROWS_AT_A_STRETCH == ROWS_AT_A_STRETCH - 1 {
                std::thread::yield_now();
            }
            match insertions.insert(row) {
                Ok(()) => {}
                Err(error) if error.is_disk() => return Err(error),
                Err(error) => {
                    log_refused(row, &error);
                    refused.push(row);
                }
            }
        }
        drop(insertions);
        tx.commit()?;
        Ok(refused)
    });
    conn.busy_timeout(LOCK_PATIENCE)?;
    inserted
}

fn log_refused(row: &QueuedRow, error: &StoreError) {
    match row {
        QueuedRow::Log(entry) => {
            tracing::error!(%error, request = %entry.id, "a request log row was refused");
        }
        QueuedRow::Owner(row) => {
            let kind = row.object.kind.name();
            tracing::error!(%error, kind, "a row of the owners was refused");
        }
    }
}
