//! Requests in flight, oldest first, each with the stage that it waits at.
use super::{List, accounts::tail, view::View};
use crate::{
    dashboard::{
        names::{Named, Names},
        ticks::Seen,
    },
    domain::admission::HeldLease,
    engine::live::{Progress, Stage},
};
use std::{sync::Arc, time::Duration};

/// A request as a row.
pub(super) struct Row {
    /// The end of its id.
    pub(super) id: String,
    pub(super) key: Option<Named>,
    pub(super) account: Option<Named>,
    pub(super) stage: String,
    /// Whether it waits for capacity.
    pub(super) is_parked: bool,
    pub(super) in_stage: String,
    pub(super) age: String,
    /// Where its slots can be taken from it.
    pub(super) release: Option<String>,
}

/// The section.
pub(super) struct Requests {
    pub(super) list: List<Row>,
    /// How many are in flight, narrowed or not.
    pub(super) all: usize,
    /// The view that is not narrowed, if this one is.
    pub(super) clear: Option<String>,
}

/// A request with the lease that it holds.
type Joined<'a> = (Arc<Progress>, Option<&'a HeldLease>);

impl Requests {
    pub(super) fn new(names: &Names<'_>, seen: &Seen, view: &View) -> Self {
        let all = names.picture.live(seen.live.clone());
        let count = all.len();
        let mut wanted = all;
        wanted.retain(|request| is_wanted(request, view));
        let shown = view.shown.requests;
        let left = wanted.len().saturating_sub(shown);
        let more = view.with(|view| view.shown.requests += super::ROWS);
        let is_narrow = view.key.is_some() || view.account.is_some() || view.stage.is_some();
        let clear = view.with(|view| (view.key, view.account, view.stage) = (None, None, None));
        let rows = wanted.iter().take(shown).map(|request| row(names, request));
        Self {
            list: List {
                rows: rows.collect(),
                more: (left > 0).then_some((left, more)),
            },
            all: count,
            clear: is_narrow.then_some(clear),
        }
    }
}

fn is_wanted((request, held): &Joined<'_>, view: &View) -> bool {
    let is_on = |account| held.is_some_and(|h| h.edge.accounts().any(|a| a.id == account));
    view.key.is_none_or(|key| request.key() == Some(key))
        && view.account.is_none_or(is_on)
        && view.stage.is_none_or(|stage| request.stage() == stage)
}

fn row(names: &Names<'_>, (request, held): &Joined<'_>) -> Row {
    let shell = names.shell;
    let stage = request.stage();
    let age = request.received_at.elapsed();
    let reached = Duration::from_micros(request.micros(stage).unwrap_or(0));
    // A request without a key is nobody's only once that is known.
    let is_known = request.key().is_some() || stage > Stage::Received;
    let account = held.and_then(|held| held.edge.accounts().next().map(|a| a.id));
    Row {
        id: tail(&request.id.to_string()),
        key: is_known.then(|| names.key(request.key())),
        account: account.map(|id| names.account(id)),
        stage: names.stage(stage),
        is_parked: stage == Stage::Parked,
        in_stage: shell.span(age.saturating_sub(reached)),
        age: shell.span(age),
        release: held.map(|held| format!("/concurrency/release?lease={}", held.lease)),
    }
}
