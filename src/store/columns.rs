//! How domain values stand in columns.
//!
//! Invariant: a value that no column should hold is an error that names its table, never a guess.
use super::error::StoreError;
use crate::domain::pool::{Catalog, DisabledReason, ModelRow, State};
use rusqlite::{
    Connection, ToSql, params,
    types::{FromSql, FromSqlResult, ToSqlOutput, ValueRef},
};
use serde_json::{Value, json};
use std::{collections::HashMap, sync::Arc};

/// The 128 bits of an id, as 16 bytes that sort like the id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Bits(pub(super) u128);

impl ToSql for Bits {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(self.0.to_be_bytes().to_vec()))
    }
}

impl FromSql for Bits {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        <[u8; 16]>::column_result(value).map(|bytes| Self(u128::from_be_bytes(bytes)))
    }
}

/// The columns `state` and `disabled_reason`.
pub(super) fn state_columns(state: State) -> (&'static str, Option<&'static str>) {
    match state {
        State::Active | State::Draining => (state.name(), None),
        State::Disabled(reason) => (state.name(), Some(reason.name())),
    }
}

pub(super) fn state_from(
    table: &'static str,
    state: &str,
    reason: Option<&str>,
) -> Result<State, StoreError> {
    match (state, reason) {
        ("active", None) => Ok(State::Active),
        ("draining", None) => Ok(State::Draining),
        ("disabled", Some("operator")) => Ok(State::Disabled(DisabledReason::Operator)),
        ("disabled", Some("auth")) => Ok(State::Disabled(DisabledReason::Auth)),
        ("disabled", Some("billing")) => Ok(State::Disabled(DisabledReason::Billing)),
        _ => Err(StoreError::inconsistent(
            table,
            format!("unknown state {state:?}"),
        )),
    }
}

/// A catalog as JSON: an array of `[model, upstream model or null]`.
pub(super) fn catalog_column(catalog: &Catalog) -> Option<String> {
    let rows = catalog.as_ref()?;
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| json!([&*row.model, row.upstream_model.as_deref()]))
        .collect();
    Some(Value::from(rows).to_string())
}

/// Catalogs as they are read: large pools repeat the same one for each credential, and share it.
#[derive(Default)]
pub(super) struct Catalogs(HashMap<Box<str>, Arc<[ModelRow]>>);

impl Catalogs {
    pub(super) fn read(
        &mut self,
        table: &'static str,
        column: Option<&str>,
    ) -> Result<Catalog, StoreError> {
        let Some(text) = column else { return Ok(None) };
        if let Some(known) = self.0.get(text) {
            return Ok(Some(Arc::clone(known)));
        }
        let rows: Vec<(String, Option<String>)> = from_json(table, text)?;
        let row = |(model, upstream_model): (String, Option<String>)| ModelRow {
            model: model.into(),
            upstream_model: upstream_model.map(Into::into),
        };
        let rows: Arc<[ModelRow]> = rows.into_iter().map(row).collect();
        self.0.insert(text.into(), Arc::clone(&rows));
        Ok(Some(rows))
    }
}

/// A header's name and value.
pub(super) type Pair = (Arc<str>, Arc<str>);

/// Pairs of texts as JSON, for headers.
pub(super) fn pairs_column(pairs: &[Pair]) -> String {
    let pairs: Vec<Value> = pairs.iter().map(|(a, b)| json!([&**a, &**b])).collect();
    Value::from(pairs).to_string()
}

pub(super) fn pairs_from(table: &'static str, text: &str) -> Result<Vec<Pair>, StoreError> {
    let pairs: Vec<(String, String)> = from_json(table, text)?;
    Ok(pairs
        .into_iter()
        .map(|(a, b)| (a.into(), b.into()))
        .collect())
}

/// A list of texts as JSON.
pub(super) fn texts_column(texts: Option<&[Arc<str>]>) -> Option<String> {
    let texts: Vec<&str> = texts?.iter().map(|t| &**t).collect();
    Some(Value::from(texts).to_string())
}

pub(super) fn texts_from(
    table: &'static str,
    column: Option<&str>,
) -> Result<Option<Vec<Arc<str>>>, StoreError> {
    let Some(text) = column else { return Ok(None) };
    let texts: Vec<String> = from_json(table, text)?;
    Ok(Some(texts.into_iter().map(Into::into).collect()))
}

