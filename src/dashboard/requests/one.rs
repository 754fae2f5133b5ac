//! One request: how it ended and why, where its time went, and what is known of it.
use super::{
    super::{
        State,
        error::Trouble,
        session::Operator,
        shell::{Shell, render},
        wants::Wants,
    },
    named::{Named, Names},
    words::{self, Ended, UNKNOWN},
};
use crate::domain::{ids::RequestId, ledger::Entry, protocol::Protocol, reason::Reason};
use askama::Template;
use axum::{
    extract::{self, Path},
    response::Response,
};
use std::sync::Arc;

/// The width of the waterfall in units of its own; the page stretches it.
const WIDTH: u64 = 1000;

#[derive(Template)]
#[template(path = "requests/one.html")]
struct OnePage {
    shell: Shell,
    ended: Ended,
    /// Why, in plain words.
    why: String,
    /// The reason's code, for clients, logs and metrics.
    code: &'static str,
    steps: Vec<Step>,
    facts: Vec<Fact>,
    request_id: String,
    upstream_id: Option<Arc<str>>,
    error: Option<Arc<str>>,
}

/// One bar of the waterfall.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    /// The message that names it, and the class that colours it.
    key: &'static str,
    /// When it ended, counted from the request's arrival.
    until_ms: u64,
    took_ms: u64,
    x: u64,
    width: u64,
}

/// Something that is known of the request.
struct Fact {
    label: String,
    value: Named,
    /// Requests that share it.
    address: Option<String>,
}

/// `GET /requests/{id}`.
pub(super) async fn show(
    extract::State(state): extract::State<State>,
    shell: Shell,
    wants: Wants,
    _: Operator,
    Path(id): Path<String>,
) -> Response {
    match page(&state, &shell, &id).await {
        Ok(page) => render(&page),
        Err(trouble) => trouble.respond(&shell, wants),
    }
}

async fn page(state: &State, shell: &Shell, id: &str) -> Result<OnePage, Trouble> {
    let id: RequestId = id.parse().map_err(|_| Trouble::NotFound)?;
    let entry = state.store().request(id).await?;
    let entry = entry.ok_or(Trouble::NotFound)?;
    let configuration = state.reload().configuration();
    let pool = Arc::clone(&configuration.pool());
    Ok(drawn(&Names::new(shell, &pool), &entry))
}

fn drawn(names: &Names<'_>, entry: &Entry) -> OnePage {
    let shell = names.shell;
    let why = entry.reason.map_or_else(
        || words::meaning(shell, entry.outcome),
        |reason| words::reason(shell, reason),
    );
    OnePage {
        ended: Ended::new(shell, entry.outcome),
        why,
        code: entry.reason.map_or("", Reason::code),
        steps: steps(entry),
        facts: facts(names, entry),
        request_id: entry.id.to_string(),
        upstream_id: entry.upstream_request_id.clone(),
        error: entry.error.clone(),
        shell: shell.clone(),
    }
}

/// Where the time went. Each step begins where the one before it ended; what is not known of is
/// left out, and its time counts towards the next.
fn steps(entry: &Entry) -> Vec<Step> {
    let Some(total) = entry.total_ms else {
        return Vec::new();
    };
    let moments = [
        ("step-queued", entry.queued_ms.filter(|ms| *ms > 0)),
        ("step-headers", entry.headers_ms),
        ("step-first-byte", entry.first_byte_ms),
        ("step-end", Some(total)),
    ];
    let mut from = 0;
    let known = moments
        .into_iter()
        .filter_map(|(key, until)| Some((key, until?.min(total))));
    known
        .map(|(key, until)| {
            let until_ms = until.max(from);
            let x = from * WIDTH / total.max(1);
            let end = until_ms * WIDTH / total.max(1);
            let took_ms = until_ms - from;
            from = until_ms;
            // However short a step, it is seen, and it stays inside.
            let width = (end - x).max(4);
            Step {
                key,
                until_ms,
                took_ms,
                x: x.min(WIDTH - width.min(WIDTH)),
                width,
            }
        })
        .collect()
}

