//! How a thing of the pool stands, as icon, words and what to do: what was decided about it, what
//! upstream's answers did to it, and what is in flight on it.
//!
//! Invariant: what somebody decided stands before what cools, since clearing that would not help.
use super::shell::Shell;
use crate::{
    domain::{
        admission::{Standing, Subject},
        breaker::Breaker,
        cooldown::{Cooldown, Stage},
        pool::{Account, Credential, DisabledReason, Endpoint, QuotaScope, State},
    },
    engine::{cooldowns, look::Look},
};
use std::time::Duration;

/// Models that are named at most where single models cool.
const MODELS: usize = 3;

/// A state as icon and word, and what belongs to it.
pub(super) struct Stand {
    pub(super) token: &'static str,
    pub(super) icon: &'static str,
    pub(super) word: String,
    pub(super) notes: Vec<Note>,
    /// Whether there is a cooldown that the operator may end.
    pub(super) can_clear: bool,
    /// What was decided about it.
    pub(super) state: State,
}

/// A sentence beside a state.
pub(super) struct Note {
    pub(super) text: String,
    /// The exact time that it speaks of, for machines and for people.
    pub(super) at: Option<(String, String)>,
}

impl Stand {
    /// Whether nothing is to be said but that it takes work.
    pub(super) fn is_plain(&self) -> bool {
        self.icon == "active" && self.notes.is_empty()
    }

    pub(super) fn account(
        shell: &Shell,
        look: &Look,
        account: &Account,
        (credentials, cap): (&[&Credential], u64),
    ) -> Self {
        let standing = look.standing(Subject::Account(account.id));
        let is_idle = standing.streams == 0 && standing.creates == 0;
        let mut stand = Self::decided(shell, account.state, is_idle);
        let limited = |c: &&&Credential| cooldowns::is_limited(&look.standing(subject(c)));
        let cool = match account.quota_scope {
            QuotaScope::Account => 0,
            QuotaScope::Credential => credentials.iter().filter(limited).count(),
        };
        stand.can_clear = cool > 0 || cooldowns::is_limited(&standing);
        if stand.state != State::Active {
            return stand;
        }
        if cool > 0 {
            let text = shell.t("stand-credentials").num("count", cool);
            let text = text.num("all", credentials.len()).to_string();
            stand.notes.push(Note { text, at: None });
        }
        stand.cool(shell, look, &standing);
        let shares = account.quota_scope == QuotaScope::Account;
        if stand.icon == "active" && shares && cap > 0 && u64::from(standing.streams) >= cap {
            stand.is("warn", "full", shell.t("stand-full").to_string());
            let text = shell.t("stand-full-at").num("cap", cap).to_string();
            stand.notes.push(Note { text, at: None });
        }
        stand
    }

    pub(super) fn credential(shell: &Shell, look: &Look, credential: &Credential) -> Self {
        let standing = look.standing(subject(credential));
        let is_idle = standing.streams == 0 && standing.creates == 0;
        let mut stand = Self::decided(shell, credential.state, is_idle);
        stand.can_clear = cooldowns::is_limited(&standing);
        if stand.state == State::Active {
            stand.cool(shell, look, &standing);
        }
        stand
    }

    pub(super) fn endpoint(shell: &Shell, look: &Look, endpoint: &Endpoint) -> Self {
        let is_idle = look.at_endpoint(endpoint.id) == 0;
        let mut stand = Self::decided(shell, endpoint.state, is_idle);
        if stand.state != State::Active {
            return stand;
        }
        match look.breaker(endpoint.id) {
            Breaker::Passing { .. } => (),
            Breaker::Resting { until } => {
                stand.is("bad", "resting", shell.t("stand-resting").to_string());
                stand.notes = vec![later(shell, look, look.unix_ms(until), "stand-tries-in")];
            }
            Breaker::Due => stand.probes(shell, "stand-next-alone"),
            Breaker::Probing { .. } => stand.probes(shell, "stand-one-out"),
        }
        stand
    }

    /// What was decided about it, and what somebody can do.
    fn decided(shell: &Shell, state: State, is_idle: bool) -> Self {
        let (token, icon, word, note) = match state {
            State::Active => ("ok", "active", "pool-active", None),
            State::Draining if is_idle => ("off", "drained", "pool-drained", Some("stand-drained")),
            State::Draining => ("off", "draining", "pool-draining", None),
            State::Disabled(DisabledReason::Operator) => ("off", "disabled", "pool-disabled", None),
            State::Disabled(DisabledReason::Auth) => {
                ("bad", "key", "pool-disabled-auth", Some("stand-auth"))
            }
            State::Disabled(DisabledReason::Billing) => (
                "bad",
                "card",
                "pool-disabled-billing",
                Some("stand-billing"),
            ),
        };
        Self {
            token,
            icon,
            word: shell.t(word).to_string(),
            notes: note.map(|key| said(shell, key)).into_iter().collect(),
            can_clear: false,
            state,
        }
    }

    fn is(&mut self, token: &'static str, icon: &'static str, word: String) {
        self.token = token;
        self.icon = icon;
        self.word = word;
    }

    fn probes(&mut self, shell: &Shell, note: &'static str) {
        self.is("info", "probing", shell.t("stand-probing").to_string());
        self.notes.push(said(shell, note));
    }

