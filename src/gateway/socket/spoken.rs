//! Where sockets can be had: at edges whose endpoint is not known to lack WebSocket.
//!
//! Invariant: an upgrade is agreed to only where some edge may serve what comes on it; what no edge
//! can serve over WebSocket is sent to HTTP, where every edge can.
use super::super::{
    Door, Gateway,
    refuse::{NO_WEBSOCKET, Refused},
};
use crate::{
    domain::{
        admission::{Demand, Owner, Tried},
        dispatch::{Cause, Moved},
        pool::{ClientKey, EdgeRef},
        protocol::Protocol,
        reason::Reason,
        unspoken::SocketKind,
    },
    engine::dispatch::Observer,
    ports::SendFailure,
};
use rustc_hash::FxHashSet;

/// Whether some edge that the key may use could serve a socket of that kind.
pub(super) fn can_be_served(door: &Door, key: Option<&ClientKey>, kind: SocketKind) -> bool {
    let gateway = &door.gateway;
    let pool = gateway.configuration.pool();
    let scope = key.and_then(|k| k.accounts.as_deref());
    let silent = gateway.unspoken.of(&pool, kind);
    pool.edges().iter().any(|edge| {
        let endpoint = pool.endpoint(edge);
        endpoint.protocols.contains(&Protocol::OpenAi)
            && !silent.contains(&endpoint.id)
            && pool.is_in_scope(edge, scope)
            && pool.takes_work(edge)
    })
}

/// Keeps a request off endpoints that are known to lack WebSocket; refuses it where only they could
/// take it.
pub(super) fn keep_off(
    gateway: &Gateway,
    demand: &mut Demand,
    kind: SocketKind,
) -> Result<(), Refused> {
    let pool = gateway.configuration.pool();
    let silent = gateway.unspoken.of(&pool, kind);
    if silent.is_empty() {
        return Ok(());
    }
    let mut met = FxHashSet::default();
    let mut is_served = false;
    for index in pool.candidates(demand.protocol, demand.model.as_deref()) {
        let edge = pool.edge(index);
        let is_its = match demand.owner {
            Owner::Bound(credential) => pool.credential(edge).id == credential,
            Owner::Nobody | Owner::Unknown => true,
        };
        if !is_its || !pool.is_in_scope(edge, demand.scope()) || !pool.takes_work(edge) {
            continue;
        }
        let endpoint = pool.endpoint(edge).id;
        if silent.contains(&endpoint) {
            met.insert(endpoint);
        } else {
            is_served = true;
        }
    }
    if !is_served && !met.is_empty() {
        return Err(Refused::new(Reason::UpgradeRequired, NO_WEBSOCKET));
    }
    demand.tried.extend(met.into_iter().map(Tried::Endpoint));
    Ok(())
}

/// Notes what attempts show of their endpoints, and tells of the rest as of any attempt.
#[derive(Clone, Copy)]
pub(super) struct Noting<'a> {
    pub(super) gateway: &'a Gateway,
    pub(super) kind: SocketKind,
}

impl Noting<'_> {
    /// An upgrade has succeeded there.
    pub(super) fn agreed(self, edge: &EdgeRef) {
        self.gateway.unspoken.agreed(edge.endpoint().id, self.kind);
    }
}

impl Observer for Noting<'_> {
    fn attempt_failed(&self, edge: &EdgeRef, failure: &SendFailure) {
        if failure.cause != Cause::NotSpoken {
            return self.gateway.attempt_failed(edge, failure);
        }
        let endpoint = edge.endpoint();
        if self.gateway.unspoken.refused(endpoint, self.kind) {
            tracing::info!(
                endpoint = %endpoint.id,
                kind = ?self.kind,
                answer = %failure,
                "an endpoint does not speak WebSocket; it is not asked again for a while"
            );
        }
    }

    fn moved(&self, why: Moved) {
        self.gateway.moved(why);
    }
}
