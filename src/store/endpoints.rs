//! Endpoints: a base URL and the protocols it speaks.
use super::{
    Store, audit,
    columns::{
        Bits, Catalogs, catalog_column, check_name, exists, pairs_column, pairs_from,
        state_columns, state_from,
    },
    error::StoreError,
    meta::touch,
};
use crate::{
    clock,
    domain::{
        ids::EndpointId,
        pool::{BaseUrl, Endpoint},
        protocol::Protocol,
    },
};
use rusqlite::{Connection, Row, params};
use std::{collections::HashMap, sync::Arc};

const TABLE: &str = "endpoints";
const KIND: &str = "endpoint";

/// Every endpoint, or the one of that id, in order of creation.
pub(super) fn select(
    conn: &Connection,
    id: Option<EndpointId>,
) -> Result<Vec<Endpoint>, StoreError> {
    let mut protocols = protocols(conn, id)?;
    let mut statement = conn.prepare_cached(
        "SELECT id, name, base_url, models, headers, state, disabled_reason FROM endpoints
         WHERE ?1 IS NULL OR id = ?1 ORDER BY id",
    )?;
    let mut rows = statement.query(params![id.map(|id| Bits(id.as_u128()))])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(from_row(row, &mut protocols)?);
    }
    Ok(found)
}

fn protocols(
    conn: &Connection,
    id: Option<EndpointId>,
) -> Result<HashMap<u128, Vec<Protocol>>, StoreError> {
    let mut statement = conn.prepare_cached(
        "SELECT endpoint_id, protocol FROM endpoint_protocols
         WHERE ?1 IS NULL OR endpoint_id = ?1 ORDER BY endpoint_id, position",
    )?;
    let mut rows = statement.query(params![id.map(|id| Bits(id.as_u128()))])?;
    let mut found: HashMap<u128, Vec<Protocol>> = HashMap::new();
    while let Some(row) = rows.next()? {
        let (endpoint, name): (Bits, String) = (row.get(0)?, row.get(1)?);
        let protocol = Protocol::from_name(&name).ok_or_else(|| {
            StoreError::inconsistent("endpoint_protocols", format!("unknown protocol {name:?}"))
        })?;
        found.entry(endpoint.0).or_default().push(protocol);
    }
    Ok(found)
}

fn from_row(
    row: &Row<'_>,
    protocols: &mut HashMap<u128, Vec<Protocol>>,
) -> Result<Endpoint, StoreError> {
    let Bits(id) = row.get(0)?;
    let base_url: String = row.get(2)?;
    let models: Option<String> = row.get(3)?;
    let headers: String = row.get(4)?;
    let (state, reason): (String, Option<String>) = (row.get(5)?, row.get(6)?);
    Ok(Endpoint {
        id: EndpointId::from_u128(id),
        name: row.get::<_, Arc<str>>(1)?,
        base_url: BaseUrl::parse(&base_url)
            .map_err(|e| StoreError::inconsistent(TABLE, format!("base URL {e}")))?,
        protocols: protocols.remove(&id).unwrap_or_default(),
        models: Catalogs::default().read(TABLE, models.as_deref())?,
        headers: pairs_from(TABLE, &headers)?,
        state: state_from(TABLE, &state, reason.as_deref())?,
    })
}

/// Inserts the endpoint, or puts it in place of the one with its id.
pub(super) fn upsert(tx: &Connection, endpoint: &Endpoint) -> Result<(), StoreError> {
    let id = endpoint.id.as_u128();
    check_name(tx, TABLE, KIND, (id, &endpoint.name))?;
    let (state, reason) = state_columns(endpoint.state);
    tx.prepare_cached(
        "INSERT INTO endpoints
           (id, name, base_url, models, headers, state, disabled_reason, created_at, updated_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)
         ON CONFLICT (id) DO UPDATE SET
           name = excluded.name, base_url = excluded.base_url, models = excluded.models,
           headers = excluded.headers, state = excluded.state,
           disabled_reason = excluded.disabled_reason, updated_at = excluded.updated_at",
    )?
    .execute(params![
        Bits(id),
        &*endpoint.name,
        endpoint.base_url.to_string(),
        catalog_column(&endpoint.models),
        pairs_column(&endpoint.headers),
        state,
        reason,
        clock::unix_millis(),
    ])?;
    write_protocols(tx, endpoint)
}

