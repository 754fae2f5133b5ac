//! Settings overrides: what the operator set, and nothing else.
//!
//! Invariant: a write is refused only if a setting that it names has changed since the version it
//! was read at; changes of other settings are no conflict. A cleared override keeps its version.
use super::{Store, audit, error::StoreError, meta::touch};
use crate::{
    clock,
    domain::settings::{Layer, Name, Value},
};
use rusqlite::{Connection, OptionalExtension as _, params};

/// One stored override.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The setting's key. It may be one that this program does not know.
    pub key: String,
    /// The value as text, as [`Display`](std::fmt::Display) writes it.
    pub value: String,
    /// The version at which it was set.
    pub version: i64,
}

/// Every override at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// The version to write back with a change.
    pub version: i64,
    /// What is set.
    pub rows: Vec<Override>,
}

impl Overrides {
    /// Whether that version was ever given out, so that a change can stand on it.
    pub fn was_at(&self, version: i64) -> bool {
        (0..=self.version).contains(&version)
    }

    /// The overrides as a layer, and the rows that this program does not accept.
    pub fn layer(&self) -> (Layer, Vec<&Override>) {
        let mut layer = Layer::default();
        let mut refused = Vec::new();
        for row in &self.rows {
            let name = Name::from_key(&row.key);
            match name.and_then(|n| Some((n, n.declaration().parse(&row.value).ok()?))) {
                Some((name, value)) => layer.put(name, Some(value)),
                None => refused.push(row),
            }
        }
        (layer, refused)
    }
}

/// Every override.
pub fn overrides(conn: &Connection) -> Result<Overrides, StoreError> {
    let mut statement = conn.prepare_cached(
        "SELECT key, value, version FROM settings WHERE value IS NOT NULL ORDER BY key",
    )?;
    let rows = statement.query_map([], |row| {
        Ok(Override {
            key: row.get(0)?,
            value: row.get(1)?,
            version: row.get(2)?,
        })
    })?;
    Ok(Overrides {
        version: version(conn)?,
        rows: rows.collect::<rusqlite::Result<_>>()?,
    })
}

fn version(conn: &Connection) -> Result<i64, StoreError> {
    let mut statement = conn.prepare_cached("SELECT coalesce(max(version), 0) FROM settings")?;
    Ok(statement.query_row([], |row| row.get(0))?)
}

/// Sets or (with `None`) clears settings that were read at `read_version`, all or none. Returns
/// the new version.
pub fn change(
    tx: &Connection,
    read_version: i64,
    changes: &[(Name, Option<Value>)],
) -> Result<i64, StoreError> {
    for (name, _) in changes {
        check_unchanged(tx, name.declaration().key, read_version)?;
    }
    let mut version = version(tx)?;
    let mut write = tx.prepare_cached(
        "INSERT INTO settings (key, value, version, updated_at) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (key) DO UPDATE SET
           value = excluded.value, version = excluded.version, updated_at = excluded.updated_at",
    )?;
    for (name, value) in changes {
        version += 1;
        let value = value.as_ref().map(ToString::to_string);
        let key = name.declaration().key;
        write.execute(params![key, value, version, clock::unix_millis()])?;
    }
    touch(tx)?;
    Ok(version)
}

/// Clears the row of that key, be it a setting's or not. Returns the new version.
pub fn clear(tx: &Connection, read_version: i64, key: &str) -> Result<i64, StoreError> {
    check_unchanged(tx, key, read_version)?;
    let version = version(tx)? + 1;
    tx.prepare_cached(
        "UPDATE settings SET value = NULL, version = ?2, updated_at = ?3 WHERE key = ?1",
    )?
    .execute(params![key, version, clock::unix_millis()])?;
    touch(tx)?;
    Ok(version)
}

/// Writes down who set or cleared a setting, and to what: no setting is a secret.
fn note(tx: &Connection, actor: &str, key: &str, value: Option<&Value>) -> Result<(), StoreError> {
    let detail = value.map(ToString::to_string);
    let line = audit::Line {
        actor,
        action: detail.as_ref().map_or("clear_setting", |_| "set_setting"),
        subject: key,
        detail: detail.as_deref().unwrap_or_default(),
    };
    audit::write(tx, &line)
}

fn check_unchanged(tx: &Connection, key: &str, read_version: i64) -> Result<(), StoreError> {
    let newer: Option<Option<String>> = tx
        .prepare_cached("SELECT value FROM settings WHERE key = ?1 AND version > ?2")?
        .query_row(params![key, read_version], |row| row.get(0))
        .optional()?;
    match newer {
        None => Ok(()),
        Some(current) => Err(StoreError::SettingConflict {
            key: key.to_owned(),
            current,
        }),
    }
}

impl Store {
    /// Every override.
    pub async fn overrides(&self) -> Result<Overrides, StoreError> {
        self.read(overrides).await
    }

    /// Clears the row of that key, which may be one that this program does not know. Returns the
    /// new version.
    pub async fn clear_setting(&self, read_version: i64, key: String) -> Result<i64, StoreError> {
        let actor = self.actor();
        self.write(move |tx| {
            let version = clear(tx, read_version, &key)?;
            note(tx, &actor, &key, None)?;
            Ok(version)
        })
        .await
    }

    /// Sets or (with `None`) clears settings that were read at `read_version`, all or none.
    /// Returns the new version.
    pub async fn change_settings(
        &self,
        read_version: i64,
        changes: Vec<(Name, Option<Value>)>,
    ) -> Result<i64, StoreError> {
        let actor = self.actor();
        self.write(move |tx| {
            let version = change(tx, read_version, &changes)?;
            for (name, value) in &changes {
                note(tx, &actor, name.declaration().key, value.as_ref())?;
            }
            Ok(version)
        })
        .await
    }
}
