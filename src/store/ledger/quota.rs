//! What upstream answered the credentials of one account lately, as evidence of what its limits
//! apply to.
//!
//! The log has the last attempt of each request alone, and so the successes; limits are kept apart,
//! since most requests move on from them.
//!
//! Invariant: the look is bounded, however long the log is.
use crate::{
    clock,
    domain::{
        ids::{AccountId, CredentialId},
        quota::Answered,
    },
    store::{Store, columns::Bits, error::StoreError},
};
use rusqlite::{Connection, params};

/// The newest rows that are looked at: some tens of milliseconds at most.
const LOOKED_AT: u32 = 20_000;

/// How long a limit is evidence.
const KEPT_MS: i64 = 7 * 24 * 3_600_000;

/// So many limits of an account are looked at, the newest.
const LIMITS_LOOKED_AT: u32 = 1_000;

/// Keeps when upstream answered credentials with a limit, and forgets what is old of the same.
fn keep_limits(tx: &Connection, met: &[(CredentialId, i64)]) -> Result<(), StoreError> {
    let before = clock::unix_millis().saturating_sub(KEPT_MS);
    let mut put =
        tx.prepare_cached("INSERT OR IGNORE INTO limits_met (credential_id, at) VALUES (?1, ?2)")?;
    let mut forget =
        tx.prepare_cached("DELETE FROM limits_met WHERE credential_id = ?1 AND at < ?2")?;
    for (credential, at) in met {
        let id = Bits(credential.as_u128());
        put.execute(params![id, at])?;
        forget.execute(params![id, before])?;
    }
    Ok(())
}

/// The account's successes of the newest rows, and its newest limits; work alone, since lists and
/// polls are not what is limited.
fn answers(conn: &Connection, account: AccountId) -> Result<Vec<Answered>, StoreError> {
    let mut statement = conn.prepare_cached(
        "SELECT credential_id, started_at + coalesce(headers_ms, 0) FROM (
           SELECT account_id, credential_id, started_at, headers_ms, status, reason, method
           FROM requests ORDER BY id DESC LIMIT ?2)
         WHERE account_id = ?1 AND credential_id IS NOT NULL AND reason IS NULL
           AND method = 'POST' AND status BETWEEN 200 AND 299",
    )?;
    let rows = statement.query_map(params![Bits(account.as_u128()), LOOKED_AT], |row| {
        Ok(Answered {
            credential: CredentialId::from_u128(row.get::<_, Bits>(0)?.0),
            at_ms: row.get(1)?,
            is_limited: false,
        })
    })?;
    let mut all: Vec<Answered> = rows.collect::<rusqlite::Result<_>>()?;
    all.extend(limits(conn, account)?);
    Ok(all)
}

fn limits(conn: &Connection, account: AccountId) -> Result<Vec<Answered>, StoreError> {
    let mut statement = conn.prepare_cached(
        "SELECT m.credential_id, m.at
         FROM credential_accounts a JOIN limits_met m ON m.credential_id = a.credential_id
         WHERE a.account_id = ?1 ORDER BY m.at DESC LIMIT ?2",
    )?;
    let wanted = params![Bits(account.as_u128()), LIMITS_LOOKED_AT];
    let rows = statement.query_map(wanted, |row| {
        Ok(Answered {
            credential: CredentialId::from_u128(row.get::<_, Bits>(0)?.0),
            at_ms: row.get(1)?,
            is_limited: true,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

impl Store {
    /// Keeps when upstream answered credentials with a limit.
    pub async fn keep_limits(&self, met: Vec<(CredentialId, i64)>) -> Result<(), StoreError> {
        self.write(move |tx| keep_limits(tx, &met)).await
    }

    /// Of the newest rows of the log, what upstream answered the credentials of one account.
    pub async fn answers(&self, account: AccountId) -> Result<Vec<Answered>, StoreError> {
        self.read(move |conn| answers(conn, account)).await
    }
}
