//! What upstream's answers did to the pool: cooldowns that have not ended, and what was disabled.
//!
//! Invariant: what the operator decided is never undone here; only what takes work is disabled, and
//! only what upstream disabled is enabled again.
use super::{Store, audit, columns::Bits, error::StoreError, meta::touch};
use crate::domain::{
    admission::Subject,
    cooldown::Kept,
    ids::{AccountId, CredentialId},
    pool::{DisabledReason, Fingerprint},
};
use rusqlite::{Connection, Row, params};
use std::sync::Arc;

/// A cooldown of a subject, or of one model of it; `None` if it is over.
pub type Change = (Subject, Option<Arc<str>>, Option<Kept>);

const fn columns(subject: Subject) -> (&'static str, Bits) {
    match subject {
        Subject::Account(id) => ("account", Bits(id.as_u128())),
        Subject::Credential(id) => ("credential", Bits(id.as_u128())),
    }
}

/// Keeps cooldowns, and forgets those that are over. `now_ms` is the time since 1970 that their
/// spans begin at.
pub fn keep_cooldowns(tx: &Connection, now_ms: i64, changes: &[Change]) -> Result<(), StoreError> {
    let at = |ms: u64| now_ms.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX));
    let mut put = tx.prepare_cached(
        "INSERT INTO cooldowns (kind, subject_id, model, until, told_until, length_ms, is_quota)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT (kind, subject_id, model) DO UPDATE SET
           until = excluded.until, told_until = excluded.told_until,
           length_ms = excluded.length_ms, is_quota = excluded.is_quota",
    )?;
    let mut forget = tx.prepare_cached(
        "DELETE FROM cooldowns WHERE kind = ?1 AND subject_id = ?2 AND model = ?3",
    )?;
    for (subject, model, kept) in changes {
        let (kind, id) = columns(*subject);
        let model = model.as_deref().unwrap_or_default();
        match kept {
            Some(kept) => put.execute(params![
                kind,
                id,
                model,
                at(kept.ends_in_ms),
                kept.told_in_ms.map(at),
                i64::try_from(kept.length_ms).unwrap_or(i64::MAX),
                kept.is_quota
            ])?,
            None => forget.execute(params![kind, id, model])?,
        };
    }
    Ok(())
}

/// Every cooldown that is kept, with its spans from `now_ms` on.
pub fn cooldowns(conn: &Connection, now_ms: i64) -> Result<Vec<Change>, StoreError> {
    let mut statement = conn.prepare_cached(
        "SELECT kind, subject_id, model, until, told_until, length_ms, is_quota FROM cooldowns",
    )?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(change_from(row, now_ms)?);
    }
    Ok(found)
}

fn change_from(row: &Row<'_>, now_ms: i64) -> Result<Change, StoreError> {
    let span = |end: i64| u64::try_from(end.saturating_sub(now_ms)).unwrap_or(0);
    let kind: String = row.get(0)?;
    let id = row.get::<_, Bits>(1)?.0;
    let subject = match kind.as_str() {
        "account" => Subject::Account(AccountId::from_u128(id)),
        "credential" => Subject::Credential(CredentialId::from_u128(id)),
        _ => {
            let what = format!("unknown kind {kind:?}");
            return Err(StoreError::inconsistent("cooldowns", what));
        }
    };
    let model: String = row.get(2)?;
    let kept = Kept {
        ends_in_ms: span(row.get(3)?),
        told_in_ms: row.get::<_, Option<i64>>(4)?.map(span),
        length_ms: u64::try_from(row.get::<_, i64>(5)?).unwrap_or(0),
        is_quota: row.get(6)?,
    };
    let model = (!model.is_empty()).then(|| model.into());
    Ok((subject, model, Some(kept)))
}

