//! The four kinds of things that a pool document lists.
use super::{
    date::parse_millis,
    fields::{Notes, Object, switch, text, whole},
};
use crate::domain::{
    pool::{
        BaseUrl, ModelRow, Origin, QuotaScope,
        document::{
            AccountEntry, CredentialEntry, EndpointEntry, Field, KeyEntry, OnMatch, WantedState,
        },
        presets::{self, PRESETS, ProviderPreset},
    },
    protocol::Protocol,
    secret::{Cleaned, Secret},
};
use serde_json::Value;
use std::sync::Arc;

/// The longest name: what fits on a line of a page.
const MAX_NAME_CHARS: usize = 100;
/// The largest cap, as for the settings of the same meaning, and the largest weight.
pub const MAX_LIMIT: i64 = 100_000;
/// The largest budget of tokens: more than any provider serves in a day.
pub const MAX_TOKENS: i64 = 1_000_000_000_000;

/// Headers that fairlane sets itself, or that belong to one connection.
const OWN_HEADERS: &[&str] = &[
    "authorization",
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

pub(super) fn endpoint(object: &Object<'_>, notes: &mut Notes) -> EndpointEntry {
    let known = [
        "name",
        "preset",
        "base_url",
        "protocols",
        "models",
        "headers",
        "state",
    ];
    let before = notes.mistakes.len();
    object.check_known(&known, notes);
    let entry = EndpointEntry {
        path: object.path.clone(),
        name: name(object, notes),
        preset: preset(object, notes),
        only_if_missing: false,
        is_broken: false,
        base_url: object.field("base_url", notes, |v| {
            BaseUrl::parse(text(v)?).map_err(|e| e.to_string())
        }),
        protocols: object.list("protocols", notes, Some("name at least one"), protocol),
        models: models(object, notes),
        headers: headers(object, notes),
        state: state(object, notes),
    };
    EndpointEntry {
        is_broken: notes.mistakes.len() > before,
        ..entry
    }
}

pub(super) fn account(object: &Object<'_>, notes: &mut Notes) -> AccountEntry {
    let known = [
        "name",
        "quota_scope",
        "stream_limit",
        "create_limit",
        "job_limit",
        "priority",
        "weight",
        "egress_pool",
        "cooldown_per_model",
        "trust_reset",
        "state",
    ];
    object.check_known(&known, notes);
    object.refuse_unavailable("egress_pool", notes);
    AccountEntry {
        path: object.path.clone(),
        name: name(object, notes),
        quota_scope: object.field("quota_scope", notes, |v| {
            QuotaScope::from_name(text(v)?)
                .ok_or_else(|| "must be \"account\" or \"credential\"".to_owned())
        }),
        stream_limit: limit(object, "stream_limit", notes),
        create_limit: limit(object, "create_limit", notes),
        job_limit: limit(object, "job_limit", notes),
        priority: object.field("priority", notes, |v| {
            let n = whole(v, i64::from(i32::MIN), i64::from(i32::MAX))?;
            i32::try_from(n).map_err(|e| e.to_string())
        }),
        weight: weight(object, notes),
        cooldown_per_model: object.field("cooldown_per_model", notes, switch),
        trust_reset: object.field("trust_reset", notes, switch),
        state: state(object, notes),
    }
}

pub(super) fn credential(object: &Object<'_>, notes: &mut Notes) -> CredentialEntry {
    let unavailable = [
        "submit_per_minute",
        "requests_per_minute",
        "min_interval_ms",
    ];
    let known = [
        "name",
        "secret",
        "accounts",
        "endpoints",
        "models",
        "stream_limit",
        "create_limit",
        "job_limit",
        "state",
    ];
    let before = notes.mistakes.len();
    object.check_known(&[&known[..], &unavailable[..]].concat(), notes);
    for key in unavailable {
        object.refuse_unavailable(key, notes);
    }
    let has_name = !matches!(object.value("name"), None | Some(Value::Null));
    let entry = CredentialEntry {
        path: object.path.clone(),
        is_broken: false,
        on_match: OnMatch::Update,
        origin: Origin::Operator,
        name: has_name.then(|| name(object, notes)),
        secret: secret(object, notes),
        accounts: object.list("accounts", notes, None, name_in_list),
        endpoints: object.list("endpoints", notes, Some("name at least one"), name_in_list),
        models: models(object, notes),
        stream_limit: limit(object, "stream_limit", notes),
        create_limit: limit(object, "create_limit", notes),
        job_limit: limit(object, "job_limit", notes),
        state: state(object, notes),
    };
    CredentialEntry {
        is_broken: notes.mistakes.len() > before,
        ..entry
    }
}

pub(super) fn key(object: &Object<'_>, notes: &mut Notes) -> KeyEntry {
    let known = [
        "name",
        "secret",
        "weight",
        "accounts",
        "models",
        "requests_per_minute",
        "concurrency",
        "tokens_per_day",
        "expires_at",
    ];
    object.check_known(&known, notes);
    let empty = Some("lists nothing, so the key could do nothing; null means all");
    KeyEntry {
        path: object.path.clone(),
        name: name(object, notes),
        secret: secret(object, notes),
        weight: weight(object, notes),
        accounts: object.list("accounts", notes, empty, name_in_list),
        models: object.list("models", notes, empty, model_name),
        requests_per_minute: own_limit(object, "requests_per_minute", notes),
        concurrency: own_limit(object, "concurrency", notes),
        tokens_per_day: object.field("tokens_per_day", notes, |v| {
            u64::try_from(whole(v, 1, MAX_TOKENS)?).map_err(|e| e.to_string())
        }),
        expires_at: object.field("expires_at", notes, expiry),
    }
}

/// A name: no white space around it, not empty, no control characters.
pub fn checked_name(text: &str) -> Result<Arc<str>, String> {
    let name = text.trim();
    if name.is_empty() {
        return Err("is empty; give it a name".to_owned());
    }
    if name.chars().count() > MAX_NAME_CHARS {
        return Err(format!("is longer than {MAX_NAME_CHARS} characters"));
    }
    if name.chars().any(char::is_control) {
        return Err("holds a control character".to_owned());
    }
    Ok(name.into())
}

/// A pasted secret, and what was taken off it as a sentence.
pub(super) fn checked_secret(pasted: &str) -> Result<(Secret, Option<&'static str>), String> {
    let (secret, cleaned) = Secret::clean(pasted).map_err(|e| e.to_string())?;
    let removed = match cleaned {
        Cleaned {
            surroundings: false,
            quotes: false,
        } => None,
        Cleaned {
            surroundings: true,
            quotes: false,
        } => Some("white space or invisible characters around it were removed"),
        Cleaned {
            surroundings: false,
            quotes: true,
        } => Some("the quotes around it were removed"),
        Cleaned {
            surroundings: true,
            quotes: true,
        } => Some("quotes and white space around it were removed"),
    };
    Ok((secret, removed))
}

/// The required name; empty if it is missing or no name, which is noted.
fn name(object: &Object<'_>, notes: &mut Notes) -> Arc<str> {
    match object.field("name", notes, |v| checked_name(text(v)?)) {
        Field::Value(name) => name,
        // Noted already if it was there but no name.
        Field::Absent if object.value("name").is_some() => "".into(),
        Field::Absent | Field::Null => {
            notes.mistake(object.at("name"), "is missing");
            "".into()
        }
    }
}

fn name_in_list(value: &Value) -> Result<Arc<str>, String> {
    checked_name(text(value)?)
}

fn secret(object: &Object<'_>, notes: &mut Notes) -> Option<Secret> {
    match object.field("secret", notes, |v| checked_secret(text(v)?)) {
        Field::Value((secret, removed)) => {
            if let Some(removed) = removed {
                notes.warn(object.at("secret"), removed);
            }
            Some(secret)
        }
        Field::Absent | Field::Null => None,
    }
}

fn preset(object: &Object<'_>, notes: &mut Notes) -> Option<&'static ProviderPreset> {
    let read = object.field("preset", notes, |v| {
        presets::by_name(text(v)?).ok_or_else(|| {
            let names: Vec<&str> = PRESETS.iter().map(|p| p.name).collect();
            format!("there is no such preset; there are {}", names.join(", "))
        })
    });
    match read {
        Field::Value(preset) => Some(preset),
        Field::Absent | Field::Null => None,
    }
}

fn protocol(value: &Value) -> Result<Protocol, String> {
    Protocol::from_name(text(value)?).ok_or_else(|| {
        let names = Protocol::ALL.map(Protocol::name).join(", ");
        format!("is no protocol; there are {names}")
    })
}

fn limit(object: &Object<'_>, key: &str, notes: &mut Notes) -> Field<u32> {
    object.field(key, notes, |v| small(v, 0, MAX_LIMIT))
}

/// A client key's own limit. Unlike a cap of the pool's, 0 does not mean unlimited, and a key that is
/// to do nothing has other ways.
fn own_limit(object: &Object<'_>, key: &str, notes: &mut Notes) -> Field<u32> {
    object.field(key, notes, |v| small(v, 1, MAX_LIMIT))
}

fn weight(object: &Object<'_>, notes: &mut Notes) -> Field<u32> {
    object.field("weight", notes, |v| small(v, 1, MAX_LIMIT))
}

fn small(value: &Value, min: i64, max: i64) -> Result<u32, String> {
    u32::try_from(whole(value, min, max)?).map_err(|e| e.to_string())
}

fn state(object: &Object<'_>, notes: &mut Notes) -> Option<WantedState> {
    let read = object.field("state", notes, |v| match text(v)? {
        "active" => Ok(WantedState::Active),
        "draining" => Ok(WantedState::Draining),
        "disabled" => Ok(WantedState::Disabled),
        _ => Err("must be \"active\", \"draining\" or \"disabled\"".to_owned()),
    });
    match read {
        Field::Value(state) => Some(state),
        Field::Absent | Field::Null => None,
    }
}

fn models(object: &Object<'_>, notes: &mut Notes) -> Field<Vec<ModelRow>> {
    let empty = Some("lists nothing, so nothing could be served; null means every model");
    let read = object.list("models", notes, empty, model_row);
    if let Field::Value(rows) = &read {
        for (n, row) in rows.iter().enumerate() {
            if rows.iter().take(n).any(|r| r.model == row.model) {
                let path = format!("{}[{n}]", object.at("models"));
                notes.mistake(path, format!("{:?} is listed already", row.model));
            }
        }
    }
    read
}

/// A row of a catalog: `{"model": …, "upstream_model": …}`, or the model's name alone.
fn model_row(value: &Value) -> Result<ModelRow, String> {
    let what =
        "must be {\"model\": \"…\"} with, if upstream calls it otherwise, \"upstream_model\"";
    let map = match value {
        Value::String(_) => {
            return Ok(ModelRow {
                model: model_name(value)?,
                upstream_model: None,
            });
        }
        Value::Object(map) => map,
        _ => return Err(what.to_owned()),
    };
    if map.keys().any(|k| k != "model" && k != "upstream_model") {
        return Err(what.to_owned());
    }
    let upstream_model = match map.get("upstream_model") {
        None | Some(Value::Null) => None,
        Some(value) => Some(model_name(value)?),
    };
    Ok(ModelRow {
        model: model_name(map.get("model").ok_or(what)?)?,
        upstream_model,
    })
}

fn model_name(value: &Value) -> Result<Arc<str>, String> {
    match text(value)? {
        "" => Err("is empty; name a model".to_owned()),
        name => Ok(name.into()),
    }
}

fn headers(object: &Object<'_>, notes: &mut Notes) -> Field<Vec<(Arc<str>, Arc<str>)>> {
    let map = match object.value("headers") {
        None => return Field::Absent,
        Some(Value::Null) => return Field::Null,
        Some(Value::Object(map)) => map,
        Some(_) => {
            notes.mistake(
                object.at("headers"),
                "must be an object of names and values",
            );
            return Field::Absent;
        }
    };
    let mut read: Vec<(Arc<str>, Arc<str>)> = Vec::new();
    for (name, value) in map {
        match header(name, value) {
            Ok((name, _)) if read.iter().any(|(n, _)| *n == name) => {
                notes.mistake(object.at(&format!("headers.{name}")), "is given twice");
            }
            Ok(pair) => read.push(pair),
            Err(what) => notes.mistake(object.at(&format!("headers.{name}")), what),
        }
    }
    Field::Value(read)
}

fn header(name: &str, value: &Value) -> Result<(Arc<str>, Arc<str>), String> {
    let name = name.to_ascii_lowercase();
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err("is not a header's name".to_owned());
    }
    if OWN_HEADERS.contains(&name.as_str()) {
        return Err("is set by fairlane itself".to_owned());
    }
    let value = text(value)?.trim();
    // Visible ASCII, with spaces and tabs inside: what every server accepts.
    if !value
        .bytes()
        .all(|b| b == b'\t' || (b' '..=b'~').contains(&b))
    {
        return Err("has a value that no header can carry".to_owned());
    }
    Ok((name.into(), value.into()))
}

fn expiry(value: &Value) -> Result<i64, String> {
    let what = "must be a time such as \"2030-01-31T18:00:00Z\", milliseconds since 1970, or null";
    match value {
        Value::String(text) => parse_millis(text).ok_or_else(|| what.to_owned()),
        Value::Number(n) => n
            .as_i64()
            .filter(|n| *n >= 0)
            .ok_or_else(|| what.to_owned()),
        _ => Err(what.to_owned()),
    }
}
