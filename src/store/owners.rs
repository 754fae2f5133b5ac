//! Who owns what lives on upstream.
//!
//! Invariant: a row is its maker's alone; the same id made by two keys is two rows. What a client
//! has been told of is on disk before ([`Store::bind`]), except for what upstream forgets by itself
//! ([`Store::try_bind`]).
use super::{Store, columns::Bits, error::StoreError};
use crate::{
    domain::{
        ids::{CredentialId, EndpointId, KeyId},
        owners::{Object, ObjectKind, Owner, OwnerRow, Sighting},
    },
    ports::{OwnerStore, Stored, Unstored},
};
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, Row, params};
use std::sync::Arc;

const TABLE: &str = "owners";

/// Rows removed per transaction: a few milliseconds of the writer's time.
const PRUNED_AT_ONCE: u32 = 1000;

const DAY_MS: i64 = 24 * 3600 * 1000;

/// The column `key_id`.
fn key_column(key: Option<KeyId>) -> Vec<u8> {
    key.map_or_else(Vec::new, |key| key.as_u128().to_be_bytes().to_vec())
}

/// The statement for [`insert`]. What the same key made under the same id takes the place of what
/// it made before.
pub(super) fn insertion(tx: &Connection) -> Result<CachedStatement<'_>, StoreError> {
    Ok(tx.prepare_cached(
        "INSERT INTO owners (kind, id, key_id, credential_id, endpoint_id, made_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (kind, id, key_id) DO UPDATE SET
           credential_id = excluded.credential_id, endpoint_id = excluded.endpoint_id,
           made_at = excluded.made_at",
    )?)
}

/// Inserts a row.
pub(super) fn insert(
    statement: &mut CachedStatement<'_>,
    row: &OwnerRow,
) -> Result<(), StoreError> {
    statement.execute(params![
        row.object.kind.name(),
        &*row.object.id,
        key_column(row.key),
        Bits(row.owner.credential.as_u128()),
        row.owner.endpoint.map(|id| Bits(id.as_u128())),
        row.made_at,
    ])?;
    Ok(())
}

/// One object; the row of the caller first.
const OWNER: &str = "SELECT key_id, credential_id, endpoint_id, made_at FROM owners
     WHERE kind = ?1 AND id = ?2 ORDER BY key_id = ?3 DESC LIMIT 1";

/// A caller's objects of one kind. The last condition is what lets the index be used; an equation
/// in place of the interval would make SQLite put its right side into that condition.
const OWN_OBJECTS: &str = "SELECT key_id, credential_id, endpoint_id, made_at, id FROM owners
     WHERE key_id = ?1 AND kind BETWEEN ?2 AND ?2
       AND kind <> 'response' AND kind <> 'turn_state'";

const PRUNE: &str = "DELETE FROM owners WHERE (kind, id, key_id) IN
       (SELECT kind, id, key_id FROM owners WHERE kind = ?1 AND made_at < ?2
        ORDER BY made_at LIMIT ?3)";

fn from_row(object: Object, row: &Row<'_>) -> Result<OwnerRow, StoreError> {
    let key: Vec<u8> = row.get(0)?;
    let key = match (key.len(), <[u8; 16]>::try_from(key)) {
        (0, _) => None,
        (_, Ok(bytes)) => Some(KeyId::from_u128(u128::from_be_bytes(bytes))),
        _ => {
            return Err(StoreError::inconsistent(
                TABLE,
                "a key's id has a wrong length",
            ));
        }
    };
    let endpoint: Option<Bits> = row.get(2)?;
    Ok(OwnerRow {
        object,
        owner: Owner {
            credential: CredentialId::from_u128(row.get::<_, Bits>(1)?.0),
            endpoint: endpoint.map(|bits| EndpointId::from_u128(bits.0)),
        },
        key,
        made_at: row.get(3)?,
    })
}

/// What is known of that object: the row of `caller`, or else any other's.
pub fn owner(
    conn: &Connection,
    object: &Object,
    caller: Option<KeyId>,
) -> Result<Option<OwnerRow>, StoreError> {
    let mut statement = conn.prepare_cached(OWNER)?;
    let params = params![object.kind.name(), &*object.id, key_column(caller)];
    let found = statement.query_row(params, |row| Ok(from_row(object.clone(), row)));
    found.optional()?.transpose()
}

/// What `caller` made of a kind of which there are lists; nothing for others.
pub fn own_objects(
    conn: &Connection,
    kind: ObjectKind,
    caller: Option<KeyId>,
) -> Result<Vec<OwnerRow>, StoreError> {
    let mut statement = conn.prepare_cached(OWN_OBJECTS)?;
    let mut rows = statement.query(params![key_column(caller), kind.name()])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let id: Arc<str> = row.get(4)?;
        found.push(from_row(Object { kind, id }, row)?);
    }
    Ok(found)
}

