//! Two short lists: accounts that are not plainly active, and the keys that hold or wait for most.
use super::super::{
    names::{Named, Names},
    pool::ordinary,
    shell::Shell,
    standing::Stand,
};
use crate::{
    domain::{
        admission::Subject,
        ids::AccountId,
        pool::{Credential, Pool},
        settings::Settings,
    },
    engine::look::Look,
};
use std::{cmp::Reverse, collections::HashMap, sync::Arc};

/// Rows of a list at most.
const SHOWN: usize = 8;

/// Rows that are shown, and how many more there are.
pub(super) struct List<T> {
    pub(super) rows: Vec<T>,
    pub(super) more: usize,
}

impl<T> List<T> {
    fn new(mut rows: Vec<T>) -> Self {
        let more = rows.len().saturating_sub(SHOWN);
        rows.truncate(SHOWN);
        Self { rows, more }
    }
}

/// An account that is not plainly active.
pub(super) struct AccountRow {
    pub(super) path: String,
    pub(super) name: Arc<str>,
    pub(super) stand: Stand,
    /// What runs on it.
    pub(super) streams: u32,
}

pub(super) fn accounts(
    shell: &Shell,
    (pool, look): (&Pool, &Look),
    settings: &Settings,
) -> List<AccountRow> {
    let mut charged: HashMap<AccountId, Vec<&Credential>> = HashMap::new();
    for credential in pool.credentials() {
        for account in &credential.accounts {
            charged.entry(*account).or_default().push(credential);
        }
    }
    let rows = pool.accounts().iter().filter_map(|account| {
        let credentials = charged.get(&account.id).map_or(&[][..], Vec::as_slice);
        let cap = ordinary(account, settings);
        let stand = Stand::account(shell, look, account, (credentials, cap));
        // One that is full takes work again as soon as anything ends.
        let is_plain = stand.is_plain() || stand.icon == "full";
        (!is_plain).then(|| AccountRow {
            path: format!("/pool/accounts/{}", account.id),
            name: Arc::clone(&account.name),
            streams: look.standing(Subject::Account(account.id)).streams,
            stand,
        })
    });
    List::new(rows.collect())
}

/// A key that holds or waits.
pub(super) struct KeyRow {
    /// Where it is drawn alone; nothing for requests without a key.
    pub(super) path: Option<String>,
    pub(super) name: Named,
    pub(super) streams: u64,
    /// What it may hold while the pool is congested, where keys are held to that.
    pub(super) share: Option<u64>,
    pub(super) is_over: bool,
    pub(super) waiting: usize,
}

/// Those over their share first, then those that hold most; of equals, those that wait for most.
pub(super) fn keys(names: &Names<'_>) -> List<KeyRow> {
    let busy = names.picture.keys.iter().filter(|key| !key.is_idle());
    let mut rows: Vec<KeyRow> = busy
        .map(|key| KeyRow {
            path: key.key.map(|id| format!("/concurrency?key={id}")),
            name: names.key(key.key),
            streams: key.used.streams,
            share: key.share,
            is_over: key.is_over(),
            waiting: key.waiting,
        })
        .collect();
    rows.sort_by(|a, b| {
        let rank = |row: &KeyRow| {
            let (streams, waiting) = (Reverse(row.streams), Reverse(row.waiting));
            (Reverse(row.is_over), streams, waiting)
        };
        rank(a)
            .cmp(&rank(b))
            .then_with(|| a.name.text.cmp(&b.name.text))
    });
    List::new(rows)
}

#[cfg(test)]
pub(super) mod samples {
    use super::*;
    use crate::{
        dashboard::standing,
        domain::{
            ids::KeyId,
            pool::{DisabledReason, State, edges::sample},
        },
        engine::picture::{OfKey, Picture, Used},
    };

    pub(in super::super) fn accounts(shell: &Shell) -> List<AccountRow> {
        let mut contents = sample::contents(9);
        let states = [
            State::Active,
            State::Active,
            State::Active,
            State::Active,
            State::Draining,
            State::Disabled(DisabledReason::Operator),
            State::Disabled(DisabledReason::Auth),
            State::Disabled(DisabledReason::Billing),
        ];
        for (account, state) in contents.accounts.iter_mut().zip(states) {
            account.state = state;
        }
        let look = standing::samples::look(&contents);
        let pool = Pool::new(contents);
        let list = super::accounts(shell, (&pool, &look), &Settings::default());
        List { more: 2, ..list }
    }

    pub(in super::super) fn keys(shell: &Shell) -> List<KeyRow> {
        let of = |key, streams, waiting, share| OfKey {
            key,
            weight: Some(1),
            used: Used {
                streams,
                ..Used::default()
            },
            share,
            waiting,
            oldest_wait_ms: None,
        };
        let mut contents = sample::contents(1);
        contents.keys = vec![sample::key(1), sample::key(2)];
        let picture = Picture {
            keys: vec![
                of(Some(sample::key(1).id), 2, 1, Some(6)),
                of(Some(sample::key(2).id), 9, 4, Some(6)),
                of(Some(KeyId::from_u128(99)), 4, 0, None),
                of(None, 0, 7, None),
            ],
            pool: Arc::new(Pool::new(contents)),
            ..Picture::default()
        };
        let list = super::keys(&Names::new(shell, &picture));
        List { more: 1, ..list }
    }
}
