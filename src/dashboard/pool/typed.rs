//! What was typed into a form of the pool, as an entry of a pool document.
//!
//! Invariant: nothing is judged here. What is no number stays text, so that the one validation
//! that there is refuses it.
use crate::domain::pool::{Account, Catalog, Credential, Endpoint};
use serde_json::{Map, Value, json};

use super::Sort;

/// What a box that is ticked sends; one that is not sends nothing.
const TICKED: &str = "on";

fn ticked(is: bool) -> String {
    if is { TICKED } else { "" }.to_owned()
}

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
            ("quota_scope", account.quota_scope.name().to_owned()),
            ("stream_limit_is", is_own(account.stream_limit)),
            ("stream_limit", optional(account.stream_limit)),
            ("create_limit_is", is_own(account.create_limit)),
            ("create_limit", optional(account.create_limit)),
            ("job_limit", optional(account.job_limit)),
            ("priority", account.priority.to_string()),
            ("weight", account.weight.to_string()),
            ("cooldown_per_model", ticked(account.cooldown_per_model)),
            ("trust_reset", ticked(account.trust_reset)),
        ])
    }

    pub(super) fn credential(credential: &Credential) -> Self {
        let typed = Self::of(&[
            ("name", credential.name.to_string()),
            ("stream_limit", optional(credential.stream_limit)),
            ("create_limit", optional(credential.create_limit)),
            ("job_limit", optional(credential.job_limit)),
            ("models", lines_of(&credential.models)),
        ]);
        let accounts = credential.accounts.iter().map(ToString::to_string);
        let endpoints = credential.endpoints.iter().map(ToString::to_string);
        typed.and("accounts", accounts).and("endpoints", endpoints)
    }

    pub(super) fn endpoint(endpoint: &Endpoint) -> Self {
        let headers = endpoint.headers.iter();
        let headers = headers.map(|(name, value)| format!("{name}: {value}"));
        let typed = Self::of(&[
            ("name", endpoint.name.to_string()),
            ("base_url", endpoint.base_url.to_string()),
            ("models", lines_of(&endpoint.models)),
            ("headers", headers.collect::<Vec<_>>().join("\n")),
        ]);
        let protocols = endpoint.protocols.iter().map(|p| p.name().to_owned());
        typed.and("protocols", protocols)
    }

    /// As an entry of a pool document; `is_new` if there is no such thing yet.
    pub(super) fn said(&self, sort: Sort, is_new: bool) -> Map<String, Value> {
        let numbers: &[&str] = match sort {
            Sort::Account => &[
                "stream_limit",
                "create_limit",
                "job_limit",
                "priority",
                "weight",
            ],
            Sort::Credential => &["stream_limit", "create_limit", "job_limit"],
            Sort::Endpoint => &[],
        };
        let lists: &[&str] = match sort {
            Sort::Account => &[],
            Sort::Credential => &["accounts", "endpoints"],
            Sort::Endpoint => &["protocols"],
        };
        let numbers = numbers.iter().map(|key| (*key, self.number(key)));
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
            said.insert("headers".to_owned(), headers(self.get("headers")));
        }
        if sort == Sort::Account {
            let scope = Some(self.get("quota_scope")).filter(|scope| !scope.is_empty());
            said.insert("quota_scope".to_owned(), json!(scope));
            for key in ["cooldown_per_model", "trust_reset"] {
                said.insert(key.to_owned(), json!(self.has(key, TICKED)));
            }
        } else {
            said.insert("models".to_owned(), models(self.get("models")));
        }
        said
    }

    /// Whether a field that may inherit has a value of its own.
    pub(super) fn is_own(&self, key: &str) -> bool {
        self.has(&format!("{key}_is"), OWN)
    }

    /// Null for what inherits, and for nothing where nothing else was chosen.
    fn number(&self, key: &str) -> Value {
        let text = self.get(key);
        if self.is_own(key) && text.trim().is_empty() {
            return json!("");
        }
        if self.has(&format!("{key}_is"), INHERIT) {
            return Value::Null;
        }
        number(text)
    }

    /// The number of the line that a path such as `models[2]` or `headers.name` is about.
    pub(super) fn line(&self, path: &str) -> Option<usize> {
        let filled = |field: &str| {
            let lines = self.get(field).lines().enumerate();
            let lines = lines.filter(|(_, line)| !line.trim().is_empty());
            lines
                .map(|(n, line)| (n + 1, line.to_owned()))
                .collect::<Vec<_>>()
        };
        if let Some(rest) = path.strip_prefix("models[") {
            let index: usize = rest.split(']').next()?.parse().ok()?;
            return Some(filled("models").get(index)?.0);
        }
        let name = path.strip_prefix("headers.")?;
        let named = |(_, line): &&(usize, String)| {
            let found = line.split(':').next().unwrap_or_default();
            found.trim().eq_ignore_ascii_case(name)
        };
        // Of two of that name it is the second that is too many.
        filled("headers").iter().rfind(named).map(|(n, _)| *n)
    }
}

const OWN: &str = "own";
const INHERIT: &str = "inherit";

fn is_own(limit: Option<u32>) -> String {
    limit.map_or(INHERIT, |_| OWN).to_owned()
}

/// A catalog with a row on each line; nothing for every model.
fn lines_of(catalog: &Catalog) -> String {
    let rows = catalog.iter().flat_map(|rows| rows.iter());
    let lines = rows.map(|row| match &row.upstream_model {
        Some(upstream) => format!("{} = {upstream}", row.model),
        None => row.model.to_string(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Null for nothing, since an empty catalog serves nothing.
fn models(text: &str) -> Value {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let rows = lines.map(|line| match line.split_once('=') {
        Some((model, upstream)) => {
            json!({ "model": model.trim(), "upstream_model": upstream.trim() })
        }
        None => json!(line),
    });
    let rows: Vec<Value> = rows.collect();
    if rows.is_empty() {
        return Value::Null;
    }
    Value::Array(rows)
}

/// A line without a colon, and a second one of the same name, are left for the validation to
/// refuse: null is no header's value.
fn headers(text: &str) -> Value {
    let mut said = Map::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, value) = match line.split_once(':') {
            Some((name, value)) => (name.trim(), json!(value.trim())),
            None => (line, Value::Null),
        };
        let value = if said.contains_key(name) {
            Value::Null
        } else {
            value
        };
        said.insert(name.to_owned(), value);
    }
    Value::Object(said)
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
