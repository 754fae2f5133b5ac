//! The control API under `/_sim/`, in JSON, for programs that do not link against this crate.
//!
//! Invariant: it can do exactly what [`SimHandle`](super::SimHandle) can, and is neither recorded
//! nor counted.
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    Shared,
    log::Recording,
    reply::Reply,
    request::{Head, Received},
    rules::Rule,
    tally::Limit,
};

/// Whether a request is for the simulator itself.
pub(super) fn owns(head: &Head) -> bool {
    head.target.starts_with("/_sim/")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Allow {
    credentials: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    level: Recording,
}

pub(super) fn answer(shared: &Shared, head: &Head, body: &Received) -> Reply {
    let done = act(shared, head, body);
    match done {
        Ok(document) => Reply::json(200, &document),
        Err((status, message)) => Reply::json(status, &json!({"error": message})),
    }
}

fn act(shared: &Shared, head: &Head, body: &Received) -> Result<Value, (u16, String)> {
    let what = head.path().trim_start_matches("/_sim/");
    match (head.method.as_str(), what) {
        ("POST", "script") => shared.rules.add(one_or_many::<Rule>(body)?),
        ("GET", "script") => return Ok(json!(shared.rules.list())),
        ("DELETE", "script") => shared.rules.clear(),
        ("POST", "limits") => {
            for limit in one_or_many::<Limit>(body)? {
                shared.tallies.limit(&limit);
            }
        }
        ("POST", "allow") => shared.allow(parse::<Allow>(body)?.credentials),
        ("POST", "record") => shared.log.set_level(parse::<Record>(body)?.level),
        ("GET", "log") => return Ok(records(shared, head)),
        ("GET", "stats") => return Ok(json!(shared.tallies.stats())),
        ("POST", "reset") => shared.reset(),
        _ => return Err((404, format!("there is no {} /_sim/{what}", head.method))),
    }
    Ok(json!({"ok": true}))
}

fn records(shared: &Shared, head: &Head) -> Value {
    let since = head.query("since").and_then(|n| n.parse().ok());
    let mut records = shared.log.records(since.unwrap_or(0));
    if let Some(credential) = head.query("credential") {
        records.retain(|r| r.credential.as_deref() == Some(credential));
    }
    json!(records)
}

fn one_or_many<T: DeserializeOwned>(body: &Received) -> Result<Vec<T>, (u16, String)> {
    // Decided here, as an untagged enum would hide which field is at fault.
    match parse::<Value>(body)? {
        Value::Array(list) => list.into_iter().map(read).collect(),
        one => Ok(vec![read(one)?]),
    }
}

fn parse<T: DeserializeOwned>(body: &Received) -> Result<T, (u16, String)> {
    serde_json::from_slice(&body.held).map_err(|e| (400, e.to_string()))
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, (u16, String)> {
    serde_json::from_value(value).map_err(|e| (400, e.to_string()))
}
