//! Whole documents: planned, carried out, exported, and imported again.
use super::*;
use crate::{
    domain::pool::Origin,
    document::{from_environment, read_json, read_list, write_json},
};

struct Bench {
    store: Store,
    _dir: tempfile::TempDir,
}

fn bench() -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("f.db")).unwrap();
    Bench { store, _dir: dir }
}

fn read(json: &str) -> Document {
    read_json(json.as_bytes()).unwrap()
}

const DOCUMENT: &str = r#"{
  "endpoints": [{"name": "openai", "preset": "openai", "headers": {"X-Team": "one"}},
                {"name": "own", "base_url": "http://127.0.0.1:9/v4", "protocols": ["openai"],
                 "models": [{"model": "fast", "upstream_model": "slow"}, "m"]}],
  "accounts": [{"name": "team-a", "stream_limit": 0, "priority": 2, "state": "disabled"}],
  "credentials": [
    {"name": "a", "secret": "sk-secret-number-one", "accounts": ["team-a"], "endpoints": ["openai"]},
    {"name": "b", "secret": "sk-secret-number-two", "endpoints": ["openai", "own"], "job_limit": 3},
    {"secret": "sk-secret-number-three", "endpoints": ["own"], "state": "draining"}],
  "keys": [{"name": "ci", "accounts": ["team-a", "b"], "concurrency": 5,
            "requests_per_minute": 60, "tokens_per_day": 1000000000000, "expires_at": "2030-01-31T18:00:00Z"},
           {"name": "dev", "secret": "fl-aaaaaaaaaaaaaaaaaaaa", "weight": 3, "models": ["m"]}]
}"#;

async fn import(store: &Store, document: &Document, mode: Mode) -> Plan {
    let planned = store.plan_import(document.clone(), mode).await.unwrap();
    let plan = store.import(document.clone(), mode).await.unwrap();
    let kinds = |plan: &Plan| plan.credentials.iter().map(|c| c.kind).collect::<Vec<_>>();
    assert_eq!(kinds(&planned), kinds(&plan));
    let after = store.pool().await.unwrap();
    assert_eq!(
        format!("{:?}", after.contents),
        format!("{:?}", sorted(plan.contents()))
    );
    plan
}

/// In the order in which the store lists things.
fn sorted(mut contents: Contents) -> Contents {
    contents.endpoints.sort_by_key(|e| e.id);
    contents.accounts.sort_by_key(|a| a.id);
    contents.credentials.sort_by_key(|c| c.id);
    contents.keys.sort_by_key(|k| k.id);
    contents
}

#[tokio::test]
async fn an_import_leaves_exactly_what_its_plan_said() {
    let bench = bench();
    let plan = import(&bench.store, &read(DOCUMENT), Mode::Merge).await;
    assert_eq!(plan.minted.len(), 1);
    assert!(plan.minted[0].secret.expose().starts_with("fl-"));
    let again = import(&bench.store, &read(DOCUMENT), Mode::Merge).await;
    assert!(again.is_empty(), "{again:#?}");
    assert!(again.minted.is_empty());
    let smaller = r#"{"credentials": [{"name": "b", "secret": "sk-secret-number-one"}],
                      "keys": [{"name": "dev", "secret": "fl-bbbbbbbbbbbbbbbbbbbb"}]}"#;
    import(&bench.store, &read(smaller), Mode::Sync).await;
    import(
        &bench.store,
        &read_list("sk-from-a-list\n", "openai"),
        Mode::Sync,
    )
    .await;
}

#[tokio::test]
async fn who_brought_a_secret_is_kept_and_changes_with_the_secret() {
    let bench = bench();
    let boot = from_environment(&[("openai", "sk-secret-number-one")]);
    import(&bench.store, &boot, Mode::Sync).await;
    let origins = async || {
        let stored = bench.store.credentials().await.unwrap();
        stored.iter().map(|c| c.origin).collect::<Vec<_>>()
    };
    assert_eq!(origins().await, [Origin::Environment]);
    let named = r#"{"credentials": [{"name": "a", "secret": "sk-secret-number-one"}]}"#;
    import(&bench.store, &read(named), Mode::Merge).await;
    assert_eq!(origins().await, [Origin::Environment]);
    let rotated = r#"{"credentials": [{"name": "a", "secret": "sk-secret-number-two"}]}"#;
    import(&bench.store, &read(rotated), Mode::Merge).await;
    assert_eq!(origins().await, [Origin::Operator]);
}

#[tokio::test]
async fn things_can_exchange_names_and_secrets() {
    let bench = bench();
    import(&bench.store, &read(DOCUMENT), Mode::Merge).await;
    let swapped = r#"{"credentials": [{"name": "b", "secret": "sk-secret-number-one"},
                                      {"name": "a", "secret": "sk-secret-number-two"}],
      "keys": [{"name": "ci", "secret": "fl-aaaaaaaaaaaaaaaaaaaa"},
               {"name": "dev", "secret": "fl-bbbbbbbbbbbbbbbbbbbb"}]}"#;
    import(&bench.store, &read(swapped), Mode::Merge).await;
}

#[tokio::test]
async fn an_export_imported_over_the_same_pool_changes_nothing() {
    let bench = bench();
    import(&bench.store, &read(DOCUMENT), Mode::Merge).await;
    for with_secrets in [false, true] {
        let now = bench.store.pool().await.unwrap();
        let written = write_json(&now.contents, with_secrets).to_string();
        assert_eq!(written.contains("sk-secret"), with_secrets);
        for mode in [Mode::Merge, Mode::Sync] {
            let plan = bench.store.import(read(&written), mode).await.unwrap();
            assert!(plan.is_empty(), "{plan:#?}");
            let version = bench.store.config_version().await.unwrap();
            assert_eq!(version, now.version);
        }
    }
}

#[tokio::test]
async fn a_document_with_mistakes_changes_nothing() {
    let bench = bench();
    let dangling = r#"{"endpoints": [{"name": "fine", "preset": "openai"}],
      "credentials": [{"secret": "sk-secret-number-one", "endpoints": ["nowhere"]}]}"#;
    let refused = bench.store.import(read(dangling), Mode::Merge).await;
    let ImportError::Mistakes(mistakes) = refused.unwrap_err() else {
        panic!("not refused for its mistakes");
    };
    assert_eq!(mistakes[0].path, "credentials[0].endpoints[0]");
    assert!(bench.store.endpoints().await.unwrap().is_empty());
}
