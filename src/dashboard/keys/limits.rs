//! A key's own limits, each beside what is used of it now.
use crate::{
    dashboard::{State, shell::Shell},
    domain::{
        ids::KeyId,
        pool::{ClientKey, KeyLimits, edges::Contents},
    },
    engine::allowance::Used,
};

/// Stands for what is not known.
const UNKNOWN: &str = "–";

/// One limit in words.
pub(super) struct Limit {
    pub(super) text: String,
    pub(super) is_full: bool,
}

impl Limit {
    /// The limits that a key has.
    pub(super) fn all(shell: &Shell, key: &ClientKey, used: Used) -> Vec<Self> {
        let KeyLimits {
            requests_per_minute,
            concurrency,
            tokens_per_day,
        } = key.limits;
        let all = [
            (
                "keys-limit-minute",
                used.requests,
                requests_per_minute.map(u64::from),
            ),
            (
                "keys-limit-at-once",
                Some(used.in_flight),
                concurrency.map(u64::from),
            ),
            ("keys-limit-day", used.tokens, tokens_per_day),
        ];
        let limits = all
            .into_iter()
            .filter_map(|(words, used, limit)| Some((words, used, limit?)));
        limits
            .map(|(words, used, limit)| Self {
                text: match used {
                    Some(used) => shell.t(words).num("used", used),
                    None => shell.t(words).text("used", UNKNOWN),
                }
                .num("limit", limit)
                .to_string(),
                is_full: used.is_some_and(|used| used >= limit),
            })
            .collect()
    }
}

/// What each key of the pool uses now, in their order.
pub(super) async fn used(state: &State, contents: &Contents) -> Vec<Used> {
    let keys: Vec<KeyId> = contents.keys.iter().map(|key| key.id).collect();
    state.reload().configuration().allowance().used(&keys).await
}
