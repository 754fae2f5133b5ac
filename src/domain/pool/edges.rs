//! The snapshot of the pool, with the edges and what serves which model worked out.
//!
//! Invariant: a snapshot never changes; an [`EdgeIndex`] means something only together with the
//! snapshot that it came from.
use super::{Account, ClientKey, Credential, Endpoint, KeyHash, Offer};
use crate::domain::{
    ids::{AccountId, EndpointId},
    protocol::Protocol,
};
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

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
    /// Positions of the accounts that are charged.
    pub accounts: Box<[usize]>,
    /// Lower numbers are chosen first: the worst of its accounts'.
    pub priority: i32,
    /// Share among equals: the smallest of its accounts'.
    pub weight: u32,
}

/// Names an edge within one snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EdgeIndex(u32);

impl EdgeIndex {
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

/// Which edges serve what, for one protocol.
#[derive(Debug, Default)]
struct Served {
    /// Edges without any catalog: they serve every model.
    any: Vec<EdgeIndex>,
    /// Edges by the model that clients ask for.
    by_model: HashMap<Arc<str>, Vec<EdgeIndex>>,
    /// Every edge once.
    all: Vec<EdgeIndex>,
}

/// An immutable snapshot of the pool.
#[derive(Debug, Default)]
pub struct Pool {
    contents: Contents,
    edges: Vec<Edge>,
    served: [Served; Protocol::ALL.len()],
    keys: HashMap<KeyHash, Arc<ClientKey>>,
}

impl Pool {
    /// Works out the edges of `contents`.
    pub fn new(contents: Contents) -> Self {
        let keys = contents
            .keys
            .iter()
            .map(|k| (k.hash, Arc::clone(k)))
            .collect();
        let mut pool = Self {
            edges: edges_of(&contents),
            keys,
            contents,
            served: Default::default(),
        };
        pool.index();
        pool
    }

    fn index(&mut self) {
        let mut served: [Served; Protocol::ALL.len()] = Default::default();
        for (n, edge) in self.edges.iter().enumerate() {
            // Positions beyond 32 bits would need more memory than any machine has.
            let Ok(n) = u32::try_from(n) else { break };
            let models = served_models(
                &self.contents.credentials[edge.credential],
                &self.contents.endpoints[edge.endpoint],
            );
            for protocol in &self.contents.endpoints[edge.endpoint].protocols {
                let table = &mut served[protocol.index()];
                table.all.push(EdgeIndex(n));
                match &models {
                    None => table.any.push(EdgeIndex(n)),
                    Some(models) => {
                        for model in models {
                            let list = table.by_model.entry(Arc::clone(model)).or_default();
                            list.push(EdgeIndex(n));
                        }
                    }
                }
            }
        }
        self.served = served;
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

    /// The edges that speak `protocol` and serve `model`, whatever their state; all that speak
    /// it where the operation needs no model.
    pub fn candidates(
        &self,
        protocol: Protocol,
        model: Option<&str>,
    ) -> impl Iterator<Item = EdgeIndex> + '_ {
        let served = &self.served[protocol.index()];
        let (first, second): (&[EdgeIndex], &[EdgeIndex]) = match model {
            None => (&served.all, &[]),
            Some(model) => (
                &served.any,
                served.by_model.get(model).map_or(&[], Vec::as_slice),
            ),
        };
        first.iter().chain(second).copied()
    }

    /// The edges that speak `protocol` and have no catalog: they serve every model.
    pub fn open_edges(&self, protocol: Protocol) -> impl Iterator<Item = EdgeIndex> + '_ {
        self.served[protocol.index()].any.iter().copied()
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
        let table = &self.served[protocol.index()].by_model;
        let mut rows: Vec<_> = table.iter().map(|(m, e)| (m, e.as_slice())).collect();
        rows.sort_unstable_by_key(|(model, _)| *model);
        rows
    }
}

fn edges_of(contents: &Contents) -> Vec<Edge> {
    let endpoints: HashMap<EndpointId, usize> = positions(contents.endpoints.iter().map(|e| e.id));
    let accounts: HashMap<AccountId, usize> = positions(contents.accounts.iter().map(|a| a.id));
    let mut edges = Vec::new();
    for (credential, row) in contents.credentials.iter().enumerate() {
        let charged: Option<Box<[usize]>> = row
            .accounts
            .iter()
            .map(|id| accounts.get(id).copied())
            .collect();
        let Some(charged) = charged.filter(|c| !c.is_empty()) else {
            continue;
        };
        let of = |n: &usize| &contents.accounts[*n];
        let priority = charged.iter().map(|n| of(n).priority).max().unwrap_or(0);
        let weight = charged.iter().map(|n| of(n).weight).min().unwrap_or(1);
        for endpoint in row.endpoints.iter().filter_map(|id| endpoints.get(id)) {
            edges.push(Edge {
                credential,
                endpoint: *endpoint,
                accounts: charged.clone(),
                priority,
                weight,
            });
        }
    }
    edges
}

fn positions<T: Eq + std::hash::Hash>(ids: impl Iterator<Item = T>) -> HashMap<T, usize> {
    ids.enumerate().map(|(n, id)| (id, n)).collect()
}

/// The names under which clients can ask this pair; `None` means any name.
fn served_models(credential: &Credential, endpoint: &Endpoint) -> Option<BTreeSet<Arc<str>>> {
    match (&credential.models, &endpoint.models) {
        (None, None) => None,
        (None, Some(rows)) => Some(rows.iter().map(|r| Arc::clone(&r.model)).collect()),
        (Some(rows), at_endpoint) => Some(
            rows.iter()
                .filter(|row| {
                    let asked = row.upstream_model.as_ref().unwrap_or(&row.model);
                    Offer::of(at_endpoint, asked) != Offer::Missing
                })
                .map(|row| Arc::clone(&row.model))
                .collect(),
        ),
    }
}

#[cfg(test)]
mod tests;

/// Small pools for the tests of every room that needs one.
#[cfg(test)]
pub(crate) mod sample;
