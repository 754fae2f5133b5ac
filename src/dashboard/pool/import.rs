//! Import by paste: what a pasted text would do, and doing it.
//!
//! Invariants: nothing is written before it was shown; what is written is what was shown, else the
//! new plan is shown instead; a text with a mistake changes nothing. The text is held here and not
//! in the page, since secrets are never sent back.
mod pending;
mod view;

use self::{
    pending::Paste,
    view::{Line, View, mistake_line},
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
    domain::pool::{
        document::{Document, MintedKey, Mistake, Mode, Plan, plan},
        edges::Contents,
        presets::PRESETS,
    },
    store::pool::ImportError,
};
use askama::Template;
use axum::{
    extract::{self, Query},
    response::{IntoResponse as _, Response},
};
use http::StatusCode;
use serde::Deserialize;
use std::sync::Arc;

pub(in crate::dashboard) use self::pending::Pending;

/// What is typed before something drains that was not listed.
const WORD: &str = "drain";

/// The form, and what is wrong with what was pasted.
#[derive(Template)]
#[template(path = "pool/import.html")]
struct PastePage {
    shell: Shell,
    /// Endpoints that there are.
    endpoints: Vec<Arc<str>>,
    /// Presets whose endpoint there is not yet.
    presets: Vec<&'static str>,
    endpoint: String,
    is_sync: bool,
    faults: Faults,
    /// A sentence on top.
    said: Option<String>,
    mistakes: Vec<Line>,
    /// What the rest would do.
    view: Option<View>,
}

/// What would be done, or was.
#[derive(Template)]
#[template(path = "pool/preview.html")]
struct PreviewPage {
    shell: Shell,
    id: String,
    view: View,
    faults: Faults,
    has_changed: bool,
    /// Once it is done: the client keys that were given a secret.
    done: Option<Vec<MintedKey>>,
}

impl PreviewPage {
    fn new(shell: Shell, id: &str, view: View) -> Self {
        Self {
            shell,
            id: id.to_owned(),
            view,
            faults: Faults::default(),
            has_changed: false,
            done: None,
        }
    }

    #[expect(clippy::unused_self, reason = "templates can only call methods")]
    fn word(&self) -> &'static str {
        WORD
    }
}

#[derive(Default, Deserialize)]
pub(super) struct Typed {
    #[serde(default)]
    text: String,
    #[serde(default)]
    endpoint: String,
    sync: Option<String>,
    /// The text that is to be imported now, which was shown already.
    pending: Option<String>,
    /// What was shown.
    #[serde(default)]
    shown: String,
    #[serde(default)]
    word: String,
}

#[derive(Deserialize)]
pub(super) struct Asked {
    pending: Option<String>,
    #[serde(default)]
    endpoint: String,
}

/// `GET /pool/import`: the form, or what the text that is held would do.
pub(super) async fn show(
    extract::State(state): extract::State<State>,
    shell: Shell,
    (wants, operator): (Wants, Operator),
    Query(asked): Query<Asked>,
) -> Response {
    let held = asked.pending.as_deref();
    let found = held.and_then(|id| Some((id, state.pending().find(operator.session, id)?)));
    let answer = if let Some((id, paste)) = found {
        previewed(&state, &shell, id, &paste).await
    } else {
        let said = held.map(|_| shell.t("import-gone").to_string());
        let typed = Typed {
            endpoint: asked.endpoint,
            ..Typed::default()
        };
        let page = blank(&state, &shell, &typed).await;
        page.map(|page| render(&PastePage { said, ..page }))
    };
    answer.unwrap_or_else(|trouble| trouble.respond(&shell, wants))
}

/// `POST /pool/import`: takes a text and leads to its preview, or does what was shown.
pub(super) async fn submit(
    extract::State(state): extract::State<State>,
    shell: Shell,
    (wants, operator): (Wants, Operator),
    Form(typed): Form<Typed>,
) -> Response {
    let answer = match &typed.pending {
        Some(id) => apply(&state, &shell, operator, (id, &typed)).await,
        None => pasted(&state, &shell, (wants, operator), typed).await,
    };
    answer.unwrap_or_else(|trouble| trouble.respond(&shell, wants))
}

