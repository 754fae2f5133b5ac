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
    error::Trouble,
    live,
    session::Operator,
    shell::{Shell, render},
    wants::Wants,
};
use crate::{
    clock,
    domain::{pool::Pool, settings::Name},
    engine::{
        live::{Registry, Stage},
        look::Look,
    },
};
use askama::Template;
use axum::{extract, response::Response};
use http::HeaderMap;
use std::{sync::Arc, time::Duration};

#[derive(Template)]
#[template(path = "overview.html", blocks = ["live"])]
struct OverviewPage {
    shell: Shell,
    attention: Attention,
    now: Now,
    recent: Recent,
    aside: List<AccountRow>,
    busy: List<KeyRow>,
}

/// The pool at this moment.
struct Now {
    looked_at: i64,
    in_flight: u64,
    /// What ordinary requests may hold; `None` where some account is unlimited.
    capacity: Option<u64>,
    /// What is kept for clients that come back to a running response.
    reserve: u64,
    waiting: usize,
    /// How long the one has waited that waits longest.
    oldest_wait: Option<String>,
    requests: usize,
    accounts: usize,
    active: usize,
    keys: usize,
}

impl Now {
    /// Whether there is a number of streams to be full of.
    fn has_room(&self) -> bool {
        self.capacity
            .is_some_and(|ordinary| ordinary + self.reserve > 0)
    }

    /// The bar's parts, in per mille of all streams: what is in flight, and where the reserve
    /// begins.
    fn bar(&self) -> (u64, u64) {
        let ordinary = self.capacity.unwrap_or(0);
        let all = (ordinary + self.reserve).max(1);
        let part = |streams: u64| (streams * 1000 / all).min(1000);
        (part(self.in_flight), part(ordinary))
    }

    /// Where the reserve is drawn, and how wide, in per cent of the bar.
    fn bar_reserve(&self) -> (String, String) {
        let per_cent = |mille: u64| format!("{}.{}%", mille / 10, mille % 10);
        let (_, begins) = self.bar();
        (per_cent(begins), per_cent(1000 - begins))
    }
}

/// `GET /`.
pub(super) async fn show(
    extract::State(state): extract::State<State>,
    shell: Shell,
    (wants, headers): (Wants, HeaderMap),
    _: Operator,
) -> Response {
    match page(&state, shell.clone()).await {
        Ok(page) => match wants {
            Wants::Page => render(&page),
            Wants::Fragment => live::answer(&page.as_live(), &headers),
        },
        Err(trouble) => trouble.respond(&shell, wants),
    }
}

async fn page(state: &State, shell: Shell) -> Result<OverviewPage, Trouble> {
    let now_ms = clock::unix_millis();
    let found = state.store().recent(recent::since(now_ms)).await?;
    // The step that is running shows what is so now, whenever the last look was.
    state.look_at_fullness(now_ms);
    let seen = state.fullness().window(now_ms);
    let configuration = state.reload().configuration();
    let pool = Arc::clone(&configuration.pool());
    let settings = Arc::clone(&configuration.settings());
    let admission = configuration.admission();
    let is_kept = settings.integer(Name::RequestLogRetentionDays) > 0;
    let now = now(state, &shell, &pool, now_ms);
    let look = Look::new(admission, now_ms);
    Ok(OverviewPage {
        attention: Attention::find(&shell, (&pool, &look), &settings, &state.store().health()),
        recent: Recent::new(&shell, (&found, is_kept), (&seen, now.in_flight), now_ms),
        now,
        aside: lists::accounts(&shell, (&pool, &look), &settings),
        busy: lists::keys(&shell, &pool, admission.holdings()),
        shell,
    })
}

fn now(state: &State, shell: &Shell, pool: &Pool, now_ms: i64) -> Now {
    let admission = state.reload().configuration().admission();
    let (in_flight, capacity) = admission.stream_totals();
    let accounts = pool.accounts();
    Now {
        looked_at: now_ms,
        in_flight,
        capacity,
        reserve: admission.stream_reserve(),
        waiting: admission.counts().1,
        oldest_wait: oldest_wait(state.live()).map(|wait| shell.span(wait)),
        requests: state.live().count(),
        accounts: accounts.len(),
        active: accounts.iter().filter(|a| a.state.takes_work()).count(),
        keys: pool.keys().len(),
    }
}

/// How long the request has waited for a slot that waits longest.
fn oldest_wait(live: &Registry) -> Option<Duration> {
    let waits = live.snapshot().into_iter().filter_map(|request| {
        let since = request.micros(Stage::Parked)?;
        let is_waiting = request.stage() == Stage::Parked;
        is_waiting.then(|| {
            request
                .received_at
                .elapsed()
                .saturating_sub(Duration::from_micros(since))
        })
    });
    waits.max()
}

#[cfg(test)]
pub(super) fn samples(shell: &Shell) -> Vec<(&'static str, String)> {
    let now = |capacity| Now {
        looked_at: recent::samples::NOW_MS,
        in_flight: 3,
        capacity,
        reserve: 1,
        waiting: 2,
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
        shell: shell.clone(),
    };
    let all = OverviewPage {
        attention: super::attention::samples(shell),
        recent: recent::samples::busy(shell),
        aside: lists::samples::accounts(shell),
        busy: lists::samples::keys(shell),
        ..none(Some(12), true)
    };
    let pages = [all, none(None, true), none(Some(0), false)];
    pages
        .iter()
        .map(|page| ("overview", page.render().unwrap()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::RequestId;

    #[test]
    fn the_bar_ends_with_the_reserve() {
        let check = |in_flight, capacity, reserve, expect| {
            let now = Now {
                looked_at: 0,
                in_flight,
                capacity,
                reserve,
                waiting: 0,
                oldest_wait: None,
                requests: 0,
                accounts: 0,
                active: 0,
                keys: 0,
            };
            assert_eq!(now.bar(), expect);
        };
        check(3, Some(6), 2, (375, 750));
        check(8, Some(6), 2, (1000, 750));
        check(0, Some(0), 0, (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn only_who_waits_now_is_the_oldest_who_waits() {
        let registry = Registry::default();
        let desk = registry.desk();
        let gone = desk.enter(RequestId::from_u128(1), false);
        gone.reach(Stage::Parked);
        tokio::time::advance(Duration::from_secs(3)).await;
        gone.reach(Stage::Admitted);
        assert_eq!(oldest_wait(&registry), None);
        let waits = desk.enter(RequestId::from_u128(2), false);
        tokio::time::advance(Duration::from_secs(1)).await;
        waits.reach(Stage::Parked);
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(oldest_wait(&registry), Some(Duration::from_secs(5)));
    }
}
