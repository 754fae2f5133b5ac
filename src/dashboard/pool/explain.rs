//! What would become of a request: which edges it would be tried on, in which order, and why not on
//! the others.
//!
//! Invariant: nothing is sent and nothing is taken.
use crate::{
    clock,
    dashboard::{
        State,
        session::Operator,
        shell::{Shell, render},
    },
    domain::{
        admission::{Explained, Foreseen, Refusal},
        pool::{Account, DisabledReason, Pool},
        protocol::Protocol,
        reason::Reason,
    },
    engine::explain::{self, Explanation, Obstacle, Question},
};
use askama::Template;
use axum::{
    extract::{self, Query},
    response::Response,
};
use serde::Deserialize;
use std::{sync::Arc, time::Duration};

/// Edges that are shown at most: whoever looks for one narrows the question.
const SHOWN: usize = 100;

/// Models that are offered at most while one is typed.
const OFFERED: usize = 200;

/// What is asked.
#[derive(Default, Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    key: String,
    #[serde(default)]
    protocol: String,
    #[serde(default)]
    model: String,
    #[serde(default)]
    reattach: String,
}

#[derive(Template)]
#[template(path = "pool/explain.html")]
struct ExplainPage {
    shell: Shell,
    asked: Asked,
    /// Of keys, by name.
    keys: Vec<Arc<str>>,
    models: Vec<Arc<str>>,
    answer: Option<Answer>,
    /// Whether the key that is asked for is not there.
    no_such_key: bool,
}

impl ExplainPage {
    #[expect(clippy::unused_self, reason = "templates can only call methods")]
    fn protocols(&self) -> [&'static str; Protocol::ALL.len()] {
        Protocol::ALL.map(Protocol::name)
    }

    fn is_reattach(&self) -> bool {
        !self.asked.reattach.is_empty()
    }
}

/// The answer in words.
struct Answer {
    token: &'static str,
    icon: &'static str,
    then: String,
    why: String,
    rows: Vec<Row>,
    more: usize,
}

/// One edge.
struct Row {
    /// Its place among those that would be tried.
    place: Option<usize>,
    accounts: Vec<Arc<str>>,
    credential: Arc<str>,
    endpoint: Arc<str>,
    /// What upstream would be asked for.
    upstream_model: String,
    token: &'static str,
    icon: &'static str,
    word: String,
}

/// `GET /pool/explain`.
pub(super) async fn show(
    extract::State(state): extract::State<State>,
    shell: Shell,
    _: Operator,
    Query(asked): Query<Asked>,
) -> Response {
    render(&page(&state, shell, asked))
}

fn page(state: &State, shell: Shell, asked: Asked) -> ExplainPage {
    let configuration = state.reload().configuration();
    let pool = Arc::clone(&configuration.pool());
    let protocol = Protocol::from_name(&asked.protocol);
    let key = explain::key(&pool, &asked.key);
    let no_such_key = key.is_none() && !asked.key.is_empty();
    let question = protocol.filter(|_| !no_such_key).map(|protocol| Question {
        key,
        protocol,
        model: Some(asked.model.trim())
            .filter(|m| !m.is_empty())
            .map(Arc::from),
        is_reattach: !asked.reattach.is_empty(),
    });
    let answer = question.map(|question| {
        let model = question.model.clone();
        let found = explain::explain(configuration, question, clock::unix_millis());
        Answer::new(&shell, &found, model.as_deref())
    });
    ExplainPage {
        keys: pool.keys().iter().map(|k| Arc::clone(&k.name)).collect(),
        models: models(&pool),
        answer,
        no_such_key,
        asked,
        shell,
    }
}

/// The models that any catalog lists, in order.
fn models(pool: &Pool) -> Vec<Arc<str>> {
    let catalogs = Protocol::ALL.into_iter().map(|p| pool.catalog(p));
    let names = catalogs.flat_map(|rows| rows.into_iter().map(|(name, _)| Arc::clone(name)));
    let mut names: Vec<Arc<str>> = names.collect();
    names.sort_unstable();
    names.dedup();
    names.truncate(OFFERED);
    names
}

impl Answer {
    fn new(shell: &Shell, found: &Explanation, model: Option<&str>) -> Self {
        let (token, icon, then, refusal) = match found.then {
            Foreseen::Goes => ("ok", "ok", "explain-goes", None),
            Foreseen::Waits(why) => ("wait", "waiting", "explain-waits", Some(why)),
            Foreseen::Refused(why) => ("bad", "disabled", "explain-refused", Some(why)),
        };
        let text = shell.t(then);
        let text = match refusal {
            None => text,
            Some(why) => text
                .text("status", why.reason.status())
                .text("code", why.reason.code()),
        };
        let rows = found.edges.iter().take(SHOWN).zip(1..);
        Self {
            token,
            icon,
            then: text.to_string(),
            why: refusal.map_or_else(String::new, |refusal| why(shell, found, &refusal)),
            rows: rows
                .map(|(edge, n)| Row::new(shell, found, (edge, n), model))
                .collect(),
            more: found.edges.len().saturating_sub(SHOWN),
        }
    }
}

