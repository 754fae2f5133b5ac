//! Step two: the first account. A preset or an address, a secret, how much it may carry; "Test"
//! before "Save".
mod save;
mod typed;

use self::{
    save::save,
    typed::{CUSTOM, Checked, Typed, check, is_offered},
};
use super::trouble;
use crate::{
    dashboard::{
        State,
        form::{Faults, Form},
        session::{Operator, go},
        shell::{Shell, render},
        tested::Tested,
        wants::Wants,
    },
    domain::{
        pool::{
            BaseUrl, Pool,
            presets::{PRESETS, ProviderPreset},
        },
        protocol::Protocol,
        settings::{Name, Settings, Source},
    },
    engine::probe::{self, Target, probe},
};
use askama::Template;
use axum::{
    extract::{self, Query},
    response::{IntoResponse as _, Response},
};
use http::StatusCode;

pub(in crate::dashboard) use self::typed::secret_fault;

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
    use crate::domain::pool::presets;
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
