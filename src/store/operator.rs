//! The operator's password, as a hash.
//!
//! Invariant: whenever the hash changes, every session ends in the same transaction.
use super::{Store, error::StoreError, sessions};
use crate::clock;
use rusqlite::{Connection, OptionalExtension as _, params};

/// The hash of the password, in PHC form; `None` if none was ever set.
pub fn password_hash(conn: &Connection) -> Result<Option<String>, StoreError> {
    let mut statement = conn.prepare_cached("SELECT password_hash FROM operator")?;
    Ok(statement.query_row([], |row| row.get(0)).optional()?)
}

/// Sets or replaces the password's hash, and ends every session.
pub fn set_password_hash(tx: &Connection, hash: &str) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO operator (id, password_hash, changed_at) VALUES (1, ?1, ?2)
         ON CONFLICT (id) DO UPDATE SET
           password_hash = excluded.password_hash, changed_at = excluded.changed_at",
        params![hash, clock::unix_millis()],
    )?;
    sessions::remove_all(tx)?;
    Ok(())
}

/// Sets the first password's hash. `false` if there is one already, which stays.
pub fn set_first_password_hash(tx: &Connection, hash: &str) -> Result<bool, StoreError> {
    if password_hash(tx)?.is_some() {
        return Ok(false);
    }
    set_password_hash(tx, hash)?;
    Ok(true)
}

impl Store {
    /// The hash of the operator's password; `None` if none was ever set.
    pub async fn password_hash(&self) -> Result<Option<String>, StoreError> {
        self.read(password_hash).await
    }

    /// Sets or replaces the password's hash, and ends every session.
    pub async fn set_password_hash(&self, hash: String) -> Result<(), StoreError> {
        self.write(move |tx| set_password_hash(tx, &hash)).await
    }

    /// Sets the first password's hash. `false` if there is one already, which stays.
    pub async fn set_first_password_hash(&self, hash: String) -> Result<bool, StoreError> {
        self.write(move |tx| set_first_password_hash(tx, &hash))
            .await
    }
}
