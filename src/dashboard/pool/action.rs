//! What is done to one thing of the pool behind a confirmation that says beforehand what it does.
use super::{Sort, change_any, edit::faults, find};
use crate::{
    dashboard::{
        State,
        error::Trouble,
        form::{Faults, Form},
        session::{Operator, go},
        shell::{Shell, render},
        wants::Wants,
    },
    document::single::Thing as _,
    domain::pool::{Account, Credential, Endpoint, edges::Contents},
    store::StoreError,
};
use askama::Template;
use axum::{
    extract::{self, Path},
    response::{IntoResponse as _, Response},
};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Enable,
    Drain,
    Disable,
    Remove,
    Rotate,
}

impl Verb {
    const ALL: [Self; 5] = [
        Self::Enable,
        Self::Drain,
        Self::Disable,
        Self::Remove,
        Self::Rotate,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Enable => "enable",
            Self::Drain => "drain",
            Self::Disable => "disable",
            Self::Remove => "remove",
            Self::Rotate => "rotate",
        }
    }

    fn word(self, shell: &Shell) -> String {
        match self {
            Self::Enable => shell.t("pool-enable"),
            Self::Drain => shell.t("pool-drain"),
            Self::Disable => shell.t("pool-disable"),
            Self::Remove => shell.t("pool-remove"),
            Self::Rotate => shell.t("pool-rotate"),
        }
        .to_string()
    }

    fn effect(self, shell: &Shell, sort: Sort) -> String {
        match (self, sort) {
            (Self::Enable, _) => shell.t("pool-enable-effect"),
            (Self::Drain, _) => shell.t("pool-drain-effect"),
            (Self::Disable, _) => shell.t("pool-disable-effect"),
            (Self::Rotate, _) => shell.t("pool-rotate-effect"),
            (Self::Remove, Sort::Account) => shell.t("pool-remove-account-effect"),
            (Self::Remove, Sort::Credential) => shell.t("pool-remove-credential-effect"),
            (Self::Remove, Sort::Endpoint) => shell.t("pool-remove-endpoint-effect"),
        }
        .to_string()
    }
}

/// What is to be done to what.
#[derive(Clone)]
struct Action {
    sort: Sort,
    id: String,
    verb: Verb,
}

impl Action {
    fn read((sort, id, verb): (String, String, String)) -> Result<Self, Trouble> {
        let sort = Sort::from_list(&sort).ok_or(Trouble::NotFound)?;
        let verb = Verb::ALL.into_iter().find(|v| v.name() == verb);
        let verb = verb.ok_or(Trouble::NotFound)?;
        // Only credentials have a secret to replace.
        if verb == Verb::Rotate && !sort.is_credential() {
            return Err(Trouble::NotFound);
        }
        Ok(Self { sort, id, verb })
    }

    fn subject(&self, contents: &Contents) -> Result<String, Trouble> {
        let subject = match self.sort {
            Sort::Account => find::<Account>(contents, &self.id)?.name(),
            Sort::Credential => find::<Credential>(contents, &self.id)?.name(),
            Sort::Endpoint => find::<Endpoint>(contents, &self.id)?.name(),
        };
        Ok(subject.to_string())
    }
}

#[derive(Template)]
#[template(path = "pool/action.html")]
struct ActionPage {
    shell: Shell,
    path: String,
    subject: String,
    press: String,
    effect: String,
    asks_secret: bool,
    faults: Faults,
}

impl ActionPage {
    fn new(shell: Shell, action: &Action, contents: &Contents) -> Result<Self, Trouble> {
        Ok(Self {
            path: format!(
                "/pool/{}/{}/{}",
                action.sort.list(),
                action.id,
                action.verb.name()
            ),
            subject: action.subject(contents)?,
            press: action.verb.word(&shell),
            effect: action.verb.effect(&shell, action.sort),
            asks_secret: action.verb == Verb::Rotate,
            faults: Faults::default(),
            shell,
        })
    }
}

#[derive(Default, Deserialize)]
pub(super) struct Answered {
    #[serde(default)]
    secret: String,
}

