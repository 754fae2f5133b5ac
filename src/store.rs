//! The store: one `SQLite` file, one thread that writes, a few connections that read.
//!
//! Invariant: what was acknowledged is on disk. Whatever else happens (a full disk, a foreign
//! lock, a panic inside one change), no acknowledged change is lost and no change is half made.
//!
//! Each kind of thing has a file with its verbs: functions over a connection for those that are
//! inside a transaction already, and methods of [`Store`] for everybody else.
pub mod accounts;
pub mod audit;
pub mod credentials;
pub mod endpoints;
pub mod keys;
pub mod ledger;
pub mod operator;
pub mod owners;
pub mod pool;
pub mod sessions;
pub mod settings;
pub mod standing;
pub mod tokens;

mod claim;
mod columns;
mod error;
mod file;
mod meta;
mod migrations;
mod reader;
mod writer;

use crate::{digest, domain::ledger::Entry, domain::pool::Fingerprint};
use rusqlite::Connection;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

pub use self::{
    claim::Claim,
    error::{Fault, Refusal, StoreError},
    meta::config_version,
    writer::{Health, WriteObserver},
};

/// A handle on the database; cheap to clone. The last one to go closes the file.
#[derive(Clone, Debug)]
pub struct Store {
    inner: Arc<Inner>,
    /// In whose name the audit log has what is changed through this handle.
    actor: Arc<str>,
}

#[derive(Debug)]
struct Inner {
    // Dropped in this order: the readers go first, so that the writer is the last connection and
    // folds the log into the file.
    reader: reader::Reader,
    writer: writer::Writer,
    path: PathBuf,
    instance_secret: [u8; 32],
}

impl Store {
    /// Opens the database at `path`, creates it if there is none, and brings its schema up to
    /// date. Blocks; the error's text is one line for the operator.
    ///
    /// Once per file and process: opening and closing the file by other means than `SQLite`'s, as
    /// looking at its header does, gives up every lock that this process holds on it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let conn = file::open(path).map_err(|refusal| StoreError::Refused {
            path: path.to_owned(),
            refusal,
        })?;
        let instance_secret = meta::instance_secret(&conn)?;
        let writer = writer::Writer::spawn(conn)?;
        let reader = reader::Reader::open(path)?;
        Ok(Self {
            inner: Arc::new(Inner {
                reader,
                writer,
                path: path.to_owned(),
                instance_secret,
            }),
            actor: "cli".into(),
        })
    }

    /// A handle whose changes stand in the audit log as those of `actor`. Who opened the database is
    /// `cli`.
    #[must_use]
    pub fn acting_as(&self, actor: impl Into<Arc<str>>) -> Self {
        Self {
            actor: actor.into(),
            ..self.clone()
        }
    }

    fn actor(&self) -> Arc<str> {
        Arc::clone(&self.actor)
    }

    /// Claims the database for serving; refused while another instance serves from it.
    pub fn claim(&self) -> Result<Claim, StoreError> {
        Claim::take(&self.inner.path)
    }

    /// Where the database is.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// The keyed hash of an upstream secret; the key is this database's own and never changes.
    pub fn fingerprint(&self, secret: &str) -> Fingerprint {
        digest::keyed(&self.inner.instance_secret, secret.as_bytes())
    }

    /// What the keyed hash of upstream secrets is keyed with.
    fn secrets(&self) -> [u8; 32] {
        self.inner.instance_secret
    }

    /// Makes a change: `work` runs in a transaction on the writer's thread, and the answer comes
    /// after the commit. An error from `work` undoes the change.
    pub async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let answer = self.inner.writer.submit(work)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// [`write`](Self::write) for threads that may block.
    pub fn write_blocking<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let answer = self.inner.writer.submit(work)?;
        answer.blocking_recv().map_err(|_| StoreError::Closed)?
    }

    /// Reads: `work` sees one consistent state, and `SQLite` refuses it any change.
    pub async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        self.inner.reader.run(work).await
    }

    /// [`read`](Self::read) for threads that may block.
    pub fn read_blocking<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        F: FnOnce(&Connection) -> Result<T, StoreError>,
    {
        self.inner.reader.run_blocking(work)
    }

    /// Puts a row into the request log, soon. Never waits; a row for which there is no room is
    /// dropped and counted. Says whether it was taken.
    pub fn try_log(&self, entry: Box<Entry>) -> bool {
        self.inner.writer.try_log(entry)
    }

    /// How many rows of the request log were dropped since the start.
    pub fn ledger_dropped(&self) -> u64 {
        self.inner.writer.log_dropped()
    }

    /// Waits until the queued rows that were taken so far are on disk.
    pub async fn flush(&self) -> Result<(), StoreError> {
        // Each change takes a batch of rows along; new ones may keep coming, so the rounds are
        // bounded by what was there at the beginning.
        let mut left = self.inner.writer.rows_waiting();
        loop {
            self.write(|_| Ok(())).await?;
            let waiting = self.inner.writer.rows_waiting();
            if waiting == 0 {
                return Ok(());
            }
            if waiting >= left {
                return self.health().trouble.map_or(Ok(()), Err);
            }
            left = waiting;
        }
    }

    /// How the writer fares, for readiness and metrics.
    pub fn health(&self) -> Health {
        self.inner.writer.health()
    }

    /// Tells `observer` how long each change took from being asked for to its commit. The first
    /// observer stays; says whether this is it.
    pub fn observe_writes(&self, observer: Box<WriteObserver>) -> bool {
        self.inner.writer.observe(observer)
    }

    /// Takes no more changes, writes what is queued and closes the file. Blocks.
    pub fn close(&self) {
        self.inner.writer.close();
    }
}

#[cfg(test)]
mod tests;
