//! The admin API: what operators' programs call, and what says how the process is.
//!
//! Invariants: nothing under the prefix `/api/admin` is answered without a known admin token or the
//! cookie of a session, not even that a path is unknown; a change is in force when its answer
//! arrives; secrets go in and, but for those that were minted by that very call, never come out.
mod accounts;
mod acting;
mod audit;
mod concurrency;
mod cooldown;
mod credentials;
mod edit;
mod endpoints;
mod error;
mod explain;
mod guard;
mod input;
mod keys;
mod metrics;
mod noun;
mod openapi;
mod page;
mod pool;
mod readiness;
mod requests;
mod routes;
mod schema;
mod settings;
mod tokens;

use crate::{
    access::Access, engine::live::Registry, reload::Reload, store::Store,
    telemetry::metrics::Metrics,
};
use axum::{
    Router, middleware,
    response::{IntoResponse as _, Response},
    routing::get,
};
use error::{ApiError, Code};
use std::{any::Any, sync::Arc};
use tower_http::catch_panic::CatchPanicLayer;

pub use readiness::Readiness;

/// Where the admin API begins.
const PREFIX: &str = "/api/admin";

/// What the handlers share; cheap to clone.
#[derive(Clone, Debug)]
pub struct State {
    /// What is changed through it stands in the audit log as its caller's.
    store: Store,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    reload: Reload,
    metrics: Metrics,
    live: Registry,
    readiness: Readiness,
    access: Access,
    tokens: guard::Tokens,
    probe: readiness::Probe,
}

impl State {
    /// The handlers' view of the process.
    pub fn new(
        store: Store,
        reload: Reload,
        (metrics, live): (Metrics, Registry),
        readiness: Readiness,
        access: Access,
    ) -> Self {
        let shared = Arc::new(Shared {
            reload,
            metrics,
            live,
            readiness,
            access,
            tokens: guard::Tokens::default(),
            probe: readiness::Probe::default(),
        });
        Self { store, shared }
    }

    fn store(&self) -> &Store {
        &self.store
    }

    fn reload(&self) -> &Reload {
        &self.shared.reload
    }

    fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    fn live(&self) -> &Registry {
        &self.shared.live
    }

    fn readiness(&self) -> &Readiness {
        &self.shared.readiness
    }

    fn access(&self) -> &Access {
        &self.shared.access
    }

    fn tokens(&self) -> &guard::Tokens {
        &self.shared.tokens
    }

    fn probe(&self) -> &readiness::Probe {
        &self.shared.probe
    }

    /// Brings what was just stored into force, so that whoever gets the answer finds it so.
    async fn bring_into_force(&self) -> Result<(), ApiError> {
        self.reload().now().await.map_err(ApiError::stored_only)
    }
}

/// For the main listener: health, metrics with a token, and the admin API.
pub fn router(state: State) -> Router {
    let guard = middleware::from_fn_with_state(state.clone(), guard::guard);
    let metrics = Router::new()
        .route("/metrics", get(metrics::metrics))
        .method_not_allowed_fallback(routes::wrong_method)
        .route_layer(guard);
    finish(admin(&state).merge(metrics), state)
}

/// For an admin listener of its own: the same, with metrics for everybody who reaches it.
pub fn own_listener(state: State) -> Router {
    let metrics = Router::new().route("/metrics", get(metrics::metrics));
    finish(admin(&state).merge(metrics), state)
}

/// For the main listener where the admin API has its own: health alone.
pub fn health(state: State) -> Router {
    finish(Router::new(), state)
}

/// Everything under the prefix, behind the guard.
fn admin(state: &State) -> Router<State> {
    let guard = middleware::from_fn_with_state(state.clone(), guard::guard);
    let guarded = routes::router().layer(guard).with_state(state.clone());
    // As a service it gets the prefix itself and everything below it; as a router it would leave
    // `/api/admin/` to the fallback outside, past the guard.
    Router::new().nest_service(PREFIX, guarded)
}

fn finish(router: Router<State>, state: State) -> Router {
    router
        .route("/healthz", get(readiness::alive))
        .route("/readyz", get(readiness::ready))
        .fallback(routes::unknown)
        .method_not_allowed_fallback(routes::wrong_method)
        .layer(CatchPanicLayer::custom(panicked))
        .with_state(state)
}

/// What a panic said may hold anything, so that it goes no further than the panic hook's own log.
fn panicked(_: Box<dyn Any + Send + 'static>) -> Response {
    tracing::error!("a call of the admin API panicked");
    let message = "something went wrong inside fairlane; its log says what";
    ApiError::new(Code::Internal, message).into_response()
}

#[cfg(test)]
mod tests;
