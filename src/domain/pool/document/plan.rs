//! What an import would do, worked out before anything is done.
//!
//! Invariant: a plan names every thing there will be, changed or not; what it does not name is
//! not there. Carrying it out twice changes nothing the second time.
use super::{Document, Mistake, Warning, accounts, credentials, endpoints, keys, sync};
use crate::domain::{
    ids::KeyId,
    pool::{Account, ClientKey, Credential, Endpoint, Fingerprint, KeyHash, edges::Contents},
    secret::Secret,
};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// Whether what a document no longer lists is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It stays as it is.
    Merge,
    /// It drains; client keys are removed. Only kinds that the document lists completely.
    Sync,
}

/// What the plan needs from outside.
pub struct Tools<'a> {
    /// The 128 bits of a new id.
    pub mint: &'a mut dyn FnMut() -> u128,
    /// A new secret for a client key.
    pub new_secret: &'a mut dyn FnMut() -> String,
    /// The keyed hash of an upstream secret.
    pub fingerprint: &'a dyn Fn(&str) -> Fingerprint,
    /// The hash of a client key's secret.
    pub hash_key: &'a dyn Fn(&str) -> KeyHash,
}

/// What happens to one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// Its properties change.
    Changed,
    /// Its secret changes, and perhaps more.
    Rotated,
    /// It is no longer listed and takes no new work.
    Drained,
    /// It is no longer listed and goes.
    Removed,
    /// Nothing.
    Unchanged,
}

impl ChangeKind {
    /// The word in API, pages and terminal.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Rotated => "rotated",
            Self::Drained => "drained",
            Self::Removed => "removed",
            Self::Unchanged => "unchanged",
        }
    }
}

/// One thing as it will be (or, if it is removed, was).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change<T> {
    /// What happens to it.
    pub kind: ChangeKind,
    /// The thing.
    pub value: T,
}

/// A client key whose secret was minted; this is the only time that the secret is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MintedKey {
    /// Which key.
    pub id: KeyId,
    /// Its name.
    pub name: Arc<str>,
    /// Its secret.
    pub secret: Secret,
}

/// Everything that an import does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Every endpoint.
    pub endpoints: Vec<Change<Endpoint>>,
    /// Every account.
    pub accounts: Vec<Change<Account>>,
    /// Every credential.
    pub credentials: Vec<Change<Credential>>,
    /// Every client key.
    pub keys: Vec<Change<ClientKey>>,
    /// Secrets of new keys that came without one.
    pub minted: Vec<MintedKey>,
    /// What was put right or left out on the way.
    pub warnings: Vec<Warning>,
}

impl Plan {
    /// Whether it does nothing.
    pub fn is_empty(&self) -> bool {
        fn still<T>(changes: &[Change<T>]) -> bool {
            changes.iter().all(|c| c.kind == ChangeKind::Unchanged)
        }
        still(&self.endpoints)
            && still(&self.accounts)
            && still(&self.credentials)
            && still(&self.keys)
    }

    /// The pool after it was carried out.
    pub fn contents(&self) -> Contents {
        fn left<T: Clone>(changes: &[Change<T>]) -> impl Iterator<Item = T> {
            let stays = |c: &&Change<T>| c.kind != ChangeKind::Removed;
            changes.iter().filter(stays).map(|c| c.value.clone())
        }
        Contents {
            endpoints: left(&self.endpoints).collect(),
            accounts: left(&self.accounts).collect(),
            credentials: left(&self.credentials).collect(),
            keys: left(&self.keys).map(Arc::new).collect(),
        }
    }
}

/// One thing while the plan is being made.
pub(super) struct Row<T> {
    pub(super) before: Option<T>,
    pub(super) now: T,
    pub(super) is_listed: bool,
    pub(super) fate: Fate,
}

/// What sets a change apart from any other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Plain,
    Rotated,
    Drained,
    Removed,
}

impl<T: Clone + PartialEq> Row<T> {
    fn stored(thing: &T) -> Self {
        Self {
            before: Some(thing.clone()),
            now: thing.clone(),
            is_listed: false,
            fate: Fate::Plain,
        }
    }

