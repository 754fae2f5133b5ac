//! Keys that hold or wait: those over their share first, then those that wait; what is idle is a count.
use super::{List, accounts::tail, strip::Paints, view::View};
use crate::{
    dashboard::names::{Named, Names},
    domain::ids::KeyId,
    engine::picture::OfKey,
};
use std::{cmp::Reverse, collections::HashMap};

/// The width of a bar.
const WIDTH: u64 = 96;

/// A key as a row.
pub(super) struct Row {
    pub(super) id: String,
    pub(super) name: Named,
    /// The view that draws it alone, unless it is that already.
    pub(super) address: Option<String>,
    pub(super) is_chosen: bool,
    pub(super) weight: Option<u32>,
    pub(super) share: Option<u64>,
    pub(super) is_over: bool,
    pub(super) streams: u64,
    pub(super) paint: &'static str,
    /// How long the bar is, and where the share stands in it.
    pub(super) bar: u64,
    pub(super) tick: Option<u64>,
    pub(super) waiting: usize,
    pub(super) oldest: Option<String>,
    pub(super) refused: Option<u64>,
}

/// The section.
pub(super) struct Keys {
    pub(super) list: List<Row>,
    pub(super) idle: usize,
    /// Whether refusals are known.
    pub(super) has_refused: bool,
    /// Whether keys are held to shares.
    pub(super) has_shares: bool,
}

type Refused = HashMap<Option<KeyId>, u64>;

impl Keys {
    pub(super) fn new(
        names: &Names<'_>,
        refused: Option<&Refused>,
        (paints, view): (&Paints, &View),
    ) -> Self {
        let all = &names.picture.keys;
        // A key that is refused all it asks for neither holds nor waits, and is not idle.
        let is_refused = |key: &OfKey| refused.is_some_and(|r| r.contains_key(&key.key));
        let is_shown = |key: &&OfKey| {
            !key.is_idle() || is_refused(key) || (key.key.is_some() && key.key == view.key)
        };
        let mut busy: Vec<&OfKey> = all.iter().filter(is_shown).collect();
        busy.sort_by_key(|key| {
            let over = Reverse(key.is_over());
            (
                over,
                Reverse(key.waiting),
                Reverse(key.used.streams),
                key.key,
            )
        });
        let most = busy.iter().flat_map(|key| {
            let share = key.share.unwrap_or(0);
            [key.used.streams, share]
        });
        let most = most.max().unwrap_or(0).max(1);
        let idle = all.len() - busy.len();
        let shown = view.shown.keys;
        let left = busy.len().saturating_sub(shown);
        let more = view.with(|view| view.shown.keys += super::ROWS);
        let row = |key: &&OfKey| Row {
            refused: refused.map(|r| r.get(&key.key).copied().unwrap_or(0)),
            ..row(names, key, (paints, view), most)
        };
        Self {
            list: List {
                rows: busy.iter().take(shown).map(row).collect(),
                more: (left > 0).then_some((left, more)),
            },
            idle,
            has_refused: refused.is_some(),
            has_shares: names.picture.has_shares(),
        }
    }
}

fn row(names: &Names<'_>, key: &OfKey, (paints, view): (&Paints, &View), most: u64) -> Row {
    let is_chosen = key.key.is_some() && key.key == view.key;
    let id = key.key.map(|id| id.to_string());
    let other = key.key.filter(|_| !is_chosen);
    Row {
        id: id.as_deref().map_or_else(|| "none".to_owned(), tail),
        name: names.key(key.key),
        address: other.map(|id| view.with(|view| view.key = Some(id))),
        is_chosen,
        weight: key.weight,
        share: key.share,
        is_over: key.is_over(),
        streams: key.used.streams,
        paint: paints.of(key.key).1,
        bar: key.used.streams * WIDTH / most,
        tick: key
            .share
            .map(|share| (share * WIDTH / most).clamp(1, WIDTH - 1)),
        waiting: key.waiting,
        oldest: key.oldest_wait_ms.map(|ms| names.shell.span_ms(ms)),
        refused: None,
    }
}
