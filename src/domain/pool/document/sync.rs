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
    pool::{Credential, State},
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
    for row in &mut draft.accounts {
        let goes = match row.now.made_for {
            // Whoever it was made for takes it along.
            Some(credential) => drained.contains(&credential),
            None => covers.accounts,
        };
        if goes && !row.is_listed && !accounts.contains(&row.now.id) {
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
    let only_at: Option<EndpointId> = match coverage {
        None => return HashSet::new(),
        Some(Coverage::All) => None,
        Some(Coverage::At(name)) => {
            let Some(row) = draft.endpoints.iter().find(|e| e.now.name == *name) else {
                return HashSet::new();
            };
            Some(row.now.id)
        }
    };
    let is_covered =
        |c: &Credential| only_at.is_none_or(|endpoint| c.endpoints.iter().all(|e| *e == endpoint));
    let mut drained = HashSet::new();
    for row in &mut draft.credentials {
        if !row.is_listed && is_covered(&row.now) {
            drain_one(&mut row.fate, &mut row.now.state);
            drained.insert(row.now.id);
        }
    }
    drained
}

/// Accounts and endpoints that listed credentials name.
fn still_named(rows: &[Row<Credential>]) -> (HashSet<AccountId>, HashSet<EndpointId>) {
    let listed = || rows.iter().filter(|row| row.is_listed);
    (
        listed().flat_map(|row| row.now.accounts.clone()).collect(),
        listed().flat_map(|row| row.now.endpoints.clone()).collect(),
    )
}

/// What is disabled stays disabled: that is firmer than draining.
fn drain_one(fate: &mut Fate, state: &mut State) {
    if *state == State::Active {
        *state = State::Draining;
        *fate = Fate::Drained;
    }
}
