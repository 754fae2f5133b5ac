//! "Test": what a credential gets from its endpoints, or an endpoint says to one of its
//! credentials, asked for right now.
//!
//! Invariant: nothing is written, and nothing that is shown holds the secret.
use super::{Sort, find};
use crate::{
    dashboard::{
        State,
        error::Trouble,
        session::{Operator, go},
        shell::{Shell, render},
        tested::Tested,
        wants::Wants,
    },
    domain::pool::{Credential, Endpoint, edges::Contents},
    engine::probe::{Target, Verdict, probe},
};
use askama::Template;
use axum::{
    extract::{self, Path},
    response::Response,
};
use futures_util::future::join_all;
use std::sync::Arc;

/// Somebody sits and waits, and upstream counts calls.
const AT_MOST: usize = 8;

#[derive(Template)]
#[template(path = "pool/trial.html")]
struct TrialPage {
    shell: Shell,
    sort: Sort,
    subject: Arc<str>,
    path: String,
    trials: Vec<Trial>,
}

impl TrialPage {
    /// Whether another secret would help.
    fn wants_secret(&self) -> bool {
        self.sort.is_credential() && self.trials.iter().any(|trial| trial.is_refused)
    }
}

/// One call.
struct Trial {
    credential: Arc<str>,
    endpoint: Arc<str>,
    is_refused: bool,
    tested: Tested,
}

/// The name of what is tested, and who is to call where.
type Pairs<'a> = (Arc<str>, Vec<(&'a Credential, &'a Endpoint)>);

/// What is to be tried: of a credential every endpoint, of an endpoint the first credential that
/// takes work.
fn pairs<'a>(contents: &'a Contents, sort: Sort, id: &str) -> Result<Pairs<'a>, Trouble> {
    match sort {
        Sort::Account => Err(Trouble::NotFound),
        Sort::Credential => {
            let credential = find::<Credential>(contents, id)?;
            let endpoints = contents.endpoints.iter();
            let works = endpoints.filter(|e| credential.endpoints.contains(&e.id));
            let pairs = works.take(AT_MOST).map(|e| (credential, e)).collect();
            Ok((Arc::clone(&credential.name), pairs))
        }
        Sort::Endpoint => {
            let endpoint = find::<Endpoint>(contents, id)?;
            let users = || {
                let all = contents.credentials.iter();
                all.filter(|c| c.endpoints.contains(&endpoint.id))
            };
            let active = users().find(|c| c.state.takes_work());
            let first = active.or_else(|| users().next());
            let pairs = first.map(|c| (c, endpoint)).into_iter().collect();
            Ok((Arc::clone(&endpoint.name), pairs))
        }
    }
}

/// `POST /pool/{sort}/{id}/test`.
pub(super) async fn test(
    extract::State(state): extract::State<State>,
    shell: Shell,
    (wants, _): (Wants, Operator),
    Path((sort, id)): Path<(String, String)>,
) -> Response {
    match tried(&state, shell.clone(), &sort, &id).await {
        Ok(page) => render(&page),
        Err(trouble) => trouble.respond(&shell, wants),
    }
}

/// `GET` of the same: looking alone calls nobody.
pub(super) async fn back(
    (wants, _): (Wants, Operator),
    Path((sort, id)): Path<(String, String)>,
) -> Response {
    go(format!("/pool/{sort}/{id}"), wants)
}

async fn tried(state: &State, shell: Shell, sort: &str, id: &str) -> Result<TrialPage, Trouble> {
    let sort = Sort::from_list(sort).ok_or(Trouble::NotFound)?;
    let contents = state.store().pool().await?.contents;
    let (subject, pairs) = pairs(&contents, sort, id)?;
    let words = &shell;
    let trials = pairs.into_iter().filter_map(|(credential, endpoint)| {
        let target = Target {
            base_url: &endpoint.base_url,
            protocol: endpoint.protocols.first().copied()?,
            secret: &credential.secret,
        };
        Some(async move {
            let probed = probe(state.upstream(), target).await;
            Trial {
                credential: Arc::clone(&credential.name),
                endpoint: Arc::clone(&endpoint.name),
                is_refused: probed.verdict == Verdict::SecretRefused,
                tested: Tested::new(words, &probed),
            }
        })
    });
    let trials = join_all(trials).await;
    Ok(TrialPage {
        path: format!("/pool/{}/{id}", sort.list()),
        shell,
        sort,
        subject,
        trials,
    })
}

#[cfg(test)]
pub(super) fn samples(shell: &Shell, contents: &Contents) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    for (sort, id) in [
        (Sort::Credential, contents.credentials[0].id.to_string()),
        (Sort::Endpoint, contents.endpoints[0].id.to_string()),
    ] {
        let (subject, pairs) = pairs(contents, sort, &id).unwrap();
        let (credential, endpoint) = pairs[0];
        let tested = crate::dashboard::tested::samples(shell).into_iter();
        let trials = tested.map(|tested| Trial {
            credential: Arc::clone(&credential.name),
            endpoint: Arc::clone(&endpoint.name),
            is_refused: true,
            tested,
        });
        let mut page = TrialPage {
            shell: shell.clone(),
            sort,
            subject,
            path: format!("/pool/{}/{id}", sort.list()),
            trials: trials.collect(),
        };
        all.push(("pool/trial", page.render().unwrap()));
        page.trials.clear();
        all.push(("pool/trial", page.render().unwrap()));
    }
    all
}
