//! A pool written as a document.
//!
//! Invariant: importing what was written over the same pool changes nothing, with or without the
//! secrets. The secrets of client keys are not known, so they are null, which keeps them.
use super::date::format_millis;
use crate::domain::{
    ids::{AccountId, EndpointId},
    pool::{Account, Catalog, ClientKey, Credential, Endpoint, State, edges::Contents},
};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

struct Names<'a> {
    accounts: HashMap<AccountId, &'a str>,
    endpoints: HashMap<EndpointId, &'a str>,
}

/// The document that describes `contents`; upstream secrets only if asked for.
pub fn write_json(contents: &Contents, with_secrets: bool) -> Value {
    let names = Names {
        accounts: contents.accounts.iter().map(|a| (a.id, &*a.name)).collect(),
        endpoints: contents
            .endpoints
            .iter()
            .map(|e| (e.id, &*e.name))
            .collect(),
    };
    let credential = |c| credential(c, &names, with_secrets);
    json!({
        "endpoints": contents.endpoints.iter().map(endpoint).collect::<Vec<_>>(),
        "egress_pools": [],
        "accounts": contents.accounts.iter().map(account).collect::<Vec<_>>(),
        "credentials": contents.credentials.iter().map(credential).collect::<Vec<_>>(),
        "keys": contents.keys.iter().map(|k| key(k, &names)).collect::<Vec<_>>(),
    })
}

fn endpoint(endpoint: &Endpoint) -> Value {
    let protocols: Vec<&str> = endpoint.protocols.iter().map(|p| p.name()).collect();
    let headers: Map<String, Value> = endpoint
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), Value::from(&**value)))
        .collect();
    with_state(
        json!({
            "name": &*endpoint.name,
            "base_url": endpoint.base_url.to_string(),
            "protocols": protocols,
            "models": catalog(&endpoint.models),
            "headers": headers,
        }),
        endpoint.state,
    )
}

fn account(account: &Account) -> Value {
    with_state(
        json!({
            "name": &*account.name,
            "quota_scope": account.quota_scope.name(),
            "stream_limit": account.stream_limit,
            "create_limit": account.create_limit,
            "job_limit": account.job_limit,
            "priority": account.priority,
            "weight": account.weight,
            "cooldown_per_model": account.cooldown_per_model,
            "trust_reset": account.trust_reset,
        }),
        account.state,
    )
}

fn credential(credential: &Credential, names: &Names<'_>, with_secrets: bool) -> Value {
    let accounts = known(&credential.accounts, &names.accounts);
    let endpoints = known(&credential.endpoints, &names.endpoints);
    let mut written = json!({ "name": &*credential.name });
    if with_secrets {
        // A made-up name would look like a given one to whoever reads this; the secret identifies.
        if !credential.is_named {
            written = json!({ "name": null });
        }
        merge(
            &mut written,
            json!({ "secret": credential.secret.expose() }),
        );
    }
    merge(
        &mut written,
        json!({
            "accounts": accounts,
            "endpoints": endpoints,
            "models": catalog(&credential.models),
            "stream_limit": credential.stream_limit,
            "create_limit": credential.create_limit,
            "job_limit": credential.job_limit,
        }),
    );
    with_state(written, credential.state)
}

fn key(key: &ClientKey, names: &Names<'_>) -> Value {
    let models: Option<Vec<&str>> = key
        .models
        .as_ref()
        .map(|list| list.iter().map(|m| &**m).collect());
    let accounts = key.accounts.as_ref().map(|a| known(a, &names.accounts));
    let mut written = json!({
        "name": &*key.name,
        "secret": null,
        "weight": key.weight,
        "accounts": accounts,
        "models": models,
        "requests_per_minute": key.limits.requests_per_minute,
        "concurrency": key.limits.concurrency,
        "tokens_per_day": key.limits.tokens_per_day,
        "expires_at": key.expires_at.map(format_millis),
    });
    if let Value::Object(map) = &mut written {
        // A scope that has lost its last account cannot be written as a list, and null would open
        // it to everything. Saying nothing keeps it.
        if key.accounts.as_ref().is_some_and(Vec::is_empty) {
            map.shift_remove("accounts");
        }
    }
    written
}

fn known<'a, Id: Eq + std::hash::Hash>(ids: &[Id], names: &HashMap<Id, &'a str>) -> Vec<&'a str> {
    ids.iter().filter_map(|id| names.get(id).copied()).collect()
}

fn catalog(catalog: &Catalog) -> Value {
    let Some(rows) = catalog else {
        return Value::Null;
    };
    rows.iter()
        .map(|row| match &row.upstream_model {
            Some(upstream) => json!({ "model": &*row.model, "upstream_model": &**upstream }),
            None => json!({ "model": &*row.model }),
        })
        .collect()
}

/// Adds the state where it is not the usual one.
fn with_state(mut written: Value, state: State) -> Value {
    if state != State::Active {
        merge(&mut written, json!({ "state": state.name() }));
    }
    written
}

fn merge(into: &mut Value, more: Value) {
    if let (Value::Object(into), Value::Object(more)) = (into, more) {
        into.extend(more);
    }
}
