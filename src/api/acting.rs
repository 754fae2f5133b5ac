//! Who makes a call: what it changes stands in the audit log as theirs.
//!
//! Invariant: a handler that changes something takes [`Acting`] in place of the plain state.
use super::{State, error::ApiError};
use axum::extract::FromRequestParts;
use http::request::Parts;
use std::sync::Arc;

/// A caller as the audit log names it; the guard says who it is.
#[derive(Clone, Debug)]
pub(super) struct Caller(Arc<str>);

impl Caller {
    /// A program with the token of that name.
    pub(super) fn token(name: &str) -> Self {
        Self(format!("token {name}").into())
    }

    /// A person who is logged in.
    pub(super) fn session() -> Self {
        Self("dashboard".into())
    }
}

/// The state, for changes in the caller's name.
#[derive(Debug)]
pub(super) struct Acting(pub(super) State);

impl FromRequestParts<State> for Acting {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, ApiError> {
        // Behind the guard nobody is without a name.
        let caller = parts.extensions.get::<Caller>();
        let Caller(name) = caller.ok_or_else(ApiError::auth_required)?;
        Ok(Self(State {
            store: state.store.acting_as(Arc::clone(name)),
            ..state.clone()
        }))
    }
}
