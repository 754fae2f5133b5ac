//! The forms for one account, credential or endpoint.
use super::{
    Sort, change_any, done::Done, faults::faults, find, list::number, quota::Quota, typed::Typed,
};
use crate::{
    dashboard::{
        State,
        error::Trouble,
        form::{Faults, Form},
        session::{Operator, go},
        shell::{Shell, render},
        wants::Wants,
    },
    document::single::Thing,
    domain::{
        pool::{
            BaseUrl,
            edges::Contents,
            presets::{self, PRESETS, ProviderPreset},
        },
        protocol::Protocol,
        settings::{Name, Settings},
    },
    engine::probe,
};
use askama::Template;
use axum::{
    extract::{self, Path, Query},
    response::{IntoResponse as _, Response},
};
use http::StatusCode;

/// The id of what does not exist yet, in addresses.
const NEW: &str = "new";

type Pairs = Vec<(String, String)>;

/// One thing that can be ticked.
struct Choice {
    word: String,
    title: String,
    is_chosen: bool,
}

/// A limit that is the account's own or the setting's.
struct Limit {
    key: &'static str,
    label: String,
    is_own: bool,
    inherit: String,
    /// What holds now and what would without a value of its own.
    effect: String,
}

impl Limit {
    fn new(
        shell: &Shell,
        settings: &Settings,
        typed: &Typed,
        (key, label, name): (&'static str, &'static str, Name),
    ) -> Self {
        let inherited = number(shell, settings.integer(name));
        let is_own = typed.is_own(key);
        let own = typed.get(key).parse().ok().filter(|_| is_own);
        let effect = own.map(|own| {
            let effect = shell.t("pool-in-effect").text("value", number(shell, own));
            effect.text("inherited", &inherited).to_string()
        });
        let inherit = shell.t("inherit-value").text("value", &inherited);
        let inherit = inherit.text("source", settings.setting(name).source.name());
        Self {
            key,
            label: shell.t(label).to_string(),
            is_own,
            inherit: inherit.to_string(),
            effect: effect.unwrap_or_default(),
        }
    }
}

#[derive(Template)]
#[template(path = "pool/edit.html")]
struct EditPage {
    shell: Shell,
    sort: Sort,
    id: String,
    typed: Typed,
    faults: Faults,
    heading: String,
    accounts: Vec<Choice>,
    endpoints: Vec<Choice>,
    protocols: Vec<Choice>,
    /// The limits that may inherit.
    limits: [Limit; 2],
    called: String,
    /// What the log says of an account's limits.
    quota: Option<Quota>,
}

impl EditPage {
    fn new(
        shell: Shell,
        (sort, id): (Sort, String),
        typed: Typed,
        contents: &Contents,
        settings: &Settings,
    ) -> Self {
        let limits = [
            ("stream_limit", "account-limit", Name::AccountStreamLimit),
            (
                "create_limit",
                "pool-create-limit",
                Name::AccountCreateLimit,
            ),
        ];
        Self {
            heading: heading(&shell, sort, &id),
            accounts: choices("accounts", &typed, &contents.accounts),
            endpoints: choices("endpoints", &typed, &contents.endpoints),
            protocols: protocols(&typed),
            limits: limits.map(|limit| Limit::new(&shell, settings, &typed, limit)),
            called: address(&typed),
            faults: Faults::default(),
            quota: None,
            shell,
            sort,
            id,
            typed,
        }
    }

    /// The same with what the log says of a stored account.
    async fn with_quota(mut self, state: &State, contents: &Contents) -> Result<Self, Trouble> {
        if self.sort.is_account() && !self.is_new() {
            let account = find(contents, &self.id)?;
            self.quota = Some(Quota::look(state, &self.shell, account, contents).await?);
        }
        Ok(self)
    }

    fn is_new(&self) -> bool {
        self.id == NEW
    }

    fn path(&self) -> String {
        format!("/pool/{}/{}", self.sort.list(), self.id)
    }

