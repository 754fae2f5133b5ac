//! The set-up guide: password, first account, first client key.
//!
//! Rule: what is missing follows from what is stored, so that the guide can be left and found again
//! at any point. Only its first step is open without a session, and only until there is a password.
mod account;
mod key;
mod password;

use super::{
    State,
    error::Trouble,
    session::{Operator, go},
    shell::Shell,
    wants::Wants,
};
use crate::{domain::pool::Pool, store::StoreError};
use axum::{Router, extract, response::Response, routing::get};

pub(super) use self::account::{models, secret_fault};

#[cfg(test)]
pub(super) use self::samples::samples;

/// Where the set-up stands once there is a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    Account,
    Key,
    Nothing,
}

impl Missing {
    pub(super) fn of(pool: &Pool) -> Self {
        if pool.credentials().is_empty() {
            Self::Account
        } else if pool.keys().is_empty() {
            Self::Key
        } else {
            Self::Nothing
        }
    }

    /// The page where that is done.
    pub(super) const fn address(self) -> &'static str {
        match self {
            Self::Account => "/setup/account",
            Self::Key => "/setup/key",
            Self::Nothing => "/",
        }
    }
}

/// The addresses.
pub(super) fn pages() -> Router<State> {
    Router::new()
        .route("/setup", get(begin))
        .route("/setup/password", get(password::show).post(password::set))
        .route("/setup/account", get(account::show).post(account::submit))
        .route("/setup/account/called", get(account::called))
        .route("/setup/key", get(key::show).post(key::create))
        .route("/setup/key/{id}/seen", get(key::seen))
}

/// `GET /setup`: leads to the step that comes next.
async fn begin(extract::State(state): extract::State<State>, _: Operator) -> Response {
    let pool = state.reload().configuration().pool();
    go(Missing::of(&pool).address().to_owned(), Wants::Page)
}

/// Brings what was stored into force before the person goes on.
async fn bring_into_force(state: &State) -> Result<(), StoreError> {
    state.reload().now().await
}

fn trouble(shell: &Shell, error: impl Into<Trouble>, wants: Wants) -> Response {
    error.into().respond(shell, wants)
}

#[cfg(test)]
mod samples {
    use super::{Shell, account, key, password};

    pub(in crate::dashboard) fn samples(shell: &Shell) -> Vec<(&'static str, String)> {
        let mut all = password::samples(shell);
        all.extend(account::samples(shell));
        all.extend(key::samples(shell));
        all
    }
}
