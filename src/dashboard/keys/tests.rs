//! What the samples show.
use super::*;
use crate::domain::{
    ids::AccountId,
    pool::{KeyLimits, QuotaScope, State as Standing},
};

/// The moment at which the samples are looked at: 2026-11-30T01:03:05Z.
pub(super) const NOW_MS: i64 = 1_796_000_585_000;

/// Limits of every kind.
fn limits(n: u128) -> KeyLimits {
    match n {
        12 => KeyLimits {
            requests_per_minute: Some(60),
            concurrency: Some(5),
            tokens_per_day: Some(1_000_000),
        },
        13 => KeyLimits {
            concurrency: Some(3),
            ..KeyLimits::default()
        },
        _ => KeyLimits::default(),
    }
}

/// What the keys use.
pub(super) fn used(contents: &Contents) -> Vec<Used> {
    let used = Used {
        requests: Some(12),
        in_flight: 3,
        tokens: Some(987_654),
    };
    vec![used; contents.keys.len()]
}

/// Keys of every state and scope.
pub(super) fn contents() -> Contents {
    let account = |n: u128| Account {
        id: AccountId::from_u128(n),
        name: format!("a-{n}").into(),
        quota_scope: QuotaScope::Account,
        stream_limit: None,
        create_limit: None,
        job_limit: None,
        priority: 0,
        weight: 1,
        cooldown_per_model: false,
        trust_reset: false,
        state: Standing::Active,
        made_for: None,
    };
    let accounts: Vec<_> = (1..=5).map(account).collect();
    let ids = |count: usize| Some(accounts.iter().take(count).map(|a| a.id).collect());
    let key = |n: u128, accounts, models: Option<&[&str]>, expires_at| {
        Arc::new(ClientKey {
            id: KeyId::from_u128(n),
            name: format!("k-{n}").into(),
            hash: [0; 32],
            secret_hint: "cdef".into(),
            weight: 2,
            accounts,
            models: models.map(|models| models.iter().map(|m| (*m).into()).collect()),
            limits: limits(n),
            expires_at,
        })
    };
    let keys = vec![
        key(11, None, None, None),
        key(12, ids(5), Some(&["m-1", "m-2"]), Some(NOW_MS + 1)),
        key(13, ids(1), None, Some(NOW_MS)),
        key(14, ids(0), None, None),
    ];
    Contents {
        endpoints: Vec::new(),
        accounts,
        credentials: Vec::new(),
        keys,
    }
}

#[test]
fn a_search_that_finds_nothing_is_not_an_empty_list() {
    let locale = crate::dashboard::i18n::I18n::load().unwrap();
    let shell = Shell {
        locale: locale.locale(Some("en"), None),
        theme: crate::dashboard::shell::Theme::System,
        zone: crate::dashboard::time::Zone::of(None),
        here: "/keys".into(),
    };
    let count = |contents: &Contents, search: &str| match listed(
        &shell,
        (contents, &used(contents)),
        search,
        NOW_MS,
    ) {
        Listed::Rows(rows) => Ok(rows.len()),
        Listed::NoMatch => Err("no match"),
        Listed::Nothing => Err("nothing"),
        Listed::Unread => Err("unread"),
    };
    assert_eq!(count(&Contents::default(), "k"), Err("nothing"));
    assert_eq!(count(&contents(), ""), Ok(4));
    assert_eq!(count(&contents(), " K-12 "), Ok(1));
    assert_eq!(count(&contents(), "x"), Err("no match"));
}
