//! What is looked at: read from the address, and written back into it.
//!
//! Invariant: a value that cannot be read is refused, never passed over. An empty value, which forms
//! send, is no wish.
use super::ROWS;
use crate::{
    dashboard::{error::Trouble, names::Names, shell::Shell},
    domain::{
        ids::{AccountId, KeyId},
        reason::Reason,
    },
    engine::live::Stage,
};
use http::StatusCode;
use serde::Deserialize;

/// More rows than that are never shown at once.
const ROWS_AT_MOST: usize = 10_000;

/// The query, as it came.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Asked {
    key: Option<String>,
    account: Option<String>,
    stage: Option<String>,
    open: Option<String>,
    accounts: Option<String>,
    keys: Option<String>,
    waits: Option<String>,
    requests: Option<String>,
    done: Option<Done>,
    slots: Option<u64>,
    granted: Option<u64>,
}

/// What was just done.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Done {
    Reset,
    Released,
}

/// The same, understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct View {
    /// The key that is drawn in the accent; live requests are narrowed to it.
    pub(super) key: Option<KeyId>,
    /// Live requests are narrowed to those that hold something there.
    pub(super) account: Option<AccountId>,
    /// Live requests are narrowed to those at that stage.
    pub(super) stage: Option<Stage>,
    /// The group that is unfolded.
    pub(super) open: Option<String>,
    /// How many rows of each list are shown.
    pub(super) shown: Shown,
}

/// How many rows are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) accounts: usize,
    pub(super) keys: usize,
    pub(super) waits: usize,
    pub(super) requests: usize,
}

impl Default for Shown {
    fn default() -> Self {
        Self {
            accounts: ROWS,
            keys: ROWS,
            waits: ROWS,
            requests: ROWS,
        }
    }
}

impl Asked {
    pub(super) fn read(&self) -> Result<View, Trouble> {
        let rows = |text: Option<&str>| -> Result<usize, Trouble> {
            let rows = read(text, |text| text.parse().ok())?;
            Ok(rows.unwrap_or(ROWS).min(ROWS_AT_MOST))
        };
        let stage = |name: &str| Stage::ALL.into_iter().find(|stage| stage.name() == name);
        Ok(View {
            key: read(self.key.as_deref(), |text| text.parse().ok())?,
            account: read(self.account.as_deref(), |text| text.parse().ok())?,
            stage: read(self.stage.as_deref(), stage)?,
            open: read(self.open.as_deref(), group)?,
            shown: Shown {
                accounts: rows(self.accounts.as_deref())?,
                keys: rows(self.keys.as_deref())?,
                waits: rows(self.waits.as_deref())?,
                requests: rows(self.requests.as_deref())?,
            },
        })
    }

    /// What is said of that which was just done.
    pub(super) fn notice(&self, shell: &Shell) -> Option<String> {
        let text = match self.done? {
            Done::Released => shell.t("conc-done-released"),
            Done::Reset => shell
                .t("conc-done-reset")
                .num("slots", self.slots.unwrap_or(0))
                .num("granted", self.granted.unwrap_or(0)),
        };
        Some(text.to_string())
    }
}

fn read<T>(
    text: Option<&str>,
    understand: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Trouble> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let value = understand(text).ok_or(Trouble::UnreadableForm(StatusCode::BAD_REQUEST))?;
    Ok(Some(value))
}

/// The name of a group as rows have it: the end of its key's id, and the number of its reason.
fn group(text: &str) -> Option<String> {
    let (key, reason) = text.split_once('-')?;
    let is_key = key.bytes().all(|b| b.is_ascii_alphanumeric());
    let number: usize = reason.parse().ok()?;
    (is_key && number < Reason::ALL.len() && number.to_string() == reason).then(|| text.to_owned())
}

impl View {
    /// The address of this view.
    pub(super) fn address(&self) -> String {
        match self.query() {
            query if query.is_empty() => "/concurrency".to_owned(),
            query => format!("/concurrency{query}"),
        }
    }

    /// The same, as seen from the page itself. Ids and words need no escaping.
    pub(super) fn query(&self) -> String {
        let rows = |rows: usize| (rows != ROWS).then(|| rows.to_string());
        let pairs = [
            ("key", self.key.map(|id| id.to_string())),
            ("account", self.account.map(|id| id.to_string())),
            ("stage", self.stage.map(|stage| stage.name().to_owned())),
            ("open", self.open.clone()),
            ("accounts", rows(self.shown.accounts)),
            ("keys", rows(self.shown.keys)),
            ("waits", rows(self.shown.waits)),
            ("requests", rows(self.shown.requests)),
        ];
        let pairs = pairs.iter();
        let pairs = pairs.filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
        let query = pairs.collect::<Vec<_>>().join("&");
        if query.is_empty() {
            query
        } else {
            format!("?{query}")
        }
    }

