//! The request log.
//!
//! Invariant: ids ascend with time, so the newest rows are found, and the oldest removed, without
//! looking at the others. A value that is not known is null, never zero.
use super::{Store, columns::Bits, error::StoreError};
use crate::domain::{
    ids::{AccountId, CredentialId, EndpointId, KeyId, RequestId},
    ledger::{Entry, Outcome},
    protocol::Protocol,
    reason::Reason,
};
use rusqlite::{CachedStatement, Connection, Row, ToSql, params};
use std::sync::Arc;

/// Rows per page at most.
pub const PAGE: u32 = 500;

/// Rows removed per transaction: a few milliseconds of the writer's time.
const PRUNED_AT_ONCE: u32 = 1000;

const COLUMNS: &str = "id, started_at, key_id, account_id, credential_id, endpoint_id, protocol, \
     method, path, model, upstream_model, status, reason, outcome, attempts, request_bytes, \
     response_bytes, queued_ms, headers_ms, first_byte_ms, total_ms, input_tokens, \
     output_tokens, cached_tokens, upstream_request_id, error";

/// Which rows are wanted; `None` leaves a question open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerFilter {
    /// Only rows older than this one: the cursor.
    pub before: Option<RequestId>,
    /// Only this key's.
    pub key: Option<KeyId>,
    /// Only this account's.
    pub account: Option<AccountId>,
    /// Only this class of status: 2 for 200 to 299, and so on.
    pub status_class: Option<u16>,
    /// Only this outcome.
    pub outcome: Option<Outcome>,
    /// At most so many; no more than [`PAGE`].
    pub limit: u32,
}

/// The statement for [`insert`]. The same request twice is one row: a batch may be tried again
/// after an error that came too late.
pub(super) fn insertion(tx: &Connection) -> Result<CachedStatement<'_>, StoreError> {
    Ok(tx.prepare_cached(
        "INSERT INTO requests VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13,
           ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26)
         ON CONFLICT (id) DO NOTHING",
    )?)
}

/// Inserts a row.
pub(super) fn insert(statement: &mut CachedStatement<'_>, e: &Entry) -> Result<(), StoreError> {
    statement.execute(params![
        e.id.as_u128().to_be_bytes(),
        e.started_at,
        e.key.map(|id| id.as_u128().to_be_bytes()),
        e.account.map(|id| id.as_u128().to_be_bytes()),
        e.credential.map(|id| id.as_u128().to_be_bytes()),
        e.endpoint.map(|id| id.as_u128().to_be_bytes()),
        e.protocol.map(Protocol::name),
        &*e.method,
        &*e.path,
        e.model.as_deref(),
        e.upstream_model.as_deref(),
        e.status,
        e.reason.map(Reason::code),
        e.outcome.name(),
        e.attempts,
        stored(Some(e.request_bytes)),
        stored(Some(e.response_bytes)),
        stored(e.queued_ms),
        stored(e.headers_ms),
        stored(e.first_byte_ms),
        stored(e.total_ms),
        stored(e.input_tokens),
        stored(e.output_tokens),
        stored(e.cached_tokens),
        e.upstream_request_id.as_deref(),
        e.error.as_deref(),
    ])?;
    Ok(())
}

/// `SQLite`'s integers end at 2^63 - 1; nothing that is counted here gets there.
fn stored(number: Option<u64>) -> Option<i64> {
    number.map(|n| i64::try_from(n).unwrap_or(i64::MAX))
}

/// The newest rows that match, newest first.
pub fn requests(conn: &Connection, filter: &LedgerFilter) -> Result<Vec<Entry>, StoreError> {
    let mut conditions: Vec<(&str, Box<dyn ToSql>)> = Vec::new();
    if let Some(id) = filter.before {
        conditions.push(("id < ?", Box::new(Bits(id.as_u128()))));
    }
    if let Some(id) = filter.key {
        conditions.push(("key_id = ?", Box::new(Bits(id.as_u128()))));
    }
    if let Some(id) = filter.account {
        conditions.push(("account_id = ?", Box::new(Bits(id.as_u128()))));
    }
    if let Some(class) = filter.status_class {
        conditions.push(("status / 100 = ?", Box::new(class)));
    }
    if let Some(outcome) = filter.outcome {
        conditions.push(("outcome = ?", Box::new(outcome.name())));
    }
    let mut sql = format!("SELECT {COLUMNS} FROM requests");
    for (n, (condition, _)) in conditions.iter().enumerate() {
        sql.push_str(if n == 0 { " WHERE " } else { " AND " });
        sql.push_str(condition);
    }
    sql.push_str(" ORDER BY id DESC LIMIT ?");
    conditions.push(("", Box::new(filter.limit.min(PAGE))));
    let values = rusqlite::params_from_iter(conditions.iter().map(|(_, value)| value));
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(values)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(from_row(row)?);
    }
    Ok(found)
}

/// The row of that request.
pub fn request(conn: &Connection, id: RequestId) -> Result<Option<Entry>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM requests WHERE id = ?1");
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(params![Bits(id.as_u128())])?;
    rows.next()?.map(from_row).transpose()
}

