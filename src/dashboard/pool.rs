//! Pool: what is in it, and forms and confirmations that change it.
//!
//! Invariants: what is changed goes through the plan of a pool document of one entry, as in the
//! API; nothing is written before all of it is right; no secret is ever shown.
mod action;
mod edit;
mod import;
mod typed;

use super::{
    State,
    error::Trouble,
    session::Operator,
    shell::{Shell, render},
    wants::Wants,
};
use crate::{
    document::single::{Refusal, Thing, Which, plan_one},
    domain::{
        pool::{Account, Credential, DisabledReason, Endpoint, State as Standing, edges::Contents},
        settings::{Name, Settings},
    },
    engine::probe,
    store::StoreError,
};
use askama::Template;
use axum::{Router, extract, response::Response, routing::get};
use serde_json::{Map, Value};
use std::sync::Arc;

pub(super) use self::import::Pending;

/// The addresses.
pub(super) fn pages() -> Router<State> {
    Router::new()
        .route("/pool", get(show))
        .route("/pool/import", get(import::show).post(import::submit))
        .route("/pool/called", get(edit::called))
        .route("/pool/{sort}/{id}", get(edit::open).post(edit::save))
        .route(
            "/pool/{sort}/{id}/{verb}",
            get(action::ask).post(action::act),
        )
}

/// Which kind of thing a page is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Account,
    Credential,
    Endpoint,
}

impl Sort {
    const fn list(self) -> &'static str {
        match self {
            Self::Account => Account::LIST,
            Self::Credential => Credential::LIST,
            Self::Endpoint => Endpoint::LIST,
        }
    }

    fn from_list(list: &str) -> Option<Self> {
        let all = [Self::Account, Self::Credential, Self::Endpoint];
        all.into_iter().find(|sort| sort.list() == list)
    }

    fn is_account(self) -> bool {
        self == Self::Account
    }

    fn is_credential(self) -> bool {
        self == Self::Credential
    }

    fn is_endpoint(self) -> bool {
        self == Self::Endpoint
    }
}

/// A state as icon and word.
struct Badge {
    token: &'static str,
    icon: &'static str,
    word: String,
    /// Which of the actions make sense.
    can_enable: bool,
    can_drain: bool,
    can_disable: bool,
}

impl Badge {
    fn new(shell: &Shell, state: Standing) -> Self {
        let (token, icon, word) = match state {
            Standing::Active => ("ok", "active", shell.t("pool-active")),
            Standing::Draining => ("wait", "draining", shell.t("pool-draining")),
            Standing::Disabled(DisabledReason::Operator) => {
                ("off", "disabled", shell.t("pool-disabled"))
            }
            Standing::Disabled(DisabledReason::Auth) => {
                ("bad", "key", shell.t("pool-disabled-auth"))
            }
            Standing::Disabled(DisabledReason::Billing) => {
                ("bad", "card", shell.t("pool-disabled-billing"))
            }
        };
        Self {
            token,
            icon,
            word: word.to_string(),
            can_enable: state != Standing::Active,
            can_drain: state == Standing::Active,
            can_disable: !matches!(state, Standing::Disabled(_)),
        }
    }
}

/// One thing as a line of its table.
struct Row {
    /// Where its form is.
    path: String,
    name: Arc<str>,
    badge: Badge,
    /// Streams at once, requests being started at once; empty for endpoints.
    caps: Vec<String>,
    /// The secret's end, or what is called.
    mark: String,
    /// What it belongs to, by name.
    first: Vec<Arc<str>>,
    second: Vec<Arc<str>>,
}

#[derive(Template)]
#[template(path = "pool/list.html")]
struct PoolPage {
    shell: Shell,
    sections: [Section; 3],
}

/// One kind of thing, as a table.
struct Section {
    sort: Sort,
    heading: String,
    add: String,
    none: String,
    none_help: String,
    rows: Vec<Row>,
}

