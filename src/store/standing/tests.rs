//! What is kept comes back, and what the operator decided stays.
use super::*;
use crate::{
    domain::{
        pool::{State, edges::sample},
        protocol::Protocol,
    },
    store::tests::{Bench, bench},
};

const ACCOUNT: Subject = Subject::Account(AccountId::from_u128(1));
const CREDENTIAL: Subject = Subject::Credential(CredentialId::from_u128(1));

const fn kept(ends_in_ms: u64) -> Kept {
    Kept {
        ends_in_ms,
        told_in_ms: Some(90_000),
        length_ms: 7,
        is_quota: true,
    }
}

#[tokio::test]
async fn cooldowns_come_back_with_what_is_left_of_them() {
    let bench = bench();
    let store = &bench.store;
    let model: Option<Arc<str>> = Some("m".into());
    let changes = vec![
        (ACCOUNT, None, Some(kept(60_000))),
        (CREDENTIAL, model.clone(), Some(kept(5_000))),
    ];
    store.keep_cooldowns(1_000, changes).await.unwrap();
    let longer = vec![(ACCOUNT, None, Some(kept(80_000)))];
    store.keep_cooldowns(1_000, longer).await.unwrap();
    let mut found = store.cooldowns_blocking(21_000).unwrap();
    found.sort_by_key(|(subject, ..)| *subject);
    let left = |ends_in_ms| Kept {
        told_in_ms: Some(70_000),
        ..kept(ends_in_ms)
    };
    let expect = vec![
        (ACCOUNT, None, Some(left(60_000))),
        (CREDENTIAL, model, Some(left(0))),
    ];
    assert_eq!(found, expect);
    store
        .keep_cooldowns(1_000, vec![(ACCOUNT, None, None)])
        .await
        .unwrap();
    assert_eq!(store.cooldowns_blocking(0).unwrap().len(), 1);
}

async fn with_credential(state: State) -> Bench {
    let bench = bench();
    let store = &bench.store;
    let endpoint = sample::endpoint(1, Protocol::OpenAi);
    store.add_endpoint(endpoint).await.unwrap();
    store.add_account(sample::account(1)).await.unwrap();
    let credential = crate::domain::pool::Credential {
        state,
        ..sample::credential(1, 1, 1)
    };
    store.add_credential(credential, None).await.unwrap();
    bench
}

async fn state(bench: &Bench) -> State {
    let id = CredentialId::from_u128(1);
    bench.store.credential(id).await.unwrap().unwrap().state
}

#[tokio::test]
async fn what_takes_work_is_disabled_once_and_enabled_for_the_same_reason_only() {
    let bench = with_credential(State::Active).await;
    let store = &bench.store;
    let version = store.config_version().await.unwrap();
    assert!(
        store
            .disable(CREDENTIAL, DisabledReason::Auth)
            .await
            .unwrap()
    );
    assert!(
        !store
            .disable(CREDENTIAL, DisabledReason::Auth)
            .await
            .unwrap()
    );
    assert_eq!(state(&bench).await, State::Disabled(DisabledReason::Auth));
    assert_eq!(store.config_version().await.unwrap(), version + 1);
    assert!(
        !store
            .enable(CREDENTIAL, DisabledReason::Billing)
            .await
            .unwrap()
    );
    assert!(
        store
            .enable(CREDENTIAL, DisabledReason::Auth)
            .await
            .unwrap()
    );
    assert_eq!(state(&bench).await, State::Active);
    let lines = store.audit_lines(None, 10).await.unwrap();
    let said: Vec<(&str, &str, &str)> = lines
        .iter()
        .map(|l| (l.actor.as_str(), l.action.as_str(), l.detail.as_str()))
        .collect();
    let expect = [
        ("upstream", "enable_credential", "auth"),
        ("upstream", "disable_credential", "auth"),
    ];
    assert_eq!(said, expect);
}

#[tokio::test]
async fn what_the_operator_decided_stays() {
    for decided in [State::Draining, State::Disabled(DisabledReason::Operator)] {
        let bench = with_credential(decided).await;
        let store = &bench.store;
        assert!(
            !store
                .disable(CREDENTIAL, DisabledReason::Auth)
                .await
                .unwrap()
        );
        assert!(
            !store
                .enable(CREDENTIAL, DisabledReason::Auth)
                .await
                .unwrap()
        );
        assert_eq!(state(&bench).await, decided);
    }
}
