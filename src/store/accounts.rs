//! Accounts: whoever the upstream bills and rate-limits.
use super::{
    Store, audit,
    columns::{Bits, check_name, exists, state_columns, state_from},
    error::StoreError,
    meta::touch,
};
use crate::{
    clock,
    domain::{
        ids::{AccountId, CredentialId},
        pool::{Account, QuotaScope},
    },
};
use rusqlite::{Connection, Row, params};
use std::sync::Arc;

const TABLE: &str = "accounts";
const KIND: &str = "account";

/// Every account, or the one of that id, in order of creation.
pub(super) fn select(conn: &Connection, id: Option<AccountId>) -> Result<Vec<Account>, StoreError> {
    let mut statement = conn.prepare_cached(
        "SELECT id, name, quota_scope, stream_limit, create_limit, job_limit, priority, weight,
                state, disabled_reason, made_for, cooldown_per_model, trust_reset
         FROM accounts WHERE ?1 IS NULL OR id = ?1 ORDER BY id",
    )?;
    let mut rows = statement.query(params![id.map(|id| Bits(id.as_u128()))])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(from_row(row)?);
    }
    Ok(found)
}

fn from_row(row: &Row<'_>) -> Result<Account, StoreError> {
    let scope: String = row.get(2)?;
    let (state, reason): (String, Option<String>) = (row.get(8)?, row.get(9)?);
    Ok(Account {
        id: AccountId::from_u128(row.get::<_, Bits>(0)?.0),
        name: row.get::<_, Arc<str>>(1)?,
        quota_scope: QuotaScope::from_name(&scope).ok_or_else(|| {
            StoreError::inconsistent(TABLE, format!("unknown quota scope {scope:?}"))
        })?,
        stream_limit: row.get(3)?,
        create_limit: row.get(4)?,
        job_limit: row.get(5)?,
        priority: row.get(6)?,
        weight: row.get(7)?,
        cooldown_per_model: row.get(11)?,
        trust_reset: row.get(12)?,
        state: state_from(TABLE, &state, reason.as_deref())?,
        made_for: row
            .get::<_, Option<Bits>>(10)?
            .map(|bits| CredentialId::from_u128(bits.0)),
    })
}

/// Inserts the account, or puts it in place of the one with its id.
pub(super) fn upsert(tx: &Connection, account: &Account) -> Result<(), StoreError> {
    let id = account.id.as_u128();
    check_name(tx, TABLE, KIND, (id, &account.name))?;
    let (state, reason) = state_columns(account.state);
    tx.prepare_cached(
        "INSERT INTO accounts
           (id, name, quota_scope, stream_limit, create_limit, job_limit, priority, weight,
            state, disabled_reason, made_for, created_at, updated_at, cooldown_per_model,
            trust_reset)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?12, ?13, ?14)
         ON CONFLICT (id) DO UPDATE SET
           name = excluded.name, quota_scope = excluded.quota_scope,
           stream_limit = excluded.stream_limit, create_limit = excluded.create_limit,
           job_limit = excluded.job_limit, priority = excluded.priority,
           weight = excluded.weight, state = excluded.state,
           disabled_reason = excluded.disabled_reason, made_for = excluded.made_for,
           updated_at = excluded.updated_at,
           cooldown_per_model = excluded.cooldown_per_model,
           trust_reset = excluded.trust_reset",
    )?
    .execute(params![
        Bits(id),
        &*account.name,
        account.quota_scope.name(),
        account.stream_limit,
        account.create_limit,
        account.job_limit,
        account.priority,
        account.weight,
        state,
        reason,
        account.made_for.map(|c| Bits(c.as_u128())),
        clock::unix_millis(),
        account.cooldown_per_model,
        account.trust_reset,
    ])?;
    Ok(())
}

/// Adds an account.
pub fn add(tx: &Connection, account: &Account) -> Result<(), StoreError> {
    upsert(tx, account)?;
    touch(tx)
}

/// Puts `account` in place of the one with its id. `false` if there is none.
pub fn update(tx: &Connection, account: &Account) -> Result<bool, StoreError> {
    if !exists(tx, TABLE, account.id.as_u128())? {
        return Ok(false);
    }
    upsert(tx, account)?;
    touch(tx)?;
    Ok(true)
}

/// Removes an account that no credential is charged to. Keys that were scoped to it lose it from
/// their scope. `false` if there is none.
pub fn remove(tx: &Connection, id: AccountId) -> Result<bool, StoreError> {
    let mut users = tx.prepare_cached(
        "SELECT c.name FROM credential_accounts a JOIN credentials c ON c.id = a.credential_id
         WHERE a.account_id = ?1 ORDER BY c.name",
    )?;
    let by = users
        .query_map(params![Bits(id.as_u128())], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<String>>>()?;
    if !by.is_empty() {
        return Err(StoreError::InUse { kind: KIND, by });
    }
    let gone = tx.execute(
        "DELETE FROM accounts WHERE id = ?1",
        params![Bits(id.as_u128())],
    )?;
    touch(tx)?;
    Ok(gone > 0)
}

impl Store {
    /// The account of that id.
    pub async fn account(&self, id: AccountId) -> Result<Option<Account>, StoreError> {
        self.read(move |conn| Ok(select(conn, Some(id))?.pop()))
            .await
    }

    /// Every account, in order of creation.
    pub async fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        self.read(|conn| select(conn, None)).await
    }

    /// Adds an account.
    pub async fn add_account(&self, account: Account) -> Result<(), StoreError> {
        self.write(move |tx| add(tx, &account)).await
    }

    /// Puts `account` in place of the one with its id. `false` if there is none.
    pub async fn update_account(&self, account: Account) -> Result<bool, StoreError> {
        self.write(move |tx| update(tx, &account)).await
    }

    /// Removes an account that no credential is charged to. `false` if there is none.
    pub async fn remove_account(&self, id: AccountId) -> Result<bool, StoreError> {
        let (actor, subject) = (self.actor(), id.to_string());
        self.write(move |tx| {
            let removal = audit::Removal {
                table: TABLE,
                action: "remove_account",
                bits: id.as_u128(),
                subject: &subject,
            };
            audit::removing(tx, &actor, &removal, |tx| remove(tx, id))
        })
        .await
    }
}
