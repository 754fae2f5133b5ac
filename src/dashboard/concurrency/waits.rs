//! Those who wait, by key and by what they wait for; one group can be unfolded.
use super::{List, accounts::tail, view::View};
use crate::{
    dashboard::{
        names::{Named, Names},
        standing::span_until,
    },
    domain::reason::Reason,
    engine::picture::{Frees, Waits},
};

/// Requests of a group that are listed.
const LISTED: usize = 20;

/// A group as a row.
pub(super) struct Row {
    pub(super) id: String,
    pub(super) name: Named,
    /// What keeps them.
    pub(super) why: String,
    pub(super) count: usize,
    pub(super) oldest: String,
    pub(super) frees: String,
    /// When the first may go, where that is known: how long that is, and when.
    pub(super) soonest: Option<(String, String, String)>,
    /// The view in which it is unfolded, or folded again.
    pub(super) address: String,
    pub(super) open: Option<Members>,
}

/// Who is in an unfolded group: the end of each id, and how long it has waited.
pub(super) struct Members {
    pub(super) rows: Vec<(String, String)>,
    pub(super) more: usize,
}

/// The section.
pub(super) struct Waiting {
    pub(super) list: List<Row>,
}

impl Waiting {
    pub(super) fn new(names: &Names<'_>, view: &View) -> Self {
        let all = &names.picture.waits;
        let shown = view.shown.waits;
        let left = all.len().saturating_sub(shown);
        let more = view.with(|view| view.shown.waits += super::ROWS);
        let rows = all.iter().take(shown).map(|group| row(names, group, view));
        Self {
            list: List {
                rows: rows.collect(),
                more: (left > 0).then_some((left, more)),
            },
        }
    }
}

fn row(names: &Names<'_>, group: &Waits, view: &View) -> Row {
    let shell = names.shell;
    let key = group.key.map(|id| tail(&id.to_string()));
    let key = key.unwrap_or_else(|| "none".to_owned());
    let number = Reason::ALL.iter().position(|r| *r == group.reason);
    let id = format!("{key}-{}", number.unwrap_or_default());
    let is_open = view.open.as_ref() == Some(&id);
    let what = shell.t(frees(Frees::of(group.reason))).to_string();
    let soonest = group.free_at.map(|at| {
        let at_ms = names.picture.unix_ms(at);
        let left = span_until(shell, &names.picture.look, at_ms);
        let left = shell.t("conc-soonest").text("in", left).to_string();
        (left, shell.machine_time(at_ms), shell.date_time(at_ms))
    });
    Row {
        name: names.key(group.key),
        why: shell.t(why(group.reason)).to_string(),
        count: group.members.len(),
        oldest: shell.span_ms(group.oldest_ms),
        frees: what,
        soonest,
        address: view.with(|view| view.open = (!is_open).then(|| id.clone())),
        open: is_open.then(|| members(names, group)),
        id,
    }
}

fn members(names: &Names<'_>, group: &Waits) -> Members {
    let listed = group.members.iter().take(LISTED);
    let rows = listed.map(|one| {
        let waited = names.picture.now.since(one.parked_at);
        let id = tail(&one.holder.to_string());
        (id, names.shell.span_ms(waited))
    });
    Members {
        rows: rows.collect(),
        more: group.members.len().saturating_sub(LISTED),
    }
}

fn why(reason: Reason) -> &'static str {
    match reason {
        Reason::AccountStreamCap => "waits-stream",
        Reason::AccountCreateCap => "waits-create",
        Reason::AccountJobCap => "waits-job",
        Reason::CredentialCap => "waits-credential",
        Reason::OwnerSaturated => "waits-owner",
        Reason::AccountCooling | Reason::UsageLimitReached => "waits-cooling",
        Reason::ApiKeyStreamFairShare => "waits-share",
        _ => "waits-other",
    }
}

fn frees(what: Frees) -> &'static str {
    match what {
        Frees::StreamEnds => "frees-stream",
        Frees::CreateEnds => "frees-create",
        Frees::JobEnds => "frees-job",
        Frees::SlotEnds => "frees-slot",
        Frees::CooldownEnds => "frees-cooldown",
        Frees::ShareGrows => "frees-share",
        Frees::PoolChanges => "frees-pool",
    }
}