/// `GET /pool/{sort}/{id}/{verb}`: what it would do.
pub(super) async fn ask(
    extract::State(state): extract::State<State>,
    shell: Shell,
    (wants, _): (Wants, Operator),
    Path(at): Path<(String, String, String)>,
) -> Response {
    let page = match Action::read(at) {
        Ok(action) => page(&state, &shell, &action).await,
        Err(trouble) => Err(trouble),
    };
    match page {
        Ok(page) => render(&page),
        Err(trouble) => trouble.respond(&shell, wants),
    }
}

async fn page(state: &State, shell: &Shell, action: &Action) -> Result<ActionPage, Trouble> {
    let pool = state.store().pool().await?;
    ActionPage::new(shell.clone(), action, &pool.contents)
}

/// `POST /pool/{sort}/{id}/{verb}`: does it.
pub(super) async fn act(
    extract::State(state): extract::State<State>,
    shell: Shell,
    (wants, _): (Wants, Operator),
    Path(at): Path<(String, String, String)>,
    Form(answered): Form<Answered>,
) -> Response {
    let refused = match Action::read(at) {
        Ok(action) => acted(&state, &shell, &action, &answered).await,
        Err(trouble) => Err(trouble),
    };
    match refused {
        Ok(None) => go("/pool".to_owned(), wants),
        Ok(Some(page)) => (StatusCode::UNPROCESSABLE_ENTITY, render(&page)).into_response(),
        Err(trouble) => trouble.respond(&shell, wants),
    }
}

/// The question again, if it cannot be done.
async fn acted(
    state: &State,
    shell: &Shell,
    action: &Action,
    answered: &Answered,
) -> Result<Option<ActionPage>, Trouble> {
    let (key, value) = match action.verb {
        Verb::Enable => ("state", "active"),
        Verb::Drain => ("state", "draining"),
        Verb::Disable => ("state", "disabled"),
        Verb::Rotate => ("secret", answered.secret.as_str()),
        Verb::Remove => return removed(state, shell, action).await,
    };
    let said = Map::from_iter([(key.to_owned(), json!(value))]);
    let faults = match change_any(state, action.sort, Some(&action.id), said).await? {
        Ok(()) => return Ok(None),
        Err(refusal) => faults(shell, refusal, &answered.secret)?,
    };
    let page = page(state, shell, action).await?;
    Ok(Some(ActionPage { faults, ..page }))
}

async fn removed(
    state: &State,
    shell: &Shell,
    action: &Action,
) -> Result<Option<ActionPage>, Trouble> {
    match remove(state, action).await {
        Ok(true) => {
            state.reload().now().await?;
            Ok(None)
        }
        Ok(false) => Err(Trouble::NotFound),
        Err(StoreError::InUse { by, .. }) => {
            let mut page = page(state, shell, action).await?;
            let fault = shell.t("pool-in-use").text("by", by.join(", "));
            page.faults.add("confirm", fault);
            Ok(Some(page))
        }
        Err(error) => Err(error.into()),
    }
}

/// `false` if there is none of that id.
async fn remove(state: &State, action: &Action) -> Result<bool, StoreError> {
    let store = state.store();
    match action.sort {
        Sort::Account => match action.id.parse() {
            Ok(id) => store.remove_account(id).await,
            Err(_) => Ok(false),
        },
        Sort::Credential => match action.id.parse() {
            Ok(id) => store.remove_credential(id).await,
            Err(_) => Ok(false),
        },
        Sort::Endpoint => match action.id.parse() {
            Ok(id) => store.remove_endpoint(id).await,
            Err(_) => Ok(false),
        },
    }
}

#[cfg(test)]
pub(super) fn samples(shell: &Shell, contents: &Contents) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    for (sort, id) in [
        (Sort::Account, contents.accounts[0].id.to_string()),
        (Sort::Credential, contents.credentials[0].id.to_string()),
        (Sort::Endpoint, contents.endpoints[0].id.to_string()),
    ] {
        for verb in Verb::ALL {
            let id = id.clone();
            let action = Action { sort, id, verb };
            let mut page = ActionPage::new(shell.clone(), &action, contents).unwrap();
            all.push(("pool/action", page.render().unwrap()));
            let fault = shell.t("pool-in-use").text("by", "a");
            page.faults.add("confirm", fault);
            all.push(("pool/action", page.render().unwrap()));
        }
    }
    all
}
