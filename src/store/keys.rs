//! Client keys: what clients present, stored as hashes.
use super::{
    Store, audit,
    columns::{
        Bits, Links, check_name, check_secret, check_there, exists, texts_column, texts_from,
    },
    error::StoreError,
    meta::touch,
};
use crate::{
    clock,
    domain::{
        ids::{AccountId, KeyId},
        pool::{ClientKey, KeyLimits},
    },
};
use rusqlite::{Connection, Row, params};
use std::{collections::HashMap, sync::Arc};

const TABLE: &str = "client_keys";
const KIND: &str = "key";

const ACCOUNTS: Links = Links {
    table: "client_key_accounts",
    from: "key_id",
    to: "account_id",
};

/// Every key, or the one of that id, in order of creation.
pub(super) fn select(conn: &Connection, id: Option<KeyId>) -> Result<Vec<ClientKey>, StoreError> {
    let bits = id.map(KeyId::as_u128);
    let mut accounts = ACCOUNTS.read(conn, bits)?;
    let mut statement = conn.prepare_cached(
        "SELECT id, name, hash, secret_hint, weight, is_scoped, models, expires_at,
                requests_per_minute, concurrency, tokens_per_day
         FROM client_keys WHERE ?1 IS NULL OR id = ?1 ORDER BY id",
    )?;
    let mut rows = statement.query(params![bits.map(Bits)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(from_row(row, &mut accounts)?);
    }
    Ok(found)
}

fn from_row(
    row: &Row<'_>,
    accounts: &mut HashMap<u128, Vec<u128>>,
) -> Result<ClientKey, StoreError> {
    let Bits(id) = row.get(0)?;
    let is_scoped: bool = row.get(5)?;
    let models: Option<String> = row.get(6)?;
    let tokens: Option<i64> = row.get(10)?;
    let scope = accounts.remove(&id).unwrap_or_default();
    Ok(ClientKey {
        id: KeyId::from_u128(id),
        name: row.get::<_, Arc<str>>(1)?,
        hash: row.get(2)?,
        secret_hint: row.get::<_, Arc<str>>(3)?,
        weight: row.get(4)?,
        accounts: is_scoped.then(|| scope.into_iter().map(AccountId::from_u128).collect()),
        models: texts_from(TABLE, models.as_deref())?,
        expires_at: row.get(7)?,
        limits: KeyLimits {
            requests_per_minute: row.get(8)?,
            concurrency: row.get(9)?,
            tokens_per_day: tokens.and_then(|n| u64::try_from(n).ok()),
        },
    })
}

/// Inserts the key, or puts it in place of the one with its id.
pub(super) fn upsert(tx: &Connection, key: &ClientKey) -> Result<(), StoreError> {
    let id = key.id.as_u128();
    check_name(tx, TABLE, KIND, (id, &key.name))?;
    check_secret(tx, (TABLE, "hash"), KIND, (id, &key.hash))?;
    let scope = || key.accounts.iter().flatten().map(|a| a.as_u128());
    check_there(tx, ("accounts", "account"), KIND, scope())?;
    tx.prepare_cached(
        "INSERT INTO client_keys
           (id, name, hash, secret_hint, weight, is_scoped, models, expires_at,
            requests_per_minute, concurrency, tokens_per_day, created_at, updated_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?12)
         ON CONFLICT (id) DO UPDATE SET
           name = excluded.name, hash = excluded.hash, secret_hint = excluded.secret_hint,
           weight = excluded.weight, is_scoped = excluded.is_scoped, models = excluded.models,
           expires_at = excluded.expires_at,
           requests_per_minute = excluded.requests_per_minute,
           concurrency = excluded.concurrency, tokens_per_day = excluded.tokens_per_day,
           updated_at = excluded.updated_at",
    )?
    .execute(params![
        Bits(id),
        &*key.name,
        key.hash,
        &*key.secret_hint,
        key.weight,
        key.accounts.is_some(),
        texts_column(key.models.as_deref()),
        key.expires_at,
        key.limits.requests_per_minute,
        key.limits.concurrency,
        // More than a column holds is as good as that.
        key.limits
            .tokens_per_day
            .map(|n| i64::try_from(n).unwrap_or(i64::MAX)),
        clock::unix_millis(),
    ])?;
    ACCOUNTS.write(tx, id, scope())
}

/// Adds a key.
pub fn add(tx: &Connection, key: &ClientKey) -> Result<(), StoreError> {
    upsert(tx, key)?;
    touch(tx)
}

/// Puts `key` in place of the one with its id. `false` if there is none.
pub fn update(tx: &Connection, key: &ClientKey) -> Result<bool, StoreError> {
    if !exists(tx, TABLE, key.id.as_u128())? {
        return Ok(false);
    }
    upsert(tx, key)?;
    touch(tx)?;
    Ok(true)
}

/// Removes a key. `false` if there is none.
pub fn remove(tx: &Connection, id: KeyId) -> Result<bool, StoreError> {
    let gone = tx.execute(
        "DELETE FROM client_keys WHERE id = ?1",
        params![Bits(id.as_u128())],
    )?;
    touch(tx)?;
    Ok(gone > 0)
}

impl Store {
    /// The key of that id.
    pub async fn key(&self, id: KeyId) -> Result<Option<ClientKey>, StoreError> {
        self.read(move |conn| Ok(select(conn, Some(id))?.pop()))
            .await
    }

    /// Every key, in order of creation.
    pub async fn keys(&self) -> Result<Vec<ClientKey>, StoreError> {
        self.read(|conn| select(conn, None)).await
    }

    /// Adds a key.
    pub async fn add_key(&self, key: ClientKey) -> Result<(), StoreError> {
        self.write(move |tx| add(tx, &key)).await
    }

    /// Puts `key` in place of the one with its id. `false` if there is none.
    pub async fn update_key(&self, key: ClientKey) -> Result<bool, StoreError> {
        self.write(move |tx| update(tx, &key)).await
    }

    /// Removes a key. `false` if there is none.
    pub async fn remove_key(&self, id: KeyId) -> Result<bool, StoreError> {
        let (actor, subject) = (self.actor(), id.to_string());
        self.write(move |tx| {
            let removal = audit::Removal {
                table: TABLE,
                action: "remove_key",
                bits: id.as_u128(),
                subject: &subject,
            };
            audit::removing(tx, &actor, &removal, |tx| remove(tx, id))
        })
        .await
    }
}
