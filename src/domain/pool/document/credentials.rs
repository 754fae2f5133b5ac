//! Credentials of a document: known again by their secret, whatever their name or place.
//!
//! The order of the steps is the rule: fingerprints first, then names that a person gave and whose
//! stored secret stands nowhere in the document (a rotation), then the names of those that are
//! new. A name that somebody states is theirs; whoever had it before and is somebody else by
//! secret gets a made-up one.
use super::{
    CredentialEntry, Field, OnMatch, accounts, listed_state,
    names::{account_ids, endpoint_ids, numbered},
    plan::{Draft, Fate, Row, repeated_names},
};
use crate::domain::{
    ids::{AccountId, CredentialId, EndpointId},
    pool::{Credential, DisabledReason, Fingerprint, Origin, State},
    secret::Secret,
};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// An entry together with the credential that it describes.
struct Matched<'a> {
    entry: &'a CredentialEntry,
    row: Option<usize>,
    is_rotation: bool,
    /// The secret that it will have and its fingerprint.
    secret: Secret,
    fingerprint: Fingerprint,
}

pub(super) fn plan(draft: &mut Draft<'_, '_>) {
    let matched = match_entries(draft);
    let described: Vec<(usize, &CredentialEntry)> = matched
        .iter()
        .filter_map(|m| Some((describe(draft, m)?, m.entry)))
        .collect();
    settle_names(draft, &described);
    for (row, entry) in &described {
        settle_accounts(draft, *row, entry);
    }
    release_own_accounts(draft);
}

fn match_entries<'a>(draft: &mut Draft<'a, '_>) -> Vec<Matched<'a>> {
    let entries: Vec<(&CredentialEntry, Option<Fingerprint>)> = draft
        .document
        .credentials
        .iter()
        .map(|e| {
            let print = e.secret.as_ref();
            (e, print.map(|s| (draft.tools.fingerprint)(s.expose())))
        })
        .collect();
    let prints: HashSet<Fingerprint> = entries.iter().filter_map(|(_, print)| *print).collect();
    let entries = without_repeats(draft, entries);
    let named = entries
        .iter()
        .filter_map(|(e, _)| Some((e.path.as_str(), e.name.as_deref()?)));
    let repeated = repeated_names(named);
    draft.mistakes.extend(repeated);

    let mut claimed: HashMap<usize, &str> = HashMap::new();
    let mut matched = Vec::new();
    for (entry, print) in entries {
        if entry.is_broken {
            check_references(draft, entry);
            continue;
        }
        let Some(found) = match_entry(draft, entry, print, &prints) else {
            continue;
        };
        if let Some(row) = found.row
            && let Some(other) = claimed.insert(row, &entry.path)
        {
            draft.mistake(&entry.path, format!("is the same credential as {other}"));
            continue;
        }
        matched.push(found);
    }
    matched
}

/// What else is wrong with an entry that is refused anyway.
fn check_references(draft: &mut Draft<'_, '_>, entry: &CredentialEntry) {
    if let Field::Value(names) = &entry.endpoints {
        endpoint_ids(draft, &entry.path, names);
    }
    if let Field::Value(names) = &entry.accounts {
        account_ids(draft, &entry.path, names);
    }
}

/// Leaves out entries whose secret stands earlier in the document already.
fn without_repeats<'a>(
    draft: &mut Draft<'a, '_>,
    entries: Vec<(&'a CredentialEntry, Option<Fingerprint>)>,
) -> Vec<(&'a CredentialEntry, Option<Fingerprint>)> {
    let mut first: HashMap<Fingerprint, &str> = HashMap::new();
    let mut kept = Vec::new();
    for (entry, print) in entries {
        let earlier = print.and_then(|p| first.get(&p).copied());
        if let Some(earlier) = earlier {
            draft.warn(
                &entry.path,
                format!("has the same secret as {earlier} and was left out"),
            );
            continue;
        }
        if let Some(print) = print {
            first.insert(print, &entry.path);
        }
        kept.push((entry, print));
    }
    kept
}

fn match_entry<'a>(
    draft: &mut Draft<'a, '_>,
    entry: &'a CredentialEntry,
    print: Option<Fingerprint>,
    prints: &HashSet<Fingerprint>,
) -> Option<Matched<'a>> {
    let by_name = |wanted: &dyn Fn(&Credential) -> bool| {
        let name = entry.name.as_ref()?;
        draft
            .credentials
            .iter()
            .position(|row| row.now.name == *name && wanted(&row.now))
    };
    let (Some(secret), Some(fingerprint)) = (&entry.secret, print) else {
        // Without a secret nothing but the name can say which one is meant.
        let Some(row) = by_name(&|_| true) else {
            draft.mistake(
                format!("{}.secret", entry.path),
                "is missing, and no stored credential has that name",
            );
            return None;
        };
        let stored = draft.credentials.get(row)?;
        return Some(Matched {
            entry,
            row: Some(row),
            is_rotation: false,
            secret: stored.now.secret.clone(),
            fingerprint: stored.now.fingerprint,
        });
    };
    let same = draft
        .credentials
        .iter()
        .position(|row| row.now.fingerprint == fingerprint);
    let rotated = || by_name(&|c| c.is_named && !prints.contains(&c.fingerprint));
    let row = same.or_else(rotated);
    Some(Matched {
        entry,
        row,
        is_rotation: same.is_none() && row.is_some(),
        secret: secret.clone(),
        fingerprint,
    })
}

