//! What the operator can put right by hand, each behind a page that says beforehand what it does.
//!
//! Invariant: what is done stands in the audit log; what cannot be written down is not done.
use crate::{
    clock,
    dashboard::{
        State,
        error::Trouble,
        form::Form,
        names::Names,
        session::{Operator, go},
        shell::{Shell, render},
        wants::Wants,
    },
    domain::{
        admission::{HeldLease, LeaseId},
        ids::RequestId,
    },
    engine::picture::Picture,
};
use askama::Template;
use axum::{
    extract::{self, Query},
    response::Response,
};
use serde::Deserialize;

#[derive(Template)]
#[template(path = "concurrency/action.html")]
struct ActionPage {
    shell: Shell,
    /// Where the answer goes.
    answer_to: &'static str,
    heading: String,
    ask: String,
    press: String,
    /// What it does, in counts.
    effects: Vec<String>,
    /// The lease and who holds it, where it is about one.
    about: Option<(String, String)>,
}

/// `GET /concurrency/reset`.
pub(super) async fn ask_reset(
    extract::State(state): extract::State<State>,
    shell: Shell,
    _: Operator,
) -> Response {
    let admission = state.reload().configuration().admission();
    render(&reset_page(shell, admission.counts()))
}

fn reset_page(shell: Shell, (leases, waiters): (usize, usize)) -> ActionPage {
    let t = |key| shell.t(key).to_string();
    ActionPage {
        answer_to: "/concurrency/reset",
        heading: t("conc-reset"),
        ask: t("conc-reset-ask"),
        press: t("conc-reset"),
        effects: vec![
            shell
                .t("conc-reset-leases")
                .num("count", leases)
                .to_string(),
            shell
                .t("conc-reset-waiters")
                .num("count", waiters)
                .to_string(),
            t("conc-reset-keeps"),
        ],
        about: None,
        shell,
    }
}

/// `POST /concurrency/reset`.
pub(super) async fn reset(
    extract::State(state): extract::State<State>,
    shell: Shell,
    (wants, _): (Wants, Operator),
) -> Response {
    let admission = state.reload().configuration().admission();
    let (leases, waiters) = admission.counts();
    let detail = format!("{leases} leases, {waiters} waiting");
    let audited = state
        .store()
        .audit("reset_semaphores", "admission".to_owned(), detail);
    if let Err(error) = audited.await {
        return Trouble::from(error).respond(&shell, wants);
    }
    let healed = admission.recount();
    let counts = format!("slots={}&granted={}", healed.slots, healed.granted);
    go(format!("/concurrency?done=reset&{counts}"), wants)
}

/// Which lease, and who is to hold it: a form that is sent late must not meet another's.
#[derive(Deserialize)]
pub(super) struct Which {
    #[serde(default)]
    lease: String,
    #[serde(default)]
    request: String,
}

/// `GET /concurrency/release?lease=…`.
pub(super) async fn ask_release(
    extract::State(state): extract::State<State>,
    shell: Shell,
    (wants, _): (Wants, Operator),
    Query(which): Query<Which>,
) -> Response {
    let picture = Picture::take(state.reload().configuration(), clock::unix_millis());
    match find(&picture, &which.lease) {
        Ok(held) => render(&release_page(shell.clone(), &picture, held)),
        Err(trouble) => trouble.respond(&shell, wants),
    }
}

fn find<'a>(picture: &'a Picture, lease: &str) -> Result<&'a HeldLease, Trouble> {
    let lease: LeaseId = lease.parse().map_err(|_| Trouble::NotFound)?;
    let found = picture.leases.iter().find(|held| held.lease == lease);
    found.ok_or(Trouble::LeaseGone)
}

fn release_page(shell: Shell, picture: &Picture, held: &HeldLease) -> ActionPage {
    let names = Names::new(&shell, picture);
    let accounts = held.edge.accounts().map(|a| names.account(a.id).text);
    let accounts = accounts.collect::<Vec<_>>().join(", ");
    let kinds = held.held;
    let frees = shell
        .t("conc-release-frees")
        .num("streams", u32::from(kinds.stream))
        .num("creates", u32::from(kinds.create))
        .num("jobs", u32::from(kinds.job))
        .text("accounts", accounts);
    let age = shell.span_ms(picture.now.since(held.granted_at));
    let held_for = shell
        .t("conc-release-held")
        .text("age", age)
        .text("name", names.key(held.key).text);
    let waiting = shell
        .t("conc-release-waiters")
        .num("count", picture.totals.waiters);
    let effects = vec![
        frees.to_string(),
        held_for.to_string(),
        shell.t("conc-release-runs").to_string(),
        waiting.to_string(),
    ];
    let lease = held.lease.to_string();
    let t = |key| shell.t(key).to_string();
    ActionPage {
        answer_to: "/concurrency/release",
        heading: t("conc-release-title"),
        ask: shell
            .t("conc-release-ask")
            .text("lease", &lease)
            .to_string(),
        press: t("conc-release-title"),
        effects,
        about: Some((lease, held.holder.to_string())),
        shell,
    }
}

/// `POST /concurrency/release`.
pub(super) async fn release(
    extract::State(state): extract::State<State>,
    shell: Shell,
    (wants, _): (Wants, Operator),
    Form(which): Form<Which>,
) -> Response {
    match released(&state, &which).await {
        Ok(()) => go("/concurrency?done=released".to_owned(), wants),
        Err(trouble) => trouble.respond(&shell, wants),
    }
}

async fn released(state: &State, which: &Which) -> Result<(), Trouble> {
    let lease: LeaseId = which.lease.parse().map_err(|_| Trouble::NotFound)?;
    let holder: RequestId = which.request.parse().map_err(|_| Trouble::NotFound)?;
    let admission = state.reload().configuration().admission();
    let (_, held, _) = admission.picture();
    let is_it = |held: &HeldLease| held.lease == lease && held.holder == holder;
    if !held.iter().any(is_it) {
        return Err(Trouble::LeaseGone);
    }
    let detail = holder.to_string();
    let audited = state
        .store()
        .audit("release_lease", lease.to_string(), detail);
    audited.await?;
    if admission.evict(lease) {
        Ok(())
    } else {
        Err(Trouble::LeaseGone)
    }
}

#[cfg(test)]
pub(super) fn samples(shell: &Shell, picture: &Picture) -> Vec<(&'static str, String)> {
    let held = picture.leases.first().unwrap();
    let pages = [
        reset_page(shell.clone(), (12, 5)),
        reset_page(shell.clone(), (0, 0)),
        release_page(shell.clone(), picture, held),
    ];
    let pages = pages.iter();
    pages
        .map(|page| ("concurrency/action", page.render().unwrap()))
        .collect()
}
