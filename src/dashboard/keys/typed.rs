//! What was typed into the form of a key, as an entry of a pool document.
//!
//! Invariant: what a pool document can judge is judged there; here only the day of expiry is,
//! since a document takes moments, whatever they are.
use super::super::time::Zone;
use crate::{
    document::single::Refusal,
    domain::pool::{
        ClientKey,
        document::{Mistake, Plan},
    },
};
use serde_json::{Map, Value, json};

pub(super) type Mistakes = Vec<Mistake>;

/// The word of a scope that is everything, and of one that is listed.
const ALL: &str = "all";
const SOME: &str = "some";

/// Why a day cannot be the day of expiry, as a mistake says it.
pub(super) const NO_DAY: &str = "is no day";
pub(super) const PAST: &str = "is not after today";

/// Fields that hold a number, or nothing.
const NUMBERS: [&str; 4] = [
    "weight",
    "requests_per_minute",
    "concurrency",
    "tokens_per_day",
];

/// Fields with their values; a field may come more than once.
#[derive(Clone, Default)]
pub(super) struct Typed(pub(super) Vec<(String, String)>);

impl Typed {
    /// What the form of a new key begins with.
    pub(super) fn beginning() -> Self {
        Self::of(&[
            ("weight", "1".to_owned()),
            ("accounts_scope", ALL.to_owned()),
            ("models_scope", ALL.to_owned()),
        ])
    }

    pub(super) fn stored(key: &ClientKey, zone: &Zone) -> Self {
        let scope = |is_narrow| if is_narrow { SOME } else { ALL }.to_owned();
        let models = key.models.as_ref().map(|models| models.join("\n"));
        let mut typed = Self::of(&[
            ("name", key.name.to_string()),
            ("weight", key.weight.to_string()),
            ("requests_per_minute", limit(key.limits.requests_per_minute)),
            ("concurrency", limit(key.limits.concurrency)),
            ("tokens_per_day", limit(key.limits.tokens_per_day)),
            ("accounts_scope", scope(key.accounts.is_some())),
            ("models_scope", scope(key.models.is_some())),
            ("models", models.unwrap_or_default()),
            ("expires_at", day_of(key, zone)),
        ]);
        let accounts = key.accounts.iter().flatten();
        let accounts = accounts.map(|id| ("accounts".to_owned(), id.to_string()));
        typed.0.extend(accounts);
        typed
    }

    fn of(fields: &[(&str, String)]) -> Self {
        let fields = fields.iter();
        Self(fields.map(|(k, v)| ((*k).to_owned(), v.clone())).collect())
    }

    pub(super) fn get(&self, key: &str) -> &str {
        let found = self.0.iter().find(|(k, _)| k == key);
        found.map_or("", |(_, value)| value)
    }

    pub(super) fn has(&self, key: &str, value: &str) -> bool {
        self.0.iter().any(|(k, v)| k == key && v == value)
    }

    /// Whether that scope is a list.
    pub(super) fn is_some(&self, scope: &str) -> bool {
        self.get(scope) == SOME
    }

    fn accounts(&self) -> Vec<&str> {
        let chosen = self.0.iter().filter(|(k, _)| k == "accounts");
        chosen.map(|(_, id)| id.as_str()).collect()
    }

    /// As an entry of a pool document, and what is wrong with its day. What `before` has and the
    /// form does not change is left out, so that it stays exactly as it is.
    pub(super) fn said(
        &self,
        before: Option<&ClientKey>,
        zone: &Zone,
        now_ms: i64,
    ) -> (Map<String, Value>, Mistakes) {
        let mut said = Map::from_iter([
            ("name".to_owned(), json!(self.get("name"))),
            ("models".to_owned(), self.models()),
        ]);
        for name in NUMBERS {
            said.insert(name.to_owned(), number(self.get(name)));
        }
        let accounts = self.accounts();
        let has_none_left = before.is_some_and(|key| key.accounts.as_deref() == Some(&[]));
        if !self.is_some("accounts_scope") {
            said.insert("accounts".to_owned(), Value::Null);
        } else if !(has_none_left && accounts.is_empty()) {
            said.insert("accounts".to_owned(), json!(accounts));
        }
        let day = self.get("expires_at").trim();
        let mut mistakes = Mistakes::new();
        if before.is_none_or(|key| day_of(key, zone) != day) {
            match moment(day, zone, now_ms) {
                Ok(moment) => {
                    said.insert("expires_at".to_owned(), json!(moment));
                }
                Err(what) => mistakes.push(Mistake::new("expires_at", what)),
            }
        }
        (said, mistakes)
    }

    /// One per line; null for all.
    fn models(&self) -> Value {
        if !self.is_some("models_scope") {
            return Value::Null;
        }
        let lines = self.get("models").lines().map(str::trim);
        json!(lines.filter(|line| !line.is_empty()).collect::<Vec<_>>())
    }
}

/// A limit as a field holds it; empty for none.
fn limit(value: Option<impl ToString>) -> String {
    value.map(|n| n.to_string()).unwrap_or_default()
}

/// The day on which a key ends; empty for never.
fn day_of(key: &ClientKey, zone: &Zone) -> String {
    key.expires_at.map(|at| zone.day(at)).unwrap_or_default()
}

/// The first moment of a day that is to come; `None` for no day at all.
fn moment(day: &str, zone: &Zone, now_ms: i64) -> Result<Option<i64>, &'static str> {
    if day.is_empty() {
        return Ok(None);
    }
    match zone.first_moment(day) {
        None => Err(NO_DAY),
        Some(moment) if moment <= now_ms => Err(PAST),
        Some(moment) => Ok(Some(moment)),
    }
}

/// What is no number stays text, so that the one validation that there is refuses it.
fn number(text: &str) -> Value {
    match text.trim() {
        "" => Value::Null,
        text => text
            .parse::<i64>()
            .map_or_else(|_| json!(text), Value::from),
    }
}

/// A plan, unless there are mistakes that it cannot know of.
pub(super) fn refuse_with(
    mut mistakes: Mistakes,
    plan: Result<Plan, Refusal>,
) -> Result<Plan, Refusal> {
    if mistakes.is_empty() {
        return plan;
    }
    if let Err(Refusal::Mistakes(others)) = plan {
        mistakes.extend(others);
    } else {
        plan?;
    }
    Err(Refusal::Mistakes(mistakes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_ends_with_the_first_moment_of_a_day_that_is_to_come() {
        let seoul = Zone::of(Some("Asia/Seoul"));
        // 2026-11-30T01:03:05Z
        let check = |day: &str, expect| {
            assert_eq!(moment(day, &seoul, 1_796_000_585_000), expect, "{day}");
        };
        check("", Ok(None));
        check("2026-12-01", Ok(Some(1_796_050_800_000)));
        check("2026-11-30", Err(PAST));
        check("1969-01-01", Err(PAST));
        check("soon", Err(NO_DAY));
        check("2026-02-30", Err(NO_DAY));
    }
}
