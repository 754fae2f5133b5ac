//! Step two: the first account. A preset or an address, a secret, how much it may carry; "Test"
//! before "Save".
use super::{bring_into_force, trouble};
use crate::{
    dashboard::{
        State,
        form::{Faults, Form},
        session::{Operator, go},
        shell::{Shell, render},
        tested::Tested,
        wants::Wants,
    },
    document::checked_name,
    domain::{
        pool::{
            BaseUrl, Pool,
            document::{
                AccountEntry, CredentialEntry, Document, EndpointEntry, Field, Mistake, Mode, Plan,
                Tools, plan,
            },
            edges::Contents,
            presets::{self, PRESETS, ProviderPreset},
        },
        protocol::Protocol,
        secret::{Secret, SecretError},
        settings::{Kind, Name, Settings, Source},
    },
    engine::probe::{self, Target, probe},
};
use askama::Template;
use axum::{
    extract::{self, Query},
    response::{IntoResponse as _, Response},
};
use http::StatusCode;
use serde::Deserialize;
use std::sync::Arc;

/// What clients can be served with so far; presets that speak nothing of it are not offered.
const SERVED: [Protocol; 3] = [Protocol::OpenAi, Protocol::Anthropic, Protocol::Gemini];

/// The preset whose address and protocols are typed.
const CUSTOM: &str = "custom";

#[derive(Template)]
#[template(path = "setup/presets.html")]
struct PresetsPage {
    shell: Shell,
    presets: Vec<&'static ProviderPreset>,
}

#[derive(Template)]
#[template(path = "setup/account.html", blocks = ["called", "tested"])]
struct AccountPage {
    shell: Shell,
    typed: Typed,
    preset: &'static ProviderPreset,
    /// The address that a test calls and clients' requests begin with; empty while none is typed.
    called: String,
    /// What is in force for an account that says nothing, and where that comes from.
    inherited: u64,
    source: Source,
    faults: Faults,
    tested: Option<Tested>,
    /// Whether the secret must be typed again, since it is never sent back.
    secret_is_gone: bool,
}

impl AccountPage {
    fn is_custom(&self) -> bool {
        self.preset.name == CUSTOM
    }
}

#[derive(Clone, Default, Deserialize)]
pub(in crate::dashboard) struct Typed {
    #[serde(default)]
    preset: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    base_url: String,
    #[serde(default)]
    protocol: String,
    #[serde(default)]
    secret: String,
    #[serde(default)]
    limit: String,
    #[serde(default)]
    own_limit: String,
    #[serde(default)]
    action: String,
}

impl Typed {
    fn preset(&self) -> Option<&'static ProviderPreset> {
        presets::by_name(&self.preset).filter(|preset| is_offered(preset))
    }

    /// What the form begins with.
    fn beginning(preset: &'static ProviderPreset) -> Self {
        Self {
            preset: preset.name.to_owned(),
            name: if preset.name == CUSTOM {
                String::new()
            } else {
                preset.name.to_owned()
            },
            base_url: preset.base_url.unwrap_or_default().to_owned(),
            protocol: "openai".to_owned(),
            limit: "inherit".to_owned(),
            ..Self::default()
        }
    }

    fn has_own_limit(&self) -> bool {
        self.limit == "own"
    }

    fn protocols(&self, preset: &ProviderPreset) -> Vec<Protocol> {
        if preset.protocols.is_empty() {
            Vec::from_iter(Protocol::from_name(&self.protocol).filter(|p| SERVED.contains(p)))
        } else {
            preset.protocols.to_vec()
        }
    }
}

fn is_offered(preset: &ProviderPreset) -> bool {
    preset.name == CUSTOM || preset.protocols.iter().any(|p| SERVED.contains(p))
}

/// What was typed, once it is right.
struct Checked {
    name: Arc<str>,
    preset: &'static ProviderPreset,
    base_url: BaseUrl,
    protocols: Vec<Protocol>,
    secret: Secret,
    limit: Option<u32>,
}

