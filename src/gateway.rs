//! Adapter towards API clients: reads a request, finds out whose it is and where it wants to go,
//! and relays the answer byte for byte.
//!
//! A request passes [`call`] (the order of the steps), [`intake`] (its body), [`owned`] (what it is
//! tied to), [`outgoing`] (what is sent upstream), [`relay`] (the answer); one that waits for long may be answered ahead ([`waiting`]); [`ticket`] goes along and
//! tells ledger, metrics and log how it ended, whichever way that was. [`refuse`] speaks for fairlane
//! itself.
//!
//! Invariant: nothing is added to or taken from a body; after the first byte of an answer nothing
//! is tried again; an answer that breaks off upstream breaks off here.
mod allowance;
mod call;
mod cors;
mod discovery;
mod intake;
mod listing;
mod lists;
#[cfg(test)]
mod nothing;
mod opening;
mod outgoing;
mod owned;
mod refuse;
mod relay;
mod reply;
pub mod server;
mod socket;
mod ticket;
mod waiting;

pub use self::reply::Reply;

use crate::{
    engine::{
        configuration::Configuration,
        live::{Desk, Registry},
        owners::Owners,
        payload::{BUDGET_BYTES, Budget},
        unspoken::Unspoken,
    },
    peer::Peer,
    ports::{Ledger, PoolWatch, Upstream},
    protocol::route::is_data_plane,
    telemetry::metrics::Metrics,
};
use http::{Request, Response};
use hyper::body::Incoming;
use std::{future::Future, pin::Pin, sync::Arc};

/// What the whole process shares.
#[derive(Clone)]
pub struct Gateway {
    /// Settings, pool and admission.
    pub configuration: Configuration,
    /// Requests in flight.
    pub live: Registry,
    /// What is counted.
    pub metrics: Metrics,
    /// Where records go.
    pub ledger: Arc<dyn Ledger>,
    /// Who is told what answers say of the pool.
    pub watch: Arc<dyn PoolWatch>,
    /// Who owns what lives on upstream.
    pub owners: Owners,
    budget: Arc<Budget>,
    discovery: Arc<discovery::Discovery>,
    unspoken: Unspoken,
}

impl Gateway {
    /// A gateway with nothing in flight.
    pub fn new(
        configuration: Configuration,
        metrics: Metrics,
        (ledger, watch): (Arc<dyn Ledger>, Arc<dyn PoolWatch>),
        owners: Owners,
    ) -> Self {
        Self {
            configuration,
            live: Registry::default(),
            metrics,
            ledger,
            watch,
            owners,
            budget: Budget::new(BUDGET_BYTES),
            discovery: Arc::default(),
            unspoken: Unspoken::default(),
        }
    }
}

/// What answers requests that are not for the data plane; each has its [`Peer`] as an extension.
pub type Elsewhere = Arc<
    dyn Fn(Request<Incoming>) -> Pin<Box<dyn Future<Output = Response<Reply>> + Send>>
        + Send
        + Sync,
>;

/// The gateway as one thread of the data plane has it. Requests hold it by one pointer that only
/// their own thread counts, so that threads do not contend for what they share.
pub struct Door {
    /// What all threads share.
    pub gateway: Gateway,
    /// This thread's way to providers.
    pub upstream: Arc<dyn Upstream>,
    /// What answers everything else.
    pub elsewhere: Elsewhere,
    desk: Desk,
}

impl Door {
    /// A door for one thread.
    pub fn new(gateway: Gateway, upstream: Arc<dyn Upstream>, elsewhere: Elsewhere) -> Self {
        Self {
            desk: gateway.live.desk(),
            gateway,
            upstream,
            elsewhere,
        }
    }

    /// Answers one request.
    pub async fn handle(
        self: Arc<Self>,
        mut request: Request<Incoming>,
        peer: Peer,
    ) -> Response<Reply> {
        if !is_data_plane(request.uri().path()) {
            request.extensions_mut().insert(peer);
            return (self.elsewhere)(request).await;
        }
        let (parts, body) = request.into_parts();
        if let Some(preflight) = cors::preflight(&self.gateway, &parts) {
            return preflight;
        }
        let after = waiting::commits_after(&self.gateway.configuration.settings());
        if let Some(after) = after {
            let parts = Arc::new(parts);
            // Boxed, so that connections of everybody else need no room for it.
            let mut response = Box::pin(waiting::answer(&self, &parts, body, after)).await;
            cors::allow(&self.gateway, &parts.headers, response.headers_mut());
            return response;
        }
        let mut response = call::answer(&self, &parts, body, None).await;
        cors::allow(&self.gateway, &parts.headers, response.headers_mut());
        response
    }
}
