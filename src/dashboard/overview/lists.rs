//! Two short lists: accounts that are not plainly active, and the keys that hold or wait for most.
use super::super::shell::Shell;
use crate::domain::{
    admission::Holding,
    ids::{AccountId, KeyId},
    pool::{DisabledReason, Pool, State as Standing},
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

/// An account that takes no new work.
pub(super) struct AccountRow {
    pub(super) path: String,
    pub(super) name: Arc<str>,
    pub(super) token: &'static str,
    pub(super) icon: &'static str,
    pub(super) word: String,
    /// What still runs on it.
    pub(super) streams: u32,
}

pub(super) fn accounts(
    shell: &Shell,
    pool: &Pool,
    streams: &HashMap<AccountId, u32>,
) -> List<AccountRow> {
    let rows = pool.accounts().iter().filter_map(|account| {
        let (token, icon, word) = match account.state {
            Standing::Active => return None,
            Standing::Draining => ("off", "draining", "pool-draining"),
            Standing::Disabled(DisabledReason::Operator) => ("off", "disabled", "pool-disabled"),
            Standing::Disabled(DisabledReason::Auth) => ("bad", "key", "pool-disabled-auth"),
            Standing::Disabled(DisabledReason::Billing) => ("bad", "card", "pool-disabled-billing"),
        };
        Some(AccountRow {
            path: format!("/pool/accounts/{}", account.id),
            name: Arc::clone(&account.name),
            token,
            icon,
            word: shell.t(word).to_string(),
            streams: streams.get(&account.id).copied().unwrap_or(0),
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
    use crate::domain::pool::edges::sample;

    pub(in super::super) fn accounts(shell: &Shell) -> List<AccountRow> {
        let mut contents = sample::contents(5);
        let states = [
            Standing::Active,
            Standing::Draining,
            Standing::Disabled(DisabledReason::Operator),
            Standing::Disabled(DisabledReason::Auth),
            Standing::Disabled(DisabledReason::Billing),
        ];
        for (account, state) in contents.accounts.iter_mut().zip(states) {
            account.state = state;
        }
        let more = 2;
        let streams = HashMap::from([(contents.accounts[1].id, 3)]);
        let list = super::accounts(shell, &Pool::new(contents), &streams);
        List { more, ..list }
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
