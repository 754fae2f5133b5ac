//! The dependency rules of `src/lib.rs`, held against the text of the sources.
#![expect(
    clippy::unwrap_used,
    reason = "clippy exempts test functions, not their helpers"
)]

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Adapters; none may name another, except that what faces operators reads and writes the store.
const ADAPTERS: &[&str] = &["upstream", "store", "gateway", "api", "dashboard", "sim"];

/// Those that face operators: they read and write the store, and bring changes into force.
const FACING_OPERATORS: &[&str] = &["api", "dashboard"];

/// For each room: what its files may not name outside their tests.
const FORBIDDEN: &[(&str, &[&str])] = &[
    (
        "domain",
        &[
            "serde",
            "http::",
            "hyper",
            "axum",
            "tokio",
            "rusqlite",
            "tracing",
            "rand::",
            "async ",
            ".await",
            "std::fs",
            "std::io",
            "SystemTime",
            "Instant",
            "crate::engine",
            "crate::protocol",
            "crate::clock",
            "crate::entropy",
            "crate::telemetry",
            "crate::document",
            "crate::ports",
        ],
    ),
    (
        "protocol",
        &[
            "tokio",
            "hyper",
            "axum",
            "rusqlite",
            "tracing",
            "async ",
            ".await",
            "std::fs",
            "crate::engine",
            "crate::clock",
            "crate::entropy",
        ],
    ),
    (
        "document",
        &["tokio", "hyper", "axum", "rusqlite", "async "],
    ),
    ("engine", &["axum", "hyper", "rusqlite", "crate::telemetry"]),
    ("telemetry", &["axum", "hyper", "rusqlite", "crate::engine"]),
    ("upstream", &["axum", "rusqlite", "crate::telemetry"]),
    ("gateway", &["axum", "rusqlite"]),
    (
        "store",
        &["axum", "hyper", "crate::engine", "crate::protocol"],
    ),
    ("api", &["rusqlite"]),
    ("dashboard", &["rusqlite", "hyper"]),
    ("access", &["rusqlite", "axum", "hyper"]),
    (
        "peer",
        &["rusqlite", "axum", "hyper", "tokio", "crate::store"],
    ),
    (
        "sim",
        &[
            "crate::domain",
            "crate::engine",
            "crate::protocol",
            "rusqlite",
        ],
    ),
];

#[test]
fn rooms_name_only_what_lies_inwards() {
    let mut broken = Vec::new();
    for (room, forbidden) in FORBIDDEN {
        let mut forbidden: Vec<String> = forbidden.iter().map(|w| (*w).to_owned()).collect();
        let faces_operators = FACING_OPERATORS.contains(room);
        // Who may operate is decided between the store and those that face operators.
        let reloads = faces_operators || *room == "access";
        forbidden.extend(
            ["crate::app", "crate::cli", "crate::config", "crate::reload"]
                .into_iter()
                .filter(|w| !(reloads && *w == "crate::reload"))
                .map(str::to_owned),
        );
        let others = ADAPTERS.iter().filter(|a| *a != room);
        let others = others.filter(|a| !(reloads && **a == "store"));
        forbidden.extend(others.map(|a| format!("crate::{a}")));
        for file in rust_files(room) {
            for (n, line) in code(&file) {
                for word in forbidden.iter().filter(|w| line.contains(w.as_str())) {
                    broken.push(format!("{}:{n}: `{word}` in {room}", file.display()));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn only_the_command_line_knows_the_simulator() {
    let outside = rust_files("").into_iter().filter(|f| {
        !f.starts_with("src/cli") && !f.starts_with("src/sim") && f != Path::new("src/sim.rs")
    });
    let named: Vec<_> = outside
        .filter(|f| code(f).iter().any(|(_, l)| l.contains("crate::sim")))
        .collect();
    assert!(named.is_empty(), "{named:?}");
}

#[test]
fn every_file_says_what_it_is() {
    for file in rust_files("") {
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("//!"), "{}", file.display());
    }
}

#[test]
fn no_file_is_longer_than_600_lines() {
    for file in rust_files("") {
        let lines = fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines <= 600, "{} has {lines} lines", file.display());
    }
}

/// The lines that are neither comments nor tests, with their numbers.
fn code(file: &Path) -> Vec<(usize, String)> {
    if file.ends_with("tests.rs") || file.ends_with("sample.rs") {
        return Vec::new();
    }
    let text = fs::read_to_string(file).unwrap();
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    code.lines()
        .enumerate()
        .filter(|(_, l)| !l.trim_start().starts_with("//"))
        .map(|(n, l)| (n + 1, l.to_owned()))
        .collect()
}

/// Every source file of a room (`""` is the whole house).
fn rust_files(room: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let house = Path::new("src");
    let front = house.join(format!("{room}.rs"));
    if front.exists() {
        found.push(front);
    }
    walk(&house.join(room), &mut found);
    assert!(!found.is_empty(), "there is no room {room:?}");
    found
}

fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    for entry in entries.map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}
