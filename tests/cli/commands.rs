//! Commands that work.
#![expect(
    clippy::unwrap_used,
    reason = "a helper whose program does not play along has failed its test"
)]

use crate::program::{Home, KEY, SECRET, pool};
use serde_json::{Value, json};

fn document() -> Value {
    pool("http://127.0.0.1:9")
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// The credentials in an export: name and state.
fn states(home: &Home) -> Vec<(String, String)> {
    let exported = parsed(&home.export(&[]));
    let state = |c: &Value| {
        let text = |field: &str, absent: &str| c[field].as_str().unwrap_or(absent).to_owned();
        (text("name", "?"), text("state", "active"))
    };
    let list = exported["credentials"].as_array().unwrap();
    list.iter().map(state).collect()
}

#[test]
fn a_document_is_imported_from_a_file_as_from_standard_input() {
    let (by_file, by_input) = (Home::new(), Home::new());
    let path = by_file.path().join("pool.json");
    std::fs::write(&path, document().to_string()).unwrap();
    let ran = by_file.run(&["import", "pool.json"]);
    assert_eq!((ran.code, &*ran.out), (Some(0), ""), "{ran:?}");
    let expect = "added endpoint sim\nadded account one\nadded credential one\nadded key test\n";
    assert_eq!(ran.err, expect);
    by_input.import(&document());
    assert_eq!(by_file.export(&[]), by_input.export(&[]));
}

#[test]
fn a_key_without_a_secret_is_minted_and_printed_alone() {
    let home = Home::new();
    let keys = json!({"keys": [{"name": "minted"}]}).to_string();
    let ran = home.run_with(&["import", "-"], &[], &keys);
    let (name, secret) = ran.out.trim_end().split_once('\t').unwrap();
    assert_eq!((ran.code, name), (Some(0), "minted"));
    assert!(secret.len() >= 20 && !ran.err.contains(secret), "{ran:?}");
    assert_eq!(ran.out.lines().count(), 1);
}

#[test]
fn a_dry_run_shows_the_plan_and_writes_nothing() {
    let home = Home::new();
    home.import(&document());
    let before = home.export(&["--with-secrets"]);
    let mut changed = document();
    changed["credentials"][0]["stream_limit"] = json!(5);
    changed["keys"] = json!([{"name": "new"}]);
    let text = changed.to_string();
    let ran = home.run_with(&["import", "-", "--dry-run", "--sync"], &[], &text);
    assert_eq!((ran.code, &*ran.out), (Some(0), ""), "{ran:?}");
    for word in ["credential one", "added key new", "key test", "--dry-run"] {
        assert!(ran.err.contains(word), "{word}: {ran:?}");
    }
    assert_eq!(home.export(&["--with-secrets"]), before);
}

#[test]
fn a_sync_drains_what_is_no_longer_listed_and_a_plain_import_does_not() {
    let home = Home::new();
    home.import(&document());
    let mut other = document();
    other["credentials"][0] = json!({"name": "two", "secret": "sk-another-secret-of-the-pool",
                                     "accounts": ["one"], "endpoints": ["sim"]});
    home.import(&other);
    let state = |name: &str, state: &str| (name.to_owned(), state.to_owned());
    assert_eq!(
        states(&home),
        [state("one", "active"), state("two", "active")]
    );
    let ran = home.run_with(&["import", "-", "--sync"], &[], &other.to_string());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        states(&home),
        [state("one", "draining"), state("two", "active")]
    );
}

#[test]
fn a_list_of_secrets_goes_to_the_endpoint_that_is_named() {
    let home = Home::new();
    let list = "sk-list-secret-number-one\nsk-list-secret-number-two\n";
    let ran = home.run_with(&["import", "-", "--endpoint", "openai"], &[], list);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.err.contains("sk-list"), "{ran:?}");
    let exported = parsed(&home.export(&["--with-secrets"]));
    assert_eq!(
        exported["endpoints"][0]["base_url"],
        "https://api.openai.com"
    );
    let secret = |n: usize| exported["credentials"][n]["secret"].clone();
    assert_eq!(
        (secret(0), secret(1)),
        (
            json!("sk-list-secret-number-one"),
            json!("sk-list-secret-number-two")
        )
    );
    let table = "name,secret\nnamed,sk-list-secret-number-one\n";
    let ran = home.run_with(
        &["import", "-", "--endpoint", "openai", "--sync"],
        &[],
        table,
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let after = states(&home);
    assert_eq!(after[0].1, "active", "{after:?}");
    assert_eq!(after[1].1, "draining", "{after:?}");
}

