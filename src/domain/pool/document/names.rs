//! Names: found among what there is, and made up where nobody gave one.
use super::plan::{Draft, Row};
use crate::domain::{
    ids::{AccountId, EndpointId},
    pool::{Account, Endpoint},
};
use std::{collections::HashSet, sync::Arc};

/// The first of `base-first`, `base-(first + 1)`, … that is not taken.
pub(super) fn numbered(base: &str, first: usize, taken: &HashSet<Arc<str>>) -> Arc<str> {
    let mut n = first;
    loop {
        let name: Arc<str> = format!("{base}-{n}").into();
        if !taken.contains(&name) {
            return name;
        }
        n += 1;
    }
}

/// The ids of the accounts called `names`; each unknown name is a mistake at its position.
pub(super) fn account_ids(
    draft: &mut Draft<'_, '_>,
    path: &str,
    names: &[Arc<str>],
) -> Vec<AccountId> {
    let find = |rows: &[Row<Account>], name: &str| {
        let row = rows.iter().find(|row| &*row.now.name == name)?;
        Some(row.now.id)
    };
    let found = ids(names, |name| find(&draft.accounts, name));
    let known = draft.accounts.iter().map(|row| row.now.name.clone());
    let known = known.collect();
    settle(draft, found, (path, "account"), known)
}

/// The ids of the endpoints called `names`; each unknown name is a mistake at its position.
pub(super) fn endpoint_ids(
    draft: &mut Draft<'_, '_>,
    path: &str,
    names: &[Arc<str>],
) -> Vec<EndpointId> {
    let find = |rows: &[Row<Endpoint>], name: &str| {
        let row = rows.iter().find(|row| &*row.now.name == name)?;
        Some(row.now.id)
    };
    let found = ids(names, |name| find(&draft.endpoints, name));
    let known = draft.endpoints.iter().map(|row| row.now.name.clone());
    let known = known.collect();
    settle(draft, found, (path, "endpoint"), known)
}

struct Found<Id> {
    ids: Vec<Id>,
    unknown: Vec<(usize, Arc<str>)>,
}

fn ids<Id: PartialEq>(names: &[Arc<str>], find: impl Fn(&str) -> Option<Id>) -> Found<Id> {
    let mut found = Found {
        ids: Vec::new(),
        unknown: Vec::new(),
    };
    for (n, name) in names.iter().enumerate() {
        match find(name) {
            // Naming one twice means it once.
            Some(id) if found.ids.contains(&id) => {}
            Some(id) => found.ids.push(id),
            None => found.unknown.push((n, name.clone())),
        }
    }
    found
}

fn settle<Id>(
    draft: &mut Draft<'_, '_>,
    found: Found<Id>,
    (path, kind): (&str, &str),
    mut known: Vec<Arc<str>>,
) -> Vec<Id> {
    known.sort_unstable();
    // As many as fit on a line.
    let some: Vec<&str> = known.iter().take(8).map(|name| &**name).collect();
    let hint = if some.is_empty() {
        "there are none yet".to_owned()
    } else {
        format!("there are {}", some.join(", "))
    };
    for (n, name) in found.unknown {
        if kind == "endpoint" && draft.broken_endpoints.contains(&name) {
            continue;
        }
        draft.mistake(
            format!("{path}.{kind}s[{n}]"),
            format!("no {kind} is called {name:?}; {hint}"),
        );
    }
    found.ids
}
