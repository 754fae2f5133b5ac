//! The async halves of the domain: locks, timers and wake-ups live here, decisions do not.
//!
//! Invariant: no lock is held across an await; settings and pool are immutable snapshots that are
//! swapped whole.
pub mod admission;
pub mod allowance;
pub mod configuration;
pub mod cooldowns;
pub mod dispatch;
pub mod explain;
pub mod held;
pub mod live;
pub mod look;
pub mod owners;
pub mod payload;
pub mod picture;
pub mod probe;
mod refusal;
pub mod unspoken;
