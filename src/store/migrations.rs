//! The schema, one file per step.
//!
//! Invariant: steps run forward only, each in a transaction of its own together with the version
//! that it leads to; a database beyond the last step is never touched.
use super::error::Refusal;
use rusqlite::{Connection, TransactionBehavior};

/// Every step, in order: file name and text. The version of a database is how many it has.
const STEPS: &[(&str, &str)] = &[
    (
        "0001_init.sql",
        include_str!("../../migrations/0001_init.sql"),
    ),
    (
        "0002_operator.sql",
        include_str!("../../migrations/0002_operator.sql"),
    ),
    (
        "0003_pool_states.sql",
        include_str!("../../migrations/0003_pool_states.sql"),
    ),
    (
        "0004_owners.sql",
        include_str!("../../migrations/0004_owners.sql"),
    ),
    (
        "0005_limits_met.sql",
        include_str!("../../migrations/0005_limits_met.sql"),
    ),
    (
        "0006_key_limits.sql",
        include_str!("../../migrations/0006_key_limits.sql"),
    ),
];

/// The newest version that this program knows.
pub(super) fn known_version() -> i64 {
    i64::try_from(STEPS.len()).unwrap_or(i64::MAX)
}

/// The version of an open database.
pub(super) fn version(conn: &Connection) -> rusqlite::Result<i64> {
    conn.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Brings a database up to date. Says whether anything was to do.
pub(super) fn migrate(conn: &mut Connection) -> Result<bool, Refusal> {
    run(conn, STEPS)
}

fn run(conn: &mut Connection, steps: &[(&str, &str)]) -> Result<bool, Refusal> {
    let found = version(conn)?;
    let known = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(Refusal::Newer { found, known });
    }
    let done = usize::try_from(found).map_err(|_| Refusal::Damaged("negative version".into()))?;
    for (n, (name, sql)) in steps.iter().enumerate().skip(done) {
        step(conn, n + 1, sql).map_err(|e| Refusal::Other(format!("migration {name}: {e}")))?;
    }
    Ok(done < steps.len())
}

fn step(conn: &mut Connection, version: usize, sql: &str) -> rusqlite::Result<()> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Two processes may have waited for the same lock; the second finds the work done.
    let found: i64 = tx.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let version = i64::try_from(version).unwrap_or(i64::MAX);
    if found < version {
        tx.execute_batch(sql)?;
        tx.pragma_update(None, "user_version", version)?;
    }
    tx.commit()
}

#[cfg(test)]
mod tests;