fn check(shell: &Shell, typed: &Typed, preset: &'static ProviderPreset) -> Result<Checked, Faults> {
    let mut faults = Faults::default();
    let name = checked_name(&typed.name);
    if name.is_err() {
        faults.add("name", shell.t("account-name-fault"));
    }
    let base_url = BaseUrl::parse(&typed.base_url);
    if base_url.is_err() {
        faults.add("base_url", shell.t("account-base-url-fault"));
    }
    let secret = Secret::clean(&typed.secret);
    if let Err(error) = &secret {
        faults.add("secret", secret_fault(shell, *error));
    }
    let limit = limit(typed);
    if limit.is_err() {
        let fault = shell.t("account-limit-fault").num("max", max_limit());
        faults.add("own_limit", fault);
    }
    let protocols = typed.protocols(preset);
    if protocols.is_empty() {
        faults.add("protocol", shell.t("account-protocol-fault"));
    }
    match (name, base_url, secret, limit) {
        (Ok(name), Ok(base_url), Ok((secret, _)), Ok(limit)) if faults.is_empty() => Ok(Checked {
            name,
            preset,
            base_url,
            protocols,
            secret,
            limit,
        }),
        _ => Err(faults),
    }
}

pub(in crate::dashboard) fn secret_fault(shell: &Shell, error: SecretError) -> String {
    match error {
        SecretError::Empty => shell.t("secret-empty"),
        SecretError::Unsendable { position, .. } => {
            shell.t("secret-unsendable").num("position", position)
        }
        SecretError::TooLong { .. } => shell.t("secret-too-long"),
    }
    .to_string()
}

/// What was typed as a limit is none.
struct NoLimit;

/// `None` if it is inherited.
fn limit(typed: &Typed) -> Result<Option<u32>, NoLimit> {
    if !typed.has_own_limit() {
        return Ok(None);
    }
    let number: u32 = typed.own_limit.trim().parse().map_err(|_| NoLimit)?;
    if i64::from(number) > max_limit() {
        return Err(NoLimit);
    }
    Ok(Some(number))
}

fn max_limit() -> i64 {
    match Name::AccountStreamLimit.declaration().kind {
        Kind::Integer { max, .. } => max,
        _ => i64::from(u32::MAX),
    }
}

/// `GET /setup/account`: the presets, or with one of them the form.
pub(super) async fn show(
    extract::State(state): extract::State<State>,
    shell: Shell,
    _: Operator,
    Query(typed): Query<Typed>,
) -> Response {
    match typed.preset() {
        Some(preset) => {
            let typed = Typed::beginning(preset);
            render(&page(&state, shell, (typed, preset), Faults::default()))
        }
        None => render(&PresetsPage {
            shell,
            presets: PRESETS.iter().filter(|p| is_offered(p)).collect(),
        }),
    }
}

/// `GET /setup/account/called`: what will be called, as it is typed.
pub(super) async fn called(
    extract::State(state): extract::State<State>,
    shell: Shell,
    _: Operator,
    Query(typed): Query<Typed>,
) -> Response {
    let Some(preset) = typed.preset() else {
        return go("/setup/account".to_owned(), Wants::Page);
    };
    let page = page(&state, shell, (typed, preset), Faults::default());
    render(&page.as_called())
}

/// `POST /setup/account`: tests, or saves.
pub(super) async fn submit(
    extract::State(state): extract::State<State>,
    shell: Shell,
    wants: Wants,
    _: Operator,
    Form(typed): Form<Typed>,
) -> Response {
    let Some(preset) = typed.preset() else {
        return go("/setup/account".to_owned(), wants);
    };
    let checked = match check(&shell, &typed, preset) {
        Ok(checked) => checked,
        Err(faults) => return refused(&state, shell, wants, (typed, preset), faults),
    };
    if typed.action == "test" {
        let tested = test(&state, &shell, &checked).await;
        let mut page = page(&state, shell, (typed, preset), Faults::default());
        page.tested = Some(tested);
        page.secret_is_gone = true;
        return match wants {
            Wants::Page => render(&page),
            Wants::Fragment => render(&page.as_tested()),
        };
    }
    match save(&state, &shell, checked).await {
        Ok(Ok(())) => go("/setup/key".to_owned(), wants),
        Ok(Err(faults)) => refused(&state, shell, wants, (typed, preset), faults),
        Err(error) => trouble(&shell, error, wants),
    }
}

