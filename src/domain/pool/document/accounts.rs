//! Accounts of a document: matched by name.
use super::{
    AccountEntry, listed_state,
    plan::{Draft, Row, repeated_names},
};
use crate::domain::{
    ids::AccountId,
    pool::{Account, QuotaScope, State},
};
use std::sync::Arc;

pub(super) fn plan(draft: &mut Draft<'_, '_>) {
    let entries = &draft.document.accounts;
    let named = entries.iter().map(|e| (e.path.as_str(), &*e.name));
    draft.mistakes.extend(repeated_names(named));
    for entry in entries {
        let known = draft
            .accounts
            .iter_mut()
            .find(|row| row.now.name == entry.name);
        if let Some(row) = known {
            row.is_listed = true;
            let state = listed_state(Some(row.now.state), entry.state);
            row.now = described(entry, &row.now, state);
        } else {
            let id = AccountId::from_u128((draft.tools.mint)());
            let state = listed_state(None, entry.state);
            let now = described(entry, &plain(id, entry.name.clone()), state);
            draft.accounts.push(Row::fresh(now));
        }
    }
}

fn described(entry: &AccountEntry, before: &Account, state: State) -> Account {
    Account {
        id: before.id,
        name: before.name.clone(),
        quota_scope: entry
            .quota_scope
            .or(before.quota_scope, QuotaScope::default()),
        stream_limit: entry.stream_limit.over(before.stream_limit),
        create_limit: entry.create_limit.over(before.create_limit),
        job_limit: entry.job_limit.over(before.job_limit),
        priority: entry.priority.or(before.priority, 0),
        weight: entry.weight.or(before.weight, 1),
        cooldown_per_model: entry
            .cooldown_per_model
            .or(before.cooldown_per_model, false),
        trust_reset: entry.trust_reset.or(before.trust_reset, false),
        state,
        made_for: before.made_for,
    }
}

/// An account of which nothing but its name was said.
pub(super) fn plain(id: AccountId, name: Arc<str>) -> Account {
    Account {
        id,
        name,
        quota_scope: QuotaScope::default(),
        stream_limit: None,
        create_limit: None,
        job_limit: None,
        priority: 0,
        weight: 1,
        cooldown_per_model: false,
        trust_reset: false,
        state: State::Active,
        made_for: None,
    }
}
