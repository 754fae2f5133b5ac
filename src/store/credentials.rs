//! Credentials: secrets that authenticate to upstream, with the accounts they are charged to and
//! the endpoints they work at.
use super::{
    Store, accounts, audit,
    columns::{
        Bits, Catalogs, Links, catalog_column, check_name, check_secret, check_there, exists,
        state_columns, state_from,
    },
    error::StoreError,
    meta::touch,
};
use crate::{
    clock,
    domain::{
        ids::{AccountId, CredentialId, EndpointId},
        pool::{Account, Credential, Origin},
        secret::Secret,
    },
};
use rusqlite::{Connection, Row, params};
use std::{collections::HashMap, sync::Arc};

const TABLE: &str = "credentials";
const KIND: &str = "credential";

const ACCOUNTS: Links = Links {
    table: "credential_accounts",
    from: "credential_id",
    to: "account_id",
};

const ENDPOINTS: Links = Links {
    table: "credential_endpoints",
    from: "credential_id",
    to: "endpoint_id",
};

/// Every credential, or the one of that id, in order of creation.
pub(super) fn select(
    conn: &Connection,
    id: Option<CredentialId>,
) -> Result<Vec<Credential>, StoreError> {
    let bits = id.map(CredentialId::as_u128);
    let mut accounts = ACCOUNTS.read(conn, bits)?;
    let mut endpoints = ENDPOINTS.read(conn, bits)?;
    let mut statement = conn.prepare_cached(
        "SELECT id, name, is_named, secret, fingerprint, models, stream_limit, create_limit,
                job_limit, state, disabled_reason, origin
         FROM credentials WHERE ?1 IS NULL OR id = ?1 ORDER BY id",
    )?;
    let mut rows = statement.query(params![bits.map(Bits)])?;
    let mut found = Vec::new();
    let mut catalogs = Catalogs::default();
    while let Some(row) = rows.next()? {
        found.push(from_row(row, &mut accounts, &mut endpoints, &mut catalogs)?);
    }
    Ok(found)
}

fn from_row(
    row: &Row<'_>,
    accounts: &mut HashMap<u128, Vec<u128>>,
    endpoints: &mut HashMap<u128, Vec<u128>>,
    catalogs: &mut Catalogs,
) -> Result<Credential, StoreError> {
    let Bits(id) = row.get(0)?;
    let models = row
        .get_ref(5)?
        .as_str_or_null()
        .map_err(rusqlite::Error::from)?;
    let secret: String = row.get(3)?;
    let (state, reason): (String, Option<String>) = (row.get(9)?, row.get(10)?);
    let origin: String = row.get(11)?;
    let accounts = accounts.remove(&id).unwrap_or_default();
    let endpoints = endpoints.remove(&id).unwrap_or_default();
    Ok(Credential {
        id: CredentialId::from_u128(id),
        name: row.get::<_, Arc<str>>(1)?,
        is_named: row.get(2)?,
        secret: Secret::clean(&secret)
            .map_err(|e| StoreError::inconsistent(TABLE, format!("a secret {e}")))?
            .0,
        fingerprint: row.get(4)?,
        origin: Origin::from_name(&origin).ok_or_else(|| {
            StoreError::inconsistent(TABLE, format!("{origin:?} is not an origin"))
        })?,
        accounts: accounts.into_iter().map(AccountId::from_u128).collect(),
        endpoints: endpoints.into_iter().map(EndpointId::from_u128).collect(),
        models: catalogs.read(TABLE, models)?,
        stream_limit: row.get(6)?,
        create_limit: row.get(7)?,
        job_limit: row.get(8)?,
        state: state_from(TABLE, &state, reason.as_deref())?,
    })
}

