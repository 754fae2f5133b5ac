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

    /// Has `SQLite` look through the whole file; gives what it finds wrong, a line each. Blocks
    /// for as long as reading the file takes.
    pub fn integrity_blocking(&self) -> Result<Vec<String>, StoreError> {
        self.read_blocking(|conn| {
            let mut faults = Vec::new();
            conn.pragma_query(None, "integrity_check", |row| {
                faults.push(row.get::<_, String>(0)?);
                Ok(())
            })?;
            faults.retain(|line| line != "ok");
            conn.pragma_query(None, "foreign_key_check", |row| {
                let (table, parent): (String, String) = (row.get(0)?, row.get(2)?);
                faults.push(format!(
                    "a row of {table} names a row of {parent} that is not there"
                ));
                Ok(())
            })?;
            Ok(faults)
        })
    }
}
