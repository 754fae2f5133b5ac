//! Lists, a page at a time: `?cursor=` is the id that the page before ended with.
use super::{
    error::ApiError,
    input::{Param, Params},
};
use serde_json::{Value, json};
use std::{fmt::Display, str::FromStr};

/// Where the page begins.
pub(super) const CURSOR: Param = Param {
    name: "cursor",
    about: "The next_cursor of the page before; left out for the first page.",
};

/// How long the page is.
pub(super) const LIMIT: Param = Param {
    name: "limit",
    about: "How many items at most, from 1 to 200; 50 if left out.",
};

/// What every list accepts.
pub(super) const QUERY: &[Param] = &[CURSOR, LIMIT];

const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 200;

/// Which page is wanted.
#[derive(Debug)]
pub(super) struct Page<Id> {
    pub(super) cursor: Option<Id>,
    pub(super) limit: usize,
}

impl<Id: FromStr> Page<Id> {
    /// What the query asks for.
    pub(super) fn read(params: &Params) -> Result<Self, ApiError> {
        let accepted = format!("a whole number from 1 to {MAX_LIMIT}");
        let limit = params.read("limit", &accepted, |text| {
            text.parse().ok().filter(|n| (1..=MAX_LIMIT).contains(n))
        })?;
        Ok(Self {
            cursor: params.read("cursor", "the next_cursor of the page before", |text| {
                text.parse().ok()
            })?,
            limit: limit.unwrap_or(DEFAULT_LIMIT),
        })
    }

    /// The page as it is answered. `items` may hold one item more than the page, by which it is
    /// known that there is a next one.
    pub(super) fn answer<T>(
        &self,
        mut items: Vec<T>,
        id: impl Fn(&T) -> Id,
        show: impl Fn(&T) -> Value,
    ) -> Value
    where
        Id: Display,
    {
        let has_more = items.len() > self.limit;
        items.truncate(self.limit);
        let next = items.last().filter(|_| has_more).map(|t| id(t).to_string());
        json!({
            "items": items.iter().map(show).collect::<Vec<_>>(),
            "next_cursor": next,
        })
    }
}
