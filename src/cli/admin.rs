//! `fairlane admin …`: recovery and automation from the shell, on a stopped or a running instance.
use crate::{
    access, clock,
    config::Boot,
    digest,
    domain::{
        ids::{KeyId, TokenId},
        pool::{ClientKey, KeyLimits},
        secret::Secret,
    },
    entropy,
    store::{Store, keys, operator, tokens},
};
use anyhow::Context as _;
use std::io::Read as _;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Make a token for the admin API, and print it.
    CreateToken(Named),
    /// Make a client key, and print it.
    CreateKey(Named),
    /// Give the dashboard a new password, print it, and end every session.
    ResetPassword(Reset),
}

#[derive(Debug, clap::Args)]
pub(super) struct Named {
    /// What it is called in lists.
    #[arg(long)]
    name: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct Reset {
    /// Read the password from standard input instead of making one; print nothing.
    #[arg(long)]
    stdin: bool,
}

pub(super) fn run(boot: &Boot, command: Command) -> anyhow::Result<()> {
    let store = Store::open(&boot.db)?;
    let printed = match command {
        Command::CreateToken(named) => Some(create_token(&store, &named.name)?),
        Command::CreateKey(named) => Some(create_key(&store, &named.name)?),
        Command::ResetPassword(reset) => reset_password(&store, &reset)?,
    };
    store.close();
    if let Some(secret) = printed {
        println!("{secret}");
    }
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

/// Gives back the password if it was made here.
fn reset_password(store: &Store, reset: &Reset) -> anyhow::Result<Option<String>> {
    let password = if reset.stdin {
        password_from_stdin()?
    } else {
        entropy::secret("")
    };
    let hash = access::hash_blocking(&password)?;
    store.write_blocking(move |tx| operator::set_password_hash(tx, &hash))?;
    Ok((!reset.stdin).then_some(password))
}

/// One line; a line end at its end does not belong to it.
fn password_from_stdin() -> anyhow::Result<String> {
    let limit = u64::try_from(access::MAX_BYTES + 2)?;
    let mut text = String::new();
    let input = std::io::stdin().lock();
    input
        .take(limit)
        .read_to_string(&mut text)
        .context("standard input could not be read as UTF-8")?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
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
        limits: KeyLimits::default(),
        expires_at: None,
    };
    store.write_blocking(move |tx| keys::add(tx, &key))?;
    Ok(secret)
}
