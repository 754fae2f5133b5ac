//! What needs somebody's attention, worst first: found from what is in force and how the disk
//! fares.
use super::{setup::Missing, shell::Shell, standing::span_until};
use crate::{
    domain::{
        admission::Subject,
        breaker::Breaker,
        cooldown::Stage,
        pool::{DisabledReason, Pool, State},
        settings::{Name, Settings},
    },
    engine::look::Look,
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
    /// What looks whether it is mended: where that is sent, and the words on the button.
    pub(super) tries: Option<(String, String)>,
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
    pub(super) fn find(
        shell: &Shell,
        (pool, look): (&Pool, &Look),
        settings: &Settings,
        health: &Health,
    ) -> Self {
        let mut lines = Vec::new();
        disk(shell, health, &mut lines);
        missing(shell, pool, &mut lines);
        credentials(shell, pool, &mut lines);
        accounts(shell, pool, &mut lines);
        resting(shell, pool, look, &mut lines);
        cooling(shell, pool, look, &mut lines);
        if !settings.is_on(Name::RequireClientKey) {
            lines.push(open(shell));
        }
        let more = lines.len().saturating_sub(SHOWN);
        lines.truncate(SHOWN);
        Self { lines, more }
    }
}

impl Line {
    fn trying(self, address: String, words: String) -> Self {
        let tries = Some((address, words));
        Self { tries, ..self }
    }

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
        tries: None,
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
        let path = format!("/pool/credentials/{}", credential.id);
        let mut line = line(icon, "bad", text);
        if credential.state == State::Disabled(DisabledReason::Auth) {
            line = line.trying(
                format!("{path}/test"),
                shell.t("pool-test-again").to_string(),
            );
        }
        lines.push(line.with(format!("{path}/{verb}"), shell.t(words).to_string()));
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

fn resting(shell: &Shell, pool: &Pool, look: &Look, lines: &mut Vec<Line>) {
    for endpoint in pool.endpoints() {
        let Breaker::Resting { until } = look.breaker(endpoint.id) else {
            continue;
        };
        let at = look.unix_ms(until);
        let text = shell.t("attention-resting").text("name", &endpoint.name);
        let text = text.text("in", span_until(shell, look, at));
        let text = text.text("at", shell.clock(at)).to_string();
        let address = format!("/pool/endpoints/{}/test", endpoint.id);
        let words = shell.t("pool-test").to_string();
        lines.push(line("resting", "bad", text).trying(address, words));
    }
}

/// More than these are told of as one: the pool lists them.
const COOLING: usize = 2;

fn cooling(shell: &Shell, pool: &Pool, look: &Look, lines: &mut Vec<Line>) {
    let accounts = pool.accounts().iter().filter(|a| a.state.takes_work());
    let accounts = accounts.map(|a| (Subject::Account(a.id), &a.name));
    let credentials = pool.credentials().iter().filter(|c| c.state.takes_work());
    let credentials = credentials.map(|c| (Subject::Credential(c.id), &c.name));
    let mut cool: Vec<_> = accounts
        .chain(credentials)
        .filter_map(|(subject, name)| {
            let cooldown = look.standing(subject).cooldown;
            matches!(cooldown.stage(), Stage::Cooling(_)).then_some(())?;
            Some((cooldown.free_at()?, cooldown.began_at(), subject, name))
        })
        .collect();
    cool.sort_by_key(|(free_at, ..)| *free_at);
    let Some((first, ..)) = cool.first() else {
        return;
    };
    if cool.len() > COOLING {
        let text = shell.t("attention-cooling-many").num("count", cool.len());
        let text = text.text("in", span_until(shell, look, look.unix_ms(*first)));
        let words = shell.t("attention-open-pool").to_string();
        let one = line("cooling", "warn", text.to_string());
        lines.push(one.with("/pool".to_owned(), words));
        return;
    }
    for (free_at, began_at, subject, name) in cool {
        let (key, path) = match subject {
            Subject::Account(id) => ("attention-cooling-account", format!("accounts/{id}")),
            Subject::Credential(id) => {
                ("attention-cooling-credential", format!("credentials/{id}"))
            }
        };
        let at = look.unix_ms(free_at);
        let text = shell.t(key).text("name", name);
        let text = text.text("since", shell.clock(look.unix_ms(began_at)));
        let text = text.text("in", span_until(shell, look, at));
        let text = text.text("at", shell.date_time(at)).to_string();
        let address = format!("/pool/{path}/clear-cooldown");
        let words = shell.t("pool-clear-cooldown").to_string();
        lines.push(line("cooling", "warn", text).with(address, words));
    }
}

/// One line of each kind, for the samples of pages that show them.
#[cfg(test)]
pub(super) fn samples(shell: &Shell) -> Attention {
    use crate::domain::{
        admission::Standing,
        pool::{DisabledReason::Auth, edges::sample},
    };

    let mut contents = sample::contents(4);
    contents.credentials[0].state = State::Disabled(Auth);
    let pool = Pool::new(contents.clone());
    let mut look = super::standing::samples::look(&contents);
    let mut lines = vec![line(
        "ambiguous",
        "bad",
        shell.t("attention-disk").to_string(),
    )];
    credentials(shell, &pool, &mut lines);
    resting(shell, &pool, &look, &mut lines);
    cooling(shell, &pool, &look, &mut lines);
    for subject in pool.accounts().iter().skip(1) {
        look.put(Subject::Account(subject.id), Standing::default());
    }
    for subject in pool.credentials() {
        look.put(Subject::Credential(subject.id), Standing::default());
    }
    let cools = Standing {
        cooldown: super::standing::samples::cooling(41_000, None),
        ..Standing::default()
    };
    look.put(Subject::Credential(pool.credentials()[1].id), cools);
    cooling(shell, &pool, &look, &mut lines);
    lines.push(line(
        "info",
        "info",
        shell.t("attention-no-key").to_string(),
    ));
    lines.push(open(shell));
    Attention { lines, more: 3 }
}
