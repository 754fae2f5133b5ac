//! The audit log: who changed what, and when.
//!
//! Invariant: a line stands in the transaction that makes the change, and never holds a secret.
use super::{Store, columns::Bits, error::StoreError};
use crate::{clock, entropy};
use rusqlite::{Connection, params};

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
    /// Writes a line that belongs to no other change.
    pub async fn audit(
        &self,
        actor: String,
        action: &'static str,
        subject: String,
    ) -> Result<(), StoreError> {
        self.write(move |tx| {
            write(
                tx,
                &Line {
                    actor: &actor,
                    action,
                    subject: &subject,
                    detail: "",
                },
            )
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
