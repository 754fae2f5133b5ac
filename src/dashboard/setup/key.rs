//! Step three: the first client key, shown once, with what to paste and a line that waits for the
//! first request.
use super::trouble;
use crate::{
    dashboard::{
        State,
        error::Trouble,
        form::{Faults, Form},
        keys, live,
        session::Operator,
        shell::{Shell, render},
        snippets::{self, Filling, Reached, Snippet},
        wants::Wants,
    },
    document::single::Refusal,
    domain::{ids::KeyId, ledger::Entry},
    store::ledger::LedgerFilter,
};
use askama::Template;
use axum::{
    extract::{self, Path},
    response::{IntoResponse as _, Response},
};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Map, json};
use std::sync::Arc;

#[derive(Template)]
#[template(path = "setup/key.html")]
struct KeyPage {
    shell: Shell,
    typed: String,
    faults: Faults,
}

#[derive(Template)]
#[template(path = "setup/done.html", blocks = ["seen"])]
struct DonePage {
    shell: Shell,
    key: KeyId,
    /// The name and the secret; `None` when only the waiting line is looked at.
    minted: Option<(Arc<str>, String)>,
    snippets: Vec<Snippet>,
    seen: Option<Seen>,
}

/// The first request that came with the key.
struct Seen {
    status: Option<u16>,
    took: String,
    is_ok: bool,
}

impl Seen {
    fn new(shell: &Shell, entry: &Entry) -> Self {
        Self {
            status: entry.status,
            took: shell.span_ms(entry.total_ms.unwrap_or_default()),
            is_ok: entry.outcome == crate::domain::ledger::Outcome::Ok,
        }
    }
}

#[derive(Deserialize)]
pub(in crate::dashboard) struct Typed {
    #[serde(default)]
    name: String,
}

/// `GET /setup/key`.
pub(super) async fn show(shell: Shell, _: Operator) -> Response {
    render(&KeyPage {
        shell,
        typed: String::new(),
        faults: Faults::default(),
    })
}

/// `POST /setup/key`.
pub(super) async fn create(
    extract::State(state): extract::State<State>,
    shell: Shell,
    Reached(base_url): Reached,
    _: Operator,
    Form(typed): Form<Typed>,
) -> Response {
    let said = Map::from_iter([("name".to_owned(), json!(typed.name))]);
    let minted = match keys::make(&state, said).await {
        Ok(Ok(minted)) => minted,
        Ok(Err(refusal)) => {
            let mut faults = Faults::default();
            let fault = match refusal {
                Refusal::NameTaken(_) => shell.t("key-name-taken"),
                _ => shell.t("key-name-fault"),
            };
            faults.add("name", fault);
            let typed = typed.name;
            let page = KeyPage {
                shell,
                typed,
                faults,
            };
            return (StatusCode::UNPROCESSABLE_ENTITY, render(&page)).into_response();
        }
        Err(error) => return trouble(&shell, error, Wants::Page),
    };
    let filling = Filling {
        base_url: &base_url,
        secret: minted.secret.expose(),
    };
    let snippets = snippets::filled(&state, &filling, None).await;
    render(&DonePage {
        shell,
        key: minted.id,
        snippets,
        minted: Some((minted.name, minted.secret.expose().to_owned())),
        seen: None,
    })
}

/// `GET /setup/key/{id}/seen`: whether a request has come with that key.
pub(super) async fn seen(
    extract::State(state): extract::State<State>,
    shell: Shell,
    (wants, headers): (Wants, HeaderMap),
    _: Operator,
    Path(id): Path<String>,
) -> Response {
    let Ok(key) = id.parse::<KeyId>() else {
        return Trouble::NotFound.respond(&shell, wants);
    };
    let filter = LedgerFilter {
        key: Some(key),
        limit: 1,
        ..LedgerFilter::default()
    };
    let seen = match state.store().requests(filter).await {
        Ok(rows) => rows.first().map(|entry| Seen::new(&shell, entry)),
        Err(error) => return trouble(&shell, error, wants),
    };
    let page = DonePage {
        shell,
        key,
        minted: None,
        snippets: Vec::new(),
        seen,
    };
    match wants {
        Wants::Page => render(&page),
        Wants::Fragment => live::answer(&page.as_seen(), &headers),
    }
}

#[cfg(test)]
pub(super) fn samples(shell: &Shell) -> Vec<(&'static str, String)> {
    let mut faults = Faults::default();
    faults.add("name", shell.t("key-name-fault"));
    faults.add("name", shell.t("key-name-taken"));
    let first = KeyPage {
        shell: shell.clone(),
        typed: "1".to_owned(),
        faults,
    };
    let mut all = vec![("setup/key", first.render().unwrap())];
    let filling = Filling {
        base_url: "http://127.0.0.1:8080",
        secret: "0",
    };
    let protocol = crate::domain::protocol::Protocol::OpenAi;
    let seen = |status, is_ok| {
        let took = shell.span_ms(340);
        Some(Seen {
            status,
            took,
            is_ok,
        })
    };
    let states = [
        None,
        seen(Some(200), true),
        seen(Some(429), false),
        seen(None, false),
    ];
    for (n, seen) in states.into_iter().enumerate() {
        let page = DonePage {
            shell: shell.clone(),
            key: KeyId::from_u128(1),
            minted: (n == 0).then(|| ("1".into(), "0".to_owned())),
            snippets: snippets::snippets(protocol, "1", &filling),
            seen,
        };
        all.push(("setup/done", page.render().unwrap()));
    }
    all
}
