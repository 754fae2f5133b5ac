//! The audit lines of a plan for the pool: one for each thing that it changes, one for all where it
//! changes very many.
use super::{Line, write};
use crate::{
    domain::pool::{
        Account, ClientKey, Credential, Endpoint, State,
        document::{Change, ChangeKind, Plan},
        edges::Contents,
    },
    store::error::StoreError,
};
use rusqlite::Connection;
use std::{collections::HashMap, fmt::Display, hash::Hash, sync::Arc};

/// A plan of more changes than these is the import of a whole list, which says itself what it was.
const LINES: usize = 100;

/// What was done to one thing.
struct Done {
    action: String,
    subject: String,
    name: Arc<str>,
}

/// What the log needs of a thing.
type Look<T, Id> = fn(&T) -> (Id, &Arc<str>, Option<State>);

/// Writes what a plan does to the pool as it was `before`, in the transaction that carries it out.
pub(in crate::store) fn write_plan(
    tx: &Connection,
    actor: &str,
    before: &Contents,
    plan: &Plan,
) -> Result<(), StoreError> {
    let endpoint: Look<Endpoint, _> = |e| (e.id, &e.name, Some(e.state));
    let account: Look<Account, _> = |a| (a.id, &a.name, Some(a.state));
    let credential: Look<Credential, _> = |c| (c.id, &c.name, Some(c.state));
    let key: Look<ClientKey, _> = |k| (k.id, &k.name, None);
    let keys = before.keys.iter().map(|k| &**k);
    let mut done = changed(
        "endpoint",
        &plan.endpoints,
        before.endpoints.iter(),
        endpoint,
    );
    done.extend(changed(
        "account",
        &plan.accounts,
        before.accounts.iter(),
        account,
    ));
    let credentials = before.credentials.iter();
    done.extend(changed(
        "credential",
        &plan.credentials,
        credentials,
        credential,
    ));
    done.extend(changed("key", &plan.keys, keys, key));
    if done.len() > LINES {
        let detail = format!("{} changes", done.len());
        return write(tx, &line(actor, "import_pool", ("pool", &detail)));
    }
    done.iter()
        .try_for_each(|one| write(tx, &line(actor, &one.action, (&one.subject, &one.name))))
}

fn line<'a>(actor: &'a str, action: &'a str, (subject, detail): (&'a str, &'a str)) -> Line<'a> {
    Line {
        actor,
        action,
        subject,
        detail,
    }
}

fn changed<'a, T: 'a, Id: Display + Eq + Hash>(
    kind: &str,
    changes: &[Change<T>],
    before: impl Iterator<Item = &'a T>,
    look: Look<T, Id>,
) -> Vec<Done> {
    let states: HashMap<Id, Option<State>> = before
        .map(|thing| {
            let (id, _, state) = look(thing);
            (id, state)
        })
        .collect();
    let done = |change: &Change<T>| {
        let (id, name, state) = look(&change.value);
        let was = states.get(&id).copied().flatten();
        Some(Done {
            action: format!("{}_{kind}", verb(change.kind, was, state)?),
            subject: id.to_string(),
            name: Arc::clone(name),
        })
    };
    changes.iter().filter_map(done).collect()
}

/// What was done, where anything was.
fn verb(kind: ChangeKind, was: Option<State>, is: Option<State>) -> Option<&'static str> {
    let turned = (was != is).then_some(is).flatten();
    match (kind, turned) {
        (ChangeKind::Unchanged, _) => None,
        (ChangeKind::Added, _) => Some("add"),
        (ChangeKind::Rotated, _) => Some("rotate"),
        (ChangeKind::Removed, _) => Some("remove"),
        (ChangeKind::Changed, Some(State::Active)) => Some("enable"),
        (ChangeKind::Changed, Some(State::Disabled(_))) => Some("disable"),
        (ChangeKind::Changed, Some(State::Draining)) | (ChangeKind::Drained, _) => Some("drain"),
        (ChangeKind::Changed, None) => Some("change"),
    }
}
