//! What is done to one thing of the pool behind a confirmation that says beforehand what it does.
use super::{Sort, change_any, done::Done, faults::faults, find, names, typed::Typed};
use crate::{
    clock,
    dashboard::{
        State,
        error::Trouble,
        form::{Faults, Form},
        session::{Operator, go},
        shell::{Shell, render},
        standing,
        wants::Wants,
    },
    document::single::Thing,
    domain::{
        admission::Subject,
        pool::{Account, ClientKey, Credential, Endpoint, State as Standing, edges::Contents},
    },
    engine::{cooldowns, look::Look},
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
    ClearCooldown,
    /// An account's limits apply to it as a whole.
    ShareLimits,
    /// They apply to each of its credentials.
    PartLimits,
}

impl Verb {
    const ALL: [Self; 8] = [
        Self::Enable,
        Self::Drain,
        Self::Disable,
        Self::Remove,
        Self::Rotate,
        Self::ClearCooldown,
        Self::ShareLimits,
        Self::PartLimits,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Enable => "enable",
            Self::Drain => "drain",
            Self::Disable => "disable",
            Self::Remove => "remove",
            Self::Rotate => "rotate",
            Self::ClearCooldown => "clear-cooldown",
            Self::ShareLimits => "share-limits",
            Self::PartLimits => "part-limits",
        }
    }

    fn word(self, shell: &Shell) -> String {
        match self {
            Self::Enable => shell.t("pool-enable"),
            Self::Drain => shell.t("pool-drain"),
            Self::Disable => shell.t("pool-disable"),
            Self::Remove => shell.t("pool-remove"),
            Self::Rotate => shell.t("pool-rotate"),
            Self::ClearCooldown => shell.t("pool-clear-cooldown"),
            Self::ShareLimits => shell.t("quota-share"),
            Self::PartLimits => shell.t("quota-part"),
        }
        .to_string()
    }

    fn effect(self, shell: &Shell, sort: Sort) -> String {
        match (self, sort) {
            (Self::Enable, _) => shell.t("pool-enable-effect"),
            (Self::Drain, _) => shell.t("pool-drain-effect"),
            (Self::Disable, _) => shell.t("pool-disable-effect"),
            (Self::Rotate, _) => shell.t("pool-rotate-effect"),
            (Self::ClearCooldown, _) => shell.t("pool-clear-cooldown-effect"),
            (Self::ShareLimits, _) => shell.t("quota-share-effect"),
            (Self::PartLimits, _) => shell.t("quota-part-effect"),
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
        // Only credentials have a secret to replace, and no endpoint cools.
        let is_known = match verb {
            Verb::Rotate => sort.is_credential(),
            Verb::ClearCooldown => !sort.is_endpoint(),
            Verb::ShareLimits | Verb::PartLimits => sort.is_account(),
            Verb::Enable | Verb::Drain | Verb::Disable | Verb::Remove => true,
        };
        if !is_known {
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

    /// What it is to admission.
    fn in_admission(&self) -> Option<Subject> {
        match self.sort {
            Sort::Account => self.id.parse().ok().map(Subject::Account),
            Sort::Credential => self.id.parse().ok().map(Subject::Credential),
            Sort::Endpoint => None,
        }
    }

    /// What is in flight on it, as a sentence.
    fn in_flight(&self, shell: &Shell, look: &Look) -> Option<String> {
        if let Some(subject) = self.in_admission() {
            return Some(standing::in_flight(shell, look, subject));
        }
        let count = look.at_endpoint(self.id.parse().ok()?);
        let text = shell.t("stand-requests").num("count", count);
        Some(text.to_string())
    }

    fn path(&self, verb: Verb) -> String {
        format!("/pool/{}/{}/{}", self.sort.list(), self.id, verb.name())
    }

    fn is_active(&self, contents: &Contents) -> bool {
        fn takes_work<T: Thing>(contents: &Contents, id: &str) -> bool {
            let state = find::<T>(contents, id).ok().and_then(Thing::state);
            state.is_some_and(Standing::takes_work)
        }
        match self.sort {
            Sort::Account => takes_work::<Account>(contents, &self.id),
            Sort::Credential => takes_work::<Credential>(contents, &self.id),
            Sort::Endpoint => takes_work::<Endpoint>(contents, &self.id),
        }
    }

    /// Who would lose what if it were removed.
    fn losses(&self, shell: &Shell, contents: &Contents) -> Vec<String> {
        let is_me = |id: String| id == self.id;
        let charged = |c: &&Credential| match self.sort {
            Sort::Account => c.accounts.iter().any(|a| is_me(a.to_string())),
            Sort::Endpoint => c.endpoints.iter().any(|e| is_me(e.to_string())),
            Sort::Credential => false,
        };
        let users = names(contents.credentials.iter().filter(charged));
        let bound = |k: &&ClientKey| {
            let mut accounts = k.accounts.iter().flatten();
            self.sort.is_account() && accounts.any(|a| is_me(a.to_string()))
        };
        let keys = names(contents.keys.iter().map(|k| &**k).filter(bound));
        let mut alone = Vec::new();
        if self.sort.is_credential()
            && let Ok(credential) = find::<Credential>(contents, &self.id)
        {
            let others = contents
                .credentials
                .iter()
                .filter(|c| c.id != credential.id);
            let others: Vec<&Credential> = others.collect();
            let is_alone = |a: &&Account| {
                credential.accounts.contains(&a.id)
                    && !others.iter().any(|c| c.accounts.contains(&a.id))
            };
            alone = names(contents.accounts.iter().filter(is_alone));
        }
        let sentences = [
            ("pool-loses-users", users),
            ("pool-loses-keys", keys),
            ("pool-loses-alone", alone),
        ];
        let said = sentences.into_iter().filter(|(_, names)| !names.is_empty());
        said.map(|(key, names)| {
            let sentence = shell.t(key).num("count", names.len());
            sentence.text("names", names.join(", ")).to_string()
        })
        .collect()
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
    /// What it takes from others, in numbers.
    losses: Vec<String>,
    /// Where the gentler choice is, if that is not chosen yet.
    drain: Option<String>,
    asks_secret: bool,
    faults: Faults,
}

impl ActionPage {
    fn new(
        shell: Shell,
        action: &Action,
        (contents, look): (&Contents, &Look),
    ) -> Result<Self, Trouble> {
        let is_active = action.is_active(contents);
        let drains = action.verb == Verb::Remove && is_active;
        let mut losses = Vec::from_iter(action.in_flight(&shell, look));
        if action.verb == Verb::Remove {
            losses.extend(action.losses(&shell, contents));
        }
        Ok(Self {
            path: action.path(action.verb),
            losses,
            drain: drains.then(|| action.path(Verb::Drain)),
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
    let admission = state.reload().configuration().admission();
    let look = Look::new(admission, clock::unix_millis());
    ActionPage::new(shell.clone(), action, (&pool.contents, &look))
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
        Ok(Ok(address)) => go(address, wants),
        Ok(Err(page)) => (StatusCode::UNPROCESSABLE_ENTITY, render(&*page)).into_response(),
        Err(trouble) => trouble.respond(&shell, wants),
    }
}

/// Where to go on, or the question again, if it cannot be done.
async fn acted(
    state: &State,
    shell: &Shell,
    action: &Action,
    answered: &Answered,
) -> Result<Result<String, Box<ActionPage>>, Trouble> {
    let (done, key, value) = match action.verb {
        Verb::Enable => (Done::Enabled, "state", "active"),
        Verb::Drain => (Done::Drained, "state", "draining"),
        Verb::Disable => (Done::Disabled, "state", "disabled"),
        Verb::Rotate => (Done::Rotated, "secret", answered.secret.as_str()),
        Verb::ShareLimits => (Done::Saved, "quota_scope", "account"),
        Verb::PartLimits => (Done::Saved, "quota_scope", "credential"),
        Verb::Remove => return removed(state, shell, action).await,
        Verb::ClearCooldown => return cleared(state, action).await.map(Ok),
    };
    let said = Map::from_iter([(key.to_owned(), json!(value))]);
    let faults = match change_any(state, action.sort, Some(&action.id), said).await? {
        Ok(at) => return Ok(Ok(done.address(&at))),
        Err(refusal) => faults(shell, refusal, &Typed::secret(&answered.secret))?,
    };
    let page = page(state, shell, action).await?;
    Ok(Err(Box::new(ActionPage { faults, ..page })))
}

/// Where to go on once its cooldowns have ended.
async fn cleared(state: &State, action: &Action) -> Result<String, Trouble> {
    let contents = state.store().pool().await?.contents;
    let name = action.subject(&contents)?;
    let subject = action.in_admission().ok_or(Trouble::NotFound)?;
    let configuration = state.reload().configuration();
    // Written down first: what cannot be written down is not done.
    if cooldowns::is_any(configuration, subject) {
        let id = action.id.clone();
        state.store().audit("clear_cooldown", id, name).await?;
        cooldowns::clear(configuration, subject);
    }
    let at = format!("{}/{}", action.sort.list(), action.id);
    Ok(Done::Cleared.address(&at))
}

async fn removed(
    state: &State,
    shell: &Shell,
    action: &Action,
) -> Result<Result<String, Box<ActionPage>>, Trouble> {
    match remove(state, action).await {
        Ok(true) => {
            state.reload().now().await?;
            Ok(Ok(Done::Removed.address("")))
        }
        Ok(false) => Err(Trouble::NotFound),
        Err(StoreError::InUse { by, .. }) => {
            let mut page = page(state, shell, action).await?;
            let fault = shell.t("pool-in-use").text("by", by.join(", "));
            page.faults.add("confirm", fault);
            Ok(Err(Box::new(page)))
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
            let look = standing::samples::look(contents);
            let seen = (contents, &look);
            let mut page = ActionPage::new(shell.clone(), &action, seen).unwrap();
            all.push(("pool/action", page.render().unwrap()));
            let fault = shell.t("pool-in-use").text("by", "a");
            page.faults.add("confirm", fault);
            all.push(("pool/action", page.render().unwrap()));
        }
    }
    all
}
