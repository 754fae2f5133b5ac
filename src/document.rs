//! The pool document on paper: JSON as it is imported and exported, and plain lists of secrets.
//!
//! Invariant: reading never stops at the first mistake. What could be read is handed on with every
//! mistake and its path, so that planning can add its own and people see all of them at once. No
//! mistake or warning ever quotes a secret.
mod date;
mod entries;
mod fields;
mod list;
pub mod single;
mod write;

use crate::domain::pool::document::{Coverage, Covers, Document, Mistake};
use fields::{Notes, Object};
use serde_json::Value;

pub use self::{
    date::{format_millis, parse_millis},
    entries::{MAX_LIMIT, MAX_TOKENS, checked_name},
    list::{from_environment, read_list},
    write::write_json,
};

const KINDS: &[&str] = &[
    "endpoints",
    "egress_pools",
    "accounts",
    "credentials",
    "keys",
];

/// Reads a pool document from its bytes.
///
/// What is wrong inside it stands in [`Document::mistakes`], and planning refuses it for that
/// together with what it finds itself. An error means that there is no document at all.
pub fn read_json(bytes: &[u8]) -> Result<Document, Vec<Mistake>> {
    let root = parse(bytes).map_err(|mistake| vec![mistake])?;
    read_value(&root).map_err(|mistake| vec![mistake])
}

/// Any JSON text, with or without a byte-order mark. The mistake's path is its line and column.
pub fn parse(bytes: &[u8]) -> Result<Value, Mistake> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    serde_json::from_slice(bytes).map_err(|e| syntax(&e))
}

/// Reads a pool document that has been parsed already; otherwise as [`read_json`].
pub fn read_value(root: &Value) -> Result<Document, Mistake> {
    let Value::Object(map) = root else {
        let what =
            "a pool document is an object with the lists endpoints, accounts, credentials and keys";
        return Err(Mistake::new("", what));
    };
    let root = Object::new(String::new(), map);
    let mut notes = Notes::default();
    root.check_known(KINDS, &mut notes);
    root.refuse_unavailable("egress_pools", &mut notes);
    let lists = |kind: &str| map.get(kind).is_some_and(Value::is_array);
    let covers = Covers {
        endpoints: lists("endpoints"),
        accounts: lists("accounts"),
        credentials: lists("credentials").then_some(Coverage::All),
        keys: lists("keys"),
    };
    Ok(Document {
        endpoints: root.each("endpoints", &mut notes, entries::endpoint),
        accounts: root.each("accounts", &mut notes, entries::account),
        credentials: root.each("credentials", &mut notes, entries::credential),
        keys: root.each("keys", &mut notes, entries::key),
        covers,
        mistakes: notes.mistakes,
        warnings: notes.warnings,
    })
}

fn syntax(error: &serde_json::Error) -> Mistake {
    let text = error.to_string();
    // The position goes into the path.
    let what = text.split(" at line ").next().unwrap_or_default();
    Mistake::new(
        format!("line {}, column {}", error.line(), error.column()),
        format!("this is not JSON: {what}"),
    )
}

#[cfg(test)]
mod tests;