async fn blank(state: &State, shell: &Shell, typed: &Typed) -> Result<PastePage, Trouble> {
    let pool = state.store().pool().await?;
    Ok(PastePage::new(shell.clone(), &pool.contents, typed))
}

impl PastePage {
    fn new(shell: Shell, contents: &Contents, typed: &Typed) -> Self {
        let endpoints = contents.endpoints.iter().map(|e| Arc::clone(&e.name));
        let endpoints: Vec<Arc<str>> = endpoints.collect();
        let is_new = |name: &&str| !endpoints.iter().any(|e| **e == **name);
        let presets = PRESETS.iter().filter(|p| p.base_url.is_some());
        Self {
            shell,
            presets: presets.map(|p| p.name).filter(is_new).collect(),
            endpoints,
            endpoint: typed.endpoint.clone(),
            is_sync: typed.sync.is_some(),
            faults: Faults::default(),
            said: None,
            mistakes: Vec::new(),
            view: None,
        }
    }
}

fn unprocessable(page: &impl Template) -> Response {
    (StatusCode::UNPROCESSABLE_ENTITY, render(page)).into_response()
}

async fn pasted(
    state: &State,
    shell: &Shell,
    (wants, operator): (Wants, Operator),
    mut typed: Typed,
) -> Result<Response, Trouble> {
    let mode = match typed.sync {
        Some(_) => Mode::Sync,
        None => Mode::Merge,
    };
    let text = std::mem::take(&mut typed.text);
    let paste = Paste::new(text, typed.endpoint.clone(), mode);
    let mut page = blank(state, shell, &typed).await?;
    page.faults = faults(shell, &page, &paste);
    if !page.faults.is_empty() {
        return Ok(unprocessable(&page));
    }
    if let Err(mistakes) = planned(state, &paste).await? {
        return refused(state, shell, &paste, (page, mistakes)).await;
    }
    let id = state.pending().hold(operator.session, paste);
    Ok(go(format!("/pool/import?pending={id}"), wants))
}

fn faults(shell: &Shell, page: &PastePage, paste: &Paste) -> Faults {
    let mut faults = Faults::default();
    let endpoint = paste.endpoint.as_str();
    let is_there = page.endpoints.iter().any(|e| **e == *endpoint);
    if paste.is_blank() {
        faults.add("text", shell.t("import-text-empty"));
    } else if !paste.is_document() && !is_there && !page.presets.contains(&endpoint) {
        faults.add("endpoint", shell.t("import-endpoint-fault"));
    }
    faults
}

/// The document and what it would do, or what is wrong with it.
async fn planned(
    state: &State,
    paste: &Paste,
) -> Result<Result<(Document, Plan), Vec<Mistake>>, Trouble> {
    let document = match paste.document() {
        Ok(document) => document,
        Err(mistakes) => return Ok(Err(mistakes)),
    };
    match state
        .store()
        .plan_import(document.clone(), paste.mode)
        .await
    {
        Ok(plan) => Ok(Ok((document, plan))),
        Err(ImportError::Mistakes(mistakes)) => Ok(Err(mistakes)),
        Err(ImportError::Store(error)) => Err(error.into()),
    }
}

/// Every mistake, and of a list what its other lines would do. Nothing is held: it must be pasted
/// again anyway.
async fn refused(
    state: &State,
    shell: &Shell,
    paste: &Paste,
    (mut page, mistakes): (PastePage, Vec<Mistake>),
) -> Result<Response, Trouble> {
    page.said = Some(shell.t("import-refused").to_string());
    let lines = mistakes.iter().map(|m| mistake_line(shell, paste, m));
    page.mistakes = lines.collect();
    if let (false, Ok(mut document)) = (paste.is_document(), paste.document()) {
        document.mistakes.clear();
        let rest = state
            .store()
            .plan_import(document.clone(), paste.mode)
            .await;
        page.view = match rest {
            Ok(plan) => Some(View::new(shell, paste, &document, &plan)),
            Err(ImportError::Mistakes(_)) => None,
            Err(ImportError::Store(error)) => return Err(error.into()),
        };
    }
    Ok(unprocessable(&page))
}

