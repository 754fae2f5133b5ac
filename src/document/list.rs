//! Plain lists of secrets: one a line, a table with a header row, or a variable's value.
//!
//! Names that are not given are made up later and never identify anything.
use super::entries::{checked_name, checked_secret};
use super::fields::Notes;
use crate::domain::pool::{
    Origin,
    document::{
        AccountEntry, Coverage, Covers, CredentialEntry, Document, EndpointEntry, Field, OnMatch,
    },
    presets,
};
use std::sync::Arc;

const COLUMNS: &[&str] = &["name", "secret", "account"];

/// Reads a list of secrets for the endpoint of that name. A line is a secret; or the first line
/// names columns out of `name`, `secret`, `account`, and the others are rows of them. Accounts
/// that are named are created where they are missing, and so is the endpoint, if it has the name
/// of a preset.
pub fn read_list(text: &str, endpoint: &str) -> Document {
    let mut notes = Notes::default();
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(n, line)| (n + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty())
        .peekable();
    let columns = lines.peek().and_then(|(_, line)| header(line));
    if columns.is_some() {
        lines.next();
    }
    let mut document = Document {
        endpoints: preset_endpoint(endpoint).into_iter().collect(),
        covers: Covers {
            credentials: Some(Coverage::At(endpoint.into())),
            ..Covers::default()
        },
        ..Document::default()
    };
    for (number, line) in lines {
        let path = format!("line {number}");
        if line.starts_with('#') {
            notes.warn(path, "begins with # and was left out");
            continue;
        }
        let read = match &columns {
            Some(columns) => row(line, columns),
            None => plain(line).map(|secret| Row {
                secret,
                ..Row::default()
            }),
        };
        match read.and_then(|row| credential(&row, &path, endpoint, &mut notes)) {
            Ok(entry) => document.credentials.push(entry),
            Err(what) => notes.mistake(path, what),
        }
    }
    document.accounts = named_accounts(&document.credentials);
    document.mistakes = notes.mistakes;
    document.warnings = notes.warnings;
    document
}

/// The document that the environment stands for: the preset of each variable that is present, and
/// its secrets separated by commas; an empty variable lists none. What a variable brought drains
/// while that no longer lists it. Nothing else that exists is changed, so that a start never undoes
/// what an operator did.
pub fn from_environment(variables: &[(&str, &str)]) -> Document {
    let mut notes = Notes::default();
    let present = variables.iter().map(|(preset, _)| (*preset).into());
    let mut document = Document {
        covers: Covers {
            credentials: Some(Coverage::Environment(present.collect())),
            ..Covers::default()
        },
        ..Document::default()
    };
    for (preset, secrets) in variables {
        let variable = format!("FAIRLANE_KEYS_{}", preset.to_ascii_uppercase());
        if secrets.trim().is_empty() {
            continue;
        }
        match preset_endpoint(preset) {
            Some(endpoint) => document.endpoints.push(endpoint),
            None => notes.mistake(
                &*variable,
                "there is no preset of that name with an address",
            ),
        }
        for (n, pasted) in secrets.split(',').enumerate() {
            let path = format!("{variable}, entry {}", n + 1);
            if pasted.trim().is_empty() {
                notes.warn(path, "is empty and was left out");
                continue;
            }
            let row = Row {
                // White space round the commas is how people write lists.
                secret: pasted.trim().to_owned(),
                ..Row::default()
            };
            match credential(&row, &path, preset, &mut notes) {
                Ok(entry) => document.credentials.push(CredentialEntry {
                    on_match: OnMatch::Keep,
                    origin: Origin::Environment,
                    ..entry
                }),
                Err(what) => notes.mistake(path, what),
            }
        }
    }
    document.mistakes = notes.mistakes;
    document.warnings = notes.warnings;
    document
}

#[derive(Default)]
struct Row {
    name: String,
    secret: String,
    account: String,
}

/// The columns, if the line names some: lower-case words, one of which is `secret`.
fn header(line: &str) -> Option<Vec<String>> {
    let names = split(line).ok()?;
    let names: Vec<String> = names.iter().map(|n| n.trim().to_lowercase()).collect();
    names.iter().any(|n| n == "secret").then_some(names)
}

