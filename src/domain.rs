//! What the gateway decides, as pure state machines and pure rules.
//!
//! Invariant: nothing here reads a clock, draws a random number, awaits, logs, does I/O or knows a
//! wire format. Every function is total over its arguments; what must happen next is returned.
pub mod admission;
pub mod allowance;
pub mod breaker;
pub mod cooldown;
pub mod dispatch;
pub mod ids;
pub mod ledger;
pub mod moment;
pub mod owners;
pub mod pool;
pub mod protocol;
pub mod quota;
pub mod reason;
pub mod retest;
pub mod secret;
pub mod settings;
pub mod unspoken;
