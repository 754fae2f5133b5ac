//! The command line: one file per subcommand.
//!
//! Invariant: exit 0 on success; 1 on a failure, explained on standard error, one line for each
//! thing to mend; 2 on wrong usage. Secrets asked for stand alone on standard output.
mod admin;
mod check;
mod demo;
mod export;
mod healthcheck;
mod import;
mod serve;
mod settings;
mod sim;

use crate::{config::Boot, store::Store};
use clap::{Parser, Subcommand};
use std::{path::PathBuf, process::ExitCode};

/// One binary in front of your AI accounts.
#[derive(Debug, Parser)]
#[command(name = "fairlane", version, about, propagate_version = true)]
struct Arguments {
    /// The database file; the variable `FAIRLANE_DB` is the same.
    #[arg(long, global = true, value_name = "FILE")]
    db: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the proxy with its admin API and metrics (the default).
    Serve,
    /// See it work: everything on a throw-away database, with a simulated provider and traffic.
    Demo(demo::Arguments),
    /// Run the simulated provider alone.
    Sim(sim::Arguments),
    /// Load a pool document (JSON), or a list of secrets (CSV, or one a line).
    Import(import::Arguments),
    /// Print the pool document.
    Export(export::Arguments),
    /// Check database and settings, and print what is wrong.
    Check,
    /// Print the settings with value and source.
    Settings(settings::Arguments),
    /// Recovery and automation from the shell.
    #[command(subcommand)]
    Admin(admin::Command),
    /// Exit 0 if the running instance is ready.
    Healthcheck,
}

/// Runs what the arguments ask for.
pub fn run() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command.unwrap_or(Command::Serve) {
        Command::Sim(arguments) => sim::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        command => with_environment(command, arguments.db),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", one_line_each(&error));
            ExitCode::FAILURE
        }
    }
}

/// Commands that work on an instance's file or address, and so follow its environment.
fn with_environment(command: Command, db: Option<PathBuf>) -> anyhow::Result<()> {
    let mut boot = Boot::from_env()?;
    if let Some(db) = db {
        boot.db = db;
    }
    match command {
        Command::Serve => serve::run(boot),
        Command::Import(arguments) => import::run(&boot, &arguments),
        Command::Export(arguments) => export::run(&boot, &arguments),
        Command::Check => check::run(&boot),
        Command::Settings(arguments) => settings::run(&boot, &arguments),
        Command::Admin(command) => admin::run(&boot, command),
        Command::Healthcheck => healthcheck::run(&boot),
        Command::Sim(arguments) => sim::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
    }
}

/// The error with its causes on one line; several mistakes keep a line each.
fn one_line_each(error: &anyhow::Error) -> String {
    let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    format!("fairlane: {}", causes.join(": "))
}

/// Opens an existing database; commands other than `serve` and the first `import` or `admin`
/// must not make one by a slip of the pen.
fn open_existing(boot: &Boot) -> anyhow::Result<Store> {
    anyhow::ensure!(
        boot.db.exists(),
        "{}: there is no such database; name another with --db, or start `fairlane serve` once",
        boot.db.display()
    );
    Ok(Store::open(&boot.db)?)
}
