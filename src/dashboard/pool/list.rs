//! The list: what is in the pool, in which state, and what can be done to it at once.
//!
//! Invariant: of a secret nothing is shown but its end.
#[cfg(test)]
use super::done::Done;
use super::{
    Sort,
    done::{Asked, Notice},
    names,
};
use crate::{
    clock,
    dashboard::{
        error::Trouble,
        live,
        session::Operator,
        shell::{Shell, render},
        standing::Stand,
        wants::Wants,
    },
    document::single::Thing,
    domain::{
        admission::Subject,
        pool::{Account, Credential, DisabledReason, Endpoint, State, edges::Contents},
        settings::{Name, Settings},
    },
    engine::{look::Look, probe},
};
use askama::Template;
use axum::{
    extract::{self, Query},
    response::Response,
};
use http::HeaderMap;
use std::sync::Arc;

/// One thing as a line of its table.
struct Row {
    /// Where its form is.
    path: String,
    id: String,
    name: Arc<str>,
    stand: Stand,
    /// As the section's heads say.
    cells: Vec<Cell>,
}

impl Row {
    fn new<T: Thing>(thing: &T, stand: Stand, cells: Vec<Cell>) -> Self {
        Self {
            path: format!("/pool/{}/{}", T::LIST, thing.id()),
            id: thing.id().to_string(),
            name: Arc::clone(thing.name()),
            stand,
            cells,
        }
    }

    fn can_enable(&self) -> bool {
        !self.stand.state.takes_work()
    }

    fn can_drain(&self) -> bool {
        self.stand.state.takes_work()
    }

    fn can_disable(&self) -> bool {
        // What upstream has disabled may come back by itself; the operator can keep it out.
        self.stand.state != State::Disabled(DisabledReason::Operator)
    }
}

/// What stands in a cell.
enum Cell {
    /// In the reader's language.
    Text(String),
    /// An address, or a secret's end.
    Code(String),
    /// Other things, by name.
    Names(Vec<Arc<str>>),
}

/// What stands above a column.
struct Head {
    text: String,
    is_number: bool,
}

#[derive(Template)]
#[template(path = "pool/list.html", blocks = ["live"])]
struct PoolPage {
    shell: Shell,
    looked_at: i64,
    notice: Option<Notice>,
    sections: [Section; 3],
}

/// One kind of thing, as a table.
struct Section {
    sort: Sort,
    heading: String,
    add: String,
    none: String,
    none_help: String,
    /// Between the state and the actions.
    heads: Vec<Head>,
    rows: Vec<Row>,
}

impl PoolPage {
    fn new(shell: Shell, contents: &Contents, settings: &Settings, look: &Look) -> Self {
        let seen = (contents, look);
        let accounts = contents.accounts.iter();
        let accounts = accounts.map(|a| account_row(&shell, a, seen, settings));
        let credentials = contents.credentials.iter();
        let credentials = credentials.map(|c| credential_row(&shell, c, seen));
        let endpoints = contents.endpoints.iter();
        let endpoints = endpoints.map(|e| endpoint_row(&shell, e, seen));
        let sections = [
            (Sort::Account, accounts.collect()),
            (Sort::Credential, credentials.collect()),
            (Sort::Endpoint, endpoints.collect()),
        ];
        Self {
            sections: sections.map(|(sort, rows)| Section::new(&shell, sort, rows)),
            looked_at: look.now_ms(),
            notice: None,
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
            heads: heads(shell, sort),
            rows,
        }
    }

    fn cells<'a>(&'a self, row: &'a Row) -> impl Iterator<Item = (&'a Head, &'a Cell)> {
        self.heads.iter().zip(&row.cells)
    }
}

fn heads(shell: &Shell, sort: Sort) -> Vec<Head> {
    let keys: &[(&str, bool)] = match sort {
        Sort::Account => &[
            ("pool-streams", true),
            ("pool-creates", true),
            ("pool-credentials", false),
            ("pool-endpoints", false),
        ],
        Sort::Credential => &[
            ("pool-secret-hint", false),
            ("pool-streams", true),
            ("pool-creates", true),
            ("pool-accounts", false),
            ("pool-endpoints", false),
        ],
        Sort::Endpoint => &[
            ("pool-calls", false),
            ("column-in-flight", true),
            ("account-protocol", false),
            ("pool-credentials", false),
        ],
    };
    let head = |(key, is_number): &(&'static str, bool)| Head {
        text: shell.t(key).to_string(),
        is_number: *is_number,
    };
    keys.iter().map(head).collect()
}

/// What there is, and how it stands.
type Seen<'a> = (&'a Contents, &'a Look);

