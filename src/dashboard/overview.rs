//! Overview: what needs attention, how full the pool is now, and how requests of the last quarter
//! of an hour ended.
use super::{
    State,
    attention::Attention,
    chart::{self, Bars},
    error::Trouble,
    live,
    session::Operator,
    shell::{Shell, render},
    wants::Wants,
};
use crate::{
    clock,
    domain::{ledger::Outcome, pool::Pool, settings::Name},
    store::ledger::Tally,
};
use askama::Template;
use axum::{extract, response::Response};
use http::HeaderMap;
use std::sync::Arc;

/// The window of the charts and counts.
const MINUTES: i64 = 15;

const MINUTE_MS: i64 = 60_000;

#[derive(Template)]
#[template(path = "overview.html", blocks = ["live"])]
struct OverviewPage {
    shell: Shell,
    attention: Attention,
    now: Now,
    recent: Recent,
}

/// The pool at this moment.
struct Now {
    looked_at: i64,
    in_flight: u64,
    capacity: Option<u64>,
    /// What is kept for clients that come back to a running response.
    reserve: u64,
    waiting: usize,
    requests: usize,
    accounts: usize,
    active: usize,
    keys: usize,
}

impl Now {
    /// How full the pool is, in per mille of its capacity: the width of a bar.
    fn filled(&self) -> u64 {
        let capacity = self.capacity.unwrap_or(0).max(1);
        (self.in_flight * 1000 / capacity).min(1000)
    }
}

/// The requests that began in the window and have ended.
struct Recent {
    /// Whether a log is kept at all; without one nothing can be said.
    is_kept: bool,
    ok: u64,
    refused: u64,
    failed: u64,
    left: u64,
    bars: Bars,
    /// For the table: the minute as text and its counts.
    rows: Vec<(String, [u64; 4])>,
}

impl Recent {
    fn total(&self) -> u64 {
        self.ok + self.refused + self.failed + self.left
    }

    fn first(&self) -> &str {
        self.rows.first().map_or("", |(minute, _)| minute)
    }

    fn last(&self) -> &str {
        self.rows.last().map_or("", |(minute, _)| minute)
    }

    #[expect(clippy::unused_self, reason = "templates can only call methods")]
    fn view_box(&self) -> String {
        format!("0 0 {} {}", chart::WIDTH, chart::HEIGHT)
    }

    fn new(shell: &Shell, tallies: &[Tally], now_ms: i64, is_kept: bool) -> Self {
        let last = now_ms / MINUTE_MS;
        let first = last - MINUTES + 1;
        let steps: Vec<[u64; 4]> = (first..=last)
            .map(|minute| counts(tallies, minute))
            .collect();
        let sum = |n: usize| steps.iter().filter_map(|step| step.get(n)).sum();
        let rows = (first..=last)
            .zip(&steps)
            .map(|(minute, step)| (shell.clock_short(minute * MINUTE_MS), *step));
        Self {
            is_kept,
            ok: sum(0),
            refused: sum(1),
            failed: sum(2),
            left: sum(3),
            rows: rows.collect(),
            bars: Bars::new(&steps, ["ok", "refused", "failed", "left"]),
        }
    }
}

/// What ended well, what was refused by us, what failed upstream, and whose client left.
fn counts(tallies: &[Tally], minute: i64) -> [u64; 4] {
    let of = |outcomes: &[Outcome]| {
        let matching = tallies
            .iter()
            .filter(|t| t.minute == minute && outcomes.contains(&t.outcome));
        matching.map(|t| t.count).sum()
    };
    [
        of(&[Outcome::Ok]),
        of(&[Outcome::Refused]),
        of(&[Outcome::Failed, Outcome::Broken]),
        of(&[Outcome::ClientGone]),
    ]
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
    let since = (now_ms / MINUTE_MS - MINUTES + 1) * MINUTE_MS;
    let tallies = state.store().tallies(since).await?;
    let configuration = state.reload().configuration();
    let pool = Arc::clone(&configuration.pool());
    let settings = Arc::clone(&configuration.settings());
    let admission = configuration.admission();
    let (in_flight, capacity) = admission.stream_totals();
    let is_kept = settings.integer(Name::RequestLogRetentionDays) > 0;
    let (active, accounts) = activity(&pool);
    let reserve = settings.integer(Name::AccountStreamReserve);
    Ok(OverviewPage {
        attention: Attention::find(&shell, &pool, &settings, &state.store().health()),
        recent: Recent::new(&shell, &tallies, now_ms, is_kept),
        now: Now {
            looked_at: now_ms,
            in_flight,
            capacity,
            reserve,
            waiting: admission.counts().1,
            requests: state.live().count(),
            accounts,
            active,
            keys: pool.keys().len(),
        },
        shell,
    })
}

/// How many accounts take work, of how many.
fn activity(pool: &Pool) -> (usize, usize) {
    let accounts = pool.accounts();
    let active = accounts.iter().filter(|a| a.state.takes_work()).count();
    (active, accounts.len())
}

#[cfg(test)]
pub(super) fn samples(shell: &Shell) -> Vec<(&'static str, String)> {
    let now_ms = 1_700_000_000_000;
    let tally = |ago: i64, outcome, count| Tally {
        minute: now_ms / MINUTE_MS - ago,
        outcome,
        count,
    };
    let busy = [
        tally(0, Outcome::Ok, 1204),
        tally(1, Outcome::Refused, 2),
        tally(3, Outcome::Broken, 1),
        tally(4, Outcome::ClientGone, 1),
    ];
    let now = |capacity| Now {
        looked_at: now_ms,
        in_flight: 3,
        capacity,
        reserve: 1,
        waiting: 2,
        requests: 5,
        accounts: 2,
        active: 1,
        keys: 3,
    };
    let sample = |attention, capacity, tallies: &[Tally], is_kept| {
        let page = OverviewPage {
            attention,
            now: now(capacity),
            recent: Recent::new(shell, tallies, now_ms, is_kept),
            shell: shell.clone(),
        };
        ("overview", page.render().unwrap())
    };
    vec![
        sample(super::attention::samples(shell), Some(12), &busy, true),
        sample(Attention::default(), None, &[], true),
        sample(Attention::default(), Some(0), &[], false),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_by_us_and_failed_upstream_are_two_things() {
        let tally = |minute, outcome, count| Tally {
            minute,
            outcome,
            count,
        };
        let tallies = [
            tally(7, Outcome::Ok, 5),
            tally(7, Outcome::Refused, 1),
            tally(7, Outcome::Failed, 2),
            tally(7, Outcome::Broken, 3),
            tally(7, Outcome::ClientGone, 4),
            tally(8, Outcome::Ok, 9),
        ];
        assert_eq!(counts(&tallies, 7), [5, 1, 5, 4]);
        assert_eq!(counts(&tallies, 6), [0; 4]);
    }
}
