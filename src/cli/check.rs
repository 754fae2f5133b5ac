//! `fairlane check`: opens the database, has SQLite check it, resolves every setting, and prints
//! what is wrong.
use crate::{config::Boot, domain::settings::Settings, store};

pub(super) fn run(boot: &Boot) -> anyhow::Result<()> {
    let store = super::open_existing(boot)?;
    let mut faults = store.integrity_blocking()?;
    let overrides = store.read_blocking(store::settings::overrides)?;
    let (layer, refused) = overrides.layer();
    for row in refused {
        faults.push(format!(
            "the stored setting {} is not known or not accepted by this version",
            row.key
        ));
    }
    let pool = store.read_blocking(store::pool::pool)?.contents;
    let settings = Settings::resolve(&boot.settings, &layer);
    let overridden = crate::domain::settings::TABLE
        .iter()
        .filter(|d| settings.setting(d.name).source == crate::domain::settings::Source::Override)
        .count();
    println!("database     {}", boot.db.display());
    println!("endpoints    {}", pool.endpoints.len());
    println!("accounts     {}", pool.accounts.len());
    println!("credentials  {}", pool.credentials.len());
    println!("client keys  {}", pool.keys.len());
    println!("settings     {overridden} overridden");
    anyhow::ensure!(faults.is_empty(), "{}", faults.join("\n"));
    println!("all is well");
    Ok(())
}
