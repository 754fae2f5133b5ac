//! `fairlane export`: prints the pool document.
use crate::{config::Boot, document::write_json, store};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Print upstream secrets too. Client keys are stored as hashes and cannot be printed.
    #[arg(long)]
    with_secrets: bool,
}

pub(super) fn run(boot: &Boot, arguments: &Arguments) -> anyhow::Result<()> {
    let store = super::open_existing(boot)?;
    let pool = store.read_blocking(store::pool::pool)?;
    let document = write_json(&pool.contents, arguments.with_secrets);
    println!("{}", serde_json::to_string_pretty(&document)?);
    Ok(())
}
