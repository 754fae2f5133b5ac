//! Every answer and every obstacle, for the tests of pages.
use super::*;
use crate::domain::moment::Moment;

const NOW_MS: i64 = 1_796_000_585_000;

/// Every obstacle, and none.
fn obstacles() -> Vec<Option<Obstacle>> {
    let until_ms = NOW_MS + 41_000;
    let full = |reason| Obstacle::Full {
        reason,
        limit: 8,
        used: 8,
    };
    let cools = |is_quota| Obstacle::Cooling { until_ms, is_quota };
    let all = [
        Obstacle::OutOfScope,
        Obstacle::Tried,
        Obstacle::Draining,
        Obstacle::Disabled(DisabledReason::Operator),
        Obstacle::Disabled(DisabledReason::Auth),
        Obstacle::Disabled(DisabledReason::Billing),
        cools(false),
        cools(true),
        Obstacle::Resting(until_ms),
        full(Reason::AccountStreamCap),
        full(Reason::AccountCreateCap),
        full(Reason::CredentialCap),
    ];
    [None].into_iter().chain(all.map(Some)).collect()
}

fn row(shell: &Shell, found: &Explanation, obstacle: Option<Obstacle>) -> Row {
    let first = || ("ok", "active", shell.t("explain-first").to_string());
    let (token, icon, word) = obstacle.map_or_else(first, |o| obstructed(shell, found, o));
    Row {
        place: obstacle.is_none().then_some(1),
        accounts: vec!["a".into(), "b".into()],
        credential: "c".into(),
        endpoint: "e".into(),
        upstream_model: "gpt-4o-mini".to_owned(),
        token,
        icon,
        word,
    }
}

fn page(shell: &Shell, answer: Option<Answer>, no_such_key: bool) -> ExplainPage {
    ExplainPage {
        asked: Asked {
            protocol: "openai".to_owned(),
            model: "fast".to_owned(),
            reattach: "on".to_owned(),
            ..Asked::default()
        },
        keys: vec!["ci".into()],
        models: vec!["fast".into()],
        answer,
        no_such_key,
        shell: shell.clone(),
    }
}

pub(in super::super) fn samples(shell: &Shell) -> Vec<(&'static str, String)> {
    let mut thens = vec![Foreseen::Goes];
    for reason in Reason::ALL {
        thens.push(Foreseen::Waits(Refusal::limit(*reason, 8, 8)));
        thens.push(Foreseen::Refused(Refusal::bare(*reason)));
    }
    let mut pages = vec![page(shell, None, true), page(shell, None, false)];
    for then in thens {
        let found = Explanation {
            edges: Vec::new(),
            then,
            at: (Moment::default(), NOW_MS),
        };
        pages.push(page(shell, Some(Answer::new(shell, &found, None)), false));
        let rows = obstacles().into_iter().map(|o| row(shell, &found, o));
        let answer = Answer {
            rows: rows.collect(),
            more: 3,
            ..Answer::new(shell, &found, None)
        };
        pages.push(page(shell, Some(answer), false));
    }
    let named = |page: &ExplainPage| ("pool/explain", page.render().unwrap());
    pages.iter().map(named).collect()
}
