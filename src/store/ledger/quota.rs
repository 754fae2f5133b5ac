//! What upstream answered the credentials of one account lately, as evidence of what its limits
//! apply to.
//!
//! The log has the last attempt of each request alone: a 429 from which a request moved on to
//! another account is not in it. What is in it is true, so that less is known, never something
//! wrong.
//!
//! Invariant: the look is bounded, however long the log is.
use crate::{
    domain::{
        ids::{AccountId, CredentialId},
        quota::Answered,
    },
    store::{Store, columns::Bits, error::StoreError},
};
use rusqlite::{Connection, params};

/// The newest rows that are looked at: some tens of milliseconds at most.
const LOOKED_AT: u32 = 20_000;

/// Of the newest rows, the account's successes and limits; work alone, since lists and polls are
/// not what is limited, and no refusals of fairlane's own.
fn answers(conn: &Connection, account: AccountId) -> Result<Vec<Answered>, StoreError> {
    let mut statement = conn.prepare_cached(
        "SELECT credential_id, started_at + coalesce(headers_ms, 0), status FROM (
           SELECT account_id, credential_id, started_at, headers_ms, status, reason, method
           FROM requests ORDER BY id DESC LIMIT ?2)
         WHERE account_id = ?1 AND credential_id IS NOT NULL AND reason IS NULL
           AND method = 'POST' AND (status = 429 OR status BETWEEN 200 AND 299)",
    )?;
    let rows = statement.query_map(params![Bits(account.as_u128()), LOOKED_AT], |row| {
        Ok(Answered {
            credential: CredentialId::from_u128(row.get::<_, Bits>(0)?.0),
            at_ms: row.get(1)?,
            is_limited: row.get::<_, u16>(2)? == 429,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

impl Store {
    /// Of the newest rows of the log, what upstream answered the credentials of one account.
    pub async fn answers(&self, account: AccountId) -> Result<Vec<Answered>, StoreError> {
        self.read(move |conn| answers(conn, account)).await
    }
}
