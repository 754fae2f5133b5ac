//! What was typed into a form of the pool, as an entry of a pool document.
//!
//! Invariant: nothing is judged here. What is no number stays text, so that the one validation
//! that there is refuses it.
use crate::domain::pool::{Account, Credential, Endpoint};
use serde_json::{Map, Value, json};

use super::Sort;

/// Fields with their values; a field may come more than once.
#[derive(Clone, Default)]
pub(super) struct Typed(pub(super) Vec<(String, String)>);

impl Typed {
    fn of(fields: &[(&str, String)]) -> Self {
        let fields = fields.iter();
        Self(fields.map(|(k, v)| ((*k).to_owned(), v.clone())).collect())
    }

    /// A form that asks for nothing but a secret.
    pub(super) fn secret(secret: &str) -> Self {
        Self::of(&[("secret", secret.to_owned())])
    }

    pub(super) fn get(&self, key: &str) -> &str {
        let found = self.0.iter().find(|(k, _)| k == key);
        found.map_or("", |(_, value)| value)
    }

    pub(super) fn has(&self, key: &str, value: &str) -> bool {
        self.0.iter().any(|(k, v)| k == key && v == value)
    }

    pub(super) fn all(&self, key: &str) -> Vec<&str> {
        let fields = self.0.iter().filter(|(k, _)| k == key);
        fields.map(|(_, value)| value.as_str()).collect()
    }

    fn and(mut self, key: &str, values: impl Iterator<Item = String>) -> Self {
        self.0.extend(values.map(|value| (key.to_owned(), value)));
        self
    }

    pub(super) fn account(account: &Account) -> Self {
        Self::of(&[
            ("name", account.name.to_string()),
            ("stream_limit", optional(account.stream_limit)),
            ("create_limit", optional(account.create_limit)),
            ("priority", account.priority.to_string()),
            ("weight", account.weight.to_string()),
        ])
    }

    pub(super) fn credential(credential: &Credential) -> Self {
        let typed = Self::of(&[
            ("name", credential.name.to_string()),
            ("stream_limit", optional(credential.stream_limit)),
            ("create_limit", optional(credential.create_limit)),
        ]);
        let accounts = credential.accounts.iter().map(ToString::to_string);
        let endpoints = credential.endpoints.iter().map(ToString::to_string);
        typed.and("accounts", accounts).and("endpoints", endpoints)
    }

    pub(super) fn endpoint(endpoint: &Endpoint) -> Self {
        let typed = Self::of(&[
            ("name", endpoint.name.to_string()),
            ("base_url", endpoint.base_url.to_string()),
        ]);
        let protocols = endpoint.protocols.iter().map(|p| p.name().to_owned());
        typed.and("protocols", protocols)
    }

    /// As an entry of a pool document; `is_new` if there is no such thing yet.
    pub(super) fn said(&self, sort: Sort, is_new: bool) -> Map<String, Value> {
        let numbers: &[&str] = match sort {
            Sort::Account => &["stream_limit", "create_limit", "priority", "weight"],
            Sort::Credential => &["stream_limit", "create_limit"],
            Sort::Endpoint => &[],
        };
        let lists: &[&str] = match sort {
            Sort::Account => &[],
            Sort::Credential => &["accounts", "endpoints"],
            Sort::Endpoint => &["protocols"],
        };
        let numbers = numbers.iter().map(|key| (*key, number(self.get(key))));
        let lists = lists.iter().map(|key| (*key, json!(self.all(key))));
        let said = numbers.chain(lists).map(|(k, v)| (k.to_owned(), v));
        let mut said: Map<String, Value> = said.collect();
        let is_unnamed = self.get("name").trim().is_empty();
        // A new credential without a name is given one.
        if !(sort == Sort::Credential && is_new && is_unnamed) {
            said.insert("name".to_owned(), json!(self.get("name")));
        }
        if sort == Sort::Credential && is_new {
            said.insert("secret".to_owned(), json!(self.get("secret")));
        }
        if sort == Sort::Endpoint {
            said.insert("base_url".to_owned(), json!(self.get("base_url")));
        }
        said
    }
}

fn optional(limit: Option<u32>) -> String {
    limit.map(|limit| limit.to_string()).unwrap_or_default()
}

/// Null for nothing.
fn number(text: &str) -> Value {
    match text.trim() {
        "" => Value::Null,
        text => text
            .parse::<i64>()
            .map_or_else(|_| json!(text), Value::from),
    }
}
