//! Admin tokens: what programs present to the admin API, stored as hashes.
use super::{
    Store, audit,
    columns::{Bits, check_name, check_secret},
    error::StoreError,
    meta::touch,
};
use crate::domain::ids::TokenId;
use rusqlite::{Connection, Row, params};
use std::sync::Arc;

const TABLE: &str = "admin_tokens";
const KIND: &str = "token";

/// An admin token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminToken {
    /// Minted once.
    pub id: TokenId,
    /// Unique among admin tokens.
    pub name: Arc<str>,
    /// The SHA-256 of its secret.
    pub hash: [u8; 32],
    /// The secret's last four characters.
    pub secret_hint: Arc<str>,
    /// When it was made, in milliseconds since 1970.
    pub created_at: i64,
}

/// Every token, in order of creation.
pub fn all(conn: &Connection) -> Result<Vec<AdminToken>, StoreError> {
    let mut statement = conn.prepare_cached(
        "SELECT id, name, hash, secret_hint, created_at FROM admin_tokens ORDER BY id",
    )?;
    let rows = statement.query_map([], from_row)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<AdminToken> {
    Ok(AdminToken {
        id: TokenId::from_u128(row.get::<_, Bits>(0)?.0),
        name: row.get::<_, Arc<str>>(1)?,
        hash: row.get(2)?,
        secret_hint: row.get::<_, Arc<str>>(3)?,
        created_at: row.get(4)?,
    })
}

/// Adds a token.
pub fn add(tx: &Connection, token: &AdminToken) -> Result<(), StoreError> {
    let id = token.id.as_u128();
    check_name(tx, TABLE, KIND, (id, &token.name))?;
    check_secret(tx, (TABLE, "hash"), KIND, (id, &token.hash))?;
    tx.execute(
        "INSERT INTO admin_tokens (id, name, hash, secret_hint, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5)",
        params![
            Bits(id),
            &*token.name,
            token.hash,
            &*token.secret_hint,
            token.created_at
        ],
    )?;
    touch(tx)
}

/// Removes a token. `false` if there is none.
pub fn remove(tx: &Connection, id: TokenId) -> Result<bool, StoreError> {
    let gone = tx.execute(
        "DELETE FROM admin_tokens WHERE id = ?1",
        params![Bits(id.as_u128())],
    )?;
    touch(tx)?;
    Ok(gone > 0)
}

impl Store {
    /// Every admin token, in order of creation.
    pub async fn tokens(&self) -> Result<Vec<AdminToken>, StoreError> {
        self.read(all).await
    }

    /// Adds an admin token.
    pub async fn add_token(&self, token: AdminToken) -> Result<(), StoreError> {
        let actor = self.actor();
        self.write(move |tx| {
            add(tx, &token)?;
            let subject = token.id.to_string();
            let line = audit::Line {
                actor: &actor,
                action: "add_token",
                subject: &subject,
                detail: &token.name,
            };
            audit::write(tx, &line)
        })
        .await
    }

    /// Removes an admin token. `false` if there is none.
    pub async fn remove_token(&self, id: TokenId) -> Result<bool, StoreError> {
        let (actor, subject) = (self.actor(), id.to_string());
        self.write(move |tx| {
            let removal = audit::Removal {
                table: TABLE,
                action: "remove_token",
                bits: id.as_u128(),
                subject: &subject,
            };
            audit::removing(tx, &actor, &removal, |tx| remove(tx, id))
        })
        .await
    }
}
