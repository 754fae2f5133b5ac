//! The program as its users have it: arguments, environment, files, signals, and what it prints.
#[path = "cli/commands.rs"]
mod commands;
#[path = "cli/environment.rs"]
mod environment;
#[path = "cli/program.rs"]
mod program;
#[path = "cli/refusals.rs"]
mod refusals;
#[path = "cli/secrets.rs"]
mod secrets;
#[path = "cli/serving.rs"]
mod serving;
#[path = "cli/stages.rs"]
mod stages;