    /// What cools of something that takes work otherwise.
    fn cool(&mut self, shell: &Shell, look: &Look, standing: &Standing) {
        match standing.cooldown.stage() {
            Stage::Open => (),
            Stage::Cooling(until) => {
                let is_quota = standing.cooldown.is_quota();
                let word = if is_quota {
                    "stand-quota"
                } else {
                    "stand-cooling"
                };
                self.is("warn", "cooling", shell.t(word).to_string());
                self.notes
                    .extend(ends(shell, look, &standing.cooldown, look.unix_ms(until)));
            }
            Stage::Due => self.probes(shell, "stand-next-alone"),
            Stage::Probing(_) => self.probes(shell, "stand-one-out"),
        }
        let mut models: Vec<_> = standing.models.iter().collect();
        models.sort_by(|a, b| a.0.cmp(&b.0));
        for (model, cooldown) in models.iter().take(MODELS) {
            let at = cooldown.free_at().map(|at| look.unix_ms(at));
            let text = shell.t("stand-model").text("model", model);
            let text = text.text("in", span_until(shell, look, at.unwrap_or_default()));
            self.notes.push(Note {
                text: text.to_string(),
                at: at.map(|at| exact(shell, at)),
            });
        }
        let more = models.len().saturating_sub(MODELS);
        if more > 0 {
            let text = shell.t("stand-more-models").num("count", more).to_string();
            self.notes.push(Note { text, at: None });
        }
    }
}

/// When a cooldown ends; where the end that upstream stated is far off, also when it is looked at.
fn ends(shell: &Shell, look: &Look, cooldown: &Cooldown, until_ms: i64) -> Vec<Note> {
    let next = later(shell, look, until_ms, "stand-free-in");
    let Some(told) = cooldown.told_until() else {
        return vec![next];
    };
    vec![
        later(shell, look, look.unix_ms(told), "stand-told"),
        later(shell, look, until_ms, "stand-looks-in"),
    ]
}

fn subject(credential: &Credential) -> Subject {
    Subject::Credential(credential.id)
}

fn said(shell: &Shell, key: &'static str) -> Note {
    let text = shell.t(key).to_string();
    Note { text, at: None }
}

/// A sentence of what happens at a time to come: how long that is, and when.
fn later(shell: &Shell, look: &Look, at_ms: i64, key: &'static str) -> Note {
    let text = shell.t(key).text("in", span_until(shell, look, at_ms));
    let text = text.text("at", clock(shell, look, at_ms)).to_string();
    let at = Some(exact(shell, at_ms));
    Note { text, at }
}

/// The time of day, or the date as well where that is not near.
fn clock(shell: &Shell, look: &Look, at_ms: i64) -> String {
    const NEAR_MS: i64 = 12 * 3_600_000;
    if at_ms - look.now_ms() < NEAR_MS {
        shell.clock(at_ms)
    } else {
        shell.date_time(at_ms)
    }
}

fn exact(shell: &Shell, at_ms: i64) -> (String, String) {
    (shell.machine_time(at_ms), shell.date_time(at_ms))
}

/// How long it is until then, from one second on.
pub(super) fn span_until(shell: &Shell, look: &Look, at_ms: i64) -> String {
    let left = u64::try_from(at_ms - look.now_ms()).unwrap_or(0);
    // A span of less than what is shown is not over yet.
    shell.span(Duration::from_millis(left.div_ceil(1000).max(1) * 1000))
}

/// What is in flight on it, as a sentence; for endpoints requests alone are known.
pub(super) fn in_flight(shell: &Shell, look: &Look, subject: Subject) -> String {
    let standing = look.standing(subject);
    let text = shell.t("stand-in-flight").num("streams", standing.streams);
    text.num("creates", standing.creates).to_string()
}

/// Everything that can stand, for the samples of pages.
#[cfg(test)]
pub(super) mod samples {
    use super::*;
    use crate::domain::{cooldown::Kept, moment::Moment, pool::edges::Contents};

    const NOW: Moment = Moment::from_millis(0);

    pub(in super::super) fn cooling(ends_in_ms: u64, told_in_ms: Option<u64>) -> Cooldown {
        let kept = Kept {
            ends_in_ms,
            told_in_ms,
            length_ms: 1_000,
            is_quota: told_in_ms.is_some(),
        };
        Cooldown::restored(NOW, kept)
    }

    fn probing() -> Cooldown {
        let mut cooldown = cooling(0, None);
        assert!(cooldown.take_shot(NOW, 1));
        cooldown
    }

    /// Every state of a cooldown, in turn over the accounts and credentials; every state of a
    /// breaker over the endpoints.
    pub(in super::super) fn look(contents: &Contents) -> Look {
        let mut look = Look::default();
        let cooldowns = [
            cooling(41_000, None),
            probing(),
            cooling(0, None),
            cooling(3_600_000, Some(200_000_000)),
            Cooldown::default(),
        ];
        let accounts = contents.accounts.iter().map(|a| Subject::Account(a.id));
        let credentials = contents.credentials.iter().map(subject);
        let models = ["gpt-4o", "gpt-4.1", "o3", "o4-mini"];
        for (n, subject) in accounts.chain(credentials).enumerate() {
            let cools = models.map(|m| (m.into(), cooling(41_000, None)));
            let standing = Standing {
                streams: 8,
                creates: 1,
                cooldown: cooldowns[n % cooldowns.len()],
                models: if n % 2 == 0 { cools.into() } else { Vec::new() },
            };
            look.put(subject, standing);
        }
        let until = NOW.plus(41_000);
        let breakers = [
            Breaker::Resting { until },
            Breaker::Due,
            Breaker::Probing {
                shot: 1,
                verdict_by: until,
            },
        ];
        for (n, endpoint) in contents.endpoints.iter().enumerate() {
            look.put_breaker(endpoint.id, breakers[n % breakers.len()]);
        }
        look
    }
}

#[cfg(test)]
mod tests;
