//! Lists that show only some of what upstream has.
//!
//! Invariant: what is not kept is cut out, and every other byte stays, less the two ids that name the
//! ends of the page. What is no list is never passed on as one.
use super::walk::{Part, Parts, string};
use crate::domain::protocol::Protocol;
use serde_json::Value;
use std::ops::Range;

/// A page of a list without what is not to be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filtered {
    /// The page.
    pub body: Vec<u8>,
    /// How many things are left on it.
    pub kept: usize,
    /// The last thing that upstream's page had: where its next one begins.
    pub cursor: Option<String>,
    /// Whether upstream has more.
    pub has_more: bool,
}

/// Takes everything off a list (`{"data":[{"id":…},…],"first_id","last_id","has_more"}`) whose id
/// `keep` does not know. `None` if that is not what `body` is; it must then not be shown at all.
pub fn filter_list(body: &[u8], keep: impl Fn(&str) -> bool) -> Option<Filtered> {
    let page = Page::read(body)?;
    let items = page.items(body)?;
    let cursor = items.last().and_then(|item| item.id.clone());
    let kept: Vec<&Item> = items
        .iter()
        .filter(|item| item.id.as_deref().is_some_and(&keep))
        .collect();
    let id_of = |item: Option<&&Item>| Value::from(item.and_then(|i| i.id.as_deref())).to_string();
    let mut cuts = vec![(page.data.clone(), joined(body, &page.data, &kept))];
    for (range, end) in [(page.first_id, kept.first()), (page.last_id, kept.last())] {
        cuts.extend(range.map(|range| (range, id_of(end).into_bytes())));
    }
    Some(Filtered {
        body: replaced(body, cuts),
        kept: kept.len(),
        cursor,
        has_more: page.has_more,
    })
}

/// One page of several, in their order: everything else stays as the first one has it. `None` if one
/// of them is no list.
pub fn join_pages(pages: &[Vec<u8>], has_more: bool) -> Option<Vec<u8>> {
    let body = pages.first()?;
    let first = Page::read(body)?;
    let mut array = b"[".to_vec();
    let mut ids = Vec::new();
    for page in pages {
        for item in Page::read(page)?.items(page)? {
            if array.len() > 1 {
                array.push(b',');
            }
            array.extend_from_slice(page.get(item.range)?);
            ids.push(item.id);
        }
    }
    array.push(b']');
    let id_of = |id: Option<&Option<String>>| {
        let id = id.and_then(Option::as_deref);
        Value::from(id).to_string().into_bytes()
    };
    let mut cuts = vec![(first.data, array)];
    cuts.extend(first.first_id.map(|at| (at, id_of(ids.first()))));
    cuts.extend(first.last_id.map(|at| (at, id_of(ids.last()))));
    let has_more = if has_more { "true" } else { "false" };
    cuts.extend(first.has_more_at.map(|at| (at, has_more.into())));
    Some(replaced(body, cuts))
}

/// A list with nothing on it.
pub fn empty_list(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Anthropic => r#"{"data":[],"has_more":false,"first_id":null,"last_id":null}"#,
        _ => r#"{"object":"list","data":[],"first_id":null,"last_id":null,"has_more":false}"#,
    }
}

/// Where the fields of a page stand.
struct Page {
    data: Range<usize>,
    first_id: Option<Range<usize>>,
    last_id: Option<Range<usize>>,
    has_more: bool,
    has_more_at: Option<Range<usize>>,
}

struct Item {
    id: Option<String>,
    range: Range<usize>,
}

impl Page {
    fn read(body: &[u8]) -> Option<Self> {
        let mut data = None;
        let (mut first_id, mut last_id, mut has_more) = (None, None, None);
        let mut parts = Parts::of_object(body);
        for Part { key, range, value } in parts.by_ref() {
            match key {
                // Of two, nobody knows which one the client will take.
                b"\"data\"" if data.is_some() => return None,
                b"\"data\"" => data = Some(range),
                b"\"first_id\"" => first_id = Some(range),
                b"\"last_id\"" => last_id = Some(range),
                b"\"has_more\"" => has_more = Some((range, value == b"true")),
                _ => {}
            }
        }
        let data = data.filter(|_| parts.is_whole())?;
        Some(Self {
            data,
            first_id,
            last_id,
            has_more: has_more.as_ref().is_some_and(|(_, is_true)| *is_true),
            has_more_at: has_more.map(|(range, _)| range),
        })
    }

    fn items(&self, body: &[u8]) -> Option<Vec<Item>> {
        let mut parts = Parts::of_array(body.get(self.data.clone())?);
        let items = parts.by_ref().map(|part| {
            let ids = Parts::of_object(part.value).filter(|member| member.key == b"\"id\"");
            Item {
                id: ids.last().and_then(|member| string(member.value)),
                range: self.data.start + part.range.start..self.data.start + part.range.end,
            }
        });
        let items = items.collect();
        parts.is_whole().then_some(items)
    }
}

/// An array of what is kept, each with what stood before it in the one at `data`.
fn joined(body: &[u8], data: &Range<usize>, kept: &[&Item]) -> Vec<u8> {
    let mut array = b"[".to_vec();
    for (n, item) in kept.iter().enumerate() {
        if n > 0 {
            array.push(b',');
        }
        array.extend_from_slice(spaces_before(body, item.range.start));
        array.extend_from_slice(body.get(item.range.clone()).unwrap_or_default());
    }
    if !kept.is_empty() {
        array.extend_from_slice(spaces_before(body, data.end.saturating_sub(1)));
    }
    array.push(b']');
    array
}

fn spaces_before(body: &[u8], at: usize) -> &[u8] {
    let before = body.get(..at).unwrap_or_default();
    before
        .get(before.trim_ascii_end().len()..)
        .unwrap_or_default()
}

/// `body` with other bytes in some places.
fn replaced(body: &[u8], mut cuts: Vec<(Range<usize>, Vec<u8>)>) -> Vec<u8> {
    cuts.sort_by_key(|(range, _)| range.start);
    let mut result = Vec::with_capacity(body.len());
    let mut from = 0;
    for (range, new) in cuts {
        result.extend_from_slice(body.get(from..range.start).unwrap_or_default());
        result.extend_from_slice(&new);
        from = range.end;
    }
    result.extend_from_slice(body.get(from..).unwrap_or_default());
    result
}