/// Inserts the credential without its links, or puts it in place of the one with its id. An
/// account that is made for it can then name it.
pub(super) fn upsert(tx: &Connection, credential: &Credential) -> Result<(), StoreError> {
    let id = credential.id.as_u128();
    check_name(tx, TABLE, KIND, (id, &credential.name))?;
    let fingerprint = (id, &credential.fingerprint);
    check_secret(tx, (TABLE, "fingerprint"), KIND, fingerprint)?;
    let (state, reason) = state_columns(credential.state);
    tx.prepare_cached(
        "INSERT INTO credentials
           (id, name, is_named, secret, fingerprint, models, stream_limit, create_limit,
            job_limit, state, disabled_reason, origin, created_at, updated_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?13)
         ON CONFLICT (id) DO UPDATE SET
           name = excluded.name, is_named = excluded.is_named, secret = excluded.secret,
           fingerprint = excluded.fingerprint, models = excluded.models,
           stream_limit = excluded.stream_limit, create_limit = excluded.create_limit,
           job_limit = excluded.job_limit, state = excluded.state,
           disabled_reason = excluded.disabled_reason, origin = excluded.origin,
           updated_at = excluded.updated_at",
    )?
    .execute(params![
        Bits(id),
        &*credential.name,
        credential.is_named,
        credential.secret.expose(),
        credential.fingerprint,
        catalog_column(&credential.models),
        credential.stream_limit,
        credential.create_limit,
        credential.job_limit,
        state,
        reason,
        credential.origin.name(),
        clock::unix_millis(),
    ])?;
    Ok(())
}

/// Writes which accounts and endpoints it names; they must be there already.
pub(super) fn write_links(tx: &Connection, credential: &Credential) -> Result<(), StoreError> {
    let id = credential.id.as_u128();
    let accounts = || credential.accounts.iter().map(|a| a.as_u128());
    let endpoints = || credential.endpoints.iter().map(|e| e.as_u128());
    check_there(tx, ("accounts", "account"), KIND, accounts())?;
    check_there(tx, ("endpoints", "endpoint"), KIND, endpoints())?;
    ACCOUNTS.write(tx, id, accounts())?;
    ENDPOINTS.write(tx, id, endpoints())
}

/// Adds a credential, and the account that was made for it where it has one of its own.
pub fn add(
    tx: &Connection,
    credential: &Credential,
    own: Option<&Account>,
) -> Result<(), StoreError> {
    upsert(tx, credential)?;
    if let Some(account) = own {
        accounts::upsert(tx, account)?;
    }
    write_links(tx, credential)?;
    touch(tx)
}

/// Puts `credential` in place of the one with its id. `false` if there is none.
pub fn update(tx: &Connection, credential: &Credential) -> Result<bool, StoreError> {
    if !exists(tx, TABLE, credential.id.as_u128())? {
        return Ok(false);
    }
    upsert(tx, credential)?;
    write_links(tx, credential)?;
    touch(tx)?;
    Ok(true)
}

/// Removes a credential, and the account that was made for it unless another credential is
/// charged to that as well. `false` if there is none.
pub fn remove(tx: &Connection, id: CredentialId) -> Result<bool, StoreError> {
    let bits = Bits(id.as_u128());
    tx.execute(
        "DELETE FROM credential_accounts WHERE credential_id = ?1",
        params![bits],
    )?;
    tx.execute(
        "DELETE FROM accounts WHERE made_for = ?1
         AND NOT EXISTS (SELECT 1 FROM credential_accounts WHERE account_id = accounts.id)",
        params![bits],
    )?;
    let gone = tx.execute("DELETE FROM credentials WHERE id = ?1", params![bits])?;
    touch(tx)?;
    Ok(gone > 0)
}

impl Store {
    /// The credential of that id.
    pub async fn credential(&self, id: CredentialId) -> Result<Option<Credential>, StoreError> {
        self.read(move |conn| Ok(select(conn, Some(id))?.pop()))
            .await
    }

    /// Every credential, in order of creation.
    pub async fn credentials(&self) -> Result<Vec<Credential>, StoreError> {
        self.read(|conn| select(conn, None)).await
    }

    /// Adds a credential, and with it the account that was made for it, if any.
    pub async fn add_credential(
        &self,
        credential: Credential,
        own: Option<Account>,
    ) -> Result<(), StoreError> {
        self.write(move |tx| add(tx, &credential, own.as_ref()))
            .await
    }

    /// Puts `credential` in place of the one with its id. `false` if there is none.
    pub async fn update_credential(&self, credential: Credential) -> Result<bool, StoreError> {
        self.write(move |tx| update(tx, &credential)).await
    }

    /// Removes a credential with the account that was made for it. `false` if there is none.
    pub async fn remove_credential(&self, id: CredentialId) -> Result<bool, StoreError> {
        let (actor, subject) = (self.actor(), id.to_string());
        self.write(move |tx| {
            let removal = audit::Removal {
                table: TABLE,
                action: "remove_credential",
                bits: id.as_u128(),
                subject: &subject,
            };
            audit::removing(tx, &actor, &removal, |tx| remove(tx, id))
        })
        .await
    }
}
