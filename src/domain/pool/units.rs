//! Units: what the choice of an edge compares with one another.
//!
//! Edges whose slots are counted in one place stand and fall together: those of an account that is
//! limited as a whole, or those of one credential where each is limited for itself or is charged
//! to several accounts. Choosing among units first is what makes a choice cheap in a large pool.
//!
//! Invariant: the edges of a unit stand together in the snapshot's list.
use super::edges::{Contents, Edge, positions};
use crate::domain::{
    ids::AccountId,
    pool::{QuotaScope, State},
};
use std::{collections::HashMap, ops::Range};

/// Edges that share what limits them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Positions of the accounts that are charged, in the snapshot's list.
    pub accounts: Box<[usize]>,
    /// Its edges, as positions in the snapshot's list.
    pub edges: Range<u32>,
    /// Lower numbers are chosen first.
    pub priority: i32,
    /// Share among equals.
    pub weight: u32,
    /// Whether every account takes work.
    pub takes_work: bool,
}

/// A credential within its unit.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) credential: usize,
    pub(super) accounts: Box<[usize]>,
}

/// The credentials that have edges, by unit, in the order of the first of each.
pub(super) fn group(contents: &Contents) -> Vec<Vec<Member>> {
    let accounts: HashMap<AccountId, usize> = positions(contents.accounts.iter().map(|a| a.id));
    let mut shared: HashMap<usize, usize> = HashMap::new();
    let mut units: Vec<Vec<Member>> = Vec::new();
    for (credential, row) in contents.credentials.iter().enumerate() {
        let charged = row.accounts.iter().map(|id| accounts.get(id).copied());
        let Some(charged) = charged.collect::<Option<Box<[usize]>>>() else {
            continue;
        };
        let is_shared = |n: usize| contents.accounts[n].quota_scope == QuotaScope::Account;
        let unit = match *charged {
            [] => continue,
            [one] if is_shared(one) => *shared.entry(one).or_insert(units.len()),
            _ => units.len(),
        };
        let member = Member {
            credential,
            accounts: charged,
        };
        match units.get_mut(unit) {
            Some(members) => members.push(member),
            None => units.push(vec![member]),
        }
    }
    units
}

/// The units of `edges`.
pub(super) fn of(contents: &Contents, edges: &[Edge]) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    for (edge, n) in edges.iter().zip(0u32..) {
        if let Some(last) = units.get_mut(edge.unit as usize) {
            last.edges.end = n + 1;
            continue;
        }
        // A unit whose credentials have no endpoint has no edge, and is never chosen.
        while units.len() < edge.unit as usize {
            units.push(Unit::empty(n));
        }
        let mut states = edge.accounts.iter().map(|a| contents.accounts[*a].state);
        units.push(Unit {
            accounts: edge.accounts.clone(),
            edges: n..n + 1,
            priority: edge.priority,
            weight: edge.weight,
            takes_work: states.all(State::takes_work),
        });
    }
    units
}

impl Unit {
    fn empty(at: u32) -> Self {
        Self {
            accounts: Box::default(),
            edges: at..at,
            priority: 0,
            weight: 1,
            takes_work: false,
        }
    }
}
