//! The dashboard in a real browser: what a person does and sees, in every language, with script and
//! without.
//!
//! The program under test is the built one, on a port and a database of its own, in front of a
//! simulated provider. At most [`stage::SEATS`] browsers run at a time.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its world or read its page has failed"
)]

mod audit;
mod chrome;
mod journey;
mod pages;
#[path = "../cli/program.rs"]
#[expect(dead_code, reason = "the tests of the command line need more of it")]
mod program;
mod stage;
mod vendor;
