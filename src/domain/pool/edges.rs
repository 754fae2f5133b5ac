//! The snapshot of the pool, with the edges and what serves which model worked out.
//!
//! Invariant: a snapshot never changes; an [`EdgeIndex`] means something only together with the
//! snapshot that it came from.
use super::{
    Account, ClientKey, Credential, Endpoint, KeyHash, Offer,
    served::{self, Offers, Served},
    units::{self, Unit},
};
use crate::domain::{
    ids::{AccountId, CredentialId, EndpointId},
    protocol::Protocol,
};
use std::{collections::HashMap, ops::Range, sync::Arc};

/// What a snapshot is made of.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// Every endpoint.
    pub endpoints: Vec<Endpoint>,
    /// Every account.
    pub accounts: Vec<Account>,
    /// Every credential; those that name something which is not there have no edges.
    pub credentials: Vec<Credential>,
    /// Every client key.
    pub keys: Vec<Arc<ClientKey>>,
}

/// One usable (credential, endpoint) pair. Positions are those in the snapshot's lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Position of the credential.
    pub credential: usize,
    /// Position of the endpoint.
    pub endpoint: usize,
    /// Position of the unit that it belongs to.
    pub unit: u32,
    /// Positions of the accounts that are charged.
    pub accounts: Box<[usize]>,
    /// Lower numbers are chosen first: the worst of its accounts'.
    pub priority: i32,
    /// Share among equals: the smallest of its accounts'.
    pub weight: u32,
}

/// Names an edge within one snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EdgeIndex(pub(super) u32);

impl EdgeIndex {
    /// The position, as it is stored.
    pub const fn raw(self) -> u32 {
        self.0
    }

    /// The position within [`Pool::edges`].
    pub const fn position(self) -> usize {
        self.0 as usize
    }
}

/// An edge together with the snapshot that it belongs to.
#[derive(Clone, Debug)]
pub struct EdgeRef {
    pool: Arc<Pool>,
    index: EdgeIndex,
}

impl EdgeRef {
    /// The edge at `index` of `pool`.
    pub const fn new(pool: Arc<Pool>, index: EdgeIndex) -> Self {
        Self { pool, index }
    }

    /// The edge itself.
    pub fn edge(&self) -> &Edge {
        self.pool.edge(self.index)
    }

    /// Its credential.
    pub fn credential(&self) -> &Credential {
        self.pool.credential(self.edge())
    }

    /// Its endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        self.pool.endpoint(self.edge())
    }

    /// The accounts that it is charged to.
    pub fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.pool.accounts_of(self.edge())
    }

    /// What upstream is asked for when a client asks this edge for `model`.
    pub fn upstream_model<'a>(&'a self, model: &'a str) -> &'a str {
        self.pool.upstream_model(self.edge(), model)
    }
}

/// An immutable snapshot of the pool.
#[derive(Debug, Default)]
pub struct Pool {
    contents: Contents,
    edges: Vec<Edge>,
    units: Vec<Unit>,
    served: [Served; Protocol::ALL.len()],
    keys: HashMap<KeyHash, Arc<ClientKey>>,
    by_credential: HashMap<CredentialId, Range<u32>>,
}

impl Pool {
    /// Works out the edges of `contents`.
    pub fn new(contents: Contents) -> Self {
        let keys = contents
            .keys
            .iter()
            .map(|k| (k.hash, Arc::clone(k)))
            .collect();
        let edges = edges_of(&contents);
        let mut by_credential: HashMap<CredentialId, Range<u32>> = HashMap::new();
        // Positions beyond 32 bits would need more memory than any machine has.
        for (edge, n) in edges.iter().zip(0u32..) {
            let id = contents.credentials[edge.credential].id;
            by_credential.entry(id).or_insert(n..n).end = n + 1;
        }
        Self {
            served: served::tables(&contents, &edges),
            units: units::of(&contents, &edges),
            by_credential,
            edges,
            keys,
            contents,
        }
    }

