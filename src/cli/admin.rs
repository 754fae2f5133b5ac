//! `fairlane admin …`: recovery and automation from the shell, on a stopped or a running instance.
use crate::{
    clock,
    config::Boot,
    digest,
    domain::{
        ids::{KeyId, TokenId},
        pool::ClientKey,
        secret::Secret,
    },
    entropy,
    store::{Store, keys, tokens},
};

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Make a token for the admin API, and print it.
    CreateToken(Named),
    /// Make a client key, and print it.
    CreateKey(Named),
}

#[derive(Debug, clap::Args)]
pub(super) struct Named {
    /// What it is called in lists.
    #[arg(long)]
    name: String,
}

pub(super) fn run(boot: &Boot, command: Command) -> anyhow::Result<()> {
    let store = Store::open(&boot.db)?;
    let secret = match command {
        Command::CreateToken(named) => create_token(&store, &named.name)?,
        Command::CreateKey(named) => create_key(&store, &named.name)?,
    };
    store.close();
    println!("{secret}");
    Ok(())
}

fn checked(name: &str) -> anyhow::Result<String> {
    let name = name.trim();
    anyhow::ensure!(
        !name.is_empty(),
        "--name: is empty; give it a name to be known by"
    );
    Ok(name.to_owned())
}

fn create_token(store: &Store, name: &str) -> anyhow::Result<String> {
    let secret = entropy::secret(entropy::ADMIN_TOKEN);
    store_token(store, &checked(name)?, &secret)?;
    Ok(secret)
}

/// Puts a token with that secret into the database. Blocks.
pub(super) fn store_token(store: &Store, name: &str, secret: &str) -> anyhow::Result<()> {
    let token = tokens::AdminToken {
        id: TokenId::from_u128(entropy::uuid7()),
        name: name.into(),
        hash: digest::sha256(secret.as_bytes()),
        secret_hint: Secret::clean(secret)?.0.hint().into(),
        created_at: clock::unix_millis(),
    };
    Ok(store.write_blocking(move |tx| tokens::add(tx, &token))?)
}

fn create_key(store: &Store, name: &str) -> anyhow::Result<String> {
    let secret = entropy::secret(entropy::CLIENT_KEY);
    let key = ClientKey {
        id: KeyId::from_u128(entropy::uuid7()),
        name: checked(name)?.into(),
        hash: digest::sha256(secret.as_bytes()),
        secret_hint: Secret::clean(&secret)?.0.hint().into(),
        weight: 1,
        accounts: None,
        models: None,
        expires_at: None,
    };
    store.write_blocking(move |tx| keys::add(tx, &key))?;
    Ok(secret)
}
