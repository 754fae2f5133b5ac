//! What can go wrong with the store, in two voices: refusals at the opening, for the operator, and
//! faults of a running store, for whoever asked.
//!
//! Invariant: the `Display` of every error is one line and holds no secret.
use std::{io, path::PathBuf};

/// Why something was not read or not written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The file cannot be used.
    #[error("{}: {refusal}", .path.display())]
    Refused {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it and what to do.
        refusal: Refusal,
    },
    /// Too many writes wait already; this one was not begun.
    #[error("the database cannot keep up: too many writes are waiting")]
    Busy,
    /// The store is shutting down.
    #[error("the store has been closed")]
    Closed,
    /// A fault in the program; the change was rolled back.
    #[error("the change failed inside the program and was rolled back")]
    Panicked,
    /// `SQLite` or the disk said no; nothing of the change was kept.
    #[error("{fault}: {detail}")]
    Database {
        /// What kind of trouble.
        fault: Fault,
        /// `SQLite`'s own words.
        detail: String,
    },
    /// A stored row makes no sense.
    #[error("a row of {table} is inconsistent: {what}")]
    Inconsistent {
        /// Which table.
        table: &'static str,
        /// What is wrong.
        what: String,
    },
    /// Another thing of that kind has the name.
    #[error("the name {name:?} is taken by another {kind}")]
    NameTaken {
        /// Which kind of thing.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// Another thing of that kind has the same secret.
    #[error("that secret belongs to the {kind} {name:?} already")]
    SecretTaken {
        /// Which kind of thing.
        kind: &'static str,
        /// Whose it is.
        name: String,
    },
    /// Something still needs it.
    #[error("the {kind} is in use by {}", .by.join(", "))]
    InUse {
        /// Which kind of thing.
        kind: &'static str,
        /// The names of the credentials that need it.
        by: Vec<String>,
    },
    /// Something it names is not there.
    #[error("the {kind} names an {missing} that does not exist")]
    Dangling {
        /// Which kind of thing.
        kind: &'static str,
        /// Which kind of thing is missing.
        missing: &'static str,
    },
    /// A setting was changed by somebody else since it was read.
    #[error("{key} has been changed since: it is now {}", .current.as_deref().unwrap_or("inherited"))]
    SettingConflict {
        /// Which setting.
        key: String,
        /// The stored override, or `None` for "inherit".
        current: Option<String>,
    },
}

/// Why a file is not opened. The file is left as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The directory is not there.
    #[error("its directory does not exist; create it or name another file with --db")]
    NoDirectory,
    /// Nothing can be created next to the file.
    #[error(
        "its directory cannot be written ({0}); SQLite keeps files beside the database, so make the directory writable for this user"
    )]
    DirectoryNotWritable(String),
    /// The file itself cannot be opened for writing.
    #[error("it cannot be opened for reading and writing ({0}); check owner and permissions")]
    FileNotWritable(String),
    /// A directory has that name.
    #[error("it is a directory; name a file inside it with --db")]
    IsDirectory,
    /// The file has no content.
    #[error(
        "it is empty (0 bytes), as an interrupted copy leaves it; restore a backup, or remove the file to begin afresh"
    )]
    Empty,
    /// The file is missing, but its write-ahead log is there.
    #[error(
        "it is missing, but its write-ahead log is still there; put the file back or restore a backup, or remove the -wal file to begin afresh"
    )]
    Leftovers,
    /// The file is something else.
    #[error("it is not an SQLite database; name another file with --db")]
    NotADatabase,
    /// The file belongs to another program.
    #[error("it is a database of another program; name another file with --db")]
    Foreign,
    /// A newer fairlane wrote it.
    #[error(
        "its schema is version {found} and this program knows versions up to {known}; run the newer fairlane again, or restore a backup from before the upgrade"
    )]
    Newer {
        /// The file's version.
        found: i64,
        /// The newest that this program knows.
        known: i64,
    },
    /// The content contradicts itself.
    #[error("it is damaged ({0}); keep it and restore a backup")]
    Damaged(String),
    /// Another program holds its lock.
    #[error("another program keeps it locked; stop that program and try again")]
    Locked,
    /// Another instance serves from it.
    #[error(
        "another fairlane is serving from it{}; stop that one first", .pid.map(|p| format!(" (process {p})")).unwrap_or_default()
    )]
    Served {
        /// That instance's process, where it could be read.
        pid: Option<u32>,
    },
    /// Anything else.
    #[error("it cannot be opened ({0})")]
    Other(String),
}

/// What kind of trouble the disk or `SQLite` has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Fault {
    /// No room left.
    #[error("the disk is full")]
    Full,
    /// File or file system may only be read.
    #[error("the database is read-only")]
    ReadOnly,
    /// Another process holds the lock.
    #[error("the database is locked by another process")]
    Locked,
    /// The disk failed.
    #[error("the disk failed")]
    Io,
    /// The content contradicts itself.
    #[error("the database is damaged")]
    Damaged,
    /// Anything else, such as a violated constraint.
    #[error("the database refused")]
    Other,
}

impl Fault {
    /// Whether it says something about the disk, rather than about one statement.
    pub const fn is_disk(self) -> bool {
        !matches!(self, Self::Other)
    }
}

impl StoreError {
    /// Whether it says something about the health of the disk, rather than about one change.
    pub const fn is_disk(&self) -> bool {
        matches!(self, Self::Database { fault, .. } if fault.is_disk())
    }

    pub(super) fn inconsistent(table: &'static str, what: impl Into<String>) -> Self {
        Self::Inconsistent {
            table,
            what: what.into(),
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database {
            fault: fault_of(&error),
            detail: error.to_string(),
        }
    }
}

impl From<r2d2::Error> for StoreError {
    fn from(error: r2d2::Error) -> Self {
        Self::Database {
            fault: Fault::Other,
            detail: format!("no read connection became free: {error}"),
        }
    }
}

impl From<rusqlite::Error> for Refusal {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        let detail = error.to_string();
        match error.sqlite_error_code() {
            Some(Code::NotADatabase) => Self::NotADatabase,
            Some(Code::DatabaseCorrupt) => Self::Damaged(detail),
            Some(Code::DatabaseBusy | Code::DatabaseLocked) => Self::Locked,
            Some(Code::ReadOnly | Code::PermissionDenied) => Self::FileNotWritable(detail),
            _ => Self::Other(detail),
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::FileNotWritable(error.to_string())
            }
            _ => Self::Other(error.to_string()),
        }
    }
}

fn fault_of(error: &rusqlite::Error) -> Fault {
    use rusqlite::ErrorCode as Code;
    match error.sqlite_error_code() {
        Some(Code::DiskFull) => Fault::Full,
        Some(Code::ReadOnly | Code::PermissionDenied) => Fault::ReadOnly,
        Some(Code::DatabaseBusy | Code::DatabaseLocked) => Fault::Locked,
        Some(Code::SystemIoFailure | Code::CannotOpen) => Fault::Io,
        Some(Code::DatabaseCorrupt | Code::NotADatabase) => Fault::Damaged,
        _ => Fault::Other,
    }
}
