//! Secrets as they are pasted: cleaned, or refused where they are read with the field's name.
use crate::harness::{SECRET, Setup, World, chat};
use fairlane::{document::read_json, domain::pool::document::Mode, store::Store};
use http::StatusCode;
use serde_json::{Value, json};

/// A pool whose one credential has that secret.
fn pool_with(secret: &str) -> Value {
    Setup::default()
        .with("/endpoints/0/base_url", json!("https://api.example.com"))
        .with("/credentials/0/secret", json!(secret))
        .pool
}

/// Imports into a fresh store: the warnings, or the mistakes.
async fn import(document: Value) -> Result<Vec<String>, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fairlane.db");
    let imported = fairlane::blocking::run(move || {
        let store = Store::open(&path).unwrap();
        let document = read_json(document.to_string().as_bytes()).unwrap();
        let plan = store.import_blocking(document, Mode::Merge);
        store.close();
        let warnings = plan.map_err(|e| e.to_string())?.warnings;
        Ok(warnings.iter().map(ToString::to_string).collect())
    });
    imported.await.unwrap()
}

#[tokio::test]
async fn what_surrounds_a_pasted_secret_is_taken_off_before_it_is_sent() {
    for (before, after) in [
        ("", "\n"),
        ("\r\n", "\r\n"),
        ("\t ", " \t"),
        ("\u{feff}", ""),
        ("\u{200b}", "\u{200b}"),
        ("\"", "\""),
        (" '", "'\n"),
        ("\u{201c}", "\u{201d}"),
    ] {
        let pasted = format!("{before}{SECRET}{after}");
        let world: World = Setup::default()
            .with("/credentials/0/secret", json!(pasted))
            .start()
            .await;
        let answer = world.post("/v1/chat/completions", &chat(false)).await;
        assert_eq!(answer.status, StatusCode::OK, "{pasted:?}: {answer:?}");
        let log = world.seen("/v1/chat/completions");
        assert_eq!(
            log[0].header_values("authorization"),
            [format!("Bearer {SECRET}")],
            "{pasted:?}"
        );
        world.end().await;
    }
}

#[tokio::test]
async fn what_no_header_can_carry_is_refused_at_the_field_where_it_stands() {
    let long = "x".repeat(8 << 10);
    for (pasted, expect) in [
        ("", "is empty"),
        ("  \n", "is empty"),
        ("\"\"", "is empty"),
        ("sk-with a-space-in-it", "' ' at character 8"),
        ("sk-with\nline-in-it", "'\\n' at character 8"),
        ("sk-zero\u{200b}width", "at character 8"),
        ("ｓｋ－full-width", "'ｓ' at character 1"),
        ("sk-caf\u{e9}", "'é' at character 7"),
        (&*long, "8192 bytes long"),
    ] {
        let refused = import(pool_with(pasted)).await.unwrap_err();
        assert!(
            refused.contains("credentials[0].secret"),
            "{pasted:?}: {refused}"
        );
        assert!(refused.contains(expect), "{pasted:?}: {refused}");
    }
}

#[tokio::test]
async fn a_clients_key_is_held_to_the_same() {
    for (pasted, expect) in [
        ("", "is empty"),
        ("fl-short", "20"),
        ("fl-with a space in it, long enough", "' ' at character 8"),
    ] {
        let document = Setup::default()
            .with("/endpoints/0/base_url", json!("https://api.example.com"))
            .with("/keys/0/secret", json!(pasted))
            .pool;
        let refused = import(document).await.unwrap_err();
        assert!(refused.contains("keys[0].secret"), "{pasted:?}: {refused}");
        assert!(refused.contains(expect), "{pasted:?}: {refused}");
    }
}

#[tokio::test]
async fn the_same_secret_twice_is_one_credential_and_a_warning() {
    let mut document = pool_with(SECRET);
    let mut again = document["credentials"][0].clone();
    again["name"] = json!("again");
    again["secret"] = json!(format!(" {SECRET}\n"));
    document["credentials"].as_array_mut().unwrap().push(again);
    let warnings = import(document).await.unwrap();
    assert!(
        warnings.iter().any(|w| w.contains("credentials[1]")),
        "{warnings:?}"
    );
    assert!(!warnings.concat().contains(SECRET));
}
