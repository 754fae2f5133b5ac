//! The store as its callers see it: each kind of thing, settings, the log, and whole plans.
use super::{settings::Overrides, tokens::AdminToken, *};
use crate::domain::{
    ids::{AccountId, CredentialId, EndpointId, KeyId, TokenId},
    pool::{Account, DisabledReason, KeyLimits, ModelRow, State, edges::sample},
    protocol::Protocol,
    settings::{Name, Value},
};

pub(super) struct Bench {
    pub(super) store: Store,
    _dir: tempfile::TempDir,
}

pub(super) fn bench() -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("f.db")).unwrap();
    Bench { store, _dir: dir }
}

const LIMITS: KeyLimits = KeyLimits {
    requests_per_minute: Some(60),
    concurrency: Some(5),
    tokens_per_day: Some(5_000_000_000),
};

/// One of everything, with every column filled.
async fn filled() -> Bench {
    let bench = bench();
    let store = &bench.store;
    let mut endpoint = sample::endpoint(1, Protocol::OpenAi);
    endpoint.protocols = vec![Protocol::OpenAiVideos, Protocol::OpenAi];
    endpoint.models = Some(
        [ModelRow {
            model: "a/b:c".into(),
            upstream_model: Some("日本".into()),
        }]
        .into(),
    );
    endpoint.headers = vec![("x-team".into(), "one \"two\"".into())];
    store.add_endpoint(endpoint).await.unwrap();
    let mut account = sample::account(1);
    account.stream_limit = Some(0);
    account.priority = -3;
    account.cooldown_per_model = true;
    account.trust_reset = true;
    account.state = State::Disabled(DisabledReason::Billing);
    store.add_account(account).await.unwrap();
    let mut credential = sample::credential(1, 1, 1);
    credential.models = Some(
        [ModelRow {
            model: "m".into(),
            upstream_model: None,
        }]
        .into(),
    );
    credential.job_limit = Some(2);
    credential.state = State::Draining;
    let own = Account {
        made_for: Some(credential.id),
        ..sample::account(2)
    };
    credential.accounts.push(own.id);
    store.add_credential(credential, Some(own)).await.unwrap();
    let mut key = (*sample::key(1)).clone();
    key.accounts = Some(vec![AccountId::from_u128(1)]);
    key.models = Some(vec!["m".into()]);
    key.expires_at = Some(1_900_000_000_123);
    key.limits = LIMITS;
    store.add_key(key).await.unwrap();
    bench
}

fn names<T>(things: &[T], name: impl Fn(&T) -> &str) -> Vec<String> {
    things.iter().map(|t| name(t).to_owned()).collect()
}

#[tokio::test]
async fn what_was_stored_is_read_back_whole() {
    let bench = filled().await;
    let store = &bench.store;
    let pool = store.pool().await.unwrap().contents;
    let endpoint = store.endpoint(EndpointId::from_u128(1)).await.unwrap();
    assert_eq!(endpoint.as_ref(), pool.endpoints.first());
    assert_eq!(
        endpoint.unwrap().protocols,
        [Protocol::OpenAiVideos, Protocol::OpenAi]
    );
    let account = store
        .account(AccountId::from_u128(1))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(account.state, State::Disabled(DisabledReason::Billing));
    assert_eq!((account.stream_limit, account.priority), (Some(0), -3));
    assert!(account.cooldown_per_model && account.trust_reset);
    let credential = store.credential(CredentialId::from_u128(1)).await.unwrap();
    assert_eq!(credential.as_ref(), pool.credentials.first());
    assert_eq!(credential.unwrap().accounts.len(), 2);
    let key = store.key(KeyId::from_u128(1)).await.unwrap();
    assert_eq!(key.as_ref(), pool.keys.first().map(|k| &**k));
    let key = key.unwrap();
    assert_eq!(
        (key.expires_at, key.limits),
        (Some(1_900_000_000_123), LIMITS)
    );
    assert_eq!(store.account(AccountId::from_u128(9)).await.unwrap(), None);
}

