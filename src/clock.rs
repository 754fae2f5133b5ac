//! Time: tokio's [`Instant`] for what is measured, [`unix_millis`] for what is stored.
//!
//! Invariant: nothing else reads a clock; rules take `now` as a parameter.
pub use tokio::time::Instant;

use std::time::{SystemTime, UNIX_EPOCH};

/// The wall clock in milliseconds since 1970, as it is stored and shown.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the wall clock"
)]
pub fn unix_millis() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX))
}