fn facts(names: &Names<'_>, entry: &Entry) -> Vec<Fact> {
    let shell = names.shell;
    let key = entry.key.map(|id| format!("/requests?key={id}"));
    let account = entry.account.map(|id| format!("/requests?account={id}"));
    let fact = |label: &'static str, value, address| Fact {
        label: shell.t(label).to_string(),
        value,
        address,
    };
    let bytes = |count: u64| said(shell.t("fact-bytes-count").num("count", count).to_string());
    let started = said(shell.date_time(entry.started_at));
    let asked = name(&format!("{} {}", entry.method, entry.path));
    let protocol = entry.protocol.map(Protocol::name);
    vec![
        fact("fact-started", started, None),
        fact("fact-key", names.key(entry.key), key),
        fact("fact-asked", asked, None),
        fact("fact-protocol", or_unknown(protocol), None),
        fact("fact-model", or_unknown(entry.model.as_deref()), None),
        fact(
            "fact-upstream-model",
            or_unknown(entry.upstream_model.as_deref()),
            None,
        ),
        fact("fact-status", name(&words::status(entry)), None),
        fact(
            "fact-attempts",
            count(shell, Some(entry.attempts.into())),
            None,
        ),
        fact("fact-account", names.account(entry.account), account),
        fact("fact-credential", names.credential(entry.credential), None),
        fact("fact-endpoint", names.endpoint(entry.endpoint), None),
        fact("fact-request-bytes", bytes(entry.request_bytes), None),
        fact("fact-response-bytes", bytes(entry.response_bytes), None),
        fact("fact-input-tokens", count(shell, entry.input_tokens), None),
        fact(
            "fact-output-tokens",
            count(shell, entry.output_tokens),
            None,
        ),
        fact(
            "fact-cached-tokens",
            count(shell, entry.cached_tokens),
            None,
        ),
    ]
}

fn said(text: String) -> Named {
    Named {
        text,
        is_name: false,
    }
}

fn name(text: &str) -> Named {
    Named {
        text: text.to_owned(),
        is_name: true,
    }
}

fn or_unknown(text: Option<&str>) -> Named {
    name(text.unwrap_or(UNKNOWN))
}

/// A number; one that nobody told us is not zero.
fn count(shell: &Shell, number: Option<u64>) -> Named {
    match number {
        Some(number) => said(shell.t("number").num("value", number).to_string()),
        None => name(UNKNOWN),
    }
}

#[cfg(test)]
pub(super) fn samples(names: &Names<'_>) -> Vec<(&'static str, String)> {
    use crate::domain::ledger::Outcome;
    let outcomes = Outcome::ALL.map(words::entry);
    let reasons = Reason::ALL.iter().map(|reason| Entry {
        reason: Some(*reason),
        key: None,
        total_ms: None,
        status: None,
        error: Some("<b>no</b>".into()),
        ..words::entry(Outcome::Refused)
    });
    let all = outcomes.into_iter().chain(reasons);
    all.map(|entry| ("requests/one", drawn(names, &entry).render().unwrap()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ledger::Outcome;

    fn check(moments: [Option<u64>; 4], expect: &[(&str, u64, u64, u64)]) {
        let [queued_ms, headers_ms, first_byte_ms, total_ms] = moments;
        let entry = Entry {
            queued_ms,
            headers_ms,
            first_byte_ms,
            total_ms,
            ..words::entry(Outcome::Ok)
        };
        let steps = steps(&entry);
        let drawn: Vec<_> = steps
            .iter()
            .map(|s| (s.key, s.took_ms, s.x, s.width))
            .collect();
        assert_eq!(drawn, expect);
        assert!(steps.iter().all(|s| s.x + s.width <= WIDTH));
    }

    #[test]
    fn steps_follow_one_another_to_the_end() {
        let all = [Some(100), Some(500), Some(600), Some(1000)];
        let expect = [
            ("step-queued", 100, 0, 100),
            ("step-headers", 400, 100, 400),
            ("step-first-byte", 100, 500, 100),
            ("step-end", 400, 600, 400),
        ];
        check(all, &expect);
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        check([None, None, None, Some(7)], &[("step-end", 7, 0, 1000)]);
        check([Some(1), Some(2), Some(3), None], &[]);
        let in_an_instant = [("step-headers", 0, 0, 4), ("step-end", 0, 0, 4)];
        check([Some(0), Some(0), None, Some(0)], &in_an_instant);
    }
}