/// Puts what the entry says into its row, all but name and accounts. Says which row that is, if
/// there is more to do.
fn describe(draft: &mut Draft<'_, '_>, matched: &Matched<'_>) -> Option<usize> {
    let Matched { entry, .. } = matched;
    if let (OnMatch::Keep, Some(n)) = (entry.on_match, matched.row) {
        keep(draft, n, entry.origin);
        return None;
    }
    let before = matched
        .row
        .and_then(|n| draft.credentials.get(n))
        .map(|row| row.now.clone());
    let endpoints = endpoints_of(draft, entry, before.as_ref());
    let before_state = before.as_ref().map(|b| match b.state {
        // A new secret deserves a new chance.
        State::Disabled(DisabledReason::Auth) if matched.is_rotation => State::Active,
        state => state,
    });
    let kept = |pick: fn(&Credential) -> Option<u32>| before.as_ref().and_then(pick);
    let now = Credential {
        id: match &before {
            Some(b) => b.id,
            None => CredentialId::from_u128((draft.tools.mint)()),
        },
        name: before
            .as_ref()
            .map_or_else(|| "".into(), |b| b.name.clone()),
        is_named: before.as_ref().is_some_and(|b| b.is_named),
        secret: matched.secret.clone(),
        fingerprint: matched.fingerprint,
        origin: match &before {
            Some(b) if !matched.is_rotation => b.origin,
            _ => entry.origin,
        },
        accounts: before
            .as_ref()
            .map_or_else(Vec::new, |b| b.accounts.clone()),
        endpoints,
        models: entry
            .models
            .over_shared(before.as_ref().and_then(|b| b.models.clone())),
        stream_limit: entry.stream_limit.over(kept(|b| b.stream_limit)),
        create_limit: entry.create_limit.over(kept(|b| b.create_limit)),
        job_limit: entry.job_limit.over(kept(|b| b.job_limit)),
        state: listed_state(before_state, entry.state),
    };
    let Some(n) = matched.row else {
        draft.credentials.push(Row::fresh(now));
        return Some(draft.credentials.len() - 1);
    };
    let row = draft.credentials.get_mut(n)?;
    row.now = now;
    row.is_listed = true;
    if matched.is_rotation {
        row.fate = Fate::Rotated;
    }
    Some(n)
}

/// Leaves the credential as it is, listed by `origin`. What the environment brought and let drain
/// when it no longer listed it is back in use; what is disabled is not.
fn keep(draft: &mut Draft<'_, '_>, n: usize, origin: Origin) {
    let Some(row) = draft.credentials.get_mut(n) else {
        return;
    };
    row.is_listed = true;
    let is_its_own = origin == Origin::Environment && row.now.origin == Origin::Environment;
    if is_its_own && row.now.state == State::Draining {
        row.now.state = State::Active;
        revive_own_account(draft, n);
    }
}

fn endpoints_of(
    draft: &mut Draft<'_, '_>,
    entry: &CredentialEntry,
    before: Option<&Credential>,
) -> Vec<EndpointId> {
    match (&entry.endpoints, before) {
        (Field::Value(names), before) if !names.is_empty() => {
            let mut ids = endpoint_ids(draft, &entry.path, names);
            if let (OnMatch::Extend, Some(before)) = (entry.on_match, before) {
                ids.retain(|id| !before.endpoints.contains(id));
                ids.splice(..0, before.endpoints.iter().copied());
            }
            ids
        }
        (Field::Absent, Some(before)) => before.endpoints.clone(),
        _ => {
            draft.mistake(
                format!("{}.endpoints", entry.path),
                "are missing; name at least one endpoint",
            );
            Vec::new()
        }
    }
}

