//! Pool: what is in it, and forms and confirmations that change it.
//!
//! Invariants: what is changed goes through the plan of a pool document of one entry, as in the
//! API; nothing is written before all of it is right; no secret is ever shown.
mod action;
mod done;
mod edit;
mod explain;
mod faults;
mod import;
mod list;
mod matrix;
mod quota;
mod trial;
mod typed;

#[cfg(test)]
use super::shell::Shell;
use super::{State, error::Trouble};
use crate::{
    document::single::{Refusal, Thing, Which, plan_one},
    domain::pool::{Account, Credential, Endpoint, document::ChangeKind, edges::Contents},
    store::StoreError,
};
use axum::{
    Router,
    routing::{get, post},
};
use serde_json::{Map, Value};
use std::sync::Arc;

pub(super) use self::{import::Pending, list::ordinary};

/// The addresses.
pub(super) fn pages() -> Router<State> {
    Router::new()
        .route("/pool", get(list::show))
        .route("/pool/import", get(import::show).post(import::submit))
        .route("/pool/called", get(edit::called))
        .route("/pool/explain", get(explain::show))
        .route("/pool/matrix", get(matrix::show))
        .route("/pool/{sort}/{id}", get(edit::open).post(edit::save))
        .route("/pool/{sort}/{id}/test", post(trial::test).get(trial::back))
        .route(
            "/pool/{sort}/{id}/{verb}",
            get(action::ask).post(action::act),
        )
}

/// Which kind of thing a page is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Account,
    Credential,
    Endpoint,
}

impl Sort {
    const fn list(self) -> &'static str {
        match self {
            Self::Account => Account::LIST,
            Self::Credential => Credential::LIST,
            Self::Endpoint => Endpoint::LIST,
        }
    }

    fn from_list(list: &str) -> Option<Self> {
        let all = [Self::Account, Self::Credential, Self::Endpoint];
        all.into_iter().find(|sort| sort.list() == list)
    }

    fn is_account(self) -> bool {
        self == Self::Account
    }

    fn is_credential(self) -> bool {
        self == Self::Credential
    }

    fn is_endpoint(self) -> bool {
        self == Self::Endpoint
    }
}

/// Which thing was changed, as it stands in an address: its kind and its id.
type At = String;

/// Changes one thing and brings that into force; a refusal has changed nothing.
async fn change<T: Thing>(
    state: &State,
    which: Which<T::Id>,
    said: Map<String, Value>,
) -> Result<Result<At, Refusal>, StoreError> {
    let planned = state
        .store()
        .change_pool(move |existing, tools| plan_one::<T>(existing, tools, which, said));
    let mut plan = match planned.await? {
        Ok(plan) => plan,
        Err(refusal) => return Ok(Err(refusal)),
    };
    state.reload().now().await?;
    let mut changes = T::changes(&mut plan).iter();
    let id = match which {
        Which::Stored(id) => Some(id),
        Which::New => changes
            .find(|change| change.kind == ChangeKind::Added)
            .map(|change| change.value.id()),
    };
    Ok(Ok(id.map_or_else(String::new, |id| {
        format!("{}/{id}", T::LIST)
    })))
}

/// The same for an id as it stands in an address; `None` means a new thing.
async fn change_any(
    state: &State,
    sort: Sort,
    id: Option<&str>,
    said: Map<String, Value>,
) -> Result<Result<At, Refusal>, StoreError> {
    match sort {
        Sort::Account => change_at::<Account>(state, id, said).await,
        Sort::Credential => change_at::<Credential>(state, id, said).await,
        Sort::Endpoint => change_at::<Endpoint>(state, id, said).await,
    }
}

async fn change_at<T: Thing>(
    state: &State,
    id: Option<&str>,
    said: Map<String, Value>,
) -> Result<Result<At, Refusal>, StoreError> {
    let which = match id.map(str::parse) {
        None => Which::New,
        Some(Ok(id)) => Which::Stored(id),
        Some(Err(_)) => return Ok(Err(Refusal::Missing)),
    };
    change::<T>(state, which, said).await
}

/// The thing of an id as it stands in an address.
fn find<'a, T: Thing>(contents: &'a Contents, id: &str) -> Result<&'a T, Trouble> {
    let found = T::all(contents).find(|thing| thing.id().to_string() == id);
    found.ok_or(Trouble::NotFound)
}

/// The things of one kind that are named by ids, in the order in which they stand.
fn names<'a, T: Thing>(things: impl Iterator<Item = &'a T>) -> Vec<Arc<str>> {
    things.map(|thing| Arc::clone(thing.name())).collect()
}

#[cfg(test)]
pub(super) fn samples(shell: &Shell) -> Vec<(&'static str, String)> {
    let contents = tests::contents();
    let mut all = list::samples(shell, &contents);
    all.extend(edit::samples(shell, &contents));
    all.extend(action::samples(shell, &contents));
    all.extend(explain::samples(shell));
    all.extend(matrix::samples(shell));
    all.extend(import::samples(shell, &contents));
    all.extend(trial::samples(shell, &contents));
    all
}

#[cfg(test)]
mod tests;