fn account_row(
    shell: &Shell,
    account: &Account,
    (all, look): Seen<'_>,
    settings: &Settings,
) -> Row {
    let charged = |c: &&Credential| c.accounts.contains(&account.id);
    let credentials: Vec<&Credential> = all.credentials.iter().filter(charged).collect();
    let reached = |e: &&Endpoint| credentials.iter().any(|c| c.endpoints.contains(&e.id));
    let streams = settings.integer(Name::AccountStreamLimit);
    let creates = settings.integer(Name::AccountCreateLimit);
    let standing = look.standing(Subject::Account(account.id));
    let cap = ordinary(account, settings);
    let cells = vec![
        Cell::Text(used(
            shell,
            standing.streams,
            inherited(shell, account.stream_limit, streams),
        )),
        Cell::Text(used(
            shell,
            standing.creates,
            inherited(shell, account.create_limit, creates),
        )),
        Cell::Names(names(credentials.iter().copied())),
        Cell::Names(names(all.endpoints.iter().filter(reached))),
    ];
    Row::new(
        account,
        Stand::account(shell, look, account, (&credentials, cap)),
        cells,
    )
}

/// Streams that ordinary requests may hold on it; 0 = unlimited.
pub(in crate::dashboard) fn ordinary(account: &Account, settings: &Settings) -> u64 {
    let own = account.stream_limit.map(u64::from);
    match own.unwrap_or_else(|| settings.integer(Name::AccountStreamLimit)) {
        0 => 0,
        limit => limit
            .saturating_sub(settings.integer(Name::AccountStreamReserve))
            .max(1),
    }
}

fn credential_row(shell: &Shell, credential: &Credential, (all, look): Seen<'_>) -> Row {
    let of = |held: u32, own: Option<u32>| match own {
        None | Some(0) => shell.t("number").num("value", held).to_string(),
        Some(own) => used(shell, held, number(shell, own.into())),
    };
    let accounts = all.accounts.iter();
    let accounts = accounts.filter(|a| credential.accounts.contains(&a.id));
    let endpoints = all.endpoints.iter();
    let endpoints = endpoints.filter(|e| credential.endpoints.contains(&e.id));
    let standing = look.standing(Subject::Credential(credential.id));
    let cells = vec![
        Cell::Code(format!("…{}", credential.secret.hint())),
        Cell::Text(of(standing.streams, credential.stream_limit)),
        Cell::Text(of(standing.creates, credential.create_limit)),
        Cell::Names(names(accounts)),
        Cell::Names(names(endpoints)),
    ];
    Row::new(
        credential,
        Stand::credential(shell, look, credential),
        cells,
    )
}

fn endpoint_row(shell: &Shell, endpoint: &Endpoint, (all, look): Seen<'_>) -> Row {
    let users = all.credentials.iter();
    let protocol = endpoint.protocols.first().copied();
    let called = protocol.map(|protocol| probe::address(&endpoint.base_url, protocol));
    let protocols = endpoint.protocols.iter();
    let in_flight = look.at_endpoint(endpoint.id);
    let cells = vec![
        Cell::Code(called.unwrap_or_default()),
        Cell::Text(shell.t("number").num("value", in_flight).to_string()),
        Cell::Names(protocols.map(|p| p.name().into()).collect()),
        Cell::Names(names(users.filter(|c| c.endpoints.contains(&endpoint.id)))),
    ];
    Row::new(endpoint, Stand::endpoint(shell, look, endpoint), cells)
}

/// What is in flight, beside what may be.
fn used(shell: &Shell, used: u32, cap: String) -> String {
    let text = shell.t("pool-used").num("used", used);
    text.text("cap", cap).to_string()
}

pub(super) fn number(shell: &Shell, value: u64) -> String {
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
pub(super) async fn show(
    extract::State(state): extract::State<super::State>,
    shell: Shell,
    (wants, headers): (Wants, HeaderMap),
    _: Operator,
    Query(asked): Query<Asked>,
) -> Response {
    let contents = match state.store().pool().await {
        Ok(pool) => pool.contents,
        Err(error) => return Trouble::from(error).respond(&shell, wants),
    };
    let configuration = state.reload().configuration();
    let settings = configuration.settings();
    let look = Look::new(configuration.admission(), clock::unix_millis());
    let notice = Notice::new(&shell, &contents, &asked);
    let page = PoolPage {
        notice,
        ..PoolPage::new(shell, &contents, &settings, &look)
    };
    match wants {
        Wants::Page => render(&page),
        Wants::Fragment => live::answer(&page.as_live(), &headers),
    }
}

#[cfg(test)]
pub(super) fn samples(shell: &Shell, contents: &Contents) -> Vec<(&'static str, String)> {
    use crate::dashboard::standing;

    let settings = Settings::default();
    let nothing = Contents::default();
    let look = Look::default();
    let page = |contents| PoolPage::new(shell.clone(), contents, &settings, &look);
    let mut all = vec![
        ("pool/list", page(&nothing).render().unwrap()),
        ("pool/list", page(contents).render().unwrap()),
    ];
    let every = super::tests::every_state();
    let look = standing::samples::look(&every);
    let standing = PoolPage::new(shell.clone(), &every, &settings, &look);
    all.push(("pool/list", standing.render().unwrap()));
    for done in Done::ALL {
        let at = format!("accounts/{}", contents.accounts[0].id);
        let asked = Asked::sample(done, at);
        let notice = Notice::new(shell, contents, &asked);
        assert!(notice.is_some());
        let page = PoolPage {
            notice,
            ..page(contents)
        };
        all.push(("pool/list", page.render().unwrap()));
    }
    all
}
