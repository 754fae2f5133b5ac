//! The one guard in front of the admin API: a call goes through with a known admin token, with the
//! cookie of a session, or not at all.
//!
//! Invariant: a call that another site may have made a browser send never goes through on the
//! strength of a cookie; secrets are compared as hashes and in constant time; a token that was removed is
//! refused as soon as that removal is in force.
use super::{
    State,
    acting::Caller,
    error::{ApiError, Code},
};
use crate::{
    digest,
    reload::Reload,
    store::{Store, StoreError},
};
use axum::{
    extract::{self, Request},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use http::{HeaderMap, HeaderValue, Method, header};
use std::sync::{Arc, Mutex, PoisonError};
use subtle::ConstantTimeEq as _;

type Hash = [u8; 32];

/// The hashes and names of the admin tokens, read again whenever the configuration has changed.
#[derive(Debug, Default)]
pub(super) struct Tokens(Mutex<Option<Known>>);

#[derive(Clone, Debug)]
struct Known {
    version: i64,
    tokens: Arc<[(Hash, Arc<str>)]>,
}

impl Tokens {
    async fn read(
        &self,
        store: &Store,
        reload: &Reload,
    ) -> Result<Arc<[(Hash, Arc<str>)]>, StoreError> {
        // Read before the tokens: they may be newer than what they are labelled with, never older.
        let version = reload.version();
        let known = self.known();
        if let Some(known) = known.filter(|k| k.version == version) {
            return Ok(known.tokens);
        }
        let tokens = store.tokens().await?.into_iter();
        let tokens: Arc<[_]> = tokens.map(|token| (token.hash, token.name)).collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Known {
            version,
            tokens: Arc::clone(&tokens),
        });
        Ok(tokens)
    }

    fn known(&self) -> Option<Known> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.clone()
    }
}

/// Lets a call through if it bears a known token or a session. What comes back is never kept by anybody on
/// the way, since it may hold a secret that is shown once.
pub(super) async fn guard(
    extract::State(state): extract::State<State>,
    mut request: Request,
    next: Next,
) -> Response {
    match caller(&state, request.method(), request.headers()).await {
        Ok(caller) => request.extensions_mut().insert(caller),
        Err(refused) => return refused.into_response(),
    };
    let mut response = next.run(request).await;
    let no_store = HeaderValue::from_static("no-store");
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, no_store);
    response
}

async fn caller(state: &State, method: &Method, headers: &HeaderMap) -> Result<Caller, ApiError> {
    let caller = match bearer(headers) {
        Some(token) => of_token(state, token).await?,
        None => is_session(state, method, headers)
            .await?
            .then(Caller::session),
    };
    caller.ok_or_else(ApiError::auth_required)
}

async fn of_token(state: &State, token: &[u8]) -> Result<Option<Caller>, ApiError> {
    let presented = digest::sha256(token);
    let tokens = state.tokens().read(state.store(), state.reload()).await?;
    // Every one is looked at, whichever it is.
    let mut found = None;
    for (hash, name) in tokens.iter() {
        if bool::from(hash.ct_eq(&presented)) {
            found = Some(name);
        }
    }
    Ok(found.map(|name| Caller::token(name)))
}

async fn is_session(state: &State, method: &Method, headers: &HeaderMap) -> Result<bool, ApiError> {
    let access = state.access();
    if access.session(headers).await?.is_none() {
        return Ok(false);
    }
    if access.is_forged(method, headers) {
        return Err(ApiError::new(
            Code::CrossSite,
            "the browser says that another site sent this; programs use an admin token instead of a login",
        ));
    }
    Ok(true)
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    scheme
        .eq_ignore_ascii_case(b"Bearer ")
        .then(|| token.trim_ascii())
        .filter(|token| !token.is_empty())
}