    /// Whether the fields that few need are unfolded: something in them is wrong or was chosen.
    fn is_open(&self) -> bool {
        let fields = [
            "create_limit",
            "job_limit",
            "quota_scope",
            "models",
            "headers",
            "priority",
            "weight",
            "cooldown_per_model",
            "trust_reset",
        ];
        let usual = ["", "account", "0", "1"];
        fields.into_iter().any(|field| {
            // An account shows this one above the fold.
            let is_above = self.sort.is_account() && field == "create_limit";
            let is_usual = usual.contains(&self.typed.get(field));
            !self.faults.at(field).is_empty() || !(is_above || is_usual)
        })
    }

    #[expect(clippy::unused_self, reason = "templates can only call methods")]
    fn presets(&self) -> impl Iterator<Item = &'static ProviderPreset> {
        PRESETS.iter().filter(|preset| preset.base_url.is_some())
    }
}

fn heading(shell: &Shell, sort: Sort, id: &str) -> String {
    match (sort, id == NEW) {
        (Sort::Account, true) => shell.t("pool-add-account"),
        (Sort::Account, false) => shell.t("pool-edit-account"),
        (Sort::Credential, true) => shell.t("pool-add-credential"),
        (Sort::Credential, false) => shell.t("pool-edit-credential"),
        (Sort::Endpoint, true) => shell.t("pool-add-endpoint"),
        (Sort::Endpoint, false) => shell.t("pool-edit-endpoint"),
    }
    .to_string()
}

fn choices<T: Thing>(key: &str, typed: &Typed, things: &[T]) -> Vec<Choice> {
    let choice = |thing: &T| Choice {
        word: thing.id().to_string(),
        title: thing.name().to_string(),
        is_chosen: typed.has(key, &thing.id().to_string()),
    };
    things.iter().map(choice).collect()
}

fn protocols(typed: &Typed) -> Vec<Choice> {
    let choice = |protocol: Protocol| Choice {
        word: protocol.name().to_owned(),
        title: protocol.name().to_owned(),
        is_chosen: typed.has("protocols", protocol.name()),
    };
    Protocol::ALL.into_iter().map(choice).collect()
}

/// What will be called; empty while nothing whole is typed.
fn address(typed: &Typed) -> String {
    let protocol = typed
        .all("protocols")
        .into_iter()
        .find_map(Protocol::from_name);
    match (BaseUrl::parse(typed.get("base_url")), protocol) {
        (Ok(url), Some(protocol)) => probe::address(&url, protocol),
        _ => String::new(),
    }
}

/// What a form begins with.
fn beginning(sort: Sort, id: &str, asked: Typed, all: &Contents) -> Result<Typed, Trouble> {
    if id != NEW {
        return Ok(match sort {
            Sort::Account => Typed::account(find(all, id)?),
            Sort::Credential => Typed::credential(find(all, id)?),
            Sort::Endpoint => Typed::endpoint(find(all, id)?),
        });
    }
    let Some(preset) = presets::by_name(asked.get("preset")) else {
        return Ok(asked);
    };
    let mut pairs = vec![
        ("name".to_owned(), preset.name.to_owned()),
        (
            "base_url".to_owned(),
            preset.base_url.unwrap_or_default().to_owned(),
        ),
    ];
    let protocols = preset.protocols.iter();
    pairs.extend(protocols.map(|p| ("protocols".to_owned(), p.name().to_owned())));
    Ok(Typed(pairs))
}

/// `GET /pool/{sort}/{id}`: the form, where `new` is no id.
pub(super) async fn open(
    extract::State(state): extract::State<State>,
    shell: Shell,
    (wants, _): (Wants, Operator),
    Path((sort, id)): Path<(String, String)>,
    Query(asked): Query<Pairs>,
) -> Response {
    match opened(&state, shell.clone(), (&sort, id), Typed(asked)).await {
        Ok(page) => render(&page),
        Err(trouble) => trouble.respond(&shell, wants),
    }
}

async fn opened(
    state: &State,
    shell: Shell,
    (sort, id): (&str, String),
    asked: Typed,
) -> Result<EditPage, Trouble> {
    let sort = Sort::from_list(sort).ok_or(Trouble::NotFound)?;
    let pool = state.store().pool().await?;
    let typed = beginning(sort, &id, asked, &pool.contents)?;
    let settings = state.reload().configuration().settings();
    let page = EditPage::new(shell, (sort, id), typed, &pool.contents, &settings);
    drop(settings);
    page.with_quota(state, &pool.contents).await
}

