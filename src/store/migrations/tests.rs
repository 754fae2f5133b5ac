//! The schema as reviewed, and that released steps stay as they are.
use super::*;
use crate::digest;
use std::fmt::Write as _;

fn in_memory() -> Connection {
    let mut conn = Connection::open_in_memory().unwrap();
    assert!(migrate(&mut conn).unwrap());
    conn
}

#[test]
fn the_schema_is_as_reviewed() {
    let conn = in_memory();
    let mut statement = conn
        .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name")
        .unwrap();
    let schema: Vec<String> = statement
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    insta::assert_snapshot!(schema.join(";\n\n"));
}

#[test]
fn released_files_are_frozen() {
    let mut frozen = String::new();
    for (name, sql) in STEPS {
        write!(frozen, "{name} ").unwrap();
        for byte in digest::sha256(sql.as_bytes()) {
            write!(frozen, "{byte:02x}").unwrap();
        }
        frozen.push('\n');
    }
    insta::assert_snapshot!(frozen);
}

#[test]
fn every_file_is_listed_in_order() {
    let mut files: Vec<String> =
        std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
    files.sort();
    let listed: Vec<&str> = STEPS.iter().map(|(name, _)| *name).collect();
    assert_eq!(files, listed);
}

#[test]
fn every_table_is_strict() {
    let conn = in_memory();
    let loose: Vec<String> = conn
        .prepare("SELECT name FROM pragma_table_list WHERE schema = 'main' AND NOT strict AND name NOT LIKE 'sqlite_%'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(loose, [] as [String; 0]);
}

#[test]
fn a_second_run_has_nothing_to_do() {
    let mut conn = in_memory();
    assert!(!migrate(&mut conn).unwrap());
    assert_eq!(version(&conn).unwrap(), known_version());
}

#[test]
fn a_step_that_fails_leaves_the_version_before_it() {
    let mut conn = Connection::open_in_memory().unwrap();
    let steps = [
        ("1.sql", "CREATE TABLE a (x INTEGER) STRICT"),
        (
            "2.sql",
            "CREATE TABLE b (x INTEGER) STRICT; SELECT no_such_function()",
        ),
    ];
    assert!(matches!(run(&mut conn, &steps), Err(Refusal::Other(text)) if text.contains("2.sql")));
    assert_eq!(version(&conn).unwrap(), 1);
    let tables: i64 = conn
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .unwrap();
    assert_eq!(tables, 1);
}

#[test]
fn a_newer_version_is_refused() {
    let mut conn = in_memory();
    conn.pragma_update(None, "user_version", 99).unwrap();
    let refused = Refusal::Newer {
        found: 99,
        known: known_version(),
    };
    assert_eq!(migrate(&mut conn), Err(refused));
}
