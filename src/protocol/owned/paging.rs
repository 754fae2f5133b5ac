//! Where in a list a client is, and how upstream is asked for another place of it.
//!
//! Invariant: of a query only what names a place is taken off or added; the rest stays as it came.
use super::super::percent;
use crate::domain::protocol::Protocol;
use std::fmt::Write as _;

/// What a client asks of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paging {
    /// The thing before the first one that it wants.
    pub after: Option<String>,
    /// The thing after the last one that it wants.
    pub before: Option<String>,
    /// How many at most.
    pub limit: Option<usize>,
}

impl Paging {
    /// What `query` asks of a list of that protocol; of a name that stands twice, the last counts.
    pub fn read(protocol: Protocol, query: Option<&str>) -> Self {
        let (after, before) = cursors(protocol);
        let mut paging = Self::default();
        for pair in query.unwrap_or_default().split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = text(value).filter(|v| !v.is_empty());
            if name == after {
                paging.after = value;
            } else if name == before {
                paging.before = value;
            } else if name == "limit" {
                paging.limit = value.and_then(|v| v.parse().ok());
            }
        }
        paging
    }
}

/// `query` without its place, and with `after` as the place if there is one.
pub fn query_after(protocol: Protocol, query: Option<&str>, after: Option<&str>) -> String {
    let names: [&str; 2] = cursors(protocol).into();
    let name = |pair: &&str| pair.split('=').next().unwrap_or_default().to_owned();
    let pairs = query.unwrap_or_default().split('&');
    let kept = pairs.filter(|pair| !pair.is_empty() && !names.contains(&&*name(pair)));
    let mut query: Vec<String> = kept.map(str::to_owned).collect();
    query.extend(after.map(|id| format!("{}={}", names[0], escaped(id))));
    query.join("&")
}

const fn cursors(protocol: Protocol) -> (&'static str, &'static str) {
    match protocol {
        Protocol::Anthropic => ("after_id", "before_id"),
        _ => ("after", "before"),
    }
}

fn text(value: &str) -> Option<String> {
    let bytes = percent::decode(value.as_bytes())?;
    String::from_utf8(bytes.into_owned()).ok()
}

fn escaped(id: &str) -> String {
    let mut out = String::with_capacity(id.len());
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_in_the_words_of_its_protocol() {
        let read = |protocol, query| Paging::read(protocol, Some(query));
        let paging = read(Protocol::OpenAi, "limit=5&after=file-1&order=asc");
        assert_eq!(paging.after.as_deref(), Some("file-1"));
        assert_eq!((paging.before, paging.limit), (None, Some(5)));
        let paging = read(Protocol::Anthropic, "after=x&before_id=a%2Db&limit=many");
        assert_eq!(paging.before.as_deref(), Some("a-b"));
        assert_eq!((paging.after, paging.limit), (None, None));
        assert_eq!(Paging::read(Protocol::OpenAi, None), Paging::default());
    }

    #[test]
    fn only_the_place_of_a_query_changes() {
        let check = |query, after, expect: &str| {
            assert_eq!(query_after(Protocol::OpenAi, query, after), expect);
        };
        check(None, None, "");
        check(None, Some("a b"), "after=a%20b");
        check(
            Some("purpose=x%20y&after=1&limit=2"),
            None,
            "purpose=x%20y&limit=2",
        );
        check(
            Some("after=1&limit=2"),
            Some("file-9"),
            "limit=2&after=file-9",
        );
    }
}
