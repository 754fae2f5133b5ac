//! The pool as a whole: read in one go, and changed by a plan in one go.
use super::{
    Store, accounts,
    columns::Bits,
    credentials, endpoints,
    error::StoreError,
    keys,
    meta::{config_version, touch},
    settings::{Overrides, overrides},
};
use crate::domain::pool::{
    document::{self, Change, ChangeKind, Document, Mistake, Mode, Plan, Tools},
    edges::Contents,
};
use crate::{digest, entropy};
use arc_swap::ArcSwapOption;
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

/// The pool as it was read last. Reading a large one takes a while, and every change begins by
/// looking at what there is.
///
/// Invariant: what is known was committed, and every change of it raises the version; so whoever
/// sees the same version sees the same pool.
#[derive(Clone, Debug, Default)]
pub(super) struct Known(Arc<ArcSwapOption<PoolSnapshot>>);

impl Known {
    /// The pool as `conn` sees it.
    fn see(&self, conn: &Connection) -> Result<Arc<PoolSnapshot>, StoreError> {
        let version = config_version(conn)?;
        match self.0.load_full().filter(|known| known.version == version) {
            Some(known) => Ok(known),
            None => pool(conn).map(Arc::new),
        }
    }

    /// The same for a connection that sees only what was committed; it is known from then on.
    fn learn(&self, reader: &Connection) -> Result<Arc<PoolSnapshot>, StoreError> {
        let seen = self.see(reader)?;
        self.0.store(Some(Arc::clone(&seen)));
        Ok(seen)
    }
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
        let known = self.inner.known.clone();
        let seen = self.read(move |conn| known.learn(conn)).await?;
        Ok(PoolSnapshot::clone(&seen))
    }

    /// The whole pool and what the operator set, read at one moment.
    pub async fn configuration(&self) -> Result<(Arc<PoolSnapshot>, Overrides), StoreError> {
        let known = self.inner.known.clone();
        let read = move |conn: &Connection| Ok((known.learn(conn)?, overrides(conn)?));
        self.read(read).await
    }

    /// [`configuration`](Self::configuration) for threads that may block.
    pub fn configuration_blocking(&self) -> Result<(Arc<PoolSnapshot>, Overrides), StoreError> {
        let known = &self.inner.known;
        let known = known.clone();
        self.read_blocking(move |conn| Ok((known.learn(conn)?, overrides(conn)?)))
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
        let (secrets, known) = (self.secrets(), self.inner.known.clone());
        self.write(move |tx| {
            let planned = planned(tx, (&secrets, &known), work)?;
            if let Ok(plan) = &planned {
                apply(tx, plan)?;
            }
            Ok(planned)
        })
        .await
    }

    fn importing(
        &self,
        document: Document,
        mode: Mode,
    ) -> impl FnOnce(&Connection) -> Imported + Send + 'static {
        let plan = self.planning(document, mode);
        move |tx| {
            let planned = plan(tx)?;
            if let Ok(plan) = &planned {
                apply(tx, plan)?;
            }
            Ok(planned)
        }
    }

    fn planning(
        &self,
        document: Document,
        mode: Mode,
    ) -> impl FnOnce(&Connection) -> Imported + Send + 'static {
        let (secrets, known) = (self.secrets(), self.inner.known.clone());
        move |conn| {
            planned(conn, (&secrets, &known), |existing, tools| {
                document::plan(&document, existing, tools, mode).map_err(ImportError::Mistakes)
            })
        }
    }
}

/// What `work` plans to do to the pool as it is now; `secrets` keys the fingerprints.
fn planned<E>(
    conn: &Connection,
    (secrets, known): (&[u8; 32], &Known),
    work: impl FnOnce(&Contents, &mut Tools<'_>) -> Result<Plan, E>,
) -> Result<Result<Plan, E>, StoreError> {
    let seen = known.see(conn)?;
    let existing = &seen.contents;
    let mut tools = Tools {
        mint: &mut entropy::uuid7,
        new_secret: &mut || entropy::secret(entropy::CLIENT_KEY),
        fingerprint: &|secret| digest::keyed(secrets, secret.as_bytes()),
        hash_key: &|secret| digest::sha256(secret.as_bytes()),
    };
    Ok(work(existing, &mut tools))
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