/// What will be called, on its own.
#[derive(Template)]
#[template(path = "pool/called.html")]
struct Called {
    shell: Shell,
    called: String,
}

/// `GET /pool/called`: what will be called, as it is typed.
pub(super) async fn called(shell: Shell, _: Operator, Query(typed): Query<Pairs>) -> Response {
    let called = address(&Typed(typed));
    render(&Called { shell, called })
}

/// `POST /pool/{sort}/{id}`: adds or changes it.
pub(super) async fn save(
    extract::State(state): extract::State<State>,
    shell: Shell,
    (wants, _): (Wants, Operator),
    Path((sort, id)): Path<(String, String)>,
    Form(typed): Form<Pairs>,
) -> Response {
    match saved(&state, &shell, (&sort, id), Typed(typed)).await {
        Ok(Ok(address)) => go(address, wants),
        Ok(Err(page)) => (StatusCode::UNPROCESSABLE_ENTITY, render(&*page)).into_response(),
        Err(trouble) => trouble.respond(&shell, wants),
    }
}

/// Where to go on, or the form again, if it was refused.
async fn saved(
    state: &State,
    shell: &Shell,
    (sort, id): (&str, String),
    typed: Typed,
) -> Result<Result<String, Box<EditPage>>, Trouble> {
    let sort = Sort::from_list(sort).ok_or(Trouble::NotFound)?;
    let is_new = id == NEW;
    let stored = (!is_new).then_some(id.as_str());
    let said = typed.said(sort, is_new);
    let done = if is_new { Done::Added } else { Done::Saved };
    let faults = match change_any(state, sort, stored, said).await? {
        Ok(at) => return Ok(Ok(done.address(&at))),
        Err(refusal) => faults(shell, refusal, &typed)?,
    };
    let pool = state.store().pool().await?;
    let settings = state.reload().configuration().settings();
    let shell = shell.clone();
    let page = EditPage::new(shell, (sort, id), typed, &pool.contents, &settings);
    drop(settings);
    let page = page.with_quota(state, &pool.contents).await?;
    Ok(Err(Box::new(EditPage { faults, ..page })))
}

#[cfg(test)]
pub(super) fn samples(shell: &Shell, contents: &Contents) -> Vec<(&'static str, String)> {
    use super::faults::fault;
    use crate::domain::pool::document::Mistake;

    let settings = Settings::default();
    let mut all = Vec::new();
    for sort in [Sort::Account, Sort::Credential, Sort::Endpoint] {
        let stored = match sort {
            Sort::Account => contents.accounts[0].id.to_string(),
            Sort::Credential => contents.credentials[0].id.to_string(),
            Sort::Endpoint => contents.endpoints[0].id.to_string(),
        };
        for id in [NEW.to_owned(), stored] {
            let typed = beginning(sort, &id, Typed::default(), contents).unwrap();
            let page = EditPage::new(shell.clone(), (sort, id), typed, contents, &settings);
            all.push(("pool/edit", page.render().unwrap()));
            let mut wrong = Faults::default();
            for path in [
                "name",
                "base_url",
                "protocols",
                "accounts",
                "endpoints[0]",
                "stream_limit",
                "create_limit",
                "job_limit",
                "quota_scope",
                "models[1]",
                "headers.x",
                "priority",
                "weight",
                "secret",
                "",
            ] {
                let mistake = Mistake::new(path, "?");
                fault(shell, &mut wrong, &mistake, &page.typed);
            }
            let wrong = EditPage {
                faults: wrong,
                ..page
            };
            all.push(("pool/edit", wrong.render().unwrap()));
        }
    }
    let account = contents.accounts[0].id.to_string();
    for quota in super::quota::samples(shell, contents) {
        let typed = beginning(Sort::Account, &account, Typed::default(), contents).unwrap();
        let at = (Sort::Account, account.clone());
        let page = EditPage {
            quota: Some(quota),
            ..EditPage::new(shell.clone(), at, typed, contents, &settings)
        };
        all.push(("pool/edit", page.render().unwrap()));
    }
    all
}
