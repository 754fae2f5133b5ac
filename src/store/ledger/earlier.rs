//! What client keys used before this process began to count.
//!
//! Invariant: a request stands in at most one row, and rows that began after the process did are
//! left out, so that nothing is counted that was counted elsewhere.
use super::first_id;
use crate::{
    domain::{
        allowance::{Earlier, Wanted},
        ids::KeyId,
    },
    store::{Store, columns::Bits, error::StoreError},
};
use rusqlite::{Connection, params};
use std::collections::HashMap;

/// An id is made just before the moment of arrival is taken down.
const LEAD_MS: i64 = 1000;

/// The tokens and the beginnings of requests that are wanted, by key. Tokens are bounded row by row,
/// since `SQLite` refuses a sum that is too large. Whether a request that never went upstream was
/// counted is not known of it any more, and so of beginnings those are given that did.
fn earlier(conn: &Connection, wanted: Wanted) -> Result<Vec<Earlier>, StoreError> {
    let mut found: HashMap<u128, Earlier> = HashMap::new();
    let mut of = |key: u128, note: &dyn Fn(&mut Earlier)| {
        note(found.entry(key).or_insert_with(|| Earlier {
            key: KeyId::from_u128(key),
            tokens: 0,
            starts: Vec::new(),
        }));
    };
    let mut statement = conn.prepare_cached(
        "SELECT key_id, sum(min(coalesce(input_tokens, 0), 1000000000)
                            + min(coalesce(output_tokens, 0), 1000000000))
         FROM requests
         WHERE id >= ?1 AND started_at >= ?2 AND started_at < ?3 AND key_id IS NOT NULL
         GROUP BY key_id",
    )?;
    let from = |ms: i64| first_id(ms.saturating_sub(LEAD_MS));
    let day = params![
        from(wanted.day_from_ms),
        wanted.day_from_ms,
        wanted.until_ms
    ];
    let mut rows = statement.query(day)?;
    while let Some(row) = rows.next()? {
        let Bits(key) = row.get(0)?;
        let tokens = u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0);
        of(key, &|earlier| earlier.tokens = tokens);
    }
    let mut statement = conn.prepare_cached(
        "SELECT key_id, max(started_at), count(*)
         FROM requests
         WHERE id >= ?1 AND started_at >= ?2 AND started_at < ?3 AND key_id IS NOT NULL
           AND attempts > 0
         GROUP BY key_id, started_at / 1000",
    )?;
    let minute = params![
        from(wanted.minute_from_ms),
        wanted.minute_from_ms,
        wanted.until_ms
    ];
    let mut rows = statement.query(minute)?;
    while let Some(row) = rows.next()? {
        let Bits(key) = row.get(0)?;
        let start = (row.get(1)?, row.get(2)?);
        of(key, &|earlier| earlier.starts.push(start));
    }
    Ok(found.into_values().collect())
}

impl Store {
    /// What each client key used earlier: for a question that is asked once, since every row of the
    /// day is looked at.
    pub async fn earlier_use(&self, wanted: Wanted) -> Result<Vec<Earlier>, StoreError> {
        self.read(move |conn| earlier(conn, wanted)).await
    }
}
