//! Which edges serve which model.
//!
//! Invariant: within a table edges stand in the snapshot's order, so that those of one unit stand
//! together and can be found by halving.
use super::{
    Catalog, Credential, Endpoint, ModelRow, Offer,
    edges::{Contents, Edge, EdgeIndex},
};
use crate::domain::protocol::Protocol;
use rustc_hash::FxHashMap;
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

/// Some edges, by unit.
#[derive(Debug, Default)]
pub(super) struct Table {
    edges: Vec<EdgeIndex>,
    /// (unit, where its edges begin in `edges`), ascending.
    units: Vec<(u32, u32)>,
}

impl Table {
    fn push(&mut self, unit: u32, edge: EdgeIndex) {
        if self.units.last().is_none_or(|(last, _)| *last != unit) {
            let begin = u32::try_from(self.edges.len()).unwrap_or(u32::MAX);
            self.units.push((unit, begin));
        }
        self.edges.push(edge);
    }

    fn at(&self, n: usize) -> &[EdgeIndex] {
        let begin = |n: usize| self.units.get(n).map(|(_, at)| *at as usize);
        let end = begin(n + 1).unwrap_or(self.edges.len());
        begin(n)
            .and_then(|begin| self.edges.get(begin..end))
            .unwrap_or_default()
    }

    fn of(&self, unit: u32) -> &[EdgeIndex] {
        self.units
            .binary_search_by_key(&unit, |(unit, _)| *unit)
            .map_or(&[], |n| self.at(n))
    }

    pub(super) fn edges(&self) -> impl Iterator<Item = EdgeIndex> + '_ {
        self.edges.iter().copied()
    }
}

/// Which edges serve what, for one protocol.
#[derive(Debug, Default)]
pub(super) struct Served {
    /// Edges without any catalog: they serve every model.
    pub(super) any: Table,
    by_model: FxHashMap<Arc<str>, Table>,
    /// Every edge once.
    all: Table,
}

static NONE: Table = Table {
    edges: Vec::new(),
    units: Vec::new(),
};

/// The edges that serve what a request asks for.
#[derive(Clone, Copy, Debug)]
pub struct Offers<'a> {
    open: &'a Table,
    listed: &'a Table,
}

impl<'a> Offers<'a> {
    /// At least as many as there are units in it; exact where no unit has edges with and without a
    /// catalog.
    pub fn len(&self) -> usize {
        self.open.units.len() + self.listed.units.len()
    }

    /// Whether some catalog lists the model.
    pub fn is_listed(&self) -> bool {
        !self.listed.units.is_empty()
    }

    /// Whether nothing serves it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The edges of one unit.
    pub fn of(self, unit: u32) -> impl Iterator<Item = EdgeIndex> + 'a {
        let (open, listed) = (self.open.of(unit), self.listed.of(unit));
        open.iter().chain(listed).copied()
    }

    /// The units; one that has edges with and without a catalog comes twice.
    pub fn units(self) -> impl Iterator<Item = u32> + 'a {
        let units = self.open.units.iter().chain(&self.listed.units);
        units.map(|(unit, _)| *unit)
    }

    /// Every edge.
    pub fn edges(self) -> impl Iterator<Item = EdgeIndex> + 'a {
        self.open.edges().chain(self.listed.edges())
    }
}

impl Served {
    pub(super) fn offers(&self, model: Option<&str>) -> Offers<'_> {
        match model {
            None => Offers {
                open: &self.all,
                listed: &NONE,
            },
            Some(model) => Offers {
                open: &self.any,
                listed: self.by_model.get(model).unwrap_or(&NONE),
            },
        }
    }

    pub(super) fn catalog(&self) -> Vec<(&Arc<str>, &[EdgeIndex])> {
        let rows = self.by_model.iter();
        let mut rows: Vec<_> = rows.map(|(m, t)| (m, t.edges.as_slice())).collect();
        rows.sort_unstable_by_key(|(model, _)| *model);
        rows
    }
}

/// The tables of every protocol.
pub(super) fn tables(contents: &Contents, edges: &[Edge]) -> [Served; Protocol::ALL.len()] {
    let mut names = Names::default();
    let mut tables: [Served; Protocol::ALL.len()] = Default::default();
    let mut listed: [Vec<Table>; Protocol::ALL.len()] = Default::default();
    for (edge, n) in edges.iter().zip(0u32..) {
        let endpoint = &contents.endpoints[edge.endpoint];
        let models = names.of(
            &contents.credentials[edge.credential],
            endpoint,
            edge.endpoint,
        );
        for protocol in &endpoint.protocols {
            let table = &mut tables[protocol.index()];
            table.all.push(edge.unit, EdgeIndex(n));
            let Some(models) = &models else {
                table.any.push(edge.unit, EdgeIndex(n));
                continue;
            };
            let by_model = &mut listed[protocol.index()];
            for model in models.iter() {
                if by_model.len() <= *model {
                    by_model.resize_with(model + 1, Table::default);
                }
                by_model[*model].push(edge.unit, EdgeIndex(n));
            }
        }
    }
    for (table, by_model) in tables.iter_mut().zip(listed) {
        let rows = names.all.iter().zip(by_model);
        let rows = rows.filter(|(_, t)| !t.edges.is_empty());
        table.by_model = rows.map(|(name, t)| (Arc::clone(name), t)).collect();
    }
    tables
}

/// Models by number. Large pools repeat the same catalog for each credential; each pair of catalogs
/// is worked out once.
#[derive(Default)]
struct Names {
    all: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, usize>,
    known: HashMap<(*const ModelRow, usize), Option<Arc<[usize]>>>,
}

impl Names {
    fn of(
        &mut self,
        credential: &Credential,
        endpoint: &Endpoint,
        position: usize,
    ) -> Option<Arc<[usize]>> {
        let rows = credential.models.as_ref();
        let pair = (rows.map_or(std::ptr::null(), |r| r.as_ptr()), position);
        // Two empty catalogs may share an address, and serve the same: nothing.
        if let Some(known) = self.known.get(&pair) {
            return known.clone();
        }
        let served = served_models(&credential.models, &endpoint.models);
        let numbered = served.map(|names| names.iter().map(|name| self.number(name)).collect());
        self.known.insert(pair, numbered.clone());
        numbered
    }

    fn number(&mut self, name: &Arc<str>) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.all.len();
        self.all.push(Arc::clone(name));
        self.numbers.insert(Arc::clone(name), number);
        number
    }
}

/// The names under which clients can ask a credential and an endpoint of these catalogs; `None` means any name.
pub fn served_models(credential: &Catalog, endpoint: &Catalog) -> Option<BTreeSet<Arc<str>>> {
    match (credential, endpoint) {
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
