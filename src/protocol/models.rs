//! Lists of models in the three shapes that clients know, and names that look like a wanted one.
//!
//! Invariant: what is listed is what the caller passes in; nothing is invented about a model but
//! what its shape demands.
use crate::domain::protocol::Protocol;
use serde_json::{Value, json};

/// Names further away than this share of their length are not what was meant.
const NEAR_SHARE: usize = 3;
/// How many close names a message lists.
const MAX_CLOSE: usize = 3;
/// Longer names are not compared: the effort grows with the square of the length.
const MAX_COMPARED: usize = 128;

/// The list of `names`, in their order.
pub fn list<'a>(shape: Protocol, names: impl Iterator<Item = &'a str>) -> Vec<u8> {
    let models: Vec<Value> = names.map(|name| entry(shape, name)).collect();
    let answer = match shape {
        Protocol::Anthropic => {
            let id = |model: Option<&Value>| model.map(|m| m["id"].clone());
            let (first, last) = (id(models.first()), id(models.last()));
            json!({"data": models, "has_more": false, "first_id": first, "last_id": last})
        }
        Protocol::Gemini => json!({ "models": models }),
        Protocol::OpenAi | Protocol::OpenAiVideos | Protocol::FalQueue => {
            json!({"object": "list", "data": models})
        }
    };
    answer.to_string().into_bytes()
}

/// One model.
pub fn single(shape: Protocol, name: &str) -> Vec<u8> {
    entry(shape, name).to_string().into_bytes()
}

/// The names in a provider's own list; `None` if it is not one.
pub fn names_in(protocol: Protocol, body: &[u8]) -> Option<Vec<Box<str>>> {
    let list: Value = serde_json::from_slice(body).ok()?;
    // Some compatible servers answer with the bare array.
    let (rows, field) = match protocol {
        Protocol::Gemini => (list.get("models")?, "name"),
        _ => (list.get("data").unwrap_or(&list), "id"),
    };
    let name = |row: &Value| {
        let name = row.get(field)?.as_str()?;
        let name = match protocol {
            Protocol::Gemini => name.strip_prefix("models/").unwrap_or(name),
            _ => name,
        };
        Some(name.into())
    };
    Some(rows.as_array()?.iter().filter_map(name).collect())
}

fn entry(shape: Protocol, name: &str) -> Value {
    match shape {
        Protocol::Anthropic => json!({
            "type": "model",
            "id": name,
            "display_name": name,
            // What Anthropic itself answers where the date is not known.
            "created_at": "1970-01-01T00:00:00Z",
        }),
        Protocol::Gemini => json!({
            "name": format!("models/{name}"),
            "displayName": name,
            "supportedGenerationMethods":
                ["generateContent", "streamGenerateContent", "countTokens", "embedContent"],
        }),
        Protocol::OpenAi | Protocol::OpenAiVideos | Protocol::FalQueue => json!({
            "id": name,
            "object": "model",
            "created": 0,
            "owned_by": "fairlane",
        }),
    }
}

/// Up to three of `names` that `wanted` may have meant, closest first: those that begin or end with
/// it (or it with them), and those that differ in a few characters.
pub fn close_names<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    let mut close: Vec<(usize, &str)> = names
        .filter_map(|name| Some((distance(&wanted, &name.to_lowercase())?, name)))
        .collect();
    close.sort_unstable();
    close.dedup();
    close.truncate(MAX_CLOSE);
    close.into_iter().map(|(_, name)| name).collect()
}

/// How far apart two names are, or `None` if nobody would take one for the other.
fn distance(wanted: &str, name: &str) -> Option<usize> {
    let (short, long) = if wanted.len() <= name.len() {
        (wanted, name)
    } else {
        (name, wanted)
    };
    // A single letter in common is no likeness.
    if short.len() < 2 || long.len() > MAX_COMPARED {
        return None;
    }
    if long.starts_with(short) || long.ends_with(short) {
        return Some(1);
    }
    let edits = edits(short, long);
    (edits * NEAR_SHARE <= long.chars().count()).then_some(edits)
}

/// The least number of characters to insert, delete or change to make `a` into `b`.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (n, x) in a.chars().enumerate() {
        let mut diagonal = n;
        let mut left = n + 1;
        let mut cells = row.iter_mut();
        if let Some(first) = cells.next() {
            *first = left;
        }
        for (cell, y) in cells.zip(&b) {
            let changed = diagonal + usize::from(x != *y);
            diagonal = *cell;
            left = changed.min(left + 1).min(*cell + 1);
            *cell = left;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPES: [Protocol; 3] = [Protocol::OpenAi, Protocol::Anthropic, Protocol::Gemini];

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn our_own_lists_and_bare_arrays_can_be_read() {
        let names: Vec<Box<str>> = vec!["a/b:c".into(), "한글".into()];
        for shape in SHAPES {
            let written = list(shape, names.iter().map(|n| &**n));
            assert_eq!(names_in(shape, &written), Some(names.clone()), "{shape}");
        }
        let bare = br#"[{"id":"a/b:c"},{"id":"\ud55c\uae00"},{"other":1}]"#;
        assert_eq!(names_in(Protocol::OpenAi, bare), Some(names));
        assert_eq!(names_in(Protocol::OpenAi, b"<html>"), None);
        assert_eq!(names_in(Protocol::Gemini, br#"{"error":{}}"#), None);
    }

    #[test]
    fn models_are_listed_in_each_shape() {
        let mut lines = Vec::new();
        for shape in SHAPES {
            lines.push(text(list(shape, ["a/b:c", "한\""].into_iter())));
            lines.push(text(list(shape, std::iter::empty())));
            lines.push(text(single(shape, "a/b:c")));
        }
        insta::assert_snapshot!(lines.join("\n"));
    }

    fn check(wanted: &str, expect: &[&str]) {
        let names = [
            "gpt-4o",
            "gpt-4o-mini",
            "gpt-5",
            "claude-sonnet-5",
            "team/llama-3",
            "x",
            "gpt-4o",
        ];
        assert_eq!(close_names(wanted, names.into_iter()), expect, "{wanted}");
    }

    #[test]
    fn close_names_are_those_somebody_may_have_meant() {
        check("gpt-4o-2026-01-01", &["gpt-4o"]);
        check("GPT-4o", &["gpt-4o", "gpt-4o-mini", "gpt-5"]);
        check("gpt4o", &["gpt-4o"]);
        check("gpt-4", &["gpt-4o", "gpt-4o-mini", "gpt-5"]);
        check("claude-sonet-5", &["claude-sonnet-5"]);
        check("llama-3", &["team/llama-3"]);
        check("whisper", &[]);
        check("", &[]);
        check(&"g".repeat(5000), &[]);
    }

    #[test]
    fn edits_count_the_fewest_changes() {
        let check = |a, b, expect| {
            assert_eq!(edits(a, b), expect, "{a} {b}");
            assert_eq!(edits(b, a), expect, "{b} {a}");
        };
        check("", "", 0);
        check("", "abc", 3);
        check("kitten", "sitting", 3);
        check("abc", "abd", 1);
        check("한글", "한", 1);
    }
}
