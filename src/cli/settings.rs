//! `fairlane settings`: every setting with its value and where that comes from.
use crate::{
    config::Boot,
    domain::settings::{Layer, Settings, TABLE},
    store::{self, Store},
};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Print the reference as a Markdown table instead.
    #[arg(long)]
    markdown: bool,
}

pub(super) fn run(boot: &Boot, arguments: &Arguments) -> anyhow::Result<()> {
    if arguments.markdown {
        println!("{}", markdown());
        return Ok(());
    }
    // Without a database yet, nobody has overridden anything.
    let layer = if boot.db.exists() {
        let store = Store::open(&boot.db)?;
        store.read_blocking(store::settings::overrides)?.layer().0
    } else {
        Layer::default()
    };
    let settings = Settings::resolve(&boot.settings, &layer);
    for row in TABLE {
        let setting = settings.setting(row.name);
        println!(
            "{:30} {:>10}  {}",
            row.key,
            setting.value.to_string(),
            setting.source.name()
        );
    }
    Ok(())
}

/// The reference, as it stands in the docs.
pub(super) fn markdown() -> String {
    let mut lines = vec![
        "| setting | default | accepted | environment | what it does |".to_owned(),
        "|---|---|---|---|---|".to_owned(),
    ];
    for row in TABLE {
        lines.push(format!(
            "| `{}` | `{}` | {} | `{}` | {} |",
            row.key,
            row.default_value(),
            row.accepted(),
            row.env(),
            row.about
        ));
    }
    lines.join("\n")
}
