//! The form of a key, new or stored.
use super::{
    Badge, Done, Limit, answer, find, limits,
    made::{self, Made},
    make_unless, path_of, requests_of,
    typed::{self, NO_DAY, Typed},
};
use crate::{
    clock,
    dashboard::{
        State,
        error::Trouble,
        form::{Faults, Form},
        session::{Operator, go},
        shell::{Shell, render},
        snippets::Reached,
        wants::Wants,
    },
    document::{
        MAX_LIMIT, MAX_TOKENS,
        single::{Refusal, Which, plan_one},
    },
    domain::pool::{Account, ClientKey, document::Mistake, edges::Contents},
    engine::allowance::Used,
};
use askama::Template;
use axum::{
    extract::{self, Path},
    response::{IntoResponse as _, Response},
};
use http::StatusCode;

/// One account that can be ticked.
struct Choice {
    id: String,
    name: String,
    is_chosen: bool,
}

/// What is stored of a key beside what its form holds.
struct Stored {
    path: String,
    requests: String,
    badge: Badge,
    hint: String,
    /// What it uses of its limits now; nothing where it has none.
    limits: Vec<Limit>,
    /// The very moment of its end.
    expires: Option<(String, String)>,
}

impl Stored {
    fn new(shell: &Shell, (key, used): (&ClientKey, Used)) -> Self {
        let moment = |at| (shell.date_time(at), shell.machine_time(at));
        Self {
            path: path_of(key.id),
            requests: requests_of(key.id),
            badge: Badge::new(shell, key, clock::unix_millis()),
            hint: format!("…{}", key.secret_hint),
            limits: Limit::all(shell, key, used),
            expires: key.expires_at.map(moment),
        }
    }
}

#[derive(Template)]
#[template(path = "keys/edit.html")]
struct EditPage {
    shell: Shell,
    /// `None` for a new key.
    stored: Option<Stored>,
    typed: Typed,
    accounts: Vec<Choice>,
    faults: Faults,
}

impl EditPage {
    fn new(
        shell: Shell,
        key: Option<(&ClientKey, Used)>,
        typed: Typed,
        accounts: &[Account],
    ) -> Self {
        let choice = |account: &Account| {
            let id = account.id.to_string();
            Choice {
                is_chosen: typed.has("accounts", &id),
                name: account.name.to_string(),
                id,
            }
        };
        Self {
            stored: key.map(|key| Stored::new(&shell, key)),
            accounts: accounts.iter().map(choice).collect(),
            faults: Faults::default(),
            shell,
            typed,
        }
    }

    fn action(&self) -> &str {
        self.stored.as_ref().map_or("/keys/new", |key| &key.path)
    }

    /// Whether a field that is folded away is wrong.
    fn is_open(&self) -> bool {
        self.faults.all().iter().any(|fault| fault.field != "name")
    }

    fn refused(self) -> Response {
        (StatusCode::UNPROCESSABLE_ENTITY, render(&self)).into_response()
    }
}

/// `GET /keys/new`.
pub(super) async fn open_new(
    extract::State(state): extract::State<State>,
    shell: Shell,
    (wants, _): (Wants, Operator),
) -> Response {
    let page = state.store().pool().await.map(|pool| {
        let accounts = &pool.contents.accounts;
        let page = EditPage::new(shell.clone(), None, Typed::beginning(), accounts);
        render(&page)
    });
    answer(page.map_err(Trouble::from), &shell, wants)
}

/// `POST /keys/new`: the one answer that shows its secret.
pub(super) async fn create(
    extract::State(state): extract::State<State>,
    shell: Shell,
    (wants, _): (Wants, Operator),
    Reached(base_url): Reached,
    Form(typed): Form<Vec<(String, String)>>,
) -> Response {
    let made = match created(&state, &shell, Typed(typed)).await {
        Ok(Ok(made)) => made,
        Ok(Err(page)) => return page.refused(),
        Err(trouble) => return trouble.respond(&shell, wants),
    };
    made::show(&state, shell, made, base_url).await
}

/// The form again, if it was refused.
async fn created(
    state: &State,
    shell: &Shell,
    typed: Typed,
) -> Result<Result<Made, Box<EditPage>>, Trouble> {
    let (said, mistakes) = typed.said(None, &shell.zone, clock::unix_millis());
    let refusal = match make_unless(state, said, mistakes).await? {
        Ok(minted) => {
            let (_, key) = find(state, &minted.id.to_string()).await?;
            return Ok(Ok(Made {
                id: minted.id,
                name: minted.name,
                secret: minted.secret,
                models: key.models.clone(),
                is_new_secret: false,
            }));
        }
        Err(refusal) => refusal,
    };
    let faults = faults(shell, refusal, true)?;
    let pool = state.store().pool().await?;
    let page = EditPage::new(shell.clone(), None, typed, &pool.contents.accounts);
    Ok(Err(Box::new(EditPage { faults, ..page })))
}

/// `GET /keys/{id}`.
pub(super) async fn open(
    extract::State(state): extract::State<State>,
    shell: Shell,
    (wants, _): (Wants, Operator),
    Path(id): Path<String>,
) -> Response {
    let page = async {
        let (contents, key) = find(&state, &id).await?;
        let used = used(&state, &contents, &key).await;
        let typed = Typed::stored(&key, &shell.zone);
        let key = Some((&*key, used));
        let page = EditPage::new(shell.clone(), key, typed, &contents.accounts);
        Ok(render(&page))
    };
    answer(page.await, &shell, wants)
}