/// Adds the rows, each in place of what the same key made under the same id.
pub fn bind(tx: &Connection, rows: &[OwnerRow]) -> Result<(), StoreError> {
    let mut statement = insertion(tx)?;
    rows.iter().try_for_each(|row| insert(&mut statement, row))
}

/// Removes what `caller` made under that id. `false` if that is nothing.
pub fn forget(tx: &Connection, object: &Object, caller: Option<KeyId>) -> Result<bool, StoreError> {
    let sql = "DELETE FROM owners WHERE kind = ?1 AND id = ?2 AND key_id = ?3";
    let mut statement = tx.prepare_cached(sql)?;
    let gone = statement.execute(params![object.kind.name(), &*object.id, key_column(caller)])?;
    Ok(gone > 0)
}

/// Removes some of the oldest rows of that kind that were made before `before_ms`; says how many.
fn prune_some(tx: &Connection, kind: ObjectKind, before_ms: i64) -> Result<u32, StoreError> {
    let mut statement = tx.prepare_cached(PRUNE)?;
    let gone = statement.execute(params![kind.name(), before_ms, PRUNED_AT_ONCE])?;
    Ok(u32::try_from(gone).unwrap_or(PRUNED_AT_ONCE))
}

impl Store {
    /// Adds rows, durably.
    pub async fn bind(&self, rows: Vec<OwnerRow>) -> Result<(), StoreError> {
        self.write(move |tx| bind(tx, &rows)).await
    }

    /// Adds a row, soon. Never waits; a row for which there is no room is dropped and counted. Says
    /// whether it was taken.
    pub fn try_bind(&self, row: OwnerRow) -> bool {
        self.inner.writer.try_bind(Box::new(row))
    }

    /// What is known of that object: the row of `caller`, or else any other's.
    pub async fn owner(
        &self,
        object: Object,
        caller: Option<KeyId>,
    ) -> Result<Option<OwnerRow>, StoreError> {
        self.read(move |conn| owner(conn, &object, caller)).await
    }

    /// What `caller` made of a kind of which there are lists.
    pub async fn own_objects(
        &self,
        kind: ObjectKind,
        caller: Option<KeyId>,
    ) -> Result<Vec<OwnerRow>, StoreError> {
        self.read(move |conn| own_objects(conn, kind, caller)).await
    }

    /// Removes what `caller` made under that id. `false` if that is nothing.
    pub async fn forget_object(
        &self,
        object: Object,
        caller: Option<KeyId>,
    ) -> Result<bool, StoreError> {
        self.write(move |tx| forget(tx, &object, caller)).await
    }

    /// Removes the rows of objects that upstream has forgotten long since, a few at a time. `now_ms`
    /// is in milliseconds since 1970. Says how many.
    pub async fn prune_owners(&self, now_ms: i64) -> Result<u64, StoreError> {
        let mut pruned = 0;
        for kind in ObjectKind::ALL {
            let Some(days) = kind.kept_days() else {
                continue;
            };
            let before_ms = now_ms.saturating_sub(i64::from(days) * DAY_MS);
            loop {
                let some = self
                    .write(move |tx| prune_some(tx, *kind, before_ms))
                    .await?;
                pruned += u64::from(some);
                if some < PRUNED_AT_ONCE {
                    break;
                }
            }
        }
        Ok(pruned)
    }

    /// How many rows of owners were dropped since the start.
    pub fn owners_dropped(&self) -> u64 {
        self.inner.writer.owners_dropped()
    }
}

impl OwnerStore for Store {
    fn bind(&self, rows: Vec<OwnerRow>) -> Stored<'_, ()> {
        Box::pin(async { Ok(Self::bind(self, rows).await?) })
    }

    fn try_bind(&self, row: OwnerRow) -> bool {
        Self::try_bind(self, row)
    }

    fn sightings(&self, objects: Vec<Object>, caller: Option<KeyId>) -> Stored<'_, Vec<Sighting>> {
        let look = move |conn: &Connection| {
            let sighting = |object| Ok(Sighting::of(owner(conn, object, caller)?.as_ref(), caller));
            objects.iter().map(sighting).collect()
        };
        Box::pin(async { Ok(self.read(look).await?) })
    }

    fn own_objects(&self, kind: ObjectKind, caller: Option<KeyId>) -> Stored<'_, Vec<OwnerRow>> {
        Box::pin(async move { Ok(Self::own_objects(self, kind, caller).await?) })
    }

    fn forget(&self, object: Object, caller: Option<KeyId>) -> Stored<'_, ()> {
        Box::pin(async move {
            self.forget_object(object, caller).await?;
            Ok(())
        })
    }
}

impl From<StoreError> for Unstored {
    fn from(error: StoreError) -> Self {
        Self(error.to_string())
    }
}

#[cfg(test)]
mod tests;