fn settle_names(draft: &mut Draft<'_, '_>, described: &[(usize, &CredentialEntry)]) {
    let stated: HashMap<usize, &CredentialEntry> = described
        .iter()
        .filter(|(_, entry)| entry.name.is_some())
        .copied()
        .collect();
    let owned: HashSet<Arc<str>> = stated.values().filter_map(|e| e.name.clone()).collect();
    let mut taken = owned.clone();
    taken.extend(draft.credentials.iter().map(|row| row.now.name.clone()));
    let mut renamed = Vec::new();
    for (n, row) in draft.credentials.iter_mut().enumerate() {
        if let Some((entry, name)) = stated.get(&n).and_then(|e| Some((e, e.name.clone()?))) {
            // Without a secret the name only says which one is meant.
            row.now.is_named |= entry.secret.is_some();
            row.now.name = name;
        } else if row.now.name.is_empty() {
            renamed.push((n, false));
        } else if owned.contains(&row.now.name) {
            renamed.push((n, row.now.is_named));
        }
    }
    for (n, is_worth_telling) in renamed {
        let Some(base) = base_of_name(draft, n) else {
            continue;
        };
        let Some(row) = draft.credentials.get_mut(n) else {
            continue;
        };
        let name = numbered(&base.0, base.1, &taken);
        taken.insert(name.clone());
        let former = std::mem::replace(&mut row.now.name, name.clone());
        row.now.is_named = false;
        if is_worth_telling {
            let what = format!("now names another secret; the one before is called {name:?}");
            draft.warn(format!("credential {former:?}"), what);
        }
    }
}

/// What a made-up name begins with, and its first number: the former name, or the endpoint's.
fn base_of_name(draft: &Draft<'_, '_>, row: usize) -> Option<(Arc<str>, usize)> {
    let credential = &draft.credentials.get(row)?.now;
    if !credential.name.is_empty() {
        return Some((credential.name.clone(), 2));
    }
    let endpoint = credential.endpoints.first().and_then(|id| {
        let found = draft.endpoints.iter().find(|e| e.now.id == *id)?;
        Some(found.now.name.clone())
    });
    Some((endpoint.unwrap_or_else(|| "credential".into()), 1))
}

/// Charges the credential to the accounts that the entry names, or to one of its own.
fn settle_accounts(draft: &mut Draft<'_, '_>, row: usize, entry: &CredentialEntry) {
    let Some((is_new, id)) = draft
        .credentials
        .get(row)
        .map(|r| (r.before.is_none(), r.now.id))
    else {
        return;
    };
    let accounts = match &entry.accounts {
        Field::Value(names) if !names.is_empty() => account_ids(draft, &entry.path, names),
        Field::Absent if !is_new => {
            revive_own_account(draft, row);
            return;
        }
        _ => vec![own_account(draft, row, id)],
    };
    if let Some(row) = draft.credentials.get_mut(row) {
        row.now.accounts = accounts;
    }
    revive_own_account(draft, row);
}

/// The account that was made for the credential; it is made now if there is none.
fn own_account(draft: &mut Draft<'_, '_>, row: usize, id: CredentialId) -> AccountId {
    let own = draft
        .accounts
        .iter_mut()
        .find(|a| a.now.made_for == Some(id));
    if let Some(own) = own {
        let is_charged = draft
            .credentials
            .get(row)
            .is_some_and(|c| c.now.accounts.contains(&own.now.id));
        // It drained when the credential turned to other accounts; now it is back.
        if !is_charged && !own.is_listed && own.now.state == State::Draining {
            own.now.state = State::Active;
        }
        return own.now.id;
    }
    let wanted = draft
        .credentials
        .get(row)
        .map_or_else(|| "account".into(), |c| c.now.name.clone());
    let taken: HashSet<Arc<str>> = draft.accounts.iter().map(|a| a.now.name.clone()).collect();
    let name = if taken.contains(&wanted) {
        numbered(&wanted, 2, &taken)
    } else {
        wanted
    };
    let made = AccountId::from_u128((draft.tools.mint)());
    let mut account = accounts::plain(made, name);
    account.made_for = Some(id);
    draft.accounts.push(Row::fresh(account));
    made
}

/// An account that was made for a credential follows it back from draining.
fn revive_own_account(draft: &mut Draft<'_, '_>, row: usize) {
    let Some(credential) = draft.credentials.get(row) else {
        return;
    };
    let was_draining = credential
        .before
        .as_ref()
        .is_some_and(|b| b.state == State::Draining);
    if !was_draining || credential.now.state != State::Active {
        return;
    }
    let id = Some(credential.now.id);
    for account in draft.accounts.iter_mut().filter(|a| a.now.made_for == id) {
        if !account.is_listed && account.now.state == State::Draining {
            account.now.state = State::Active;
        }
    }
}

/// An account that was made for a credential which has just turned to other accounts drains,
/// unless somebody else is charged to it.
fn release_own_accounts(draft: &mut Draft<'_, '_>) {
    let used_before: HashSet<AccountId> = draft
        .credentials
        .iter()
        .filter_map(|c| c.before.as_ref())
        .flat_map(|c| c.accounts.iter().copied())
        .collect();
    let used: HashSet<AccountId> = draft
        .credentials
        .iter()
        .flat_map(|c| c.now.accounts.iter().copied())
        .collect();
    for account in &mut draft.accounts {
        let id = account.now.id;
        if account.now.made_for.is_some()
            && !account.is_listed
            && used_before.contains(&id)
            && !used.contains(&id)
            && account.now.state == State::Active
        {
            account.now.state = State::Draining;
            account.fate = Fate::Drained;
        }
    }
}
