//! The audit log: who changed what, and when.
//!
//! Invariant: a line stands in the transaction that makes the change, and never holds a secret.
mod plan;

pub(super) use self::plan::write_plan;

use super::{Store, columns::Bits, error::StoreError};
use crate::{clock, entropy};
use rusqlite::{Connection, OptionalExtension as _, params};

/// One line to be written.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Who: `dashboard`, `token NAME`, `upstream`, `cli`.
    pub actor: &'a str,
    /// What was done, as verb and kind: `disable_credential`.
    pub action: &'a str,
    /// To what: its id.
    pub subject: &'a str,
    /// What else is to be known.
    pub detail: &'a str,
}

impl<'a> Line<'a> {
    /// Something that followed from what upstream said.
    pub const fn upstreams(action: &'a str, subject: &'a str, detail: &'a str) -> Self {
        Self {
            actor: "upstream",
            action,
            subject,
            detail,
        }
    }
}

/// A line as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Orders the lines.
    pub id: u128,
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// Who.
    pub actor: String,
    /// What was done.
    pub action: String,
    /// To what.
    pub subject: String,
    /// What else is to be known.
    pub detail: String,
}

/// Writes a line.
pub fn write(tx: &Connection, line: &Line<'_>) -> Result<(), StoreError> {
    tx.prepare_cached(
        "INSERT INTO audit (id, at, actor, action, subject, detail)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        Bits(entropy::uuid7()),
        clock::unix_millis(),
        line.actor,
        line.action,
        line.subject,
        line.detail
    ])?;
    Ok(())
}

/// A thing that is to be removed.
pub(super) struct Removal<'a> {
    /// Where it stands.
    pub(super) table: &'static str,
    /// What removing it is called.
    pub(super) action: &'static str,
    /// Its id in the table.
    pub(super) bits: u128,
    /// Its id as it is written.
    pub(super) subject: &'a str,
}

/// Removes a thing, and writes down who did and what its name was. `false` if there is none.
pub(super) fn removing(
    tx: &Connection,
    actor: &str,
    removal: &Removal<'_>,
    remove: impl FnOnce(&Connection) -> Result<bool, StoreError>,
) -> Result<bool, StoreError> {
    let sql = format!("SELECT name FROM {} WHERE id = ?1", removal.table);
    let name: Option<String> = tx
        .prepare_cached(&sql)?
        .query_row(params![Bits(removal.bits)], |row| row.get(0))
        .optional()?;
    let is_gone = remove(tx)?;
    if let Some(name) = name.filter(|_| is_gone) {
        let line = Line {
            actor,
            action: removal.action,
            subject: removal.subject,
            detail: &name,
        };
        write(tx, &line)?;
    }
    Ok(is_gone)
}

/// The newest `limit` lines before the one of id `before`, newest first.
pub fn lines(
    conn: &Connection,
    before: Option<u128>,
    limit: u32,
) -> Result<Vec<Written>, StoreError> {
    let mut statement = conn.prepare_cached(
        "SELECT id, at, actor, action, subject, detail FROM audit
         WHERE ?1 IS NULL OR id < ?1 ORDER BY id DESC LIMIT ?2",
    )?;
    let rows = statement.query_map(params![before.map(Bits), limit], |row| {
        Ok(Written {
            id: row.get::<_, Bits>(0)?.0,
            at: row.get(1)?,
            actor: row.get(2)?,
            action: row.get(3)?,
            subject: row.get(4)?,
            detail: row.get(5)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

impl Store {
    /// Writes a line that belongs to no other change, in the name of this handle.
    pub async fn audit(
        &self,
        action: &'static str,
        subject: String,
        detail: String,
    ) -> Result<(), StoreError> {
        let actor = self.actor();
        self.write(move |tx| {
            let line = Line {
                actor: &actor,
                action,
                subject: &subject,
                detail: &detail,
            };
            write(tx, &line)
        })
        .await
    }

    /// The newest `limit` lines before the one of id `before`, newest first.
    pub async fn audit_lines(
        &self,
        before: Option<u128>,
        limit: u32,
    ) -> Result<Vec<Written>, StoreError> {
        self.read(move |conn| lines(conn, before, limit)).await
    }
}

#[cfg(test)]
mod tests;
