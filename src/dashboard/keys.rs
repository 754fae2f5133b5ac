//! Keys: what clients present, and forms and confirmations that change it.
//!
//! Invariants: what is changed goes through the plan of a pool document of one entry, as in the
//! API; a secret stands only in the answer to the form that made it, and never in a page that can
//! be asked for.
mod action;
mod edit;
mod limits;
mod made;
mod typed;

use self::limits::Limit;
use super::{
    State,
    error::Trouble,
    live,
    session::{Operator, form_urlencoded},
    shell::{Shell, render},
    wants::Wants,
};
use crate::{
    clock,
    document::single::{Refusal, Which, plan_one},
    domain::{
        ids::KeyId,
        pool::{Account, ClientKey, document::MintedKey, edges::Contents},
    },
    engine::allowance::Used,
    store::StoreError,
};
use askama::Template;
use axum::{
    Router,
    extract::{self, Query, rejection::QueryRejection},
    response::{IntoResponse as _, Response},
    routing::get,
};
use http::HeaderMap;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Names that a cell of the table holds; of more only the number is said.
const NAMES_SHOWN: usize = 3;

/// The addresses.
pub(super) fn pages() -> Router<State> {
    Router::new()
        .route("/keys", get(show))
        .route("/keys/new", get(edit::open_new).post(edit::create))
        .route("/keys/{id}", get(edit::open).post(edit::save))
        .route(
            "/keys/{id}/rotate",
            get(action::ask_rotate).post(action::rotate),
        )
        .route(
            "/keys/{id}/revoke",
            get(action::ask_revoke).post(action::revoke),
        )
}

/// A key's state as icon and word.
struct Badge {
    token: &'static str,
    icon: &'static str,
    word: String,
}

impl Badge {
    fn new(shell: &Shell, key: &ClientKey, now_ms: i64) -> Self {
        let (token, icon, word) = if key.is_expired(now_ms) {
            ("off", "disabled", shell.t("keys-expired"))
        } else if key.accounts.as_ref().is_some_and(Vec::is_empty) {
            ("bad", "ambiguous", shell.t("keys-no-account-left"))
        } else {
            ("ok", "active", shell.t("keys-active"))
        };
        Self {
            token,
            icon,
            word: word.to_string(),
        }
    }
}

/// What a key may use, as names; `None` means all.
struct Scope(Option<Names>);

struct Names {
    shown: Vec<Arc<str>>,
    more: usize,
}

impl Scope {
    fn new(names: Option<Vec<Arc<str>>>) -> Self {
        Self(names.map(|mut shown| {
            let more = shown.len().saturating_sub(NAMES_SHOWN);
            shown.truncate(NAMES_SHOWN);
            Names { shown, more }
        }))
    }

    fn accounts(key: &ClientKey, accounts: &[Account]) -> Self {
        let named = key.accounts.as_ref().map(|ids| {
            let its = accounts.iter().filter(|a| ids.contains(&a.id));
            its.map(|a| Arc::clone(&a.name)).collect()
        });
        Self::new(named)
    }
}

/// One key as a line of the table.
struct Row {
    /// What its elements are called, so that they keep the focus when the list is renewed.
    id: String,
    path: String,
    requests: String,
    name: Arc<str>,
    badge: Badge,
    hint: String,
    weight: u32,
    limits: Vec<Limit>,
    accounts: Scope,
    models: Scope,
    /// As people and as machines read it.
    expires: Option<(String, String)>,
}

impl Row {
    fn new(
        shell: &Shell,
        (key, used): (&ClientKey, Used),
        accounts: &[Account],
        now_ms: i64,
    ) -> Self {
        Self {
            id: key.id.to_string(),
            path: path_of(key.id),
            requests: requests_of(key.id),
            name: Arc::clone(&key.name),
            badge: Badge::new(shell, key, now_ms),
            hint: format!("…{}", key.secret_hint),
            weight: key.weight,
            limits: Limit::all(shell, key, used),
            accounts: Scope::accounts(key, accounts),
            models: Scope::new(key.models.clone()),
            expires: key
                .expires_at
                .map(|at| (shell.date_time(at), shell.machine_time(at))),
        }
    }
}

fn path_of(id: KeyId) -> String {
    format!("/keys/{id}")
}

fn requests_of(id: KeyId) -> String {
    format!("/requests?key={id}")
}

/// What was just done, as the address of the list says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Done {
    Changed,
    Revoked,
}

impl Done {
    /// The list that says so.
    const fn address(self) -> &'static str {
        match self {
            Self::Changed => "/keys?done=changed",
            Self::Revoked => "/keys?done=revoked",
        }
    }

    fn word(self, shell: &Shell) -> String {
        match self {
            Self::Changed => shell.t("keys-changed"),
            Self::Revoked => shell.t("keys-revoked"),
        }
        .to_string()
    }
}

/// The list's query.
#[derive(Default, Deserialize)]
struct Asked {
    /// What a name must hold.
    #[serde(default)]
    search: String,
    done: Option<Done>,
}

/// What there is to list.
enum Listed {
    /// There are no keys at all.
    Nothing,
    /// There are keys, but none that was searched for.
    NoMatch,
    /// They could not be read.
    Unread,
    Rows(Vec<Row>),
}