impl PoolPage {
    fn new(shell: Shell, contents: &Contents, settings: &Settings) -> Self {
        let accounts = contents.accounts.iter();
        let accounts = accounts.map(|a| account_row(&shell, a, contents, settings));
        let credentials = contents.credentials.iter();
        let credentials = credentials.map(|c| credential_row(&shell, c, contents));
        let endpoints = contents.endpoints.iter();
        let endpoints = endpoints.map(|e| endpoint_row(&shell, e, contents));
        let sections = [
            (Sort::Account, accounts.collect()),
            (Sort::Credential, credentials.collect()),
            (Sort::Endpoint, endpoints.collect()),
        ];
        Self {
            sections: sections.map(|(sort, rows)| Section::new(&shell, sort, rows)),
            shell,
        }
    }
}

impl Section {
    fn new(shell: &Shell, sort: Sort, rows: Vec<Row>) -> Self {
        let (heading, add, none, none_help) = match sort {
            Sort::Account => (
                shell.t("pool-accounts"),
                shell.t("pool-add-account"),
                shell.t("pool-no-accounts"),
                shell.t("pool-no-accounts-help"),
            ),
            Sort::Credential => (
                shell.t("pool-credentials"),
                shell.t("pool-add-credential"),
                shell.t("pool-no-credentials"),
                shell.t("pool-no-credentials-help"),
            ),
            Sort::Endpoint => (
                shell.t("pool-endpoints"),
                shell.t("pool-add-endpoint"),
                shell.t("pool-no-endpoints"),
                shell.t("pool-no-endpoints-help"),
            ),
        };
        Self {
            sort,
            heading: heading.to_string(),
            add: add.to_string(),
            none: none.to_string(),
            none_help: none_help.to_string(),
            rows,
        }
    }
}

fn path_of<T: Thing>(thing: &T) -> String {
    format!("/pool/{}/{}", T::LIST, thing.id())
}

fn account_row(shell: &Shell, account: &Account, all: &Contents, settings: &Settings) -> Row {
    let charged = |c: &&Credential| c.accounts.contains(&account.id);
    let credentials: Vec<&Credential> = all.credentials.iter().filter(charged).collect();
    let reached = |e: &&Endpoint| credentials.iter().any(|c| c.endpoints.contains(&e.id));
    let streams = settings.integer(Name::AccountStreamLimit);
    let creates = settings.integer(Name::AccountCreateLimit);
    Row {
        path: path_of(account),
        name: Arc::clone(&account.name),
        badge: Badge::new(shell, account.state),
        caps: vec![
            inherited(shell, account.stream_limit, streams),
            inherited(shell, account.create_limit, creates),
        ],
        mark: String::new(),
        first: credentials.iter().map(|c| Arc::clone(&c.name)).collect(),
        second: names(all.endpoints.iter().filter(reached)),
    }
}

fn credential_row(shell: &Shell, credential: &Credential, all: &Contents) -> Row {
    let cap = |own: Option<u32>| match own {
        None | Some(0) => shell.t("pool-no-cap").to_string(),
        Some(own) => number(shell, own.into()),
    };
    let accounts = all.accounts.iter();
    let endpoints = all.endpoints.iter();
    Row {
        path: path_of(credential),
        name: Arc::clone(&credential.name),
        badge: Badge::new(shell, credential.state),
        caps: vec![cap(credential.stream_limit), cap(credential.create_limit)],
        mark: format!("…{}", credential.secret.hint()),
        first: names(accounts.filter(|a| credential.accounts.contains(&a.id))),
        second: names(endpoints.filter(|e| credential.endpoints.contains(&e.id))),
    }
}

