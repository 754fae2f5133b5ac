//! The one row that identifies a database and counts the changes of its configuration.
use super::{Store, error::StoreError};
use crate::clock;
use rusqlite::{Connection, params};

/// The version of the configuration: it goes up with every change of pool, settings or tokens.
pub fn config_version(conn: &Connection) -> Result<i64, StoreError> {
    let mut statement = conn.prepare_cached("SELECT config_version FROM meta")?;
    Ok(statement.query_row([], |row| row.get(0))?)
}

/// Counts a change of the configuration, in the transaction that makes it.
pub(super) fn touch(tx: &Connection) -> Result<(), StoreError> {
    tx.prepare_cached("UPDATE meta SET config_version = config_version + 1")?
        .execute([])?;
    Ok(())
}

pub(super) fn instance_secret(conn: &Connection) -> Result<[u8; 32], StoreError> {
    Ok(conn.query_row("SELECT instance_secret FROM meta", [], |row| row.get(0))?)
}

impl Store {
    /// The version of the configuration, for noticing what other processes changed. Cheap enough
    /// to be asked several times a second.
    pub async fn config_version(&self) -> Result<i64, StoreError> {
        self.read(config_version).await
    }

    /// Writes one row, so that a disk that refuses is noticed before somebody needs it.
    pub async fn probe(&self) -> Result<(), StoreError> {
        self.write(|tx| {
            tx.prepare_cached("UPDATE meta SET probed_at = ?1")?
                .execute(params![clock::unix_millis()])?;
            Ok(())
        })
        .await
    }
}