fn from_json<T: serde::de::DeserializeOwned>(
    table: &'static str,
    text: &str,
) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|e| StoreError::inconsistent(table, e.to_string()))
}

/// A table of links between two kinds of things, in the order in which they were named.
#[derive(Clone, Copy)]
pub(super) struct Links {
    pub(super) table: &'static str,
    pub(super) from: &'static str,
    pub(super) to: &'static str,
}

impl Links {
    /// Every link, or those of one thing, as a list for each.
    pub(super) fn read(
        self,
        conn: &Connection,
        of: Option<u128>,
    ) -> Result<HashMap<u128, Vec<u128>>, StoreError> {
        let Self { table, from, to } = self;
        let sql = format!(
            "SELECT {from}, {to} FROM {table} WHERE ?1 IS NULL OR {from} = ?1 ORDER BY {from}, position"
        );
        let mut statement = conn.prepare_cached(&sql)?;
        let mut rows = statement.query(params![of.map(Bits)])?;
        let mut found: HashMap<u128, Vec<u128>> = HashMap::new();
        while let Some(row) = rows.next()? {
            let (a, b): (Bits, Bits) = (row.get(0)?, row.get(1)?);
            found.entry(a.0).or_default().push(b.0);
        }
        Ok(found)
    }

    /// Puts the links of one thing in place of those it had.
    pub(super) fn write(
        self,
        tx: &Connection,
        of: u128,
        to_ids: impl IntoIterator<Item = u128>,
    ) -> Result<(), StoreError> {
        let Self { table, from, to } = self;
        tx.prepare_cached(&format!("DELETE FROM {table} WHERE {from} = ?1"))?
            .execute(params![Bits(of)])?;
        let sql = format!("INSERT INTO {table} ({from}, {to}, position) VALUES (?1, ?2, ?3)");
        let mut insert = tx.prepare_cached(&sql)?;
        for (position, id) in (0i64..).zip(to_ids) {
            insert.execute(params![Bits(of), Bits(id), position])?;
        }
        Ok(())
    }
}

/// Whether `table` holds a row of that id.
pub(super) fn exists(conn: &Connection, table: &str, id: u128) -> Result<bool, StoreError> {
    let sql = format!("SELECT EXISTS (SELECT 1 FROM {table} WHERE id = ?1)");
    let mut statement = conn.prepare_cached(&sql)?;
    Ok(statement.query_row(params![Bits(id)], |row| row.get(0))?)
}

/// Refuses a name that another row of `table` has.
pub(super) fn check_name(
    conn: &Connection,
    table: &str,
    kind: &'static str,
    (id, name): (u128, &str),
) -> Result<(), StoreError> {
    let sql = format!("SELECT EXISTS (SELECT 1 FROM {table} WHERE name = ?1 AND id <> ?2)");
    let mut statement = conn.prepare_cached(&sql)?;
    if statement.query_row(params![name, Bits(id)], |row| row.get(0))? {
        let name = name.to_owned();
        return Err(StoreError::NameTaken { kind, name });
    }
    Ok(())
}

/// Refuses a secret, by its digest in `column`, that another row of `table` has.
pub(super) fn check_secret(
    conn: &Connection,
    (table, column): (&str, &str),
    kind: &'static str,
    (id, digest): (u128, &[u8; 32]),
) -> Result<(), StoreError> {
    let sql = format!("SELECT name FROM {table} WHERE {column} = ?1 AND id <> ?2");
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(params![digest, Bits(id)])?;
    match rows.next()? {
        Some(row) => {
            let name = row.get(0)?;
            Err(StoreError::SecretTaken { kind, name })
        }
        None => Ok(()),
    }
}

/// Refuses ids that `table` does not have.
pub(super) fn check_there(
    conn: &Connection,
    (table, missing): (&str, &'static str),
    kind: &'static str,
    ids: impl IntoIterator<Item = u128>,
) -> Result<(), StoreError> {
    for id in ids {
        if !exists(conn, table, id)? {
            return Err(StoreError::Dangling { kind, missing });
        }
    }
    Ok(())
}
