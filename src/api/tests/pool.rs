//! The pool as a document.
use super::*;

fn document() -> Value {
    json!({
        "endpoints": [{"name": "openai", "preset": "openai"}],
        "accounts": [{"name": "team", "stream_limit": 4}],
        "credentials": [{"name": "a", "secret": "sk-upstream-secret-0001", "accounts": ["team"], "endpoints": ["openai"]}],
        "keys": [{"name": "ci"}],
    })
}

/// "name change" for each thing of a kind.
fn changes(plan: &Value, kind: &str) -> Vec<String> {
    let list = plan[kind].as_array().unwrap();
    let text = |c: &Value, key: &str| c[key].as_str().unwrap().to_owned();
    list.iter()
        .map(|c| format!("{} {}", text(c, "name"), text(c, "change")))
        .collect()
}

#[tokio::test]
async fn an_import_says_what_it_did_and_shows_minted_secrets_once() {
    let bench = bench().await;
    let plan = bench.ok("PUT", "/pool", &document()).await;
    assert_eq!(changes(&plan, "endpoints"), ["openai unchanged"]);
    assert_eq!(changes(&plan, "accounts"), ["team changed"]);
    assert_eq!(changes(&plan, "credentials"), ["a added"]);
    let minted = &plan["minted_keys"][0];
    assert_eq!(
        (&minted["name"], &minted["id"]),
        (&json!("ci"), &plan["keys"][0]["id"])
    );
    let secret = minted["secret"].as_str().unwrap();
    assert!(
        bench
            .pool()
            .key(&digest::sha256(secret.as_bytes()))
            .is_some()
    );
    let again = bench.ok("PUT", "/pool", &document()).await;
    assert_eq!(again["minted_keys"], json!([]));
    assert_eq!(changes(&again, "keys"), ["ci unchanged"]);
}

#[tokio::test]
async fn a_dry_run_changes_nothing_and_mints_nothing() {
    let bench = bench().await;
    let before = bench.get("/pool").await;
    let version = bench.state.reload().version();
    let plan = bench.ok("PUT", "/pool?dry_run=true", &document()).await;
    assert_eq!(changes(&plan, "credentials"), ["a added"]);
    assert_eq!(plan["credentials"][0]["id"], Value::Null);
    assert_eq!(
        plan["minted_keys"],
        json!([{"id": null, "name": "ci", "secret": null}])
    );
    assert_eq!(bench.get("/pool").await, before);
    assert_eq!(bench.state.store().config_version().await.unwrap(), version);
}

#[tokio::test]
async fn a_document_with_mistakes_changes_nothing_and_is_told_all_of_them() {
    let bench = bench().await;
    let before = bench.get("/pool").await;
    let mut wrong = document();
    wrong["accounts"][0]["weight"] = json!(0);
    wrong["credentials"][0]["endpoints"] = json!(["none"]);
    let expect = (400, "INVALID_DOCUMENT", "accounts[0].weight");
    for path in ["/pool", "/pool?dry_run=true"] {
        let error = bench.refused(("PUT", path), &wrong, expect).await;
        let paths: Vec<&str> = error["mistakes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| m["path"].as_str().unwrap())
            .collect();
        assert_eq!(paths, ["accounts[0].weight", "credentials[0].endpoints[0]"]);
    }
    bench
        .refused(("PUT", "/pool"), &json!([]), (400, "INVALID_DOCUMENT", ""))
        .await;
    assert_eq!(bench.get("/pool").await, before);
}

#[tokio::test]
async fn a_sync_drains_what_is_no_longer_listed() {
    let bench = bench().await;
    bench.ok("PUT", "/pool", &document()).await;
    let left = json!({"accounts": [], "credentials": [], "keys": []});
    let merged = bench.ok("PUT", "/pool", &left).await;
    assert_eq!(changes(&merged, "credentials"), ["a unchanged"]);
    let synced = bench.ok("PUT", "/pool?sync=true", &left).await;
    assert_eq!(changes(&synced, "credentials"), ["a drained"]);
    assert_eq!(changes(&synced, "keys"), ["ci removed"]);
    assert_eq!(bench.pool().keys().len(), 0);
}

#[tokio::test]
async fn what_is_exported_imports_as_no_change() {
    let bench = bench().await;
    bench.ok("PUT", "/pool", &document()).await;
    let exported = bench.get("/pool").await;
    let plan = bench.ok("PUT", "/pool?sync=true", &exported).await;
    for kind in ["endpoints", "accounts", "credentials", "keys"] {
        for change in changes(&plan, kind) {
            assert!(change.ends_with(" unchanged"), "{kind}: {change}");
        }
    }
}

#[tokio::test]
async fn switches_of_an_import_are_true_or_false() {
    let bench = bench().await;
    for (query, field) in [
        ("sync=yes", "sync"),
        ("dry_run=", "dry_run"),
        ("dryrun=true", "dryrun"),
    ] {
        let path = format!("/pool?{query}");
        bench
            .refused(("PUT", &path), &document(), (400, "INVALID_QUERY", field))
            .await;
    }
    assert_eq!(bench.pool().credentials().len(), 0);
}

#[tokio::test]
async fn a_document_may_be_larger_than_other_bodies() {
    let bench = bench().await;
    let mut text = document().to_string();
    text.push_str(&" ".repeat(2 << 20));
    let path = format!("{PREFIX}/pool");
    let answer = bench
        .raw("PUT", &path, Some(TOKEN), text.into_bytes())
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let answer = bench
        .raw("PUT", &path, Some(TOKEN), vec![b' '; (16 << 20) + 1])
        .await;
    assert_eq!(answer.status, 413);
}
