//! Which credential serves which model, by endpoint: credentials of the same catalog are one column,
//! so that a large pool stays readable.
//!
//! Invariant: the page is bounded, however many things are in the pool; what is left out is counted.
use crate::{
    dashboard::{
        State,
        error::Trouble,
        session::Operator,
        shell::{Shell, render},
        wants::Wants,
    },
    domain::pool::{Catalog, Credential, Endpoint, Offer, edges::Contents, served::served_models},
};
use askama::Template;
use axum::{
    extract::{self, Query},
    response::Response,
};
use serde::Deserialize;
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

/// Endpoints that are shown at most.
const ENDPOINTS: usize = 40;
/// Columns of a table at most, beside others and alone.
const COLUMNS: (usize, usize) = (6, 24);
/// Cells of a table at most, beside others and alone.
const CELLS: (usize, usize) = (150, 6_000);
/// Credentials that are named of a column.
const NAMED: usize = 3;

#[derive(Default, Deserialize)]
pub(super) struct Asked {
    /// The only endpoint that is wanted, by id.
    #[serde(default)]
    endpoint: String,
}

#[derive(Template)]
#[template(path = "pool/matrix.html")]
struct MatrixPage {
    shell: Shell,
    tables: Vec<Table>,
    more: usize,
    /// Whether one endpoint alone is shown.
    is_alone: bool,
}

/// One endpoint.
struct Table {
    id: String,
    name: Arc<str>,
    path: String,
    /// Credentials that may ask for every model.
    open: Option<Column>,
    columns: Vec<Column>,
    rows: Vec<Row>,
    more_columns: usize,
    more_rows: usize,
}

/// Credentials of the same catalog.
struct Column {
    names: Vec<Arc<str>>,
    more: usize,
}

/// One model.
struct Row {
    model: Arc<str>,
    cells: Vec<Cell>,
}

/// What a column's credentials do with a model.
enum Cell {
    No,
    Yes,
    /// The provider is asked for this one.
    Renamed(String),
}

impl Column {
    fn new(credentials: &[&Credential]) -> Self {
        let names = credentials.iter().take(NAMED);
        Self {
            names: names.map(|c| Arc::clone(&c.name)).collect(),
            more: credentials.len().saturating_sub(NAMED),
        }
    }
}

impl Table {
    fn new(endpoint: &Endpoint, credentials: &[Credential], is_alone: bool) -> Self {
        let most = |(beside, alone)| if is_alone { alone } else { beside };
        let groups = groups(endpoint, credentials);
        let (open, listed): (Vec<_>, Vec<_>) = groups
            .into_iter()
            .map(|(catalog, who)| (served_models(catalog, &endpoint.models), catalog, who))
            .partition(|(served, ..)| served.is_none());
        let open: Vec<&Credential> = open.into_iter().flat_map(|(_, _, who)| who).collect();
        let more_columns = listed.len().saturating_sub(most(COLUMNS));
        let listed = listed
            .get(..listed.len() - more_columns)
            .unwrap_or_default();
        let models: BTreeSet<&Arc<str>> = listed
            .iter()
            .flat_map(|(s, ..)| s.iter().flatten())
            .collect();
        let cell = |(served, catalog, _): &(Option<BTreeSet<Arc<str>>>, &Catalog, _),
                    model: &Arc<str>| {
            if served.as_ref().is_some_and(|served| served.contains(model)) {
                of(catalog, &endpoint.models, model)
            } else {
                Cell::No
            }
        };
        let shown = most(CELLS) / listed.len().max(1);
        let rows = models.iter().take(shown).map(|model| Row {
            model: Arc::clone(model),
            cells: listed.iter().map(|group| cell(group, model)).collect(),
        });
        Self {
            rows: rows.collect(),
            more_rows: models.len().saturating_sub(shown),
            columns: listed.iter().map(|(.., who)| Column::new(who)).collect(),
            more_columns,
            open: (!open.is_empty()).then(|| Column::new(&open)),
            id: endpoint.id.to_string(),
            name: Arc::clone(&endpoint.name),
            path: format!("/pool/endpoints/{}", endpoint.id),
        }
    }

    fn is_cut(&self) -> bool {
        self.more_rows > 0 || self.more_columns > 0
    }
}

/// The credentials that work at an endpoint, by catalog, largest group first.
fn groups<'a>(
    endpoint: &Endpoint,
    credentials: &'a [Credential],
) -> Vec<(&'a Catalog, Vec<&'a Credential>)> {
    let mut places: HashMap<&Catalog, usize> = HashMap::new();
    let mut groups: Vec<(&Catalog, Vec<&Credential>)> = Vec::new();
    for credential in credentials
        .iter()
        .filter(|c| c.endpoints.contains(&endpoint.id))
    {
        let place = *places.entry(&credential.models).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, who)) => who.push(credential),
            None => groups.push((&credential.models, vec![credential])),
        }
    }
    groups.sort_by_key(|(_, who)| std::cmp::Reverse(who.len()));
    groups
}

/// What the provider is asked for, where a model is served.
fn of(own: &Catalog, endpoint: &Catalog, model: &str) -> Cell {
    let asked = Offer::of(own, model).upstream_model(model);
    let asked = Offer::of(endpoint, asked).upstream_model(asked);
    if asked == model {
        Cell::Yes
    } else {
        Cell::Renamed(asked.to_owned())
    }
}

/// `GET /pool/matrix`.
pub(super) async fn show(
    extract::State(state): extract::State<State>,
    shell: Shell,
    (wants, _): (Wants, Operator),
    Query(asked): Query<Asked>,
) -> Response {
    let pool = match state.store().pool().await {
        Ok(pool) => pool,
        Err(error) => return Trouble::from(error).respond(&shell, wants),
    };
    let page = page(shell.clone(), &pool.contents, &asked.endpoint);
    if page.is_alone && page.tables.is_empty() {
        return Trouble::NotFound.respond(&shell, wants);
    }
    render(&page)
}

fn page(shell: Shell, contents: &Contents, only: &str) -> MatrixPage {
    let is_alone = !only.is_empty();
    let wanted = |e: &&Endpoint| !is_alone || e.id.to_string() == only;
    let endpoints: Vec<&Endpoint> = contents.endpoints.iter().filter(wanted).collect();
    let table = |e: &&Endpoint| Table::new(e, &contents.credentials, is_alone);
    MatrixPage {
        tables: endpoints.iter().take(ENDPOINTS).map(table).collect(),
        more: endpoints.len().saturating_sub(ENDPOINTS),
        is_alone,
        shell,
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(super) use self::tests::samples;
