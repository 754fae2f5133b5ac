//! The admin API: what operators' programs call, and what says how the process is.
//!
//! Invariants: nothing under the prefix `/api/admin` is answered without a known admin token or the
//! cookie of a session, not even that a path is unknown; a change is in force when its answer
//! arrives; secrets go in and, but for those that were minted by that very call, never come out.
mod accounts;
mod concurrency;
mod credentials;
mod edit;
mod endpoints;
mod error;
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
pub struct State(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    store: Store,
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
        Self(Arc::new(Shared {
            store,
            reload,
            metrics,
            live,
            readiness,
            access,
            tokens: guard::Tokens::default(),
            probe: readiness::Probe::default(),
        }))
    }

    fn store(&self) -> &Store {
        &self.0.store
    }

    fn reload(&self) -> &Reload {
        &self.0.reload
    }

    fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    fn live(&self) -> &Registry {
        &self.0.live
    }

    fn readiness(&self) -> &Readiness {
        &self.0.readiness
    }

    fn access(&self) -> &Access {
        &self.0.access
    }

    fn tokens(&self) -> &guard::Tokens {
        &self.0.tokens
    }

    fn probe(&self) -> &readiness::Probe {
        &self.0.probe
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