    /// Every endpoint.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.contents.endpoints
    }

    /// Every account.
    pub fn accounts(&self) -> &[Account] {
        &self.contents.accounts
    }

    /// Every credential.
    pub fn credentials(&self) -> &[Credential] {
        &self.contents.credentials
    }

    /// Every client key.
    pub fn keys(&self) -> &[Arc<ClientKey>] {
        &self.contents.keys
    }

    /// Every edge; the position is the [`EdgeIndex`].
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The edge of that index.
    pub fn edge(&self, index: EdgeIndex) -> &Edge {
        &self.edges[index.position()]
    }

    /// The credential of an edge.
    pub fn credential(&self, edge: &Edge) -> &Credential {
        &self.contents.credentials[edge.credential]
    }

    /// The endpoint of an edge.
    pub fn endpoint(&self, edge: &Edge) -> &Endpoint {
        &self.contents.endpoints[edge.endpoint]
    }

    /// The accounts of an edge.
    pub fn accounts_of<'a>(&'a self, edge: &'a Edge) -> impl Iterator<Item = &'a Account> {
        edge.accounts.iter().map(|n| &self.contents.accounts[*n])
    }

    /// The client key with that hash.
    pub fn key(&self, hash: &KeyHash) -> Option<&Arc<ClientKey>> {
        self.keys.get(hash)
    }

    /// Every unit; an edge's `unit` is a position in it.
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// The edges that speak `protocol` and serve `model`, by unit, whatever their state; all that
    /// speak it where the operation needs no model.
    pub fn offers(&self, protocol: Protocol, model: Option<&str>) -> Offers<'_> {
        self.served[protocol.index()].offers(model)
    }

    /// The same, edge by edge.
    pub fn candidates(
        &self,
        protocol: Protocol,
        model: Option<&str>,
    ) -> impl Iterator<Item = EdgeIndex> + '_ {
        self.offers(protocol, model).edges()
    }

    /// The edges of a credential.
    pub fn edges_of(&self, credential: CredentialId) -> impl Iterator<Item = EdgeIndex> + '_ {
        let range = self.by_credential.get(&credential).cloned();
        range.into_iter().flatten().map(EdgeIndex)
    }

    /// The edges that speak `protocol` and have no catalog: they serve every model.
    pub fn open_edges(&self, protocol: Protocol) -> impl Iterator<Item = EdgeIndex> + '_ {
        self.served[protocol.index()].any.edges()
    }

    /// Whether edge and key go together: every account that would be charged is in scope.
    pub fn is_in_scope(&self, edge: &Edge, accounts: Option<&[AccountId]>) -> bool {
        accounts.is_none_or(|scope| self.accounts_of(edge).all(|a| scope.contains(&a.id)))
    }

    /// Whether credential, endpoint and accounts of the edge all take new work.
    pub fn takes_work(&self, edge: &Edge) -> bool {
        self.credential(edge).state.takes_work()
            && self.endpoint(edge).state.takes_work()
            && self.accounts_of(edge).all(|a| a.state.takes_work())
    }

    /// What upstream is asked for when a client asks this edge for `model`.
    pub fn upstream_model<'a>(&'a self, edge: &Edge, model: &'a str) -> &'a str {
        let own = Offer::of(&self.credential(edge).models, model).upstream_model(model);
        Offer::of(&self.endpoint(edge).models, own).upstream_model(own)
    }

    /// The models that clients can ask for by name through `protocol`, sorted, with the edges
    /// that serve each. Edges without a catalog add no names.
    pub fn catalog(&self, protocol: Protocol) -> Vec<(&Arc<str>, &[EdgeIndex])> {
        self.served[protocol.index()].catalog()
    }
}

/// Edges in the order of their units, so that those of one unit stand together.
fn edges_of(contents: &Contents) -> Vec<Edge> {
    let endpoints: HashMap<EndpointId, usize> = positions(contents.endpoints.iter().map(|e| e.id));
    let grouped = units::group(contents);
    let mut edges = Vec::new();
    for (member, unit) in grouped
        .iter()
        .zip(0u32..)
        .flat_map(|(u, n)| u.iter().map(move |m| (m, n)))
    {
        let row = &contents.credentials[member.credential];
        let of = |n: &usize| &contents.accounts[*n];
        let charged = member.accounts.iter();
        let priority = charged.clone().map(|n| of(n).priority).max().unwrap_or(0);
        let weight = charged.map(|n| of(n).weight).min().unwrap_or(1);
        for endpoint in row.endpoints.iter().filter_map(|id| endpoints.get(id)) {
            edges.push(Edge {
                credential: member.credential,
                endpoint: *endpoint,
                unit,
                accounts: member.accounts.clone(),
                priority,
                weight,
            });
        }
    }
    edges
}

pub(super) fn positions<T: Eq + std::hash::Hash>(
    ids: impl Iterator<Item = T>,
) -> HashMap<T, usize> {
    ids.enumerate().map(|(n, id)| (id, n)).collect()
}

#[cfg(test)]
mod tests;

/// Small pools for the tests of every room that needs one.
#[cfg(test)]
pub(crate) mod sample;
