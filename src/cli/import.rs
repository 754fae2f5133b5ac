//! `fairlane import FILE`: loads a pool document, or a list of secrets.
use crate::{
    config::Boot,
    document::{read_json, read_list},
    domain::pool::document::{Change, ChangeKind, Document, Mode, Plan},
    store::Store,
};
use anyhow::Context as _;
use std::{fs, io::Read as _, path::PathBuf};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The document; - for standard input.
    file: PathBuf,
    /// Also drain what is no longer listed.
    #[arg(long)]
    sync: bool,
    /// Only show what would be done.
    #[arg(long)]
    dry_run: bool,
    /// The file is a list of secrets for this endpoint or preset, not a document.
    #[arg(long, value_name = "NAME")]
    endpoint: Option<String>,
}

pub(super) fn run(boot: &Boot, arguments: &Arguments) -> anyhow::Result<()> {
    let bytes = read(arguments)?;
    let document = document(&bytes, arguments.endpoint.as_deref())?;
    // A dry run leaves nothing behind, a new database least of all.
    let store = if arguments.dry_run {
        super::open_existing(boot)?
    } else {
        Store::open(&boot.db)?
    };
    let mode = if arguments.sync {
        Mode::Sync
    } else {
        Mode::Merge
    };
    let plan = if arguments.dry_run {
        store.plan_import_blocking(document, mode)?
    } else {
        store.import_blocking(document, mode)?
    };
    store.close();
    report(&plan, arguments.dry_run);
    Ok(())
}

fn read(arguments: &Arguments) -> anyhow::Result<Vec<u8>> {
    if arguments.file.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    fs::read(&arguments.file).with_context(|| format!("cannot read {}", arguments.file.display()))
}

fn document(bytes: &[u8], endpoint: Option<&str>) -> anyhow::Result<Document> {
    let Some(endpoint) = endpoint else {
        return read_json(bytes).map_err(|m| crate::store::pool::ImportError::Mistakes(m).into());
    };
    let text = std::str::from_utf8(bytes).context("the list is not text in UTF-8")?;
    Ok(read_list(text, endpoint))
}

/// What was done (or would be) goes to standard error; minted secrets to standard output.
fn report(plan: &Plan, is_dry_run: bool) {
    for warning in &plan.warnings {
        eprintln!("warning: {warning}");
    }
    let lines = [
        lines("endpoint", &plan.endpoints, |e| &e.name),
        lines("account", &plan.accounts, |a| &a.name),
        lines("credential", &plan.credentials, |c| &c.name),
        lines("key", &plan.keys, |k| &k.name),
    ]
    .concat();
    for line in &lines {
        eprintln!("{line}");
    }
    if lines.is_empty() {
        eprintln!("nothing changes");
    } else if is_dry_run {
        eprintln!("nothing was written (--dry-run)");
    }
    if !is_dry_run {
        for key in &plan.minted {
            println!("{}\t{}", key.name, key.secret.expose());
        }
    }
}

fn lines<T>(kind: &str, changes: &[Change<T>], name: fn(&T) -> &str) -> Vec<String> {
    changes
        .iter()
        .filter(|c| c.kind != ChangeKind::Unchanged)
        .map(|c| format!("{} {kind} {}", c.kind.name(), name(&c.value)))
        .collect()
}
