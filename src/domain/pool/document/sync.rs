//! What a sync does with things that a document no longer lists: they drain, client keys go.
//!
//! Only kinds that the document lists completely are touched, and nothing that a listed credential
//! still names.
use super::{
    Coverage,
    plan::{Draft, Fate, Row},
};
use crate::domain::{
    ids::{AccountId, CredentialId, EndpointId},
    pool::{Credential, Origin, State},
};
use std::collections::HashSet;

pub(super) fn drain(draft: &mut Draft<'_, '_>) {
    let covers = draft.document.covers.clone();
    let drained = drain_credentials(draft, covers.credentials.as_ref());
    let (accounts, endpoints) = still_named(&draft.credentials);
    if covers.endpoints {
        for row in &mut draft.endpoints {
            if !row.is_listed && !endpoints.contains(&row.now.id) {
                drain_one(&mut row.fate, &mut row.now.state);
            }
        }
    }
    let in_use = charged(&draft.credentials, &drained);
    for row in &mut draft.accounts {
        let id = row.now.id;
        let goes = match row.now.made_for {
            // Whoever it was made for takes it along, unless others are charged to it as well.
            Some(credential) => drained.contains(&credential) && !in_use.contains(&id),
            None => covers.accounts && !accounts.contains(&id),
        };
        if goes && !row.is_listed {
            drain_one(&mut row.fate, &mut row.now.state);
        }
    }
    if covers.keys {
        for row in draft.keys.iter_mut().filter(|row| !row.is_listed) {
            row.fate = Fate::Removed;
        }
    }
}

fn drain_credentials(
    draft: &mut Draft<'_, '_>,
    coverage: Option<&Coverage>,
) -> HashSet<CredentialId> {
    let Some(coverage) = coverage else {
        return HashSet::new();
    };
    let covered = covered_endpoints(draft, coverage);
    let is_covered = |c: &Credential| match coverage {
        Coverage::All => true,
        Coverage::At(_) => c.endpoints.iter().all(|e| covered.contains(e)),
        // One that takes no work already keeps its account as it is: that was somebody's doing.
        Coverage::Environment(_) => {
            c.origin == Origin::Environment
                && c.state == State::Active
                && c.endpoints.first().is_some_and(|e| covered.contains(e))
        }
    };
    let mut drained = HashSet::new();
    for row in &mut draft.credentials {
        if !row.is_listed && is_covered(&row.now) {
            drain_one(&mut row.fate, &mut row.now.state);
            drained.insert(row.now.id);
        }
    }
    drained
}

/// The endpoints that the coverage names, as far as there are such.
fn covered_endpoints(draft: &Draft<'_, '_>, coverage: &Coverage) -> HashSet<EndpointId> {
    let names = match coverage {
        Coverage::All => &[],
        Coverage::At(name) => std::slice::from_ref(name),
        Coverage::Environment(names) => names.as_slice(),
    };
    let rows = draft.endpoints.iter();
    rows.filter(|row| names.contains(&row.now.name))
        .map(|row| row.now.id)
        .collect()
}

/// Accounts and endpoints that listed credentials name.
fn still_named(rows: &[Row<Credential>]) -> (HashSet<AccountId>, HashSet<EndpointId>) {
    let listed = || rows.iter().filter(|row| row.is_listed);
    (
        listed().flat_map(|row| row.now.accounts.clone()).collect(),
        listed().flat_map(|row| row.now.endpoints.clone()).collect(),
    )
}

/// Accounts that others than the drained credentials are charged to.
fn charged(rows: &[Row<Credential>], drained: &HashSet<CredentialId>) -> HashSet<AccountId> {
    rows.iter()
        .filter(|row| !drained.contains(&row.now.id))
        .flat_map(|row| row.now.accounts.iter().copied())
        .collect()
}

/// What is disabled stays disabled: that is firmer than draining.
fn drain_one(fate: &mut Fate, state: &mut State) {
    if *state == State::Active {
        *state = State::Draining;
        *fate = Fate::Drained;
    }
}
