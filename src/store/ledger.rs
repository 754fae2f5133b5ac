//! The request log.
//!
//! Invariant: ids ascend with time, so the newest rows are found, and the oldest removed, without
//! looking at the others. A value that is not known is null, never zero.
mod earlier;
mod quota;

use super::{Store, columns::Bits, error::StoreError};
use crate::domain::{
    ids::{AccountId, CredentialId, EndpointId, KeyId, RequestId},
    ledger::{Entry, Outcome},
    protocol::Protocol,
    reason::Reason,
};
use rusqlite::{CachedStatement, Connection, Row, ToSql, params};
use std::{collections::HashMap, sync::Arc};

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
fn tallies(conn: &Connection, since_ms: i64) -> Result<Vec<Tally>, StoreError> {
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

/// How many requests of each key that began at or after `since_ms` fairlane itself has refused.
pub fn refused_since(
    conn: &Connection,
    since_ms: i64,
) -> Result<HashMap<Option<KeyId>, u64>, StoreError> {
    let mut statement = conn.prepare_cached(
        "SELECT key_id, count(*) FROM requests
         WHERE id >= ?1 AND started_at >= ?2 AND outcome = ?3 GROUP BY key_id",
    )?;
    let refused = Outcome::Refused.name();
    let rows = statement.query_map(params![first_id(since_ms), since_ms, refused], |row| {
        let key = row.get::<_, Option<Bits>>(0)?;
        let count = u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0);
        Ok((key.map(|bits| KeyId::from_u128(bits.0)), count))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// How long the requests that began in one minute took to their first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstBytes {
    /// The minute, counted since 1970.
    pub minute: i64,
    /// Half of them had it by then.
    pub p50_ms: u64,
    /// Ninety-five of a hundred had it by then.
    pub p95_ms: u64,
    /// How many they are.
    pub count: usize,
}

/// The requests that began in a window and have ended, counted in one look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recent {
    /// By minute and outcome, oldest first.
    pub tallies: Vec<Tally>,
    /// By minute, oldest first, of those whose answer had a first byte. A minute that was not
    /// looked at whole is left out.
    pub first_bytes: Vec<FirstBytes>,
    /// The same over all of those minutes; its minute is the first of them.
    pub first_bytes_in_all: Option<FirstBytes>,
    /// Whether older first bytes were left unread, for there were more than [`FIRST_BYTES`].
    pub is_cut: bool,
}

/// First bytes that are looked at in one window: what bounds the cost of a look, however busy the
/// instance is.
pub const FIRST_BYTES: u32 = 20_000;

/// What began at or after `since_ms` and has ended.
pub fn recent(conn: &Connection, since_ms: i64, at_most: u32) -> Result<Recent, StoreError> {
    let mut statement = conn.prepare_cached(
        "SELECT started_at / 60000, first_byte_ms
         FROM requests WHERE id >= ?1 AND started_at >= ?2 AND first_byte_ms IS NOT NULL
         ORDER BY id DESC LIMIT ?3",
    )?;
    let values = params![first_id(since_ms), since_ms, at_most];
    let rows = statement.query_map(values, |row| {
        let ms: i64 = row.get(1)?;
        Ok((row.get(0)?, u64::try_from(ms).unwrap_or(0)))
    })?;
    let mut found: Vec<(i64, u64)> = rows.collect::<rusqlite::Result<_>>()?;
    let is_cut = found.len() >= at_most as usize;
    if is_cut && let Some((unfinished, _)) = found.last().copied() {
        found.retain(|(minute, _)| *minute > unfinished);
    }
    found.sort_unstable();
    let minutes = found.chunk_by(|a, b| a.0 == b.0);
    let first_bytes = minutes.filter_map(percentiles).collect();
    let first_bytes_in_all = {
        let first = found.first().map_or(0, |(minute, _)| *minute);
        let mut all: Vec<(i64, u64)> = found.iter().map(|(_, ms)| (first, *ms)).collect();
        all.sort_unstable();
        percentiles(&all)
    };
    Ok(Recent {
        tallies: tallies(conn, since_ms)?,
        first_bytes,
        first_bytes_in_all,
        is_cut,
    })
}

/// Of one minute's times in ascending order: the lowest that so many of a hundred do not exceed.
fn percentiles(ascending: &[(i64, u64)]) -> Option<FirstBytes> {
    let at = |percent: usize| {
        let rank = (ascending.len() * percent).div_ceil(100);
        ascending.get(rank.saturating_sub(1)).map(|(_, ms)| *ms)
    };
    Some(FirstBytes {
        minute: ascending.first()?.0,
        p50_ms: at(50)?,
        p95_ms: at(95)?,
        count: ascending.len(),
    })
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

    /// The requests that began at or after `since_ms` and have ended: how, and how soon their first
    /// byte came. One look, so that all numbers are of the same moment.
    pub async fn recent(&self, since_ms: i64) -> Result<Recent, StoreError> {
        self.read(move |conn| recent(conn, since_ms, FIRST_BYTES))
            .await
    }

    /// How many requests of that key began at or after `since_ms` and have ended.
    pub async fn use_of_key(&self, key: KeyId, since_ms: i64) -> Result<KeyUse, StoreError> {
        self.read(move |conn| use_of_key(conn, key, since_ms)).await
    }

    /// How many requests of each key that began at or after `since_ms` fairlane itself has refused.
    pub async fn refused_since(
        &self,
        since_ms: i64,
    ) -> Result<HashMap<Option<KeyId>, u64>, StoreError> {
        self.read(move |conn| refused_since(conn, since_ms)).await
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
