//! Accounts with their slots: what stands aside first, then what is full, then the busiest; what is idle
//! is a count.
use super::{List, bar::Bar, strip::Paints, view::View};
use crate::{
    dashboard::{names::Names, standing::Stand},
    domain::pool::{Account, Credential, State},
    engine::picture::OnAccount,
};
use std::{collections::BTreeSet, sync::Arc};

/// An account as a row.
pub(super) struct Row {
    /// Its id without what all ids have, for the row.
    pub(super) id: String,
    pub(super) path: String,
    pub(super) name: Arc<str>,
    pub(super) stand: Stand,
    pub(super) bar: Option<Bar>,
    /// What else than streams it shows, in words.
    pub(super) spoken: Option<String>,
    /// Streams held, of how many.
    pub(super) count: String,
}

/// The section.
pub(super) struct Accounts {
    pub(super) list: List<Row>,
    /// How many take work and hold nothing.
    pub(super) idle: usize,
    /// How many there are.
    pub(super) all: usize,
}

impl Accounts {
    /// The icons that its rows use, each once.
    pub(super) fn icons(&self) -> BTreeSet<&'static str> {
        self.list.rows.iter().map(|row| row.stand.icon).collect()
    }
}

/// What is looked at first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Cooling,
    Full,
    Busy,
    Draining,
    Disabled,
    Idle,
}

impl Accounts {
    pub(super) fn new(names: &Names<'_>, paints: &Paints, view: &View) -> Self {
        let pool = &names.picture.pool;
        let all = pool.accounts().iter().zip(&names.picture.accounts);
        let mut placed: Vec<(Place, u64, usize, Stand)> = all
            .enumerate()
            .map(|(n, (account, on))| {
                let stand = stand(names, account, on);
                let busy = busy(on);
                (place(account, on, &stand), busy, n, stand)
            })
            .collect();
        let count = placed.len();
        placed.retain(|(place, ..)| *place != Place::Idle);
        placed.sort_by(|a, b| (a.0, b.1, a.2).cmp(&(b.0, a.1, b.2)));
        let shown = view.shown.accounts;
        let left = placed.len().saturating_sub(shown);
        let more = view.with(|view| view.shown.accounts += super::ROWS);
        let idle = count - placed.len();
        let rows = placed.into_iter().take(shown);
        let rows = rows.filter_map(|(_, _, n, stand)| {
            let account = pool.accounts().get(n)?;
            let on = names.picture.accounts.get(n)?;
            Some(row(names, (account, on), stand, paints))
        });
        Self {
            list: List {
                rows: rows.collect(),
                more: (left > 0).then_some((left, more)),
            },
            idle,
            all: count,
        }
    }
}

fn stand(names: &Names<'_>, account: &Account, on: &OnAccount) -> Stand {
    let pool = &names.picture.pool;
    let credentials = pool.credentials().iter();
    let charged: Vec<&Credential> = credentials
        .filter(|c| c.accounts.contains(&account.id))
        .collect();
    let cap = on.caps.ordinary().unwrap_or(0);
    let look = &names.picture.look;
    Stand::account(names.shell, look, account, (&charged, cap))
}

fn place(account: &Account, on: &OnAccount, stand: &Stand) -> Place {
    match (account.state, stand.icon) {
        (State::Draining, _) => Place::Draining,
        (State::Disabled(_), _) => Place::Disabled,
        (State::Active, "full") => Place::Full,
        (State::Active, _) if stand.icon != "active" || !stand.notes.is_empty() => Place::Cooling,
        (State::Active, _) if on.used.is_none() => Place::Idle,
        (State::Active, _) => Place::Busy,
    }
}

/// How much of it is in use, in per mille; of one without a limit, how much that is.
fn busy(on: &OnAccount) -> u64 {
    match on.caps.ordinary() {
        Some(ordinary) => on.used.streams * 1000 / ordinary.max(1),
        None => on.used.streams,
    }
}

fn row(
    names: &Names<'_>,
    (account, on): (&Account, &OnAccount),
    mut stand: Stand,
    paints: &Paints,
) -> Row {
    let shell = names.shell;
    if stand.icon == "full" {
        // The numbers beside it say how much that is.
        stand.notes.clear();
    }
    let used = on.used;
    let spoken = shell
        .t("conc-slots")
        .num("streams", used.streams)
        .num("creates", used.creates)
        .num("jobs", used.jobs);
    let streams = shell.t("number").num("value", used.streams);
    let count = match on.caps.streams {
        Some(cap) => format!("{streams}/{}", shell.t("number").num("value", cap)),
        None => streams.to_string(),
    };
    let id = account.id.to_string();
    Row {
        path: format!("/pool/accounts/{id}"),
        id: tail(&id),
        name: Arc::clone(&account.name),
        bar: Bar::new(on, paints),
        spoken: (used.creates + used.jobs > 0).then(|| spoken.to_string()),
        count,
        stand,
    }
}

/// The end of an id, by which rows of one list are told apart.
pub(super) fn tail(id: &str) -> String {
    let from = id.len().saturating_sub(8);
    id.get(from..).unwrap_or(id).to_owned()
}
