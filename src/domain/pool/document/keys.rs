//! Client keys of a document: matched by name; their secrets cannot be read back.
use super::{
    Field, KeyEntry,
    names::account_ids,
    plan::{Draft, Fate, MintedKey, Row, repeated_names},
};
use crate::domain::{
    ids::{AccountId, KeyId},
    pool::{ClientKey, KeyHash, KeyLimits},
    secret::Secret,
};
use std::{collections::HashMap, sync::Arc};

/// The shortest secret that may be given: below it guessing is no longer hopeless.
pub(super) const MIN_SECRET_CHARS: usize = 20;

pub(super) fn plan(draft: &mut Draft<'_, '_>) {
    let entries = &draft.document.keys;
    let named = entries.iter().map(|e| (e.path.as_str(), &*e.name));
    draft.mistakes.extend(repeated_names(named));
    for entry in entries {
        let stored = draft.keys.iter().position(|row| row.now.name == entry.name);
        let before = stored
            .and_then(|n| draft.keys.get(n))
            .map(|row| row.now.clone());
        let Some(now) = described(draft, entry, before.as_ref()) else {
            continue;
        };
        match stored.and_then(|n| draft.keys.get_mut(n)) {
            Some(row) => {
                if row.now.hash != now.hash {
                    row.fate = Fate::Rotated;
                }
                row.now = now;
                row.is_listed = true;
            }
            None => draft.keys.push(Row::fresh(now)),
        }
    }
    check_secrets_differ(draft);
}

fn described(
    draft: &mut Draft<'_, '_>,
    entry: &KeyEntry,
    before: Option<&ClientKey>,
) -> Option<ClientKey> {
    let accounts = accounts_of(draft, entry, before);
    let id = match before {
        Some(b) => b.id,
        None => KeyId::from_u128((draft.tools.mint)()),
    };
    let (hash, secret_hint) = secret_of(draft, entry, (id, before))?;
    Some(ClientKey {
        id,
        name: entry.name.clone(),
        hash,
        secret_hint,
        weight: entry.weight.or(before.map_or(1, |b| b.weight), 1),
        accounts,
        limits: limits_of(entry, before),
        models: entry.models.over(before.and_then(|b| b.models.clone())),
        expires_at: entry.expires_at.over(before.and_then(|b| b.expires_at)),
    })
}

fn limits_of(entry: &KeyEntry, before: Option<&ClientKey>) -> KeyLimits {
    let before = before.map(|b| b.limits).unwrap_or_default();
    KeyLimits {
        requests_per_minute: entry.requests_per_minute.over(before.requests_per_minute),
        concurrency: entry.concurrency.over(before.concurrency),
        tokens_per_day: entry.tokens_per_day.over(before.tokens_per_day),
    }
}

fn accounts_of(
    draft: &mut Draft<'_, '_>,
    entry: &KeyEntry,
    before: Option<&ClientKey>,
) -> Option<Vec<AccountId>> {
    match &entry.accounts {
        Field::Value(names) => Some(account_ids(draft, &entry.path, names)),
        Field::Null => None,
        Field::Absent => before.and_then(|b| b.accounts.clone()),
    }
}

/// Hash and hint of the secret that the key will have; it is minted if there is none.
fn secret_of(
    draft: &mut Draft<'_, '_>,
    entry: &KeyEntry,
    (id, before): (KeyId, Option<&ClientKey>),
) -> Option<(KeyHash, Arc<str>)> {
    let path = format!("{}.secret", entry.path);
    let secret = match (&entry.secret, before) {
        (None, Some(before)) => return Some((before.hash, before.secret_hint.clone())),
        (Some(given), _) => {
            let count = given.expose().len();
            if count < MIN_SECRET_CHARS {
                let what = format!(
                    "is {count} characters long; at least {MIN_SECRET_CHARS} are needed, or null for a new secret"
                );
                draft.mistake(path, what);
                return None;
            }
            given.clone()
        }
        (None, None) => match Secret::clean(&(draft.tools.new_secret)()) {
            Ok((secret, _)) => {
                draft.minted.push(MintedKey {
                    id,
                    name: entry.name.clone(),
                    secret: secret.clone(),
                });
                secret
            }
            Err(error) => {
                draft.mistake(path, error.to_string());
                return None;
            }
        },
    };
    let hash = (draft.tools.hash_key)(secret.expose());
    Some((hash, secret.hint().into()))
}

/// A secret says which key is meant, so no two keys can share one.
fn check_secrets_differ(draft: &mut Draft<'_, '_>) {
    let mut names: HashMap<KeyHash, Arc<str>> = HashMap::new();
    let mut mistakes = Vec::new();
    // Keys that are not listed come first: the mistake is the document's.
    let (listed, others): (Vec<_>, Vec<_>) = draft.keys.iter().partition(|row| row.is_listed);
    for row in others.into_iter().chain(listed) {
        let name = &row.now.name;
        if let Some(other) = names.insert(row.now.hash, name.clone()) {
            let what = format!("the keys {other:?} and {name:?} would have the same secret");
            mistakes.push(super::Mistake::new("keys", what));
        }
    }
    draft.mistakes.extend(mistakes);
}