fn refused(
    state: &State,
    shell: Shell,
    wants: Wants,
    typed: (Typed, &'static ProviderPreset),
    faults: Faults,
) -> Response {
    let mut page = page(state, shell, typed, faults);
    page.secret_is_gone = !page.typed.secret.is_empty();
    match wants {
        Wants::Page => (StatusCode::UNPROCESSABLE_ENTITY, render(&page)).into_response(),
        Wants::Fragment => {
            (StatusCode::UNPROCESSABLE_ENTITY, render(&page.as_tested())).into_response()
        }
    }
}

async fn test(state: &State, shell: &Shell, checked: &Checked) -> Tested {
    let protocol = checked.protocols.first().copied();
    let target = Target {
        base_url: &checked.base_url,
        protocol: protocol.unwrap_or(Protocol::OpenAi),
        secret: &checked.secret,
    };
    Tested::new(shell, &probe(state.upstream(), target).await)
}

fn page(
    state: &State,
    shell: Shell,
    (typed, preset): (Typed, &'static ProviderPreset),
    faults: Faults,
) -> AccountPage {
    let settings = state.reload().configuration().settings();
    filled(&settings, shell, (typed, preset), faults)
}

fn filled(
    settings: &Settings,
    shell: Shell,
    (typed, preset): (Typed, &'static ProviderPreset),
    faults: Faults,
) -> AccountPage {
    let called = BaseUrl::parse(&typed.base_url).ok().and_then(|url| {
        let protocol = typed.protocols(preset).first().copied()?;
        Some(probe::address(&url, protocol))
    });
    AccountPage {
        shell,
        typed,
        preset,
        called: called.unwrap_or_default(),
        inherited: settings.integer(Name::AccountStreamLimit),
        source: settings.setting(Name::AccountStreamLimit).source,
        faults,
        tested: None,
        secret_is_gone: false,
    }
}

/// The inner error is the person's to mend.
async fn save(
    state: &State,
    shell: &Shell,
    checked: Checked,
) -> Result<Result<(), Faults>, crate::store::StoreError> {
    let planned = state
        .store()
        .change_pool(move |existing, tools| additions(existing, tools, &checked));
    match planned.await? {
        Ok(_) => {
            bring_into_force(state).await?;
            Ok(Ok(()))
        }
        Err(fault) => {
            let mut faults = Faults::default();
            match fault {
                Taken::Name => faults.add("name", shell.t("account-name-taken")),
                Taken::Secret(by) => faults.add("secret", shell.t("secret-taken").text("name", by)),
                Taken::Other(mistake) => faults.add("name", mistake),
            }
            Ok(Err(faults))
        }
    }
}

/// Why an account cannot be added to what there is.
enum Taken {
    Name,
    Secret(Arc<str>),
    Other(Mistake),
}

fn additions(existing: &Contents, tools: &mut Tools<'_>, new: &Checked) -> Result<Plan, Taken> {
    if existing.accounts.iter().any(|a| a.name == new.name) {
        return Err(Taken::Name);
    }
    let fingerprint = (tools.fingerprint)(new.secret.expose());
    let holder = existing
        .credentials
        .iter()
        .find(|c| c.fingerprint == fingerprint);
    if let Some(holder) = holder {
        return Err(Taken::Secret(Arc::clone(&holder.name)));
    }
    let (endpoint, entry) = endpoint(existing, new);
    let document = Document {
        endpoints: Vec::from_iter(entry),
        accounts: vec![AccountEntry {
            name: Arc::clone(&new.name),
            stream_limit: new.limit.map_or(Field::Absent, Field::Value),
            ..AccountEntry::default()
        }],
        credentials: vec![CredentialEntry {
            secret: Some(new.secret.clone()),
            accounts: Field::Value(vec![Arc::clone(&new.name)]),
            endpoints: Field::Value(vec![endpoint]),
            ..CredentialEntry::default()
        }],
        ..Document::default()
    };
    plan(&document, existing, tools, Mode::Merge).map_err(|mistakes| {
        let first = mistakes.into_iter().next();
        Taken::Other(first.unwrap_or_else(|| Mistake::new("", "")))
    })
}

/// The endpoint to use: one that is there already, or a new one under a name that is free.
fn endpoint(existing: &Contents, new: &Checked) -> (Arc<str>, Option<EndpointEntry>) {
    let same = existing
        .endpoints
        .iter()
        .find(|e| e.base_url == new.base_url && e.protocols == new.protocols);
    if let Some(same) = same {
        return (Arc::clone(&same.name), None);
    }
    let wanted: Arc<str> = if new.preset.name == CUSTOM {
        Arc::clone(&new.name)
    } else {
        new.preset.name.into()
    };
    let is_taken = |name: &str| existing.endpoints.iter().any(|e| &*e.name == name);
    let numbered = (2..).map(|n| Arc::from(format!("{wanted}-{n}")));
    let mut names = std::iter::once(Arc::clone(&wanted)).chain(numbered);
    let name = names
        .find(|name: &Arc<str>| !is_taken(name))
        .unwrap_or(wanted);
    let entry = EndpointEntry {
        name: Arc::clone(&name),
        base_url: Field::Value(new.base_url.clone()),
        protocols: Field::Value(new.protocols.clone()),
        ..EndpointEntry::default()
    };
    (name, Some(entry))
}

/// The models of the first credential that takes work, as its provider lists them.
pub(in crate::dashboard) async fn models(
    state: &State,
    pool: &Pool,
    protocol: Protocol,
) -> Vec<Box<str>> {
    let edge = pool
        .open_edges(protocol)
        .next()
        .map(|index| pool.edge(index));
    let Some(edge) = edge else { return Vec::new() };
    let target = Target {
        base_url: &pool.endpoint(edge).base_url,
        protocol,
        secret: &pool.credential(edge).secret,
    };
    probe(state.upstream(), target).await.models
}

#[cfg(test)]
pub(super) fn samples(shell: &Shell) -> Vec<(&'static str, String)> {
    let settings = Settings::default();
    let presets = PRESETS.iter().filter(|p| is_offered(p)).collect();
    let first = PresetsPage {
        shell: shell.clone(),
        presets,
    };
    let mut all = vec![("setup/presets", first.render().unwrap())];
    let custom = presets::by_name(CUSTOM).unwrap();
    let page = |typed, preset, faults| filled(&settings, shell.clone(), (typed, preset), faults);
    let openai = presets::by_name("openai").unwrap();
    let beginning = page(Typed::beginning(openai), openai, Faults::default());
    all.push(("setup/account", beginning.render().unwrap()));
    let typed = Typed {
        limit: "own".to_owned(),
        own_limit: "-1".to_owned(),
        secret: "a\u{7f}".to_owned(),
        ..Typed::default()
    };
    let faults = check(shell, &typed, custom).err().unwrap();
    let mut refused = page(typed, custom, faults);
    refused.secret_is_gone = true;
    all.push(("setup/account", refused.render().unwrap()));
    for tested in crate::dashboard::tested::samples(shell) {
        let mut page = page(Typed::beginning(openai), openai, Faults::default());
        page.tested = Some(tested);
        all.push(("setup/account", page.render().unwrap()));
    }
    all
}
