//! Which files are opened, which are refused, and that a refusal changes nothing.
use super::*;
use crate::store::{Store, StoreError};
use std::{collections::BTreeMap, os::unix::fs::PermissionsExt as _};

/// Every file of a directory with its content.
fn snapshot(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(&path).unwrap_or_default())
        })
        .collect()
}

/// Opening `path` is refused with a line that contains `expect`, and changes nothing.
fn check(path: &Path, expect: &str) {
    let before = path
        .parent()
        .filter(|p| p.is_dir() && !p.starts_with("/proc"));
    let before = before.map(|p| (p, snapshot(p)));
    let error = Store::open(path).unwrap_err();
    let line = error.to_string();
    assert!(matches!(error, StoreError::Refused { .. }), "{line}");
    assert!(line.contains(expect), "{line}");
    assert!(line.starts_with(&path.display().to_string()), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    if let Some((directory, before)) = before {
        assert_eq!(snapshot(directory), before, "{line}");
    }
}

fn dir() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// A database that was closed, and a connection to it that `change` is made through.
fn closed_database(dir: &tempfile::TempDir, change: &str) -> PathBuf {
    let path = dir.path().join("f.db");
    drop(Store::open(&path).unwrap());
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch(change).unwrap();
    conn.close().unwrap();
    path
}

#[test]
fn a_missing_file_is_created_readable_by_its_owner_alone() {
    let dir = dir();
    let path = dir.path().join("f.db");
    let store = Store::open(&path).unwrap();
    for (name, _) in snapshot(dir.path()) {
        let mode = fs::metadata(dir.path().join(&name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert!(beside(&path, "-wal").exists());
    drop(store);
    // The last connection folds the log in and leaves one file.
    assert_eq!(snapshot(dir.path()).len(), 1);
}

#[test]
fn a_generous_mode_is_tightened() {
    let dir = dir();
    let path = closed_database(&dir, "");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let _store = Store::open(&path).unwrap();
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn an_empty_file_is_no_fresh_start() {
    let dir = dir();
    let path = dir.path().join("f.db");
    fs::write(&path, b"").unwrap();
    check(&path, "it is empty (0 bytes)");
}

#[test]
fn a_log_without_its_database_is_no_fresh_start() {
    let dir = dir();
    let path = dir.path().join("f.db");
    fs::write(beside(&path, "-wal"), b"left over").unwrap();
    check(&path, "write-ahead log is still there");
}

#[test]
fn other_files_are_refused() {
    let dir = dir();
    let path = dir.path().join("f.db");
    fs::write(&path, b"hello").unwrap();
    check(&path, "not an SQLite database");
    fs::write(&path, vec![7u8; 5000]).unwrap();
    check(&path, "not an SQLite database");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    check(&path, "it is a directory");
}

#[test]
fn another_programs_database_is_refused() {
    for change in ["CREATE TABLE t (x)", "VACUUM"] {
        let dir = dir();
        let path = dir.path().join("f.db");
        let conn = Connection::open(&path).unwrap();
        conn.execute_batch(change).unwrap();
        conn.close().unwrap();
        check(&path, "a database of another program");
    }
}

#[test]
fn a_newer_database_is_refused_untouched() {
    let dir = dir();
    let path = closed_database(&dir, "PRAGMA user_version = 99; CREATE TABLE unknown (x)");
    check(
        &path,
        "its schema is version 99 and this program knows versions up to 6",
    );
}

#[test]
fn a_newer_version_that_stands_in_the_log_alone_is_refused() {
    let dir = dir();
    let path = closed_database(&dir, "");
    let conn = Connection::open(&path).unwrap();
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .unwrap();
    conn.execute_batch("PRAGMA user_version = 99").unwrap();
    conn.close().unwrap();
    let before = (
        fs::read(&path).unwrap(),
        fs::read(beside(&path, "-wal")).unwrap(),
    );
    assert!(!before.1.is_empty());
    let refused = Store::open(&path).unwrap_err().to_string();
    assert!(refused.contains("version 99"), "{refused}");
    let after = (
        fs::read(&path).unwrap(),
        fs::read(beside(&path, "-wal")).unwrap(),
    );
    assert!(before == after);
}

#[test]
fn a_truncated_database_is_refused() {
    let dir = dir();
    let path = closed_database(&dir, "");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let refused = Store::open(&path).unwrap_err().to_string();
    assert!(refused.contains("it is damaged"), "{refused}");
    assert_eq!(fs::read(&path).unwrap(), &bytes[..bytes.len() / 2]);
}

#[test]
fn a_page_of_garbage_is_found_at_the_start() {
    let dir = dir();
    let path = closed_database(&dir, "");
    let conn = Connection::open(&path).unwrap();
    let root: u64 = conn
        .query_row(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'credentials'",
            [],
            |row| row.get::<_, i64>(0),
        )
        .map(|n| u64::try_from(n).unwrap())
        .unwrap();
    conn.close().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let at = usize::try_from((root - 1) * 4096).unwrap();
    bytes[at..at + 4096].fill(0xa5);
    fs::write(&path, &bytes).unwrap();
    let refused = Store::open(&path).unwrap_err().to_string();
    assert!(refused.contains("it is damaged"), "{refused}");
    assert!(fs::read(&path).unwrap() == bytes);
}

#[test]
fn a_directory_that_takes_no_files_is_refused() {
    // Nobody can create files there, not even the superuser.
    check(
        Path::new("/proc/fairlane.db"),
        "its directory cannot be written",
    );
    let dir = dir();
    check(
        &dir.path().join("none/f.db"),
        "its directory does not exist",
    );
}

#[test]
fn the_instance_secret_survives_and_cannot_be_changed() {
    let dir = dir();
    let path = dir.path().join("f.db");
    let first = Store::open(&path).unwrap();
    let print = first.fingerprint("sk-1");
    let refused = first
        .write_blocking(|tx| Ok(tx.execute("UPDATE meta SET instance_secret = zeroblob(32)", [])?));
    assert!(refused.unwrap_err().to_string().contains("never changes"));
    drop(first);
    assert_eq!(Store::open(&path).unwrap().fingerprint("sk-1"), print);
    let other = Store::open(&dir.path().join("g.db")).unwrap();
    assert_ne!(other.fingerprint("sk-1"), print);
}
