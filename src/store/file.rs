//! Opening the database file: looked at before it is touched, created whole or not at all.
//!
//! Invariant: a refusal leaves the file and its neighbours byte for byte as they were, and no
//! existing file is ever taken for a fresh start.
use super::{
    error::Refusal,
    migrations::{known_version, migrate, version},
};
use crate::{clock, entropy};
use rusqlite::{Connection, OpenFlags, config::DbConfig, params};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    path::{Path, PathBuf},
    time::Duration,
};

/// Marks a database as fairlane's in its header: the letters "frln".
const APPLICATION_ID: i32 = 0x6672_6c6e;

/// How long a write waits for another process's lock before it fails.
pub(super) const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// Bounds the write-ahead log on disk after a burst.
const LOG_LIMIT_BYTES: i64 = 64 << 20;

/// The tables that are checked at every start: all but the request log, which may be large.
const CHECKED: &[&str] = &[
    "meta",
    "endpoints",
    "endpoint_protocols",
    "accounts",
    "credentials",
    "credential_accounts",
    "credential_endpoints",
    "client_keys",
    "client_key_accounts",
    "settings",
    "admin_tokens",
];

/// Opens the file for writing, creates it if there is none, and brings the schema up to date.
pub(super) fn open(path: &Path) -> Result<Connection, Refusal> {
    let is_there = inspect(path)?;
    let directory = directory_of(path);
    probe_directory(&directory)?;
    if is_there {
        restrict(path);
    } else {
        create(path, &directory)?;
    }
    let had_log = beside(path, "-wal").exists();
    connect(path).inspect_err(|refusal| {
        if matches!(refusal, Refusal::Damaged(_)) && !had_log {
            tidy(path);
        }
    })
}

/// Removes what `SQLite` left beside a damaged file that it was made to look into: with the file
/// put away, its log would be taken for the rest of a lost database. Nobody else has such a file
/// open, because nobody can open it.
fn tidy(path: &Path) {
    let log = beside(path, "-wal");
    if fs::metadata(&log).is_ok_and(|found| found.len() == 0) {
        for left in [log, beside(path, "-shm")] {
            // What cannot be removed was there before, or is in nobody's way.
            drop(fs::remove_file(left));
        }
    }
}

/// Looks at the header through plain reads: `SQLite` would leave files beside the database even
/// when it only reads. Says whether there is a database.
fn inspect(path: &Path) -> Result<bool, Refusal> {
    let size = match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(Refusal::IsDirectory),
        Ok(found) => found.len(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return if beside(path, "-wal").exists() {
                Err(Refusal::Leftovers)
            } else {
                Ok(false)
            };
        }
        Err(e) => return Err(Refusal::Other(e.to_string())),
    };
    if size == 0 {
        return Err(Refusal::Empty);
    }
    check_header(&File::open(path)?)?;
    // Last, because what the file is says more than that it cannot be written.
    OpenOptions::new().write(true).open(path)?;
    Ok(true)
}

/// Offsets are those of `SQLite`'s file format: user version at 60, application id at 68.
fn check_header(mut file: &File) -> Result<(), Refusal> {
    let mut header = [0u8; 100];
    file.read_exact(&mut header)
        .map_err(|_| Refusal::NotADatabase)?;
    if !header.starts_with(b"SQLite format 3\0") {
        return Err(Refusal::NotADatabase);
    }
    let number = |at: usize| {
        header
            .get(at..at + 4)
            .and_then(|b| b.try_into().ok())
            .map_or(0, i32::from_be_bytes)
    };
    if number(68) != APPLICATION_ID {
        return Err(Refusal::Foreign);
    }
    let (found, known) = (i64::from(number(60)), known_version());
    if found > known {
        return Err(Refusal::Newer { found, known });
    }
    Ok(())
}

fn probe_directory(directory: &Path) -> Result<(), Refusal> {
    if !directory.is_dir() {
        return Err(Refusal::NoDirectory);
    }
    scratch(directory)
        .map(drop)
        .map_err(|e| Refusal::DirectoryNotWritable(e.to_string()))
}

fn scratch(directory: &Path) -> io::Result<tempfile::NamedTempFile> {
    // Its mode is 0600 whatever the umask says.
    tempfile::Builder::new()
        .prefix(".fairlane-")
        .tempfile_in(directory)
}

/// Tightens the mode of a file that was copied here under a generous umask. `SQLite` gives its
/// side files the mode of the database.
fn restrict(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let Ok(found) = fs::metadata(path) else {
        return;
    };
    if found.permissions().mode() & 0o077 != 0
        && let Err(error) = fs::set_permissions(path, fs::Permissions::from_mode(0o600))
    {
        tracing::warn!(%error, "the database is readable by others and its mode cannot be changed");
    }
}

/// Builds the database under another name and moves it into place, so that a crash leaves either
/// no database or a whole one.
fn create(path: &Path, directory: &Path) -> Result<(), Refusal> {
    let scratch = scratch(directory)
        .map_err(|e| Refusal::DirectoryNotWritable(e.to_string()))?
        .into_temp_path();
    let mut conn = Connection::open(&scratch)?;
    conn.pragma_update(None, "application_id", APPLICATION_ID)?;
    migrate(&mut conn)?;
    conn.execute(
        "INSERT INTO meta (id, instance_secret, config_version, created_at) VALUES (1, ?1, 1, ?2)",
        params![entropy::bytes(), clock::unix_millis()],
    )?;
    conn.close().map_err(|(_, e)| e)?;
    match scratch.persist_noclobber(path) {
        Ok(()) => File::open(directory)?.sync_all().map_err(Refusal::from),
        // Another process was faster; its database is as good.
        Err(e) if e.error.kind() == io::ErrorKind::AlreadyExists => inspect(path).map(drop),
        Err(e) => Err(e.error.into()),
    }
}

fn connect(path: &Path) -> Result<Connection, Refusal> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags)?;
    // Before anything else, so that switching to WAL waits for a lock as well.
    conn.busy_timeout(LOCK_PATIENCE)?;
    // The version may stand in a log that was never folded in. Until it is known to be ours,
    // closing must not fold that log into the file.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let (found, known) = (version(&conn)?, known_version());
    if found > known {
        return Err(Refusal::Newer { found, known });
    }
    let mode: String =
        conn.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(Refusal::Other(format!(
            "the file system allows no write-ahead log, only {mode}"
        )));
    }
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "foreign_keys", true)?;
    conn.pragma_update(None, "journal_size_limit", LOG_LIMIT_BYTES)?;
    conn.set_prepared_statement_cache_capacity(128);
    if migrate(&mut conn)? {
        // So that the header of the file says the new version to older programs.
        conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    }
    check_tables(&conn)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    Ok(conn)
}

/// Reads through the configuration once. The request log is left out: a start must not depend on
/// how much was logged.
fn check_tables(conn: &Connection) -> Result<(), Refusal> {
    for table in CHECKED {
        let verdict: String =
            conn.query_row(&format!("PRAGMA quick_check({table})"), [], |row| {
                row.get(0)
            })?;
        if verdict != "ok" {
            // More than a line of it helps nobody.
            let line = verdict.lines().next().unwrap_or_default().to_owned();
            return Err(Refusal::Damaged(line));
        }
    }
    let rows: i64 = conn.query_row("SELECT count(*) FROM meta", [], |row| row.get(0))?;
    if rows == 1 {
        Ok(())
    } else {
        Err(Refusal::Damaged(
            "the row that identifies it is missing".into(),
        ))
    }
}

/// The directory that holds the file.
fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// A file beside the database: its name with `suffix`.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests;