/// Disables what still takes work. `false` if it does not.
pub fn disable(
    tx: &Connection,
    subject: Subject,
    reason: DisabledReason,
) -> Result<bool, StoreError> {
    let (kind, id) = columns(subject);
    let table = table(subject);
    let changed = tx.execute(
        &format!(
            "UPDATE {table} SET state = 'disabled', disabled_reason = ?2, updated_at = ?3
             WHERE id = ?1 AND state = 'active'"
        ),
        params![id, reason.name(), crate::clock::unix_millis()],
    )?;
    if changed > 0 {
        touch(tx)?;
        let action = format!("disable_{kind}");
        audit::write(
            tx,
            &audit::Line::upstreams(&action, &name_of(subject), reason.name()),
        )?;
    }
    Ok(changed > 0)
}

/// Disables a credential that still takes work, if `secret` is still its own. `false` if not.
pub fn refuse(tx: &Connection, id: CredentialId, secret: Fingerprint) -> Result<bool, StoreError> {
    let has_it = "SELECT EXISTS (SELECT 1 FROM credentials WHERE id = ?1 AND fingerprint = ?2)";
    let has_it: bool = tx
        .prepare_cached(has_it)?
        .query_row(params![Bits(id.as_u128()), secret], |row| row.get(0))?;
    Ok(has_it && disable(tx, Subject::Credential(id), DisabledReason::Auth)?)
}

/// Enables what was disabled for `reason`. `false` if it is not, or not for that.
pub fn enable(
    tx: &Connection,
    subject: Subject,
    reason: DisabledReason,
) -> Result<bool, StoreError> {
    let (kind, id) = columns(subject);
    let table = table(subject);
    let changed = tx.execute(
        &format!(
            "UPDATE {table} SET state = 'active', disabled_reason = NULL, updated_at = ?3
             WHERE id = ?1 AND state = 'disabled' AND disabled_reason = ?2"
        ),
        params![id, reason.name(), crate::clock::unix_millis()],
    )?;
    if changed > 0 {
        touch(tx)?;
        let action = format!("enable_{kind}");
        audit::write(
            tx,
            &audit::Line::upstreams(&action, &name_of(subject), reason.name()),
        )?;
    }
    Ok(changed > 0)
}

const fn table(subject: Subject) -> &'static str {
    match subject {
        Subject::Account(_) => "accounts",
        Subject::Credential(_) => "credentials",
    }
}

fn name_of(subject: Subject) -> String {
    match subject {
        Subject::Account(id) => id.to_string(),
        Subject::Credential(id) => id.to_string(),
    }
}

impl Store {
    /// Keeps cooldowns, and forgets those that are over.
    pub async fn keep_cooldowns(
        &self,
        now_ms: i64,
        changes: Vec<Change>,
    ) -> Result<(), StoreError> {
        self.write(move |tx| keep_cooldowns(tx, now_ms, &changes))
            .await
    }

    /// Every cooldown that is kept, with its spans from `now_ms` on.
    pub fn cooldowns_blocking(&self, now_ms: i64) -> Result<Vec<Change>, StoreError> {
        self.read_blocking(|conn| cooldowns(conn, now_ms))
    }

    /// Disables what still takes work. `false` if it does not.
    pub async fn disable(
        &self,
        subject: Subject,
        reason: DisabledReason,
    ) -> Result<bool, StoreError> {
        self.write(move |tx| disable(tx, subject, reason)).await
    }

    /// Disables a credential that still takes work, if `secret` is still its own. `false` if not.
    pub async fn refuse(&self, id: CredentialId, secret: Fingerprint) -> Result<bool, StoreError> {
        self.write(move |tx| refuse(tx, id, secret)).await
    }

    /// Enables what was disabled for `reason`. `false` if it is not, or not for that.
    pub async fn enable(
        &self,
        subject: Subject,
        reason: DisabledReason,
    ) -> Result<bool, StoreError> {
        self.write(move |tx| enable(tx, subject, reason)).await
    }
}

#[cfg(test)]
mod tests;