#[derive(Template)]
#[template(path = "keys/list.html", blocks = ["live"])]
struct KeysPage {
    shell: Shell,
    looked_at: i64,
    search: String,
    done: Option<String>,
    listed: Listed,
}

impl KeysPage {
    /// The list itself, with what is searched for, and without what was just done.
    fn address(&self) -> String {
        if self.search.is_empty() {
            return "/keys".to_owned();
        }
        let search = form_urlencoded(&self.search);
        format!("/keys?search={search}")
    }

    /// Whether there is anything to search in.
    fn has_keys(&self) -> bool {
        matches!(self.listed, Listed::Rows(_) | Listed::NoMatch)
    }

    fn new(shell: Shell, asked: Asked, (listed, looked_at): (Listed, i64)) -> Self {
        Self {
            looked_at,
            search: asked.search,
            done: asked.done.map(|done| done.word(&shell)),
            listed,
            shell,
        }
    }
}

/// The keys that match; `used` is what each of all of them uses, in their order.
fn listed(
    shell: &Shell,
    (contents, used): (&Contents, &[Used]),
    search: &str,
    now_ms: i64,
) -> Listed {
    if contents.keys.is_empty() {
        return Listed::Nothing;
    }
    let wanted = search.trim().to_lowercase();
    let keys = contents.keys.iter().zip(used);
    let found = keys.filter(|(key, _)| key.name.to_lowercase().contains(&wanted));
    let rows: Vec<_> = found
        .map(|(key, used)| Row::new(shell, (key, *used), &contents.accounts, now_ms))
        .collect();
    if rows.is_empty() {
        return Listed::NoMatch;
    }
    Listed::Rows(rows)
}

/// `GET /keys`.
async fn show(
    extract::State(state): extract::State<State>,
    shell: Shell,
    (wants, headers): (Wants, HeaderMap),
    _: Operator,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Response {
    // Nothing is lost by passing over a query that no page of ours makes.
    let Query(asked) = asked.unwrap_or_default();
    match state.store().pool().await {
        Ok(pool) => {
            let used = limits::used(&state, &pool.contents).await;
            let now_ms = clock::unix_millis();
            let listed = listed(&shell, (&pool.contents, &used), &asked.search, now_ms);
            let page = KeysPage::new(shell, asked, (listed, now_ms));
            match wants {
                Wants::Page => render(&page),
                Wants::Fragment => live::answer(&page.as_live(), &headers),
            }
        }
        Err(error) => {
            tracing::error!(%error, "the keys could not be read");
            let status = Trouble::from(error).status();
            let unread = (Listed::Unread, clock::unix_millis());
            let page = KeysPage::new(shell, asked, unread);
            (status, render(&page)).into_response()
        }
    }
}

/// Makes a key as `said`, with a fresh secret, and brings it into force; a refusal has made none.
pub(super) async fn make(
    state: &State,
    said: Map<String, Value>,
) -> Result<Result<MintedKey, Refusal>, StoreError> {
    make_unless(state, said, Vec::new()).await
}

async fn make_unless(
    state: &State,
    said: Map<String, Value>,
    mistakes: typed::Mistakes,
) -> Result<Result<MintedKey, Refusal>, StoreError> {
    let planned = state.store().change_pool(move |existing, tools| {
        let plan = plan_one::<ClientKey>(existing, tools, Which::New, said);
        typed::refuse_with(mistakes, plan)
    });
    let minted = match planned.await? {
        Ok(mut plan) => plan.minted.pop(),
        Err(refusal) => return Ok(Err(refusal)),
    };
    state.reload().now().await?;
    // A key without a secret is always given one.
    minted.map(Ok).ok_or(StoreError::Panicked)
}

/// The key of an id as it stands in an address, in what was read.
async fn find(state: &State, id: &str) -> Result<(Contents, Arc<ClientKey>), Trouble> {
    let contents = state.store().pool().await?.contents;
    let found = contents.keys.iter().find(|key| key.id.to_string() == id);
    let key = found.cloned().ok_or(Trouble::NotFound)?;
    Ok((contents, key))
}

/// A page as the answer, or trouble.
fn answer(page: Result<Response, Trouble>, shell: &Shell, wants: Wants) -> Response {
    page.unwrap_or_else(|trouble| trouble.respond(shell, wants))
}

#[cfg(test)]
pub(super) fn samples(shell: &Shell) -> Vec<(&'static str, String)> {
    let contents = tests::contents();
    let page = |search: &str, done, contents: &Contents| {
        let used = tests::used(contents);
        let listed = listed(shell, (contents, &used), search, tests::NOW_MS);
        let search = search.to_owned();
        KeysPage::new(
            shell.clone(),
            Asked { search, done },
            (listed, tests::NOW_MS),
        )
    };
    let unread = (Listed::Unread, tests::NOW_MS);
    let unread = KeysPage::new(shell.clone(), Asked::default(), unread);
    let pages = [
        page("", None, &Contents::default()),
        page("", Some(Done::Changed), &contents),
        page("9", Some(Done::Revoked), &contents),
        unread,
    ];
    let pages = pages.iter().map(|p| ("keys/list", p.render().unwrap()));
    let mut all: Vec<_> = pages.collect();
    all.extend(edit::samples(shell, &contents));
    all.extend(made::samples(shell));
    all.extend(action::samples(shell, &contents));
    all
}

#[cfg(test)]
mod tests;
