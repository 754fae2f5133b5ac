//! Who stands in the log for what, and what never does.
use crate::{
    domain::{
        ids::{CredentialId, EndpointId, TokenId},
        settings::{Name, Value},
    },
    store::{Store, audit::Written, tokens::AdminToken},
};
use serde_json::{Value as Json, json};

const SECRET: &str = "sk-upstream-secret-0001";

fn store() -> (Store, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("f.db")).unwrap();
    (store, dir)
}

async fn import(store: &Store, credential: &Json) {
    let document = json!({
        "endpoints": [{"name": "e", "preset": "openai"}],
        "accounts": [{"name": "a"}],
        "credentials": [credential],
    });
    let document = crate::document::read_value(&document).unwrap();
    let mode = crate::domain::pool::document::Mode::Merge;
    store.import(document, mode).await.unwrap();
}

fn credential(secret: &str, state: &str) -> Json {
    json!({"name": "c", "secret": secret, "accounts": ["a"], "endpoints": ["e"], "state": state})
}

/// "actor action detail" of every line, oldest first.
async fn lines(store: &Store) -> Vec<String> {
    let written = store.audit_lines(None, 1000).await.unwrap();
    let line = |w: &Written| format!("{} {} {}", w.actor, w.action, w.detail);
    written.iter().rev().map(line).collect()
}

#[tokio::test]
async fn a_plan_is_written_down_as_what_it_does_and_by_whom() {
    let (store, _dir) = store();
    let store = store.acting_as("token ci");
    import(&store, &credential(SECRET, "active")).await;
    let mut begun = lines(&store).await;
    begun.sort();
    let expect = ["account a", "credential c", "endpoint e"];
    assert_eq!(begun, expect.map(|what| format!("token ci add_{what}")));
    for (state, verb) in [
        ("active", None),
        ("draining", Some("drain")),
        ("disabled", Some("disable")),
        ("active", Some("enable")),
    ] {
        let before = lines(&store).await;
        import(&store, &credential(SECRET, state)).await;
        let after = lines(&store).await;
        let new = verb.map(|verb| format!("token ci {verb}_credential c"));
        assert_eq!(after[before.len()..], Vec::from_iter(new), "{state}");
    }
    import(&store, &credential("sk-upstream-secret-0002", "active")).await;
    assert_eq!(
        lines(&store).await.last().unwrap(),
        "token ci rotate_credential c"
    );
}

#[tokio::test]
async fn no_line_holds_a_secret() {
    let (store, _dir) = store();
    import(&store, &credential(SECRET, "active")).await;
    let written = store.audit_lines(None, 1000).await.unwrap();
    assert!(!written.is_empty());
    assert!(!format!("{written:?}").contains("secret-0001"));
}

#[tokio::test]
async fn a_whole_list_is_one_line() {
    let (store, _dir) = store();
    let credentials: Vec<Json> = (0..120)
        .map(|n| json!({"secret": format!("sk-upstream-secret-{n:04}"), "endpoints": ["e"]}))
        .collect();
    let document = json!({
        "endpoints": [{"name": "e", "preset": "openai"}],
        "credentials": credentials,
    });
    let document = crate::document::read_value(&document).unwrap();
    let mode = crate::domain::pool::document::Mode::Merge;
    store.import(document, mode).await.unwrap();
    // Each credential brings an account of its own.
    assert_eq!(lines(&store).await, ["cli import_pool 241 changes"]);
}

#[tokio::test]
async fn what_is_removed_keeps_its_name_in_the_log_and_what_is_not_there_leaves_none() {
    let (store, _dir) = store();
    import(&store, &credential(SECRET, "active")).await;
    let id = store.pool().await.unwrap().contents.credentials[0].id;
    let before = lines(&store).await.len();
    assert!(store.remove_credential(id).await.unwrap());
    assert!(
        !store
            .remove_credential(CredentialId::from_u128(9))
            .await
            .unwrap()
    );
    assert!(
        !store
            .remove_endpoint(EndpointId::from_u128(9))
            .await
            .unwrap()
    );
    assert_eq!(lines(&store).await[before..], ["cli remove_credential c"]);
}

#[tokio::test]
async fn settings_and_tokens_are_written_down() {
    let (store, _dir) = store();
    let store = store.acting_as("dashboard");
    let name = Name::AccountStreamLimit;
    let set = vec![(name, Some(Value::Integer(12)))];
    let version = store.change_settings(0, set).await.unwrap();
    store
        .change_settings(version, vec![(name, None)])
        .await
        .unwrap();
    let token = AdminToken {
        id: TokenId::from_u128(1),
        name: "ci".into(),
        hash: [1; 32],
        secret_hint: "0001".into(),
        created_at: 0,
    };
    store.add_token(token).await.unwrap();
    store.remove_token(TokenId::from_u128(1)).await.unwrap();
    assert_eq!(
        lines(&store).await,
        [
            "dashboard set_setting 12",
            "dashboard clear_setting ",
            "dashboard add_token ci",
            "dashboard remove_token ci"
        ]
    );
}
