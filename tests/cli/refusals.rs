//! Commands that refuse: what cannot be used is said in one line and left as it was.
#![expect(
    clippy::unwrap_used,
    reason = "a helper whose program does not play along has failed its test"
)]

use crate::program::{Home, Ran, files, pool};
use std::{fs, path::Path};

/// Everything that opens the database.
const COMMANDS: [&[&str]; 8] = [
    &["serve"],
    &["import", "-"],
    &["import", "-", "--dry-run"],
    &["export"],
    &["check"],
    &["settings"],
    &["admin", "create-key", "--name", "k"],
    &["admin", "create-token", "--name", "t"],
];

/// Every command refuses the database at `db` in one line with that word, and touches nothing.
fn check(home: &Home, db: &Path, commands: &[&[&str]], word: &str) {
    let before = files(home.path());
    let db = db.to_str().unwrap();
    for command in commands {
        let Ran { code, out, err } = home.run_with(
            &[*command, &["--db", db]].concat(),
            &[],
            r#"{"keys":[{"name":"k"}]}"#,
        );
        assert_eq!((code, &*out), (Some(1), ""), "{command:?} {err}");
        // What a log line says is not counted against the one that explains.
        let lines: Vec<_> = err
            .lines()
            .filter(|l| l.starts_with("fairlane: "))
            .collect();
        assert_eq!(lines.len(), 1, "{command:?} {err}");
        assert_eq!(err.lines().last(), lines.last().copied(), "{err}");
        assert!(
            lines[0].contains(db) && lines[0].contains(word),
            "{command:?} {err}"
        );
        assert!(files(home.path()) == before, "{command:?} touched a file");
    }
}

/// A database with something in it.
fn filled() -> Home {
    let home = Home::new();
    home.import(&pool("http://127.0.0.1:9"));
    home
}

#[test]
fn what_is_no_database_is_left_alone() {
    let home = Home::new();
    let noise: Vec<u8> = (0..8192_u32).map(|n| (n * 7 % 251) as u8).collect();
    for (content, word) in [(&noise[..], "not a"), (b"short", "not a"), (b"", "empty")] {
        fs::write(home.db(), content).unwrap();
        check(&home, &home.db(), &COMMANDS, word);
    }
}

#[test]
fn a_damaged_database_is_left_alone() {
    let home = filled();
    let whole = fs::read(home.db()).unwrap();
    fs::write(home.db(), &whole[..whole.len() / 2]).unwrap();
    check(&home, &home.db(), &COMMANDS, "damaged");
    let mut torn = whole;
    torn[4096..].fill(0xa5);
    fs::write(home.db(), torn).unwrap();
    check(&home, &home.db(), &COMMANDS, "damaged");
}

/// Changes a number in the header through `SQLite`.
fn set_pragma(db: &Path, pragma: &str, value: i64) {
    let conn = rusqlite::Connection::open(db).unwrap();
    conn.pragma_update(None, "journal_mode", "DELETE").unwrap();
    conn.pragma_update(None, pragma, value).unwrap();
    conn.close().unwrap();
}

#[test]
fn a_database_of_a_newer_version_is_left_alone() {
    let home = filled();
    set_pragma(&home.db(), "user_version", 4711);
    check(&home, &home.db(), &COMMANDS, "4711");
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    let home = filled();
    set_pragma(&home.db(), "application_id", 7);
    check(&home, &home.db(), &COMMANDS, "");
}

#[test]
fn a_directory_in_its_place_is_left_alone() {
    let home = Home::new();
    fs::create_dir(home.db()).unwrap();
    check(&home, &home.db(), &COMMANDS, "is a directory");
}

/// Where there is nothing, settings have their defaults, and need no database for that.
fn all_but_settings() -> Vec<&'static [&'static str]> {
    let mut commands = COMMANDS.to_vec();
    commands.retain(|c| c[0] != "settings");
    commands
}

#[test]
fn a_log_without_its_database_is_left_alone() {
    let home = Home::new();
    fs::write(home.path().join("fairlane.db-wal"), "left over").unwrap();
    check(&home, &home.db(), &all_but_settings(), "");
}

#[test]
fn a_directory_that_is_missing_or_none_is_not_made() {
    let home = Home::new();
    let missing = home.path().join("none").join("fairlane.db");
    check(&home, &missing, &all_but_settings(), "");
    let file = home.path().join("file");
    fs::write(&file, "a file").unwrap();
    check(&home, &file.join("fairlane.db"), &all_but_settings(), "");
}

#[test]
fn commands_that_look_make_no_database() {
    let home = Home::new();
    check(
        &home,
        &home.db(),
        &[&["export"], &["check"]],
        "no such database",
    );
}

#[test]
fn wrong_usage_is_told_apart_and_touches_nothing() {
    let home = Home::new();
    for arguments in [
        &["bogus"][..],
        &["serve", "--port", "80"],
        &["import"],
        &["import", "-", "--endpoint"],
        &["export", "extra"],
        &["admin"],
        &["admin", "create-key"],
        &["settings", "--html"],
        &["--db"],
    ] {
        let ran = home.run(arguments);
        assert_eq!(
            (ran.code, &*ran.out),
            (Some(2), ""),
            "{arguments:?} {ran:?}"
        );
        assert!(ran.err.contains("--help"), "{ran:?}");
    }
    assert_eq!(files(home.path()), []);
}

#[test]
fn every_mistake_of_a_document_is_said_and_nothing_of_it_kept() {
    let home = filled();
    let before = home.export(&["--with-secrets"]);
    let mut bad = pool("not a url");
    bad["accounts"][0]["stream_limit"] = "many".into();
    bad["credentials"][0]["accounts"] = serde_json::json!(["nobody"]);
    bad["keys"] = serde_json::json!([{"name": "short", "secret": "marker"}]);
    let ran = home.run_with(&["import", "-"], &[], &bad.to_string());
    assert_eq!((ran.code, &*ran.out), (Some(1), ""), "{ran:?}");
    for place in ["endpoints[0]", "accounts[0]", "credentials[0]", "keys[0]"] {
        assert!(ran.err.contains(place), "{place}: {}", ran.err);
    }
    assert!(!ran.err.contains("marker"), "{}", ran.err);
    assert_eq!(home.export(&["--with-secrets"]), before);
}

#[test]
fn what_is_no_document_or_not_there_is_said_in_one_line() {
    let home = filled();
    for (file, text) in [("-", "{"), ("-", "[]"), ("-", "null"), ("none.json", "")] {
        let ran = home.run_with(&["import", file], &[], text);
        assert_eq!((ran.code, &*ran.out), (Some(1), ""), "{ran:?}");
        assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
    }
}
