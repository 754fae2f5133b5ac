//! The dashboard: server-rendered pages for the operator.
//!
//! A page is a file here (a typed struct with view rows, its handlers, its samples), a template in
//! `templates/` whose blocks are the fragments, and a message file of its name for each language in
//! `locales/`. [`pages`] is the one list of addresses.
//!
//! Invariants: a handler that takes an [`Operator`](session::Operator) cannot be reached without a
//! session; every form works without script; no page asks another host for anything; every visible
//! sentence is a message.
mod assets;
mod attention;
mod chart;
mod concurrency;
mod error;
mod form;
mod fullness;
mod headers;
mod i18n;
mod keys;
mod live;
mod login;
mod names;
mod overview;
mod pool;
mod preferences;
mod requests;
mod session;
mod settings;
mod setup;
mod shell;
mod snippets;
mod standing;
mod tested;
mod ticks;
mod time;
mod wants;

use crate::{
    access::Access, engine::live::Registry, ports::Upstream, reload::Reload, store::Store,
};
use axum::{
    Router,
    extract::DefaultBodyLimit,
    middleware,
    routing::{get, post},
};
use std::{fmt, sync::Arc};
use tower_http::{catch_panic::CatchPanicLayer, compression::CompressionLayer};

pub use self::{i18n::LocaleError, snippets::Clients};

/// The largest form: a pasted list of keys, and some.
const FORM_BYTES: usize = 1 << 20;

/// What the handlers share; cheap to clone.
#[derive(Clone)]
pub struct State(Arc<Shared>);

struct Shared {
    parts: Parts,
    i18n: i18n::I18n,
    fullness: fullness::Fullness,
    pending: pool::Pending,
    ticks: ticks::Ticks,
}

/// What the dashboard shows and changes.
pub struct Parts {
    /// What is stored.
    pub store: Store,
    /// What is in force.
    pub reload: Reload,
    /// Requests in flight.
    pub live: Registry,
    /// Who may operate.
    pub access: Access,
    /// The way to providers, for tests of accounts.
    pub upstream: Arc<dyn Upstream>,
    /// Where clients connect.
    pub clients: Clients,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
}

impl State {
    /// The handlers' view of the process. Fails only if a message file that was built in is broken.
    pub fn new(mut parts: Parts) -> Result<Self, LocaleError> {
        parts.store = parts.store.acting_as("dashboard");
        let i18n = i18n::I18n::load()?;
        let fullness = fullness::Fullness::default();
        let pending = pool::Pending::default();
        Ok(Self(Arc::new(Shared {
            parts,
            i18n,
            fullness,
            pending,
            ticks: ticks::Ticks::default(),
        })))
    }

    fn store(&self) -> &Store {
        &self.0.parts.store
    }

    fn reload(&self) -> &Reload {
        &self.0.parts.reload
    }

    fn live(&self) -> &Registry {
        &self.0.parts.live
    }

    fn access(&self) -> &Access {
        &self.0.parts.access
    }

    fn upstream(&self) -> &dyn Upstream {
        &*self.0.parts.upstream
    }

    fn clients(&self) -> &Clients {
        &self.0.parts.clients
    }

    fn fullness(&self) -> &fullness::Fullness {
        &self.0.fullness
    }

    fn pending(&self) -> &pool::Pending {
        &self.0.pending
    }

    fn ticks(&self) -> &ticks::Ticks {
        &self.0.ticks
    }

    fn i18n(&self) -> &i18n::I18n {
        &self.0.i18n
    }
}

/// Every page, and a page for every other address.
pub fn router(state: State) -> Router {
    let guard = middleware::from_fn_with_state(state.clone(), headers::refuse_forged);
    pages()
        .fallback(error::no_such_page)
        .method_not_allowed_fallback(error::wrong_method)
        .layer(guard)
        .layer(middleware::from_fn(headers::secure))
        .layer(DefaultBodyLimit::max(FORM_BYTES))
        .layer(CatchPanicLayer::custom(error::panicked))
        .layer(CompressionLayer::new())
        .with_state(state)
}

/// The addresses.
fn pages() -> Router<State> {
    Router::new()
        .route("/", get(overview::show))
        .route("/login", get(login::show).post(login::log_in))
        .route("/logout", post(login::log_out))
        .route("/preferences", post(preferences::change))
        .route("/assets/{version}/{file}", get(assets::serve))
        .merge(concurrency::pages())
        .merge(requests::pages())
        .route("/settings", get(settings::show).post(settings::save))
        .route("/settings/clear", post(settings::clear))
        .merge(pool::pages())
        .merge(keys::pages())
        .merge(setup::pages())
}

#[cfg(test)]
mod tests;