/// `POST /keys/{id}`.
pub(super) async fn save(
    extract::State(state): extract::State<State>,
    shell: Shell,
    (wants, _): (Wants, Operator),
    Path(id): Path<String>,
    Form(typed): Form<Vec<(String, String)>>,
) -> Response {
    match saved(&state, &shell, &id, Typed(typed)).await {
        Ok(None) => go(Done::Changed.address().to_owned(), wants),
        Ok(Some(page)) => page.refused(),
        Err(trouble) => trouble.respond(&shell, wants),
    }
}

/// The form again, if it was refused.
async fn saved(
    state: &State,
    shell: &Shell,
    id: &str,
    typed: Typed,
) -> Result<Option<EditPage>, Trouble> {
    let (contents, key) = find(state, id).await?;
    let (said, mistakes) = typed.said(Some(&key), &shell.zone, clock::unix_millis());
    let which = Which::Stored(key.id);
    let planned = state.store().change_pool(move |existing, tools| {
        let plan = plan_one::<ClientKey>(existing, tools, which, said);
        typed::refuse_with(mistakes, plan)
    });
    let faults = match planned.await? {
        Ok(_) => {
            state.reload().now().await?;
            return Ok(None);
        }
        Err(refusal) => faults(shell, refusal, false)?,
    };
    let used = used(state, &contents, &key).await;
    let key = Some((&*key, used));
    let page = EditPage::new(shell.clone(), key, typed, &contents.accounts);
    Ok(Some(EditPage { faults, ..page }))
}

/// What that key uses now.
async fn used(state: &State, contents: &Contents, key: &ClientKey) -> Used {
    let used = limits::used(state, contents).await;
    let mut all = contents.keys.iter().zip(used);
    let its = all.find(|(other, _)| other.id == key.id);
    its.map(|(_, used)| used).unwrap_or_default()
}

/// A refusal as faults of fields. There is nothing to mend where the key is gone.
fn faults(shell: &Shell, refusal: Refusal, is_new: bool) -> Result<Faults, Trouble> {
    let mut faults = Faults::default();
    match refusal {
        Refusal::Missing => return Err(Trouble::NotFound),
        // Perhaps the answer that showed its secret was asked for again.
        Refusal::NameTaken(_) if is_new => faults.add("name", shell.t("keys-name-taken")),
        Refusal::NameTaken(_) => faults.add("name", shell.t("key-name-taken")),
        Refusal::SecretTaken(name) => {
            faults.add("name", shell.t("secret-taken").text("name", name));
        }
        Refusal::Mistakes(mistakes) => {
            for mistake in &mistakes {
                fault(shell, &mut faults, mistake);
            }
        }
    }
    Ok(faults)
}

fn fault(shell: &Shell, faults: &mut Faults, mistake: &Mistake) {
    let field = mistake.path.split(['.', '[']).next().unwrap_or_default();
    let is_empty = field == mistake.path;
    let limit = |max: i64| shell.t("keys-limit-fault").num("max", max);
    match field {
        "name" => faults.add("name", shell.t("key-name-fault")),
        "weight" => faults.add("weight", shell.t("keys-weight-fault").num("max", MAX_LIMIT)),
        "requests_per_minute" => faults.add("requests_per_minute", limit(MAX_LIMIT)),
        "concurrency" => faults.add("concurrency", limit(MAX_LIMIT)),
        "tokens_per_day" => faults.add("tokens_per_day", limit(MAX_TOKENS)),
        "accounts" if is_empty => faults.add("accounts", shell.t("keys-accounts-fault")),
        "accounts" => faults.add("accounts", shell.t("keys-account-gone")),
        "models" => faults.add("models", shell.t("keys-models-fault")),
        "expires_at" if mistake.what == NO_DAY => {
            faults.add("expires_at", shell.t("keys-expires-fault"));
        }
        "expires_at" => faults.add("expires_at", shell.t("keys-expires-past")),
        _ => faults.add("name", shell.t("keys-refused").text("what", mistake)),
    }
}

#[cfg(test)]
pub(super) fn samples(shell: &Shell, contents: &Contents) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    let keys = contents.keys.iter().map(|key| Some(&**key));
    for key in keys.chain([None]) {
        let typed = key.map_or_else(Typed::beginning, |key| Typed::stored(key, &shell.zone));
        let used = super::tests::used(contents);
        let seen = key.map(|key| (key, used[0]));
        let page = EditPage::new(shell.clone(), seen, typed, &contents.accounts);
        all.push(("keys/edit", page.render().unwrap()));
        let taken = faults(shell, Refusal::NameTaken("1".into()), key.is_none());
        let mut faults = taken.unwrap();
        for (path, what) in [
            ("name", "?"),
            ("weight", "?"),
            ("requests_per_minute", "?"),
            ("tokens_per_day", "?"),
            ("accounts", "?"),
            ("accounts[0]", "?"),
            ("models", "?"),
            ("expires_at", NO_DAY),
            ("expires_at", typed::PAST),
            ("", "?"),
        ] {
            fault(shell, &mut faults, &Mistake::new(path, what));
        }
        let wrong = EditPage { faults, ..page };
        all.push(("keys/edit", wrong.render().unwrap()));
    }
    all
}