fn write_protocols(tx: &Connection, endpoint: &Endpoint) -> Result<(), StoreError> {
    let id = Bits(endpoint.id.as_u128());
    tx.prepare_cached("DELETE FROM endpoint_protocols WHERE endpoint_id = ?1")?
        .execute(params![id])?;
    let mut insert = tx.prepare_cached(
        "INSERT INTO endpoint_protocols (endpoint_id, position, protocol) VALUES (?1, ?2, ?3)",
    )?;
    for (position, protocol) in (0i64..).zip(&endpoint.protocols) {
        insert.execute(params![id, position, protocol.name()])?;
    }
    Ok(())
}

/// Adds an endpoint.
pub fn add(tx: &Connection, endpoint: &Endpoint) -> Result<(), StoreError> {
    upsert(tx, endpoint)?;
    touch(tx)
}

/// Puts `endpoint` in place of the one with its id. `false` if there is none.
pub fn update(tx: &Connection, endpoint: &Endpoint) -> Result<bool, StoreError> {
    if !exists(tx, TABLE, endpoint.id.as_u128())? {
        return Ok(false);
    }
    upsert(tx, endpoint)?;
    touch(tx)?;
    Ok(true)
}

/// Removes an endpoint that no credential names. `false` if there is none.
pub fn remove(tx: &Connection, id: EndpointId) -> Result<bool, StoreError> {
    let mut users = tx.prepare_cached(
        "SELECT c.name FROM credential_endpoints e JOIN credentials c ON c.id = e.credential_id
         WHERE e.endpoint_id = ?1 ORDER BY c.name",
    )?;
    let by = users
        .query_map(params![Bits(id.as_u128())], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<String>>>()?;
    if !by.is_empty() {
        return Err(StoreError::InUse { kind: KIND, by });
    }
    let gone = tx.execute(
        "DELETE FROM endpoints WHERE id = ?1",
        params![Bits(id.as_u128())],
    )?;
    touch(tx)?;
    Ok(gone > 0)
}

impl Store {
    /// The endpoint of that id.
    pub async fn endpoint(&self, id: EndpointId) -> Result<Option<Endpoint>, StoreError> {
        self.read(move |conn| Ok(select(conn, Some(id))?.pop()))
            .await
    }

    /// Every endpoint, in order of creation.
    pub async fn endpoints(&self) -> Result<Vec<Endpoint>, StoreError> {
        self.read(|conn| select(conn, None)).await
    }

    /// Adds an endpoint.
    pub async fn add_endpoint(&self, endpoint: Endpoint) -> Result<(), StoreError> {
        self.write(move |tx| add(tx, &endpoint)).await
    }

    /// Puts `endpoint` in place of the one with its id. `false` if there is none.
    pub async fn update_endpoint(&self, endpoint: Endpoint) -> Result<bool, StoreError> {
        self.write(move |tx| update(tx, &endpoint)).await
    }

    /// Removes an endpoint that no credential names. `false` if there is none.
    pub async fn remove_endpoint(&self, id: EndpointId) -> Result<bool, StoreError> {
        let (actor, subject) = (self.actor(), id.to_string());
        self.write(move |tx| {
            let removal = audit::Removal {
                table: TABLE,
                action: "remove_endpoint",
                bits: id.as_u128(),
                subject: &subject,
            };
            audit::removing(tx, &actor, &removal, |tx| remove(tx, id))
        })
        .await
    }
}
