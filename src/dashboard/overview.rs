//! Overview: what needs attention, how full the pool is now, how the last quarter of an hour went,
//! which accounts stand aside and which keys hold most.
//!
//! Invariant: a number is counted once, and what is not known is said to be so, never zero.
mod lists;
mod recent;

use self::{
    lists::{AccountRow, KeyRow, List},
    recent::Recent,
};
use super::{
    State,
    attention::Attention,
    chart::per_cent,
    error::Trouble,
    live,
    names::Names,
    session::Operator,
    shell::{Shell, render},
    ticks::Seen,
    wants::Wants,
};
use crate::{domain::settings::Name, engine::picture::Totals};
use askama::Template;
use axum::{extract, response::Response};
use http::HeaderMap;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "overview.html", blocks = ["live"])]
struct OverviewPage {
    shell: Shell,
    attention: Attention,
    now: Now,
    recent: Recent,
    aside: List<AccountRow>,
    busy: List<KeyRow>,
    /// Whether keys are held to shares.
    has_shares: bool,
}

/// The pool at this moment.
struct Now {
    looked_at: i64,
    totals: Totals,
    /// How long the one has waited that waits longest.
    oldest_wait: Option<String>,
    requests: usize,
    accounts: usize,
    active: usize,
    keys: usize,
}

impl Now {
    fn new(shell: &Shell, seen: &Seen) -> Self {
        let picture = &seen.picture;
        let accounts = picture.pool.accounts();
        let oldest = picture.totals.oldest_wait_ms;
        Self {
            looked_at: picture.look.now_ms(),
            totals: picture.totals,
            oldest_wait: oldest.map(|ms| shell.span_ms(ms)),
            requests: seen.live.len(),
            accounts: accounts.len(),
            active: accounts.iter().filter(|a| a.state.takes_work()).count(),
            keys: picture.pool.keys().len(),
        }
    }

    /// All streams, the reserve included; what the bar is drawn of.
    fn all(&self) -> u64 {
        self.totals.capacity.unwrap_or(0) + self.totals.reserve
    }

    /// Whether there is a number of streams to be full of.
    fn has_room(&self) -> bool {
        self.totals.capacity.is_some() && self.all() > 0
    }

    /// So many streams as a part of the bar, in per mille.
    fn mille(&self, streams: u64) -> u64 {
        (streams * 1000 / self.all().max(1)).min(1000)
    }

    /// The bar's parts, in per mille: what is in flight, and where the reserve begins.
    fn bar(&self) -> (u64, u64) {
        let capacity = self.totals.capacity.unwrap_or(0);
        (self.mille(self.totals.in_flight), self.mille(capacity))
    }

    /// Where the reserve is drawn, and how wide.
    fn bar_reserve(&self) -> (String, String) {
        let (_, begins) = self.bar();
        (per_cent(begins, 1000), per_cent(1000 - begins, 1000))
    }

    /// Where it begins to be congested.
    fn bar_congested(&self) -> Option<String> {
        let from = self.totals.congested_from()?;
        Some(per_cent(self.mille(from), 1000))
    }
}

/// `GET /`.
pub(super) async fn show(
    extract::State(state): extract::State<State>,
    shell: Shell,
    (wants, headers): (Wants, HeaderMap),
    _: Operator,
) -> Response {
    let seen = match wants {
        Wants::Page => state.ticks().anew(&state).await,
        Wants::Fragment => state.ticks().seen(&state).await,
    };
    match page(&state, shell.clone(), &seen).await {
        Ok(page) => match wants {
            Wants::Page => render(&page),
            Wants::Fragment => live::answer(&page.as_live(), &headers),
        },
        Err(trouble) => trouble.respond(&shell, wants),
    }
}

async fn page(state: &State, shell: Shell, seen: &Seen) -> Result<OverviewPage, Trouble> {
    let picture = &seen.picture;
    let now_ms = picture.look.now_ms();
    let found = state.store().recent(recent::since(now_ms)).await?;
    // The step that is running shows what is so now, whenever the last look was.
    let totals = picture.totals;
    state
        .fullness()
        .note(now_ms, totals.in_flight, totals.capacity);
    let full = state.fullness().window(now_ms);
    let settings = Arc::clone(&state.reload().configuration().settings());
    let is_kept = settings.integer(Name::RequestLogRetentionDays) > 0;
    let standing = (&*picture.pool, &picture.look);
    Ok(OverviewPage {
        attention: Attention::find(&shell, standing, &settings, &state.store().health()),
        recent: Recent::new(&shell, (&found, is_kept), (&full, totals.in_flight), now_ms),
        now: Now::new(&shell, seen),
        aside: lists::accounts(&shell, standing, &settings),
        busy: lists::keys(&Names::new(&shell, picture)),
        has_shares: picture.has_shares(),
        shell,
    })
}

#[cfg(test)]
pub(super) fn samples(shell: &Shell) -> Vec<(&'static str, String)> {
    let now = |capacity: Option<u64>| Now {
        looked_at: recent::samples::NOW_MS,
        totals: Totals {
            in_flight: 3,
            capacity,
            reserve: 1,
            threshold_pct: if capacity == Some(12) { 20 } else { 80 },
            serving: capacity,
            in_flight_serving: 3,
            leases: 3,
            waiters: 2,
            oldest_wait_ms: None,
        },
        oldest_wait: capacity.map(|_| shell.span_ms(12_000)),
        requests: 5,
        accounts: 2,
        active: 1,
        keys: 3,
    };
    let none = |capacity, is_kept| OverviewPage {
        attention: Attention::default(),
        now: now(capacity),
        recent: recent::samples::empty(shell, is_kept),
        aside: List {
            rows: Vec::new(),
            more: 0,
        },
        busy: List {
            rows: Vec::new(),
            more: 0,
        },
        has_shares: false,
        shell: shell.clone(),
    };
    let all = OverviewPage {
        attention: super::attention::samples(shell),
        recent: recent::samples::busy(shell),
        aside: lists::samples::accounts(shell),
        busy: lists::samples::keys(shell),
        has_shares: true,
        ..none(Some(12), true)
    };
    let pages = [
        all,
        none(None, true),
        none(Some(0), false),
        none(Some(9), true),
    ];
    pages
        .iter()
        .map(|page| ("overview", page.render().unwrap()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_ends_with_the_reserve_and_is_marked_where_it_begins_to_be_congested() {
        let check = |in_flight, capacity, reserve, expect, congested: Option<&str>| {
            let now = Now {
                looked_at: 0,
                totals: Totals {
                    in_flight,
                    capacity,
                    reserve,
                    threshold_pct: 50,
                    serving: capacity,
                    in_flight_serving: in_flight,
                    ..Totals::default()
                },
                oldest_wait: None,
                requests: 0,
                accounts: 0,
                active: 0,
                keys: 0,
            };
            assert_eq!(now.bar(), expect);
            assert_eq!(now.bar_congested().as_deref(), congested);
        };
        check(3, Some(6), 2, (375, 750), Some("37.5%"));
        check(8, Some(6), 2, (1000, 750), Some("37.5%"));
        check(0, Some(0), 0, (0, 0), None);
        check(4, None, 0, (1000, 0), None);
    }
}
