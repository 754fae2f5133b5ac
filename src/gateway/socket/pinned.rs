//! The upstream that a client's socket is pinned to: one credential at one endpoint.
//!
//! Invariant: a conversation stays where its state may be. A turn on a socket to upstream is counted
//! there and nowhere else; one that needs a new socket gets it at the same endpoint, at another one of
//! the same credential only if that cannot be had, and never with another credential.
use crate::{
    clock::Instant,
    domain::{
        admission::{Demand, Owner, Tried},
        ids::{CredentialId, EndpointId},
        pool::{EdgeRef, Pool},
        reason::Reason,
    },
    engine::{
        dispatch::{Dispatched, Outgoing, Route, Rules, Undelivered, dispatch},
        live::Progress,
    },
    gateway::{owned::Ties, refuse::Refused},
};

/// Where a socket's turns go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pinned {
    credential: CredentialId,
    endpoint: EndpointId,
}

impl Pinned {
    /// Pinned to where that edge leads.
    pub(super) fn at(edge: &EdgeRef) -> Self {
        Self {
            credential: edge.credential().id,
            endpoint: edge.endpoint().id,
        }
    }

    /// Ties a turn to the credential, unless what it refers to is another one's.
    pub(super) fn tie(self, ties: &mut Ties) -> Result<(), Refused> {
        match ties.owner {
            Owner::Bound(other) if other != self.credential => Err(Refused::new(
                Reason::OwnerConflict,
                "This socket and what the request refers to are held by two different accounts.",
            )),
            _ => {
                ties.owner = Owner::Bound(self.credential);
                Ok(())
            }
        }
    }

    /// Leaves a turn that is tied to the credential nowhere to go but to the endpoint.
    pub(super) fn hold(self, pool: &Pool, demand: &mut Demand) {
        let edges = pool.edges_of(self.credential);
        let endpoints = edges.map(|index| pool.endpoint(pool.edge(index)).id);
        let others = endpoints.filter(|id| *id != self.endpoint);
        demand.tried.extend(others.map(Tried::Endpoint));
    }

    /// The demand of a turn that needs a new socket: for one at the endpoint, and for one elsewhere.
    pub(super) fn split(self, pool: &Pool, demand: Demand) -> (Demand, Demand) {
        let mut there = demand.clone();
        self.hold(pool, &mut there);
        let mut elsewhere = demand;
        elsewhere.tried.push(Tried::Endpoint(self.endpoint));
        (there, elsewhere)
    }
}

/// Brings a turn that needs a new socket to upstream: where it was, or else elsewhere.
pub(super) async fn redial(
    route: Route<'_>,
    (there, mut elsewhere): (Demand, Demand),
    rules: Rules,
    progress: &Progress,
    outgoing: &dyn Outgoing,
) -> Result<Dispatched, Undelivered> {
    let asked_at = Instant::now();
    let error = match dispatch(route, there, rules, progress, outgoing).await {
        Err(error) if cannot_be_had(&error) => error,
        done => return done,
    };
    elsewhere.is_moving |= matches!(error, Undelivered::Failed { .. });
    let rules = Rules {
        patience: rules.patience.saturating_sub(asked_at.elapsed()),
        ..rules
    };
    match dispatch(route, elsewhere, rules, progress, outgoing).await {
        // There is nowhere else, so that what happened there says more.
        Err(Undelivered::Denied(denied)) if is_unavailable(denied.refusal.reason) => Err(error),
        done => done,
    }
}

fn is_unavailable(reason: Reason) -> bool {
    reason == Reason::OwnerUnavailable
}

/// Whether the endpoint takes nothing now, or nothing was asked of it because it is out of reach.
fn cannot_be_had(error: &Undelivered) -> bool {
    match error {
        Undelivered::Denied(denied) => is_unavailable(denied.refusal.reason),
        Undelivered::Failed { reason, .. } => matches!(
            reason,
            Reason::UpstreamUnreachable | Reason::UpgradeRequired
        ),
    }
}
