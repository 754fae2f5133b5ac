//! Two short lists: accounts that are not plainly active, and the keys that hold or wait for most.
use super::super::{pool::ordinary, shell::Shell, standing::Stand};
use crate::{
    domain::{
        admission::{Holding, Subject},
        ids::{AccountId, KeyId},
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
    /// Its requests that have ended; nothing for requests without a key.
    pub(super) path: Option<String>,
    pub(super) name: String,
    /// Whether the text is a name, the same in every language.
    pub(super) is_name: bool,
    pub(super) streams: usize,
    pub(super) waiting: usize,
}

/// Those that hold most first; of equals, those that wait for most.
pub(super) fn keys(
    shell: &Shell,
    pool: &Pool,
    holdings: HashMap<Option<KeyId>, Holding>,
) -> List<KeyRow> {
    let mut rows: Vec<KeyRow> = holdings
        .into_iter()
        .map(|(id, holding)| {
            let key = id.and_then(|id| pool.keys().iter().find(|key| key.id == id));
            let name = match (id, key) {
                (_, Some(key)) => key.name.to_string(),
                (Some(_), None) => shell.t("busy-key-removed").to_string(),
                (None, None) => shell.t("busy-key-none").to_string(),
            };
            KeyRow {
                path: id.map(|id| format!("/requests?key={id}")),
                name,
                is_name: key.is_some(),
                streams: holding.streams,
                waiting: holding.waiting,
            }
        })
        .collect();
    rows.sort_by(|a, b| {
        let rank = |row: &KeyRow| (Reverse(row.streams), Reverse(row.waiting));
        rank(a).cmp(&rank(b)).then_with(|| a.name.cmp(&b.name))
    });
    List::new(rows)
}

#[cfg(test)]
pub(super) mod samples {
    use super::*;
    use crate::{
        dashboard::standing,
        domain::pool::{DisabledReason, State, edges::sample},
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
        let holding = |streams, waiting| Holding { streams, waiting };
        let holdings = HashMap::from([
            (Some(sample::key(1).id), holding(2, 1)),
            (Some(KeyId::from_u128(99)), holding(4, 0)),
            (None, holding(0, 7)),
        ]);
        let mut contents = sample::contents(1);
        contents.keys = vec![sample::key(1)];
        let list = super::keys(shell, &Pool::new(contents), holdings);
        List { more: 1, ..list }
    }
}