    /// The query of this view with something else in it, or the bare page.
    pub(super) fn with(&self, change: impl FnOnce(&mut Self)) -> String {
        let mut view = self.clone();
        change(&mut view);
        match view.query() {
            query if query.is_empty() => "/concurrency".to_owned(),
            query => query,
        }
    }

    /// How many wishes narrow the view.
    fn wishes(&self) -> usize {
        [
            self.key.is_some(),
            self.account.is_some(),
            self.stage.is_some(),
        ]
        .into_iter()
        .filter(|is_wish| *is_wish)
        .count()
    }
}

/// One entry of a select.
pub(super) struct Choice {
    pub(super) value: String,
    pub(super) text: String,
    pub(super) is_chosen: bool,
    /// Whether the text is a name, the same in every language.
    pub(super) is_name: bool,
}

/// The form that narrows the view.
pub(super) struct Filters {
    /// Name, label, the word for no wish, and what can be chosen.
    pub(super) selects: [(&'static str, String, String, Vec<Choice>); 3],
    /// How many are on.
    pub(super) on: usize,
}

impl Filters {
    pub(super) fn new(names: &Names<'_>, view: &View) -> Self {
        let shell = names.shell;
        let pool = &names.picture.pool;
        let keys = pool.keys().iter().map(|key| (key.id, &*key.name));
        let accounts = pool.accounts().iter().map(|a| (a.id, &*a.name));
        // A request that has finished is not in flight any more.
        let stages = Stage::ALL.into_iter().filter(|s| *s != Stage::Finished);
        let stages = stages.map(|stage| Choice {
            value: stage.name().to_owned(),
            text: names.stage(stage),
            is_chosen: view.stage == Some(stage),
            is_name: false,
        });
        let t = |key| shell.t(key).to_string();
        let gone = || t("conc-gone");
        let keys = of(keys, view.key, gone);
        let accounts = of(accounts, view.account, gone);
        Self {
            selects: [
                ("key", t("column-key"), t("conc-any-key"), keys),
                (
                    "account",
                    t("column-account"),
                    t("conc-any-account"),
                    accounts,
                ),
                (
                    "stage",
                    t("conc-stage"),
                    t("conc-any-stage"),
                    stages.collect(),
                ),
            ],
            on: view.wishes(),
        }
    }
}

/// What there is, and what was chosen although it is there no more.
fn of<'a, Id: Copy + PartialEq + ToString>(
    there: impl Iterator<Item = (Id, &'a str)>,
    chosen: Option<Id>,
    gone: impl Fn() -> String,
) -> Vec<Choice> {
    let choice = |(id, name): (Id, &str)| Choice {
        value: id.to_string(),
        text: name.to_owned(),
        is_chosen: chosen == Some(id),
        is_name: true,
    };
    let mut choices: Vec<Choice> = there.map(choice).collect();
    let is_there = choices.iter().any(|choice| choice.is_chosen);
    if let Some(id) = chosen.filter(|_| !is_there) {
        choices.push(Choice {
            value: id.to_string(),
            text: gone(),
            is_chosen: true,
            is_name: false,
        });
    }
    choices
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::extract::Query;

    #[test]
    fn a_view_is_read_back_from_its_address() {
        let check = |view: View| {
            let uri = view.address().parse::<http::Uri>().unwrap();
            let Query(asked) = Query::<Asked>::try_from_uri(&uri).unwrap();
            assert_eq!(asked.read().unwrap(), view);
        };
        check(View::default());
        for key in [None, Some(KeyId::from_u128(3))] {
            check(View {
                key,
                account: Some(AccountId::from_u128(2)),
                stage: Some(Stage::UpstreamHeaders),
                open: Some("1a2b3c4d-2".to_owned()),
                shown: Shown {
                    accounts: 100,
                    keys: 150,
                    waits: 200,
                    requests: 250,
                },
            });
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for query in [
            "key=x",
            "stage=asleep",
            "open=none-x",
            "open=none",
            "keys=many",
        ] {
            let uri = format!("/concurrency?{query}");
            let Query(asked) = Query::<Asked>::try_from_uri(&uri.parse().unwrap()).unwrap();
            assert!(asked.read().is_err(), "{query}");
        }
    }
}