impl Row {
    fn new(
        shell: &Shell,
        found: &Explanation,
        (explained, n): (&Explained, usize),
        model: Option<&str>,
    ) -> Self {
        let edge = &explained.edge;
        let obstacle = found.obstacle(explained);
        let (token, icon, word) = match obstacle {
            None if n == 1 => ("ok", "active", shell.t("explain-first").to_string()),
            None => ("ok", "active", shell.t("explain-takes").to_string()),
            Some(obstacle) => obstructed(shell, found, obstacle),
        };
        let asked_for = model.map(|model| edge.upstream_model(model));
        Self {
            place: obstacle.is_none().then_some(n),
            accounts: edge
                .accounts()
                .map(|a: &Account| Arc::clone(&a.name))
                .collect(),
            credential: Arc::clone(&edge.credential().name),
            endpoint: Arc::clone(&edge.endpoint().name),
            upstream_model: asked_for.unwrap_or_default().to_owned(),
            token,
            icon,
            word,
        }
    }
}

/// What keeps an edge from it, as token, icon and words.
fn obstructed(
    shell: &Shell,
    found: &Explanation,
    obstacle: Obstacle,
) -> (&'static str, &'static str, String) {
    let until = |key: &'static str, at_ms: i64| {
        let text = shell.t(key).text("in", span(shell, found, at_ms));
        text.text("at", shell.date_time(at_ms)).to_string()
    };
    let plain = |key: &'static str| shell.t(key).to_string();
    match obstacle {
        Obstacle::OutOfScope => ("off", "lock", plain("explain-out-of-scope")),
        Obstacle::Tried => ("off", "leave", plain("explain-tried")),
        Obstacle::Draining => ("off", "draining", plain("pool-draining")),
        Obstacle::Disabled(DisabledReason::Operator) => ("off", "disabled", plain("pool-disabled")),
        Obstacle::Disabled(DisabledReason::Auth) => ("bad", "key", plain("pool-disabled-auth")),
        Obstacle::Disabled(DisabledReason::Billing) => {
            ("bad", "card", plain("pool-disabled-billing"))
        }
        Obstacle::Cooling {
            until_ms,
            is_quota: false,
        } => ("warn", "cooling", until("explain-cooling", until_ms)),
        Obstacle::Cooling { until_ms, .. } => ("warn", "cooling", until("explain-quota", until_ms)),
        Obstacle::Resting(until_ms) => ("bad", "resting", until("explain-resting", until_ms)),
        Obstacle::Full {
            reason,
            limit,
            used,
        } => {
            let key = match reason {
                Reason::AccountCreateCap => "explain-full-creates",
                Reason::CredentialCap => "explain-full-credential",
                _ => "explain-full-streams",
            };
            let text = shell.t(key).num("used", used).num("limit", limit);
            ("warn", "full", text.to_string())
        }
    }
}

/// Why it would wait or be refused.
fn why(shell: &Shell, found: &Explanation, refusal: &Refusal) -> String {
    let key = match refusal.reason {
        Reason::AccountStreamCap => "explain-why-streams",
        Reason::AccountCreateCap => "explain-why-creates",
        Reason::CredentialCap => "explain-why-credential",
        Reason::QueueFull => "explain-why-queue",
        Reason::ModelNotFound => "explain-why-model",
        Reason::ModelNotAllowed => "explain-why-not-allowed",
        Reason::ClientKeyExpired => "explain-why-expired",
        Reason::AccountCooling | Reason::UsageLimitReached => {
            let at = refusal.free_at.map_or(found.at.1, |at| found.unix_ms(at));
            let key = match refusal.reason {
                Reason::UsageLimitReached => "explain-why-quota",
                _ => "explain-why-cooling",
            };
            return shell.t(key).text("in", span(shell, found, at)).to_string();
        }
        _ => "explain-why-nothing",
    };
    shell.t(key).to_string()
}

fn span(shell: &Shell, found: &Explanation, at_ms: i64) -> String {
    let left = u64::try_from(at_ms - found.at.1).unwrap_or(0);
    shell.span(Duration::from_millis(left.div_ceil(1000).max(1) * 1000))
}

#[cfg(test)]
mod samples;

#[cfg(test)]
pub(super) use self::samples::samples;
