//! The pool as a whole: read in one go, and changed by a plan in one go.
use super::{
    Store, accounts, audit,
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

/// Carries out a plan that was worked out in the same transaction, all or nothing. Returns the
/// version of the configuration after it.
pub fn apply(tx: &Connection, plan: &Plan) -> Result<i64, StoreError> {
    if plan.is_empty() {
        return config_version(tx);
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

    /// Imports `document`: works out what that changes and writes it, in one transaction.
    pub async fn import(&self, document: Document, mode: Mode) -> Result<Plan, ImportError> {
        self.write(self.importing(document, mode)).await?
    }

    /// [`import`](Self::import) for threads that may block.
    pub fn import_blocking(&self, document: Document, mode: Mode) -> Result<Plan, ImportError> {
        self.write_blocking(self.importing(document, mode))?
    }

    /// What [`import`](Self::import) would do; nothing is written.
    pub async fn plan_import(&self, document: Document, mode: Mode) -> Result<Plan, ImportError> {
        self.read(self.planning(document, mode)).await?
    }

    /// [`plan_import`](Self::plan_import) for threads that may block.
    pub fn plan_import_blocking(
        &self,
        document: Document,
        mode: Mode,
    ) -> Result<Plan, ImportError> {
        self.read_blocking(self.planning(document, mode))?
    }

    /// Changes the pool by the plan that `work` makes of what there is, in one transaction. What
    /// `work` refuses changes nothing.
    pub async fn change_pool<E, F>(&self, work: F) -> Result<Result<Plan, E>, StoreError>
    where
        E: Send + 'static,
        F: FnOnce(&Contents, &mut Tools<'_>) -> Result<Plan, E> + Send + 'static,
    {
        let (secrets, actor) = (self.secrets(), self.actor());
        self.write(move |tx| carried_out(tx, &actor, &secrets, work))
            .await
    }

    fn importing(
        &self,
        document: Document,
        mode: Mode,
    ) -> impl FnOnce(&Connection) -> Imported + Send + 'static {
        let (secrets, actor) = (self.secrets(), self.actor());
        move |tx| carried_out(tx, &actor, &secrets, planner(document, mode))
    }

    fn planning(
        &self,
        document: Document,
        mode: Mode,
    ) -> impl FnOnce(&Connection) -> Imported + Send + 'static {
        let secrets = self.secrets();
        move |conn| {
            let (_, planned) = planned(conn, &secrets, planner(document, mode))?;
            Ok(planned)
        }
    }
}

/// Plans the import of a document.
fn planner(
    document: Document,
    mode: Mode,
) -> impl FnOnce(&Contents, &mut Tools<'_>) -> Result<Plan, ImportError> {
    move |existing, tools| {
        document::plan(&document, existing, tools, mode).map_err(ImportError::Mistakes)
    }
}

/// Carries out what `work` plans, and writes down who did.
fn carried_out<E>(
    tx: &Connection,
    actor: &str,
    secrets: &[u8; 32],
    work: impl FnOnce(&Contents, &mut Tools<'_>) -> Result<Plan, E>,
) -> Result<Result<Plan, E>, StoreError> {
    let (before, planned) = planned(tx, secrets, work)?;
    if let Ok(plan) = &planned {
        apply(tx, plan)?;
        audit::write_plan(tx, actor, &before, plan)?;
    }
    Ok(planned)
}

/// The pool as it is now, and what `work` plans to do to it; `secrets` keys the fingerprints.
fn planned<E>(
    conn: &Connection,
    secrets: &[u8; 32],
    work: impl FnOnce(&Contents, &mut Tools<'_>) -> Result<Plan, E>,
) -> Result<(Contents, Result<Plan, E>), StoreError> {
    let existing = pool(conn)?.contents;
    let mut tools = Tools {
        mint: &mut entropy::uuid7,
        new_secret: &mut || entropy::secret(entropy::CLIENT_KEY),
        fingerprint: &|secret| digest::keyed(secrets, secret.as_bytes()),
        hash_key: &|secret| digest::sha256(secret.as_bytes()),
    };
    let plan = work(&existing, &mut tools);
    Ok((existing, plan))
}

/// The outer result is the database's, the inner one the document's.
type Imported = Result<Result<Plan, ImportError>, StoreError>;

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The document has mistakes; every one of them.
    #[error("{}", lines(.0))]
    Mistakes(Vec<Mistake>),
    /// The database refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn lines(mistakes: &[Mistake]) -> String {
    let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
