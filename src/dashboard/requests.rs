//! Requests: the log of those that have ended, newest first, a page at a time.
//!
//! Invariant: everything that a person chose stands in the address, and an empty list says what
//! was looked at.
mod filter;
mod named;
mod one;
mod words;

use self::{
    filter::{Asked, Choice, Choices, Filter},
    named::{Named, Names},
    words::Ended,
};
use super::{
    State,
    error::Trouble,
    session::Operator,
    shell::{Shell, render},
    wants::Wants,
};
use crate::{
    clock,
    domain::{ids::RequestId, ledger::Entry, settings::Name},
};
use askama::Template;
use axum::{
    Router,
    extract::{self, Query, rejection::QueryRejection},
    response::Response,
    routing::get,
};
use std::sync::Arc;

/// Rows per page.
const ROWS: usize = 50;

/// The addresses.
pub(super) fn pages() -> Router<State> {
    Router::new()
        .route("/requests", get(list))
        .route("/requests/{id}", get(one::show))
}

#[derive(Template)]
#[template(path = "requests.html")]
struct RequestsPage {
    shell: Shell,
    /// When the log was read: as people and as machines read it.
    looked_at: (String, String),
    /// The same page, read again.
    here: String,
    /// For how many days requests are kept; 0 keeps none.
    kept_days: u64,
    choices: Choices,
    /// What the list was narrowed to, in words.
    narrowed: Vec<String>,
    is_continued: bool,
    rows: Vec<Row>,
    newest: String,
    older: Option<String>,
}

impl RequestsPage {
    /// The form's selects: name, label, the word for no wish, and what can be chosen.
    fn selects(&self) -> [(&'static str, String, String, &[Choice]); 4] {
        let t = |key| self.shell.t(key).to_string();
        let choices = &self.choices;
        [
            ("key", t("fact-key"), t("requests-any-key"), &choices.keys),
            (
                "account",
                t("fact-account"),
                t("requests-any-account"),
                &choices.accounts,
            ),
            (
                "outcome",
                t("requests-outcome"),
                t("requests-any-outcome"),
                &choices.outcomes,
            ),
            (
                "status",
                t("fact-status"),
                t("requests-any-status"),
                &choices.classes,
            ),
        ]
    }
}

/// A request as the table shows it.
struct Row {
    address: String,
    started: String,
    machine_started: String,
    ended: Ended,
    status: String,
    key: Named,
    account: Named,
    asked_for: Arc<str>,
    first_byte_ms: Option<u64>,
    total_ms: Option<u64>,
}

impl Row {
    fn new(shell: &Shell, names: &Names<'_>, entry: &Entry) -> Self {
        Self {
            address: format!("/requests/{}", entry.id),
            started: shell.date_time(entry.started_at),
            machine_started: shell.machine_time(entry.started_at),
            ended: Ended::new(shell, entry.outcome),
            status: words::status(entry),
            key: names.key(entry.key),
            account: names.account(entry.account),
            asked_for: entry.model.as_ref().unwrap_or(&entry.path).clone(),
            first_byte_ms: entry.first_byte_ms,
            total_ms: entry.total_ms,
        }
    }
}

/// `GET /requests`.
async fn list(
    extract::State(state): extract::State<State>,
    shell: Shell,
    wants: Wants,
    _: Operator,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Response {
    let filter = asked
        .map_err(|rejection| Trouble::UnreadableForm(rejection.status()))
        .and_then(|Query(asked)| asked.read());
    let page = match filter {
        Ok(filter) => page(&state, shell.clone(), filter).await,
        Err(trouble) => Err(trouble),
    };
    match page {
        Ok(page) => render(&page),
        Err(trouble) => trouble.respond(&shell, wants),
    }
}

async fn page(state: &State, shell: Shell, filter: Filter) -> Result<RequestsPage, Trouble> {
    // One more than is shown tells whether there is an older page.
    let wanted = filter.in_the_log(ROWS + 1);
    let entries = state.store().requests(wanted).await?;
    let configuration = state.reload().configuration();
    let pool = Arc::clone(&configuration.pool());
    let kept_days = configuration
        .settings()
        .integer(Name::RequestLogRetentionDays);
    let names = Names::new(&shell, &pool);
    Ok(drawn(&names, &filter, &entries, kept_days))
}

fn drawn(names: &Names<'_>, filter: &Filter, entries: &[Entry], kept_days: u64) -> RequestsPage {
    let shell = names.shell;
    let now_ms = clock::unix_millis();
    let shown = entries.get(..ROWS).unwrap_or(entries);
    let last: Option<RequestId> = shown.last().map(|entry| entry.id);
    RequestsPage {
        looked_at: (shell.clock(now_ms), shell.machine_time(now_ms)),
        here: filter.address(filter.before),
        kept_days,
        choices: Choices::new(names, filter),
        narrowed: filter.in_words(names),
        is_continued: filter.before.is_some(),
        rows: shown.iter().map(|e| Row::new(shell, names, e)).collect(),
        newest: filter.address(None),
        older: last
            .filter(|_| entries.len() > ROWS)
            .map(|id| filter.address(Some(id))),
        shell: shell.clone(),
    }
}

#[cfg(test)]
pub(super) fn samples(shell: &Shell) -> Vec<(&'static str, String)> {
    use crate::domain::{
        ledger::Outcome,
        pool::{Pool, edges::Contents},
    };
    let pool = Pool::new(Contents::default());
    let names = Names::new(shell, &pool);
    let entries: Vec<Entry> = (0..=ROWS)
        .map(|n| words::entry(Outcome::ALL[n % Outcome::ALL.len()]))
        .collect();
    let all = Filter::default();
    let narrow = Asked {
        key: Some(entries[0].key.unwrap().to_string()),
        account: Some(entries[0].account.unwrap().to_string()),
        outcome: Some("client_gone".to_owned()),
        status: Some("4xx".to_owned()),
        before: Some(entries[0].id.to_string()),
    };
    let narrow = narrow.read().unwrap();
    let first_page = Filter {
        before: None,
        ..narrow.clone()
    };
    let old = Filter {
        before: narrow.before,
        ..all.clone()
    };
    let cases: [(&Filter, &[Entry], u64); 6] = [
        (&all, &entries, 14),
        (&all, &[], 14),
        (&all, &[], 0),
        (&narrow, &entries[..1], 14),
        (&first_page, &[], 14),
        (&old, &[], 14),
    ];
    let lists = cases.map(|(filter, entries, days)| {
        let page = drawn(&names, filter, entries, days);
        ("requests", page.render().unwrap())
    });
    lists.into_iter().chain(one::samples(&names)).collect()
}