#[test]
fn an_export_shows_secrets_only_when_asked_and_never_those_of_clients() {
    let home = Home::new();
    home.import(&document());
    let plain = home.export(&[]);
    assert!(!plain.contains(SECRET) && !plain.contains(KEY), "{plain}");
    let full = home.export(&["--with-secrets"]);
    assert!(full.contains(SECRET) && !full.contains(KEY), "{full}");
}

#[test]
fn an_export_imported_again_changes_nothing() {
    let home = Home::new();
    home.import(&document());
    for arguments in [&[][..], &["--with-secrets"]] {
        let exported = home.export(arguments);
        for import in [&["import", "-"][..], &["import", "-", "--sync"]] {
            let ran = home.run_with(import, &[], &exported);
            let expect = (Some(0), "", "nothing changes\n");
            assert_eq!((ran.code, &*ran.out, &*ran.err), expect);
        }
        assert_eq!(home.export(arguments), exported);
    }
}

#[test]
fn an_export_with_secrets_makes_the_same_pool_elsewhere() {
    let (home, other) = (Home::new(), Home::new());
    let mut without_keys = document();
    without_keys["keys"] = json!([]);
    home.import(&without_keys);
    let exported = home.export(&["--with-secrets"]);
    other.import(&parsed(&exported));
    assert_eq!(other.export(&["--with-secrets"]), exported);
}

#[test]
fn check_counts_what_there_is_and_finds_it_well() {
    let home = Home::new();
    home.import(&document());
    let ran = home.run(&["check"]);
    assert_eq!((ran.code, &*ran.err), (Some(0), ""), "{ran:?}");
    for line in [
        "endpoints    1",
        "credentials  1",
        "client keys  1",
        "all is well",
    ] {
        assert!(ran.out.lines().any(|l| l == line), "{line}: {ran:?}");
    }
}

#[test]
fn settings_tell_where_each_value_comes_from() {
    let home = Home::new();
    let env = [("FAIRLANE_ACCOUNT_STREAM_LIMIT", "12")];
    let ran = home.run_with(&["settings"], &env, "");
    let row = |key: &str| -> Vec<String> {
        let line = ran.out.lines().find(|l| l.starts_with(key)).unwrap();
        line.split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(
        row("account_stream_limit"),
        ["account_stream_limit", "12", "environment"]
    );
    assert_eq!(row("max_attempts"), ["max_attempts", "3", "default"]);
    assert!(!home.db().exists(), "looking made a database");
}

#[test]
fn the_reference_has_a_row_for_each_setting() {
    let home = Home::new();
    let listed = home.run(&["settings"]).out;
    let reference = home.run(&["settings", "--markdown"]).out;
    assert!(listed.lines().count() > 10);
    for line in listed.lines() {
        let key = line.split(' ').next().unwrap();
        let variable = format!("`FAIRLANE_{}`", key.to_uppercase());
        let rows = reference
            .lines()
            .filter(|r| r.starts_with(&format!("| `{key}` |")));
        let rows: Vec<_> = rows.collect();
        assert!(rows.len() == 1 && rows[0].contains(&variable), "{key}");
    }
}

#[test]
fn secrets_that_are_made_stand_alone_on_standard_output() {
    let home = Home::new();
    for command in ["create-key", "create-token"] {
        let ran = home.run(&["admin", command, "--name", "shell"]);
        assert_eq!((ran.code, &*ran.err), (Some(0), ""), "{ran:?}");
        let secret = ran.out.strip_suffix('\n').unwrap();
        assert!(secret.len() >= 20, "{ran:?}");
        assert!(secret.bytes().all(|b| b.is_ascii_graphic()), "{ran:?}");
        let again = home.run(&["admin", command, "--name", "shell"]);
        assert_eq!((again.code, &*again.out), (Some(1), ""), "{again:?}");
        assert_eq!(again.err.lines().count(), 1, "{again:?}");
        assert!(again.err.contains("shell"), "{again:?}");
    }
}

#[test]
fn the_argument_names_the_database_before_the_variable_does() {
    let home = Home::new();
    home.import(&document());
    let other = home.path().join("other.db");
    let other = other.to_str().unwrap();
    let ran = home.run(&["admin", "create-key", "--name", "k", "--db", other]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let exported = parsed(&home.run(&["--db", other, "export"]).out);
    assert_eq!(exported["keys"][0]["name"], "k");
    assert_eq!(parsed(&home.export(&[]))["keys"][0]["name"], "test");
}

#[test]
fn help_and_version_are_no_failure() {
    let home = Home::new();
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["help"],
        &["import", "--help"],
    ] {
        let ran = home.run(arguments);
        assert_eq!(
            (ran.code, &*ran.err),
            (Some(0), ""),
            "{arguments:?} {ran:?}"
        );
        assert!(!ran.out.is_empty());
    }
    assert_eq!(crate::program::files(home.path()), []);
}