#[tokio::test]
async fn a_change_replaces_the_whole_thing() {
    let bench = filled().await;
    let store = &bench.store;
    let mut endpoint = sample::endpoint(1, Protocol::Gemini);
    assert!(store.update_endpoint(endpoint.clone()).await.unwrap());
    assert_eq!(store.endpoints().await.unwrap(), [endpoint.clone()]);
    endpoint.id = EndpointId::from_u128(7);
    assert!(!store.update_endpoint(endpoint).await.unwrap());
    let credential = sample::credential(1, 2, 1);
    assert!(store.update_credential(credential.clone()).await.unwrap());
    assert_eq!(store.credentials().await.unwrap(), [credential]);
    let key = (*sample::key(1)).clone();
    assert!(store.update_key(key.clone()).await.unwrap());
    assert_eq!(store.keys().await.unwrap(), [key]);
    let account = sample::account(1);
    assert!(store.update_account(account.clone()).await.unwrap());
    assert_eq!(store.accounts().await.unwrap().first(), Some(&account));
}

#[tokio::test]
async fn names_and_secrets_are_unique_within_a_kind() {
    let bench = filled().await;
    let store = &bench.store;
    let mut account = sample::account(5);
    account.name = "account-1".into();
    let taken = |kind: &'static str, name: &str| StoreError::NameTaken {
        kind,
        name: name.into(),
    };
    assert_eq!(
        store.add_account(account).await,
        Err(taken("account", "account-1"))
    );
    let mut endpoint = sample::endpoint(5, Protocol::OpenAi);
    endpoint.name = "endpoint-1".into();
    assert_eq!(
        store.add_endpoint(endpoint).await,
        Err(taken("endpoint", "endpoint-1"))
    );
    let mut credential = sample::credential(5, 1, 1);
    credential.fingerprint = [1; 32];
    assert_eq!(
        store.add_credential(credential, None).await,
        Err(StoreError::SecretTaken {
            kind: "credential",
            name: "credential-1".into()
        })
    );
    let mut key = (*sample::key(5)).clone();
    key.hash = [1; 32];
    assert!(matches!(
        store.add_key(key).await,
        Err(StoreError::SecretTaken { kind: "key", .. })
    ));
}

#[tokio::test]
async fn what_a_credential_needs_cannot_be_removed() {
    let bench = filled().await;
    let store = &bench.store;
    let by = |kind| {
        Err(StoreError::InUse {
            kind,
            by: vec!["credential-1".into()],
        })
    };
    let (endpoint, account) = (EndpointId::from_u128(1), AccountId::from_u128(1));
    assert_eq!(store.remove_endpoint(endpoint).await, by("endpoint"));
    assert_eq!(store.remove_account(account).await, by("account"));
    let lost = sample::credential(6, 1, 9);
    assert_eq!(
        store.add_credential(lost, None).await,
        Err(StoreError::Dangling {
            kind: "credential",
            missing: "endpoint"
        })
    );
}

#[tokio::test]
async fn a_credential_takes_the_account_made_for_it_along() {
    let bench = filled().await;
    let store = &bench.store;
    let id = CredentialId::from_u128(1);
    assert!(store.remove_credential(id).await.unwrap());
    assert!(!store.remove_credential(id).await.unwrap());
    let left = store.accounts().await.unwrap();
    assert_eq!(names(&left, |a| &a.name), ["account-1"]);
    assert!(store.remove_account(AccountId::from_u128(1)).await.unwrap());
    assert!(
        store
            .remove_endpoint(EndpointId::from_u128(1))
            .await
            .unwrap()
    );
}

#[tokio::test]
async fn an_account_made_for_a_credential_stays_while_another_is_charged_to_it() {
    let bench = filled().await;
    let store = &bench.store;
    let other = sample::credential(2, 2, 1);
    store.add_credential(other, None).await.unwrap();
    let first = CredentialId::from_u128(1);
    assert!(store.remove_credential(first).await.unwrap());
    let account = store.account(AccountId::from_u128(2)).await.unwrap();
    assert_eq!(account.unwrap().made_for, None);
}

#[tokio::test]
async fn a_key_that_loses_its_last_account_may_use_none() {
    let bench = filled().await;
    let store = &bench.store;
    store
        .remove_credential(CredentialId::from_u128(1))
        .await
        .unwrap();
    store.remove_account(AccountId::from_u128(1)).await.unwrap();
    let key = store.key(KeyId::from_u128(1)).await.unwrap().unwrap();
    assert_eq!(key.accounts, Some(Vec::new()));
    assert!(store.remove_key(key.id).await.unwrap());
    assert!(!store.remove_key(key.id).await.unwrap());
}

