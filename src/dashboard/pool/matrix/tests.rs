//! Folding, renaming, and the bounds of the page.
use super::*;
use crate::domain::{
    pool::{ModelRow, edges::sample},
    protocol::Protocol,
};

fn listed(rows: &[(&str, &str)]) -> Arc<[ModelRow]> {
    let row = |(model, upstream): &(&str, &str)| ModelRow {
        model: (*model).into(),
        upstream_model: (!upstream.is_empty()).then(|| (*upstream).into()),
    };
    rows.iter().map(row).collect()
}

fn credential(n: u128, models: Catalog) -> Credential {
    Credential {
        models,
        ..sample::credential(n, 1, 1)
    }
}

/// "model: cell cell" for each row; a rename is shown as what it asks for.
fn rows(table: &Table) -> Vec<String> {
    let cell = |cell: &Cell| match cell {
        Cell::No => "no".to_owned(),
        Cell::Yes => "yes".to_owned(),
        Cell::Renamed(to) => to.clone(),
    };
    let row = |row: &Row| {
        let cells: Vec<String> = row.cells.iter().map(cell).collect();
        format!("{}: {}", row.model, cells.join(" "))
    };
    table.rows.iter().map(row).collect()
}

#[test]
fn credentials_of_one_catalog_are_one_column_and_renames_are_followed_to_the_end() {
    let endpoint = Endpoint {
        models: Some(listed(&[("gpt-4o", "gpt-4o-2024"), ("gpt-4o-mini", "")])),
        ..sample::endpoint(1, Protocol::OpenAi)
    };
    let fast = || Some(listed(&[("fast", "gpt-4o-mini"), ("gpt-4o", "")]));
    let all = [
        credential(1, fast()),
        credential(2, fast()),
        credential(3, Some(listed(&[("gpt-4o-mini", ""), ("unserved", "")]))),
    ];
    let table = Table::new(&endpoint, &all, false);
    assert_eq!(table.columns.len(), 2);
    assert_eq!(table.columns[0].names.len(), 2);
    assert_eq!(
        rows(&table),
        [
            "fast: gpt-4o-mini no",
            "gpt-4o: gpt-4o-2024 no",
            "gpt-4o-mini: no yes"
        ]
    );
}

#[test]
fn without_any_catalog_there_is_one_sentence_and_no_cell() {
    let all: Vec<Credential> = (1..=20).map(|n| credential(n, None)).collect();
    let table = Table::new(&sample::endpoint(1, Protocol::OpenAi), &all, false);
    let open = table.open.unwrap();
    assert_eq!((open.names.len(), open.more), (NAMED, 17));
    assert!(table.rows.is_empty() && table.columns.is_empty());
}

#[test]
fn a_large_pool_is_cut_and_what_is_left_out_is_counted() {
    let all: Vec<Credential> = (1..=200)
        .map(|n| {
            let names: Vec<String> = (0..500).map(|m| format!("model-{n}-{m}")).collect();
            let rows: Vec<(&str, &str)> = names.iter().map(|m| (m.as_str(), "")).collect();
            credential(n, Some(listed(&rows)))
        })
        .collect();
    for (is_alone, columns, cells) in [(false, COLUMNS.0, CELLS.0), (true, COLUMNS.1, CELLS.1)] {
        let table = Table::new(&sample::endpoint(1, Protocol::OpenAi), &all, is_alone);
        assert_eq!(table.columns.len(), columns);
        assert_eq!(table.more_columns, 200 - columns);
        assert!(table.rows.len() * columns <= cells);
        assert_eq!(table.rows.len() + table.more_rows, 500 * columns);
    }
}

pub(in super::super) fn samples(shell: &Shell) -> Vec<(&'static str, String)> {
    let mut contents = sample::contents(9);
    let names: Vec<String> = (0..200).map(|n| format!("model-{n}")).collect();
    let many: Vec<(&str, &str)> = names.iter().map(|n| (n.as_str(), "other")).collect();
    for (n, credential) in contents.credentials.iter_mut().enumerate().skip(5) {
        credential.models = Some(listed(if n == 5 { &many } else { &many[n..] }));
    }
    contents.credentials[6].models = Some(listed(&[("plain", "")]));
    let none = sample::endpoint(2, Protocol::Gemini);
    contents.endpoints.push(none);
    let only = contents.endpoints[0].id.to_string();
    let pages = [
        page(shell.clone(), &Contents::default(), ""),
        page(shell.clone(), &contents, ""),
        page(shell.clone(), &contents, &only),
        MatrixPage {
            more: 3,
            ..page(shell.clone(), &contents, "")
        },
    ];
    let shown = |page: &MatrixPage| ("pool/matrix", page.render().unwrap());
    pages.iter().map(shown).collect()
}
