//! Connections that may only read.
//!
//! Invariant: `SQLite` itself refuses to write through them; each call sees one consistent state.
use super::{error::StoreError, file::LOCK_PATIENCE};
use crate::blocking;
use rusqlite::{Connection, OpenFlags};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// Pages and API calls are few; more connections would only hold more cache.
const CONNECTIONS: u32 = 4;

/// How long a read waits for a connection to become free.
const POOL_PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct ReadOnly {
    path: PathBuf,
}

impl r2d2::ManageConnection for ReadOnly {
    type Connection = Connection;
    type Error = rusqlite::Error;

    fn connect(&self) -> Result<Connection, rusqlite::Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(&self.path, flags)?;
        conn.busy_timeout(LOCK_PATIENCE)?;
        conn.pragma_update(None, "query_only", true)?;
        conn.set_prepared_statement_cache_capacity(64);
        Ok(conn)
    }

    fn is_valid(&self, conn: &mut Connection) -> Result<(), rusqlite::Error> {
        conn.execute_batch("SELECT 1")
    }

    fn has_broken(&self, _: &mut Connection) -> bool {
        false
    }
}

/// A pool of read-only connections.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    pool: r2d2::Pool<ReadOnly>,
}

impl Reader {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let pool = r2d2::Pool::builder()
            .max_size(CONNECTIONS)
            // A start waits for this many.
            .min_idle(Some(1))
            .test_on_check_out(false)
            .connection_timeout(POOL_PATIENCE)
            .build(ReadOnly {
                path: path.to_owned(),
            })?;
        Ok(Self { pool })
    }

    /// Runs `work` in one read transaction on a thread that may block.
    pub(super) async fn run<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let reader = self.clone();
        blocking::run(move || reader.run_blocking(work))
            .await
            .ok_or(StoreError::Panicked)?
    }

    /// Runs `work` in one read transaction on this thread.
    pub(super) fn run_blocking<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        F: FnOnce(&Connection) -> Result<T, StoreError>,
    {
        let mut conn = self.pool.get()?;
        let tx = conn.transaction()?;
        work(&tx)
    }
}