#[tokio::test]
async fn readers_cannot_write() {
    let bench = filled().await;
    let refused = bench
        .store
        .read(|conn| Ok(conn.execute("DELETE FROM accounts", [])?))
        .await;
    assert!(matches!(
        refused,
        Err(StoreError::Database {
            fault: Fault::ReadOnly,
            ..
        })
    ));
    assert_eq!(bench.store.accounts().await.unwrap().len(), 2);
}

#[tokio::test]
async fn every_configuration_write_raises_the_version() {
    let bench = filled().await;
    let store = &bench.store;
    let mut last = store.config_version().await.unwrap();
    assert_eq!(last, 5);
    let mut rises = async |what: &str| {
        let now = store.config_version().await.unwrap();
        assert!(now > last, "{what}");
        last = now;
    };
    store.update_account(sample::account(1)).await.unwrap();
    rises("account").await;
    store
        .change_settings(0, vec![(Name::StageTrace, None)])
        .await
        .unwrap();
    rises("settings").await;
    let token = AdminToken {
        id: TokenId::from_u128(1),
        name: "ci".into(),
        hash: [9; 32],
        secret_hint: "abcd".into(),
        created_at: 5,
    };
    store.add_token(token.clone()).await.unwrap();
    rises("token").await;
    assert_eq!(store.tokens().await.unwrap(), std::slice::from_ref(&token));
    assert!(store.remove_token(token.id).await.unwrap());
    rises("token removed").await;
    store.remove_key(KeyId::from_u128(1)).await.unwrap();
    rises("key removed").await;
    store.probe().await.unwrap();
    assert_eq!(store.config_version().await.unwrap(), last);
}

#[tokio::test]
async fn another_processs_change_is_seen() {
    let bench = filled().await;
    let before = bench.store.config_version().await.unwrap();
    let other = Connection::open(bench.store.path()).unwrap();
    super::meta::touch(&other).unwrap();
    assert_eq!(bench.store.config_version().await.unwrap(), before + 1);
}

#[tokio::test]
async fn settings_conflict_only_where_the_same_one_was_changed() {
    let bench = bench();
    let store = &bench.store;
    let (streams, trace) = (Name::AccountStreamLimit, Name::StageTrace);
    let set = |n| Some(Value::Integer(n));
    assert_eq!(store.overrides().await.unwrap(), Overrides::default());
    let first = store
        .change_settings(0, vec![(streams, set(12))])
        .await
        .unwrap();
    // Somebody who read before that may still change another setting.
    store
        .change_settings(0, vec![(trace, Some(Value::Switch(false)))])
        .await
        .unwrap();
    let conflict = |current: Option<&str>| {
        Err(StoreError::SettingConflict {
            key: "account_stream_limit".into(),
            current: current.map(Into::into),
        })
    };
    let stale = vec![(trace, None), (streams, set(3))];
    assert!(store.change_settings(0, stale).await.is_err());
    let late = store.change_settings(0, vec![(streams, set(3))]).await;
    assert_eq!(late, conflict(Some("12")));
    // Clearing is a change as well.
    store
        .change_settings(first, vec![(streams, None)])
        .await
        .unwrap();
    let late = store.change_settings(first, vec![(streams, set(3))]).await;
    assert_eq!(late, conflict(None));
    let now = store.overrides().await.unwrap();
    assert_eq!(names(&now.rows, |r| &r.key), ["stage_trace"]);
    let (layer, refused) = now.layer();
    assert_eq!(layer.value(trace), Some(&Value::Switch(false)));
    assert!(refused.is_empty());
    store
        .change_settings(now.version, vec![(streams, set(3))])
        .await
        .unwrap();
}

#[tokio::test]
async fn overrides_that_this_program_does_not_accept_are_named() {
    let bench = bench();
    bench
        .store
        .write(|tx| {
            Ok(tx.execute_batch(
                "INSERT INTO settings VALUES ('of_the_future', '1', 1, 0), ('max_attempts', '99', 2, 0)",
            )?)
        })
        .await
        .unwrap();
    let overrides = bench.store.overrides().await.unwrap();
    let (layer, refused) = overrides.layer();
    assert_eq!(layer.value(Name::MaxAttempts), None);
    assert_eq!(refused.len(), 2);
}

#[test]
fn two_servers_on_one_database_are_refused() {
    let bench = bench();
    let first = bench.store.claim().unwrap();
    let refused = bench.store.claim().unwrap_err().to_string();
    assert!(
        refused.contains("another fairlane is serving from it"),
        "{refused}"
    );
    drop(first);
    assert!(bench.store.claim().is_ok());
}
