//! What needs somebody's attention, worst first: found from what is in force and how the disk
//! fares.
use super::{setup::Missing, shell::Shell};
use crate::{
    domain::{
        pool::{DisabledReason, Pool, State},
        settings::{Name, Settings},
    },
    store::Health,
};

/// Lines that are shown at most.
const SHOWN: usize = 5;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) icon: &'static str,
    /// The state whose colours it has.
    pub(super) token: &'static str,
    pub(super) text: String,
    /// Where it is mended, and the words on the link.
    pub(super) action: Option<(String, String)>,
}

/// The lines that are shown, and how many more there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Attention {
    pub(super) lines: Vec<Line>,
    pub(super) more: usize,
}

impl Attention {
    pub(super) fn find(shell: &Shell, pool: &Pool, settings: &Settings, health: &Health) -> Self {
        let mut lines = Vec::new();
        disk(shell, health, &mut lines);
        missing(shell, pool, &mut lines);
        credentials(shell, pool, &mut lines);
        accounts(shell, pool, &mut lines);
        if !settings.is_on(Name::RequireClientKey) {
            lines.push(open(shell));
        }
        let more = lines.len().saturating_sub(SHOWN);
        lines.truncate(SHOWN);
        Self { lines, more }
    }
}

impl Line {
    fn with(self, address: String, words: String) -> Self {
        let action = Some((address, words));
        Self { action, ..self }
    }
}

fn line(icon: &'static str, token: &'static str, text: String) -> Line {
    Line {
        icon,
        token,
        text,
        action: None,
    }
}

fn open(shell: &Shell) -> Line {
    let text = shell.t("attention-open").to_string();
    let words = shell.t("attention-require-key").to_string();
    let address = "/settings#require_client_key".to_owned();
    line("open", "warn", text).with(address, words)
}

fn disk(shell: &Shell, health: &Health, lines: &mut Vec<Line>) {
    if health.trouble.is_some() {
        lines.push(line(
            "ambiguous",
            "bad",
            shell.t("attention-disk").to_string(),
        ));
    }
}

fn missing(shell: &Shell, pool: &Pool, lines: &mut Vec<Line>) {
    let (text, action) = match Missing::of(pool) {
        Missing::Account => ("attention-no-account", "attention-add-account"),
        Missing::Key => ("attention-no-key", "attention-add-key"),
        Missing::Nothing => return,
    };
    lines.push(Line {
        action: Some((
            Missing::of(pool).address().to_owned(),
            shell.t(action).to_string(),
        )),
        ..line("info", "info", shell.t(text).to_string())
    });
}

fn credentials(shell: &Shell, pool: &Pool, lines: &mut Vec<Line>) {
    for credential in pool.credentials() {
        let (key, icon) = match credential.state {
            State::Disabled(DisabledReason::Auth) => ("attention-credential-auth", "key"),
            State::Disabled(DisabledReason::Billing) => ("attention-credential-billing", "card"),
            _ => continue,
        };
        let text = shell.t(key).text("name", &credential.name).to_string();
        let (verb, words) = match credential.state {
            State::Disabled(DisabledReason::Auth) => ("rotate", "attention-replace-secret"),
            _ => ("enable", "attention-enable"),
        };
        let address = format!("/pool/credentials/{}/{verb}", credential.id);
        lines.push(line(icon, "bad", text).with(address, shell.t(words).to_string()));
    }
}

fn accounts(shell: &Shell, pool: &Pool, lines: &mut Vec<Line>) {
    for account in pool.accounts() {
        let (key, icon) = match account.state {
            State::Disabled(DisabledReason::Auth) => ("attention-account-auth", "key"),
            State::Disabled(DisabledReason::Billing) => ("attention-account-billing", "card"),
            _ => continue,
        };
        let text = shell.t(key).text("name", &account.name).to_string();
        let address = format!("/pool/accounts/{}/enable", account.id);
        let words = shell.t("attention-enable").to_string();
        lines.push(line(icon, "bad", text).with(address, words));
    }
    let is_idle = !pool.edges().is_empty() && !pool.edges().iter().any(|e| pool.takes_work(e));
    if is_idle {
        let text = shell.t("attention-nothing-takes-work").to_string();
        let words = shell.t("attention-open-pool").to_string();
        lines.push(line("disabled", "bad", text).with("/pool".to_owned(), words));
    }
}

/// One line of each kind, for the samples of pages that show them.
#[cfg(test)]
pub(super) fn samples(shell: &Shell) -> Attention {
    let lines = [
        ("ambiguous", "bad", shell.t("attention-disk").to_string()),
        ("info", "info", shell.t("attention-no-key").to_string()),
        (
            "key",
            "bad",
            shell
                .t("attention-credential-auth")
                .text("name", 1)
                .to_string(),
        ),
    ];
    let lines = lines.into_iter().map(|(i, k, t)| line(i, k, t));
    Attention {
        lines: lines.chain([open(shell)]).collect(),
        more: 3,
    }
}
