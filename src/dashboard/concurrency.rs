//! Concurrency: who holds the slots, who waits and why, and which requests are in flight, live.
//!
//! What exists at any time is bounded by slots and not by accounts times keys, so that leases are
//! drawn; what is idle is folded into a count.
//!
//! Invariant: one look and one drawing a tick serve everybody who watches the same view in the same
//! language.
mod accounts;
mod bar;
mod keys;
mod requests;
mod reset;
mod strip;
mod view;
mod waits;

use self::{
    accounts::Accounts,
    keys::Keys,
    requests::Requests,
    strip::{Paints, Strip},
    view::{Asked, Filters, View},
    waits::Waiting,
};
use super::{
    State,
    error::Trouble,
    live,
    names::Names,
    session::Operator,
    shell::{Shell, render},
    ticks::Seen,
    wants::Wants,
};
use askama::Template;
use axum::{
    Router,
    extract::{self, Query, rejection::QueryRejection},
    response::Response,
    routing::get,
};
use http::HeaderMap;

/// Rows of a list at first, and how many more a step shows.
const ROWS: usize = 50;

pub(super) fn pages() -> Router<State> {
    Router::new()
        .route("/concurrency", get(show))
        .route(
            "/concurrency/reset",
            get(reset::ask_reset).post(reset::reset),
        )
        .route(
            "/concurrency/release",
            get(reset::ask_release).post(reset::release),
        )
}

/// The first rows of a list, and what leads to more.
struct List<T> {
    rows: Vec<T>,
    /// How many are not shown, and the address that shows more of them.
    more: Option<(usize, String)>,
}

#[derive(Template)]
#[template(path = "concurrency.html", blocks = ["live"])]
struct ConcurrencyPage {
    shell: Shell,
    looked_at: i64,
    /// Path and query of this view.
    address: String,
    notice: Option<String>,
    filters: Filters,
    strip: Strip,
    accounts: Accounts,
    keys: Keys,
    waiting: Waiting,
    requests: Requests,
}

impl ConcurrencyPage {
    fn new(shell: Shell, seen: &Seen, view: &View) -> Self {
        let picture = &seen.picture;
        let names = Names::new(&shell, picture);
        let paints = Paints::new(picture, view.key);
        Self {
            looked_at: picture.look.now_ms(),
            address: view.address(),
            notice: None,
            filters: Filters::new(&names, view),
            strip: Strip::new(&names, &paints, view),
            accounts: Accounts::new(&names, &paints, view),
            keys: Keys::new(&names, seen.refused.as_ref(), (&paints, view)),
            waiting: Waiting::new(&names, view),
            requests: Requests::new(&names, seen, view),
            shell,
        }
    }
}

/// `GET /concurrency`.
async fn show(
    extract::State(state): extract::State<State>,
    shell: Shell,
    (wants, headers): (Wants, HeaderMap),
    _: Operator,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Response {
    let asked = asked
        .map_err(|rejection| Trouble::UnreadableForm(rejection.status()))
        .and_then(|Query(asked)| Ok((asked.read()?, asked)));
    let (view, asked) = match asked {
        Ok(asked) => asked,
        Err(trouble) => return trouble.respond(&shell, wants),
    };
    match wants {
        Wants::Page => {
            let seen = state.ticks().anew(&state).await;
            let mut page = ConcurrencyPage::new(shell, &seen, &view);
            page.notice = asked.notice(&page.shell);
            render(&page)
        }
        Wants::Fragment => {
            let seen = state.ticks().seen(&state).await;
            let name = format!(
                "{} {} {}",
                shell.locale.tag(),
                shell.zone.name(),
                view.address()
            );
            let draw = || ConcurrencyPage::new(shell, &seen, &view).as_live().render();
            live::answer_shared(&state.ticks().drawn(&seen, name, draw), &headers)
        }
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(super) use self::tests::samples;