    pub(super) fn fresh(now: T) -> Self {
        Self {
            before: None,
            now,
            is_listed: true,
            fate: Fate::Plain,
        }
    }

    fn finish(self) -> Change<T> {
        let kind = match (&self.before, self.fate) {
            (_, Fate::Removed) => ChangeKind::Removed,
            (None, _) => ChangeKind::Added,
            (Some(before), _) if *before == self.now => ChangeKind::Unchanged,
            (_, Fate::Rotated) => ChangeKind::Rotated,
            (_, Fate::Drained) => ChangeKind::Drained,
            (_, Fate::Plain) => ChangeKind::Changed,
        };
        Change {
            kind,
            value: self.now,
        }
    }
}

/// The plan while it is being made.
pub(super) struct Draft<'a, 't> {
    pub(super) document: &'a Document,
    pub(super) tools: &'a mut Tools<'t>,
    pub(super) endpoints: Vec<Row<Endpoint>>,
    pub(super) accounts: Vec<Row<Account>>,
    pub(super) credentials: Vec<Row<Credential>>,
    pub(super) keys: Vec<Row<ClientKey>>,
    pub(super) minted: Vec<MintedKey>,
    /// Endpoints that are listed but could not be read; naming them is no second mistake.
    pub(super) broken_endpoints: HashSet<Arc<str>>,
    pub(super) mistakes: Vec<Mistake>,
    pub(super) warnings: Vec<Warning>,
}

impl Draft<'_, '_> {
    pub(super) fn mistake(&mut self, path: impl Into<String>, what: impl Into<String>) {
        self.mistakes.push(Mistake::new(path, what));
    }

    pub(super) fn warn(&mut self, path: impl Into<String>, what: impl Into<String>) {
        self.warnings.push(Warning::new(path, what));
    }

    fn finish(self) -> Result<Plan, Vec<Mistake>> {
        if !self.mistakes.is_empty() {
            return Err(self.mistakes);
        }
        Ok(Plan {
            endpoints: self.endpoints.into_iter().map(Row::finish).collect(),
            accounts: self.accounts.into_iter().map(Row::finish).collect(),
            credentials: self.credentials.into_iter().map(Row::finish).collect(),
            keys: self.keys.into_iter().map(Row::finish).collect(),
            minted: self.minted,
            warnings: self.warnings,
        })
    }
}

/// Works out what importing `document` over `existing` does, or every mistake in it.
pub fn plan(
    document: &Document,
    existing: &Contents,
    tools: &mut Tools<'_>,
    mode: Mode,
) -> Result<Plan, Vec<Mistake>> {
    let mut draft = Draft {
        document,
        tools,
        endpoints: existing.endpoints.iter().map(Row::stored).collect(),
        accounts: existing.accounts.iter().map(Row::stored).collect(),
        credentials: existing.credentials.iter().map(Row::stored).collect(),
        keys: existing.keys.iter().map(|k| Row::stored(&**k)).collect(),
        minted: Vec::new(),
        broken_endpoints: HashSet::new(),
        mistakes: document.mistakes.clone(),
        warnings: document.warnings.clone(),
    };
    endpoints::plan(&mut draft);
    accounts::plan(&mut draft);
    credentials::plan(&mut draft);
    keys::plan(&mut draft);
    if mode == Mode::Sync {
        sync::drain(&mut draft);
    }
    draft.finish()
}

/// The entries whose name stands earlier in the list already, as mistakes. Entries whose name
/// could not be read are no duplicates of one another.
pub(super) fn repeated_names<'a>(
    entries: impl Iterator<Item = (&'a str, &'a str)>,
) -> Vec<Mistake> {
    let mut first: HashMap<&str, &str> = HashMap::new();
    let mut mistakes = Vec::new();
    for (path, name) in entries.filter(|(_, name)| !name.is_empty()) {
        match first.get(name) {
            Some(earlier) => mistakes.push(Mistake::new(
                format!("{path}.name"),
                format!("{name:?} is the name of {earlier} already"),
            )),
            None => {
                first.insert(name, path);
            }
        }
    }
    mistakes
}
