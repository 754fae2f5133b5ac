//! "Test": what was called, what came back, and what would probably help.
use super::shell::Shell;
use crate::engine::probe::{Probed, Verdict};

/// A test's outcome as it is shown.
pub(super) struct Tested {
    pub(super) called: String,
    pub(super) status: Option<u16>,
    pub(super) took: String,
    pub(super) message: Option<String>,
    pub(super) works: bool,
    pub(super) summary: String,
    /// What would probably help; empty if nothing need be done.
    pub(super) cure: String,
}

impl Tested {
    pub(super) fn new(shell: &Shell, probed: &Probed) -> Self {
        let (summary, cure) = match probed.verdict {
            Verdict::Works => ("", ""),
            Verdict::SecretRefused => ("test-secret-refused", "test-secret-refused-cure"),
            Verdict::WrongAddress => ("test-wrong-address", "test-wrong-address-cure"),
            Verdict::Limited => ("test-limited", "test-limited-cure"),
            Verdict::UpstreamTrouble => ("test-upstream-trouble", "test-upstream-trouble-cure"),
            Verdict::Refused => ("test-refused", "test-refused-cure"),
            Verdict::Unreachable => ("test-unreachable", "test-unreachable-cure"),
            Verdict::TooSlow => ("test-too-slow", "test-too-slow-cure"),
        };
        let works = probed.verdict == Verdict::Works;
        Self {
            called: probed.called.clone(),
            status: probed.status,
            took: shell.span(probed.took),
            message: probed.message.clone(),
            works,
            summary: if works {
                let count = probed.models.len();
                shell.t("test-works").num("count", count).to_string()
            } else {
                shell.t(summary).to_string()
            },
            cure: if works {
                String::new()
            } else {
                shell.t(cure).to_string()
            },
        }
    }
}

#[cfg(test)]
pub(super) fn samples(shell: &Shell) -> Vec<Tested> {
    let verdicts = [
        Verdict::Works,
        Verdict::SecretRefused,
        Verdict::WrongAddress,
        Verdict::Limited,
        Verdict::UpstreamTrouble,
        Verdict::Refused,
        Verdict::Unreachable,
        Verdict::TooSlow,
    ];
    let probed = |verdict| Probed {
        called: "https://127.0.0.1/v1/models".to_owned(),
        took: std::time::Duration::from_millis(340),
        status: (verdict != Verdict::TooSlow).then_some(401),
        message: (verdict != Verdict::Works).then(|| "401".to_owned()),
        models: Vec::new(),
        verdict,
    };
    verdicts
        .into_iter()
        .map(|verdict| Tested::new(shell, &probed(verdict)))
        .collect()
}