async fn previewed(
    state: &State,
    shell: &Shell,
    id: &str,
    paste: &Paste,
) -> Result<Response, Trouble> {
    match planned(state, paste).await? {
        Ok((document, plan)) => {
            let view = View::new(shell, paste, &document, &plan);
            Ok(render(&PreviewPage::new(shell.clone(), id, view)))
        }
        // It was right before, so that something that it names went meanwhile.
        Err(mistakes) => {
            let page = blank(state, shell, &Typed::default()).await?;
            refused(state, shell, paste, (page, mistakes)).await
        }
    }
}

/// Why nothing was written.
enum Halt {
    Mistakes(Vec<Mistake>),
    Differs(Box<Plan>),
    Word(Box<Plan>),
}

async fn apply(
    state: &State,
    shell: &Shell,
    operator: Operator,
    (id, typed): (&str, &Typed),
) -> Result<Response, Trouble> {
    let Some(paste) = state.pending().find(operator.session, id) else {
        let page = blank(state, shell, typed).await?;
        let said = Some(shell.t("import-gone").to_string());
        return Ok(unprocessable(&PastePage { said, ..page }));
    };
    let document = paste.document().map(Arc::new);
    let done = match &document {
        Ok(document) => written(state, shell, (&paste, document), typed).await?,
        Err(mistakes) => Err(Halt::Mistakes(mistakes.clone())),
    };
    let document = document.unwrap_or_default();
    let page = |plan: &Plan| {
        let view = View::new(shell, &paste, &document, plan);
        PreviewPage::new(shell.clone(), id, view)
    };
    match done {
        Ok(plan) => {
            state.pending().forget(operator.session);
            let done = Some(plan.minted.clone());
            Ok(render(&PreviewPage {
                done,
                ..page(&plan)
            }))
        }
        Err(Halt::Differs(plan)) => {
            let has_changed = true;
            let page = PreviewPage {
                has_changed,
                ..page(&plan)
            };
            Ok((StatusCode::CONFLICT, render(&page)).into_response())
        }
        Err(Halt::Word(plan)) => {
            let mut page = page(&plan);
            let fault = shell.t("import-word-fault").text("word", WORD);
            page.faults.add("word", fault);
            Ok(unprocessable(&page))
        }
        Err(Halt::Mistakes(mistakes)) => {
            let page = blank(state, shell, typed).await?;
            refused(state, shell, &paste, (page, mistakes)).await
        }
    }
}

/// Plans anew and writes that, in one transaction, if it is what was shown.
async fn written(
    state: &State,
    shell: &Shell,
    (paste, document): (&Arc<Paste>, &Arc<Document>),
    typed: &Typed,
) -> Result<Result<Plan, Halt>, Trouble> {
    let (shell, paste, document) = (shell.clone(), Arc::clone(paste), Arc::clone(document));
    let (shown, word) = (typed.shown.clone(), typed.word.clone());
    let planned = state.store().change_pool(move |existing, tools| {
        let plan = plan(&document, existing, tools, paste.mode).map_err(Halt::Mistakes)?;
        let view = View::new(&shell, &paste, &document, &plan);
        if view.signature != shown {
            Err(Halt::Differs(Box::new(plan)))
        } else if view.is_wide && word.trim() != WORD {
            Err(Halt::Word(Box::new(plan)))
        } else {
            Ok(plan)
        }
    });
    let planned = planned.await?;
    if planned.is_ok() {
        state.reload().now().await?;
    }
    Ok(planned)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(super) use self::tests::samples;