fn plain(line: &str) -> Result<String, String> {
    if line.contains(',') {
        return Err(
            "holds a comma; one secret a line, or a first line such as name,secret,account"
                .to_owned(),
        );
    }
    Ok(line.to_owned())
}

fn row(line: &str, columns: &[String]) -> Result<Row, String> {
    let cells = split(line)?;
    if cells.len() != columns.len() {
        return Err(format!(
            "has {} columns; the first line names {}",
            cells.len(),
            columns.len()
        ));
    }
    let mut row = Row::default();
    for (column, cell) in columns.iter().zip(cells) {
        match column.as_str() {
            "name" => row.name = cell,
            "secret" => row.secret = cell,
            "account" => row.account = cell,
            _ => {
                let known = COLUMNS.join(", ");
                return Err(format!("there is no column {column:?}; known are {known}"));
            }
        }
    }
    Ok(row)
}

/// Cells of a line: separated by commas, in quotes where they hold one, a quote written twice.
fn split(line: &str) -> Result<Vec<String>, String> {
    let mut cells = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_start();
        let cell;
        (cell, rest) = if let Some(quoted) = rest.strip_prefix('"') {
            quoted_cell(quoted)?
        } else {
            let (cell, rest) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
            (cell.trim_end().to_owned(), rest)
        };
        cells.push(cell);
        match rest.trim_start().strip_prefix(',') {
            Some(next) => rest = next,
            None if rest.trim().is_empty() => return Ok(cells),
            None => return Err("has text after a closing quote".to_owned()),
        }
    }
}

fn quoted_cell(text: &str) -> Result<(String, &str), String> {
    let mut cell = String::new();
    let mut rest = text;
    loop {
        let Some((before, after)) = rest.split_once('"') else {
            return Err("has a quote that is never closed".to_owned());
        };
        cell.push_str(before);
        match after.strip_prefix('"') {
            Some(more) => {
                cell.push('"');
                rest = more;
            }
            None => return Ok((cell, after)),
        }
    }
}

fn credential(
    row: &Row,
    path: &str,
    endpoint: &str,
    notes: &mut Notes,
) -> Result<CredentialEntry, String> {
    let (secret, removed) = checked_secret(&row.secret).map_err(|e| format!("the secret {e}"))?;
    if let Some(removed) = removed {
        notes.warn(path, removed);
    }
    let optional = |text: &str, what: &str| {
        if text.trim().is_empty() {
            return Ok(None);
        }
        let name = checked_name(text).map_err(|e| format!("the {what} {e}"))?;
        Ok::<_, String>(Some(name))
    };
    Ok(CredentialEntry {
        path: path.to_owned(),
        name: optional(&row.name, "name")?,
        secret: Some(secret),
        accounts: match optional(&row.account, "account")? {
            Some(account) => Field::Value(vec![account]),
            None => Field::Absent,
        },
        on_match: OnMatch::Extend,
        endpoints: Field::Value(vec![endpoint.into()]),
        ..CredentialEntry::default()
    })
}

fn named_accounts(credentials: &[CredentialEntry]) -> Vec<AccountEntry> {
    let mut accounts: Vec<AccountEntry> = Vec::new();
    for entry in credentials {
        let Field::Value(names) = &entry.accounts else {
            continue;
        };
        for name in names {
            if !accounts.iter().any(|a| a.name == *name) {
                accounts.push(AccountEntry {
                    path: entry.path.clone(),
                    name: Arc::clone(name),
                    ..AccountEntry::default()
                });
            }
        }
    }
    accounts
}

/// The endpoint of a preset that has an address; it is only created, never changed.
fn preset_endpoint(name: &str) -> Option<EndpointEntry> {
    let preset = presets::by_name(name).filter(|p| p.base_url.is_some())?;
    Some(EndpointEntry {
        path: format!("endpoint {name}"),
        name: name.into(),
        preset: Some(preset),
        only_if_missing: true,
        ..EndpointEntry::default()
    })
}