fn endpoint_row(shell: &Shell, endpoint: &Endpoint, all: &Contents) -> Row {
    let users = all.credentials.iter();
    let protocol = endpoint.protocols.first().copied();
    let mark = protocol.map(|protocol| probe::address(&endpoint.base_url, protocol));
    Row {
        path: path_of(endpoint),
        name: Arc::clone(&endpoint.name),
        badge: Badge::new(shell, endpoint.state),
        caps: Vec::new(),
        mark: mark.unwrap_or_default(),
        first: endpoint.protocols.iter().map(|p| p.name().into()).collect(),
        second: names(users.filter(|c| c.endpoints.contains(&endpoint.id))),
    }
}

fn names<'a, T: Thing>(things: impl Iterator<Item = &'a T>) -> Vec<Arc<str>> {
    things.map(|thing| Arc::clone(thing.name())).collect()
}

fn number(shell: &Shell, value: u64) -> String {
    match value {
        0 => shell.t("pool-unlimited").to_string(),
        value => shell.t("number").num("value", value).to_string(),
    }
}

fn inherited(shell: &Shell, own: Option<u32>, setting: u64) -> String {
    if let Some(own) = own {
        return number(shell, own.into());
    }
    let value = number(shell, setting);
    shell.t("pool-inherited").text("value", value).to_string()
}

/// `GET /pool`.
async fn show(
    extract::State(state): extract::State<State>,
    shell: Shell,
    wants: Wants,
    _: Operator,
) -> Response {
    match state.store().pool().await {
        Ok(pool) => {
            let settings = state.reload().configuration().settings();
            render(&PoolPage::new(shell, &pool.contents, &settings))
        }
        Err(error) => Trouble::from(error).respond(&shell, wants),
    }
}

/// Changes one thing and brings that into force; a refusal has changed nothing.
async fn change<T: Thing>(
    state: &State,
    which: Which<T::Id>,
    said: Map<String, Value>,
) -> Result<Result<(), Refusal>, StoreError> {
    let planned = state
        .store()
        .change_pool(move |existing, tools| plan_one::<T>(existing, tools, which, said));
    match planned.await? {
        Ok(_) => state.reload().now().await.map(Ok),
        Err(refusal) => Ok(Err(refusal)),
    }
}

/// The same for an id as it stands in an address; `None` means a new thing.
async fn change_any(
    state: &State,
    sort: Sort,
    id: Option<&str>,
    said: Map<String, Value>,
) -> Result<Result<(), Refusal>, StoreError> {
    match sort {
        Sort::Account => change_at::<Account>(state, id, said).await,
        Sort::Credential => change_at::<Credential>(state, id, said).await,
        Sort::Endpoint => change_at::<Endpoint>(state, id, said).await,
    }
}

async fn change_at<T: Thing>(
    state: &State,
    id: Option<&str>,
    said: Map<String, Value>,
) -> Result<Result<(), Refusal>, StoreError> {
    let which = match id.map(str::parse) {
        None => Which::New,
        Some(Ok(id)) => Which::Stored(id),
        Some(Err(_)) => return Ok(Err(Refusal::Missing)),
    };
    change::<T>(state, which, said).await
}

/// The thing of an id as it stands in an address.
fn find<'a, T: Thing>(contents: &'a Contents, id: &str) -> Result<&'a T, Trouble> {
    let found = T::all(contents).find(|thing| thing.id().to_string() == id);
    found.ok_or(Trouble::NotFound)
}

#[cfg(test)]
pub(super) fn samples(shell: &Shell) -> Vec<(&'static str, String)> {
    let settings = Settings::default();
    let empty = PoolPage::new(shell.clone(), &Contents::default(), &settings);
    let contents = tests::contents();
    let filled = PoolPage::new(shell.clone(), &contents, &settings);
    let mut all = vec![
        ("pool/list", empty.render().unwrap()),
        ("pool/list", filled.render().unwrap()),
    ];
    all.extend(edit::samples(shell, &contents));
    all.extend(action::samples(shell, &contents));
    all.extend(import::samples(shell, &contents));
    all
}

#[cfg(test)]
mod tests;
