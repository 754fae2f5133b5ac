//! The pool as a whole: read in one go, and changed by a plan in one go.
use super::{
    Store, accounts,
    columns::Bits,
    credentials, endpoints,
    error::StoreError,
    keys,
    meta::{config_version, touch},
};
use crate::domain::pool::{
    document::{self, Change, ChangeKind, Document, Mistake, Mode, Plan, Tools},
    edges::Contents,
};
use crate::{digest, entropy};
use rusqlite::{Connection, params};
use std::sync::Arc;

/// The pool at one moment.
#[derive(Clone, Debug, Default)]
pub struct PoolSnapshot {
    /// The version of the configuration at that moment.
    pub version: i64,
    /// What there was.
    pub contents: Contents,
}

/// Reads the whole pool; consistent within the transaction that `conn` is in.
pub fn pool(conn: &Connection) -> Result<PoolSnapshot, StoreError> {
    Ok(PoolSnapshot {
        version: config_version(conn)?,
        contents: Contents {
            endpoints: endpoints::select(conn, None)?,
            accounts: accounts::select(conn, None)?,
            credentials: credentials::select(conn, None)?,
            keys: keys::select(conn, None)?
                .into_iter()
                .map(Arc::new)
                .collect(),
        },
    })
}

/// Carries out a plan that was worked out for the pool at `version`, all or nothing. Returns the
/// new version.
pub fn apply(tx: &Connection, version: i64, plan: &Plan) -> Result<i64, StoreError> {
    if config_version(tx)? != version {
        return Err(StoreError::Stale);
    }
    if plan.is_empty() {
        return Ok(version);
    }
    step_aside(tx, plan)?;
    for key in plan.keys.iter().filter(|c| c.kind == ChangeKind::Removed) {
        keys::remove(tx, key.value.id)?;
    }
    for endpoint in written(&plan.endpoints) {
        endpoints::upsert(tx, endpoint)?;
    }
    // Accounts may be made for credentials, and credentials are charged to accounts: rows first,
    // links after.
    for credential in written(&plan.credentials) {
        credentials::upsert(tx, credential)?;
    }
    for account in written(&plan.accounts) {
        accounts::upsert(tx, account)?;
    }
    for credential in written(&plan.credentials) {
        credentials::write_links(tx, credential)?;
    }
    for key in written(&plan.keys) {
        keys::upsert(tx, key)?;
    }
    touch(tx)?;
    config_version(tx)
}

/// What is to be inserted or updated.
fn written<T>(changes: &[Change<T>]) -> impl Iterator<Item = &T> {
    changes
        .iter()
        .filter(|c| !matches!(c.kind, ChangeKind::Unchanged | ChangeKind::Removed))
        .map(|c| &c.value)
}

/// Gives rows that will be updated a name (and keys a hash) that nobody has, so that two of them
/// can exchange theirs.
fn step_aside(tx: &Connection, plan: &Plan) -> Result<(), StoreError> {
    let mut credential = tx.prepare_cached(
        "UPDATE credentials SET name = 'credential in transit ' || hex(id) WHERE id = ?1",
    )?;
    for value in written(&plan.credentials) {
        credential.execute(params![Bits(value.id.as_u128())])?;
    }
    let mut key =
        tx.prepare_cached("UPDATE client_keys SET hash = randomblob(32) WHERE id = ?1")?;
    for value in written(&plan.keys) {
        key.execute(params![Bits(value.id.as_u128())])?;
    }
    Ok(())
}

impl Store {
    /// The whole pool, read at one moment.
    pub async fn pool(&self) -> Result<PoolSnapshot, StoreError> {
        self.read(pool).await
    }

    /// Works out what importing `document` over `existing` does, with this database's fingerprints.
    /// Nothing is written yet.
    pub fn plan(
        &self,
        document: &Document,
        existing: &Contents,
        mode: Mode,
    ) -> Result<Plan, Vec<Mistake>> {
        let mut tools = Tools {
            mint: &mut entropy::uuid7,
            new_secret: &mut || entropy::secret("fl-"),
            fingerprint: &|secret| self.fingerprint(secret),
            hash_key: &|secret| digest::sha256(secret.as_bytes()),
        };
        document::plan(document, existing, &mut tools, mode)
    }

    /// Carries out a plan that was worked out for the pool at `version`, all or nothing. Returns
    /// the new version; [`StoreError::Stale`] if anything was changed in between.
    pub async fn apply(&self, version: i64, plan: Plan) -> Result<i64, StoreError> {
        self.write(move |tx| apply(tx, version, &plan)).await
    }
}

#[cfg(test)]
mod tests;
