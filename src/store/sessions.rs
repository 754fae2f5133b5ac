//! Sessions of the operator: rows, so that each can be seen and ended.
//!
//! Invariant: what a browser presents is stored as its hash alone.
use super::{Store, columns::Bits, error::StoreError};
use crate::domain::ids::SessionId;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

/// A session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Minted once.
    pub id: SessionId,
    /// The SHA-256 of its cookie.
    pub hash: [u8; 32],
    /// Where it was opened from.
    pub address: String,
    /// What opened it, in its own words, shortened.
    pub user_agent: String,
    /// When it was opened, in milliseconds since 1970.
    pub created_at: i64,
    /// When it ends at the latest, in milliseconds since 1970.
    pub expires_at: i64,
}

const COLUMNS: &str = "id, hash, address, user_agent, created_at, expires_at";

fn from_row(row: &Row<'_>) -> rusqlite::Result<Session> {
    Ok(Session {
        id: SessionId::from_u128(row.get::<_, Bits>(0)?.0),
        hash: row.get(1)?,
        address: row.get(2)?,
        user_agent: row.get(3)?,
        created_at: row.get(4)?,
        expires_at: row.get(5)?,
    })
}

/// The session with that hash, whether its time is over or not.
pub fn by_hash(conn: &Connection, hash: &[u8; 32]) -> Result<Option<Session>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM sessions WHERE hash = ?1");
    let mut statement = conn.prepare_cached(&sql)?;
    Ok(statement.query_row(params![hash], from_row).optional()?)
}

/// Every session, newest first.
pub fn all(conn: &Connection) -> Result<Vec<Session>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM sessions ORDER BY id DESC");
    let mut statement = conn.prepare_cached(&sql)?;
    let rows = statement.query_map([], from_row)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Adds a session, and removes those whose time was over at its beginning.
pub fn add(tx: &Connection, session: &Session) -> Result<(), StoreError> {
    tx.execute(
        "DELETE FROM sessions WHERE expires_at <= ?1",
        params![session.created_at],
    )?;
    let sql = format!("INSERT INTO sessions ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6)");
    tx.prepare_cached(&sql)?.execute(params![
        Bits(session.id.as_u128()),
        session.hash,
        session.address,
        session.user_agent,
        session.created_at,
        session.expires_at,
    ])?;
    Ok(())
}

/// Ends a session. `false` if there is none of that id.
pub fn remove(tx: &Connection, id: SessionId) -> Result<bool, StoreError> {
    let gone = tx.execute(
        "DELETE FROM sessions WHERE id = ?1",
        params![Bits(id.as_u128())],
    )?;
    Ok(gone > 0)
}

/// Ends every session; says how many there were.
pub fn remove_all(tx: &Connection) -> Result<usize, StoreError> {
    Ok(tx.execute("DELETE FROM sessions", [])?)
}

impl Store {
    /// The session with that hash, whether its time is over or not.
    pub async fn session(&self, hash: [u8; 32]) -> Result<Option<Session>, StoreError> {
        self.read(move |conn| by_hash(conn, &hash)).await
    }

    /// Every session, newest first.
    pub async fn sessions(&self) -> Result<Vec<Session>, StoreError> {
        self.read(all).await
    }

    /// Adds a session.
    pub async fn add_session(&self, session: Session) -> Result<(), StoreError> {
        self.write(move |tx| add(tx, &session)).await
    }

    /// Ends a session. `false` if there is none of that id.
    pub async fn remove_session(&self, id: SessionId) -> Result<bool, StoreError> {
        self.write(move |tx| remove(tx, id)).await
    }

    /// Whether a session was opened from that address and not ended since.
    pub async fn has_session_from(&self, address: String) -> Result<bool, StoreError> {
        self.read(move |conn| {
            let sql = "SELECT EXISTS (SELECT 1 FROM sessions WHERE address = ?1)";
            let mut statement = conn.prepare_cached(sql)?;
            Ok(statement.query_row(params![address], |row| row.get(0))?)
        })
        .await
    }
}