fn from_row(row: &Row<'_>) -> Result<Entry, StoreError> {
    let id = |n: usize| -> rusqlite::Result<Option<u128>> {
        Ok(row.get::<_, Option<Bits>>(n)?.map(|bits| bits.0))
    };
    let text = |n: usize| row.get::<_, Option<Arc<str>>>(n);
    let number = |n: usize| -> rusqlite::Result<Option<u64>> {
        let stored: Option<i64> = row.get(n)?;
        Ok(stored.and_then(|n| u64::try_from(n).ok()))
    };
    let outcome: String = row.get(13)?;
    Ok(Entry {
        id: RequestId::from_u128(row.get::<_, Bits>(0)?.0),
        started_at: row.get(1)?,
        key: id(2)?.map(KeyId::from_u128),
        account: id(3)?.map(AccountId::from_u128),
        credential: id(4)?.map(CredentialId::from_u128),
        endpoint: id(5)?.map(EndpointId::from_u128),
        protocol: text(6)?.and_then(|name| Protocol::from_name(&name)),
        method: row.get(7)?,
        path: row.get(8)?,
        model: text(9)?,
        upstream_model: text(10)?,
        status: row.get(11)?,
        // A reason that another version knew has no meaning here; the row's status still has.
        reason: text(12)?.and_then(|code| Reason::from_code(&code)),
        outcome: outcome_from(&outcome)?,
        attempts: row.get(14)?,
        request_bytes: number(15)?.unwrap_or(0),
        response_bytes: number(16)?.unwrap_or(0),
        queued_ms: number(17)?,
        headers_ms: number(18)?,
        first_byte_ms: number(19)?,
        total_ms: number(20)?,
        input_tokens: number(21)?,
        output_tokens: number(22)?,
        cached_tokens: number(23)?,
        upstream_request_id: text(24)?,
        error: text(25)?,
    })
}

/// How much a client key was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyUse {
    /// How many requests came with it.
    pub count: u64,
    /// When the last of them began, in milliseconds since 1970.
    pub last_at: Option<i64>,
}

/// How many requests began in one minute and ended in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// The minute, counted since 1970.
    pub minute: i64,
    /// How they ended.
    pub outcome: Outcome,
    /// How many.
    pub count: u64,
}

/// The requests that began at or after `since_ms` and have ended, by minute and outcome, oldest
/// first.
pub fn tallies(conn: &Connection, since_ms: i64) -> Result<Vec<Tally>, StoreError> {
    let mut statement = conn.prepare_cached(
        "SELECT started_at / 60000 AS minute, outcome, count(*)
         FROM requests WHERE id >= ?1 AND started_at >= ?2
         GROUP BY minute, outcome ORDER BY minute",
    )?;
    let mut rows = statement.query(params![first_id(since_ms), since_ms])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let outcome: String = row.get(1)?;
        found.push(Tally {
            minute: row.get(0)?,
            outcome: outcome_from(&outcome)?,
            count: u64::try_from(row.get::<_, i64>(2)?).unwrap_or(0),
        });
    }
    Ok(found)
}

/// How many requests of that key began at or after `since_ms` and have ended, and when the last
/// of them began. Every request since then is looked at, so this is for a question, not for a list.
pub fn use_of_key(conn: &Connection, key: KeyId, since_ms: i64) -> Result<KeyUse, StoreError> {
    let mut statement = conn.prepare_cached(
        "SELECT count(*), max(started_at)
         FROM requests WHERE id >= ?1 AND started_at >= ?2 AND key_id = ?3",
    )?;
    let wanted = params![first_id(since_ms), since_ms, Bits(key.as_u128())];
    Ok(statement.query_row(wanted, |row| {
        Ok(KeyUse {
            count: u64::try_from(row.get::<_, i64>(0)?).unwrap_or(0),
            last_at: row.get(1)?,
        })
    })?)
}

fn outcome_from(name: &str) -> Result<Outcome, StoreError> {
    Outcome::from_name(name)
        .ok_or_else(|| StoreError::inconsistent("requests", format!("unknown outcome {name:?}")))
}

/// The lowest id of that moment: the first 48 bits of a `UUIDv7` are its milliseconds.
fn first_id(unix_ms: i64) -> Bits {
    Bits(u128::try_from(unix_ms).unwrap_or(0) << 80)
}

/// Removes some of the oldest rows whose request began before `before_ms`; says how many.
fn prune_some(tx: &Connection, before_ms: i64) -> Result<u32, StoreError> {
    let first_kept = first_id(before_ms);
    let mut statement = tx.prepare_cached(
        "DELETE FROM requests
         WHERE id IN (SELECT id FROM requests WHERE id < ?1 ORDER BY id LIMIT ?2)",
    )?;
    let gone = statement.execute(params![first_kept, PRUNED_AT_ONCE])?;
    Ok(u32::try_from(gone).unwrap_or(PRUNED_AT_ONCE))
}

impl Store {
    /// The newest rows that match, newest first. The last row's id is the cursor of the next page.
    pub async fn requests(&self, filter: LedgerFilter) -> Result<Vec<Entry>, StoreError> {
        self.read(move |conn| requests(conn, &filter)).await
    }

    /// The row of that request.
    pub async fn request(&self, id: RequestId) -> Result<Option<Entry>, StoreError> {
        self.read(move |conn| request(conn, id)).await
    }

    /// The requests that began at or after `since_ms` and have ended, by minute and outcome.
    pub async fn tallies(&self, since_ms: i64) -> Result<Vec<Tally>, StoreError> {
        self.read(move |conn| tallies(conn, since_ms)).await
    }

    /// How many requests of that key began at or after `since_ms` and have ended.
    pub async fn use_of_key(&self, key: KeyId, since_ms: i64) -> Result<KeyUse, StoreError> {
        self.read(move |conn| use_of_key(conn, key, since_ms)).await
    }

    /// Removes the rows of requests that began before `before_ms`, a few at a time, so that no
    /// change waits long behind it. Says how many.
    pub async fn prune_ledger(&self, before_ms: i64) -> Result<u64, StoreError> {
        let mut pruned = 0;
        loop {
            let some = self.write(move |tx| prune_some(tx, before_ms)).await?;
            pruned += u64::from(some);
            if some < PRUNED_AT_ONCE {
                return Ok(pruned);
            }
        }
    }
}

#[cfg(test)]
mod tests;
