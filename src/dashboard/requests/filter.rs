//! What the list is narrowed to: read from the address, and written back into it.
//!
//! Invariant: a value that cannot be read is refused, never passed over, since the list would then
//! show what nobody asked for. An empty value, which forms send, is no wish.
use super::{super::error::Trouble, named::Names, words};
use crate::{
    domain::{
        ids::{AccountId, KeyId, RequestId},
        ledger::Outcome,
    },
    store::ledger::LedgerFilter,
};
use http::StatusCode;
use serde::Deserialize;

/// The query, as it came.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Asked {
    pub(super) key: Option<String>,
    pub(super) account: Option<String>,
    pub(super) outcome: Option<String>,
    pub(super) status: Option<String>,
    pub(super) before: Option<String>,
}

/// The same, understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Filter {
    pub(super) key: Option<KeyId>,
    pub(super) account: Option<AccountId>,
    pub(super) outcome: Option<Outcome>,
    /// 2 for 200 to 299, and so on.
    pub(super) status: Option<u16>,
    /// Only requests older than this one.
    pub(super) before: Option<RequestId>,
}

impl Asked {
    pub(super) fn read(&self) -> Result<Filter, Trouble> {
        Ok(Filter {
            key: read(self.key.as_deref(), |text| text.parse().ok())?,
            account: read(self.account.as_deref(), |text| text.parse().ok())?,
            outcome: read(self.outcome.as_deref(), Outcome::from_name)?,
            status: read(self.status.as_deref(), class)?,
            before: read(self.before.as_deref(), |text| text.parse().ok())?,
        })
    }
}

fn read<T>(
    text: Option<&str>,
    understand: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Trouble> {
    match text {
        None | Some("") => Ok(None),
        Some(text) => match understand(text) {
            Some(value) => Ok(Some(value)),
            None => Err(Trouble::UnreadableForm(StatusCode::BAD_REQUEST)),
        },
    }
}

/// `4xx`, and what else there is.
fn class(text: &str) -> Option<u16> {
    CLASSES.into_iter().find(|class| class_name(*class) == text)
}

const CLASSES: [u16; 4] = [2, 3, 4, 5];

fn class_name(class: u16) -> String {
    format!("{class}xx")
}

impl Filter {
    pub(super) fn in_the_log(&self, limit: usize) -> LedgerFilter {
        LedgerFilter {
            before: self.before,
            key: self.key,
            account: self.account,
            status_class: self.status,
            outcome: self.outcome,
            limit: u32::try_from(limit).unwrap_or(u32::MAX),
        }
    }

    /// The address of the list that is narrowed so, from that request on. Ids and words need no
    /// escaping.
    pub(super) fn address(&self, before: Option<RequestId>) -> String {
        let pairs = [
            ("key", self.key.map(|id| id.to_string())),
            ("account", self.account.map(|id| id.to_string())),
            ("outcome", self.outcome.map(|o| o.name().to_owned())),
            ("status", self.status.map(class_name)),
            ("before", before.map(|id| id.to_string())),
        ];
        let pairs = pairs
            .iter()
            .filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
        let query = pairs.collect::<Vec<_>>().join("&");
        if query.is_empty() {
            return "/requests".to_owned();
        }
        format!("/requests?{query}")
    }

    /// One sentence for each thing that narrows the list.
    pub(super) fn in_words(&self, names: &Names<'_>) -> Vec<String> {
        let shell = names.shell;
        let key = self.key.map(|id| names.key(Some(id)).text);
        let account = self.account.map(|id| names.account(Some(id)).text);
        let outcome = self.outcome.map(|o| words::outcome(shell, o));
        let sentences = [
            key.map(|key| shell.t("requests-only-key").text("name", key)),
            account.map(|account| shell.t("requests-only-account").text("name", account)),
            outcome.map(|outcome| shell.t("requests-only-outcome").text("outcome", outcome)),
            self.status.map(|class| {
                shell
                    .t("requests-only-status")
                    .text("class", class_name(class))
            }),
        ];
        let some = sentences.into_iter().flatten();
        some.map(|sentence| sentence.to_string()).collect()
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

/// The entries of the form's selects.
pub(super) struct Choices {
    pub(super) keys: Vec<Choice>,
    pub(super) accounts: Vec<Choice>,
    pub(super) outcomes: Vec<Choice>,
    pub(super) classes: Vec<Choice>,
}

impl Choices {
    pub(super) fn new(names: &Names<'_>, filter: &Filter) -> Self {
        let keys = names.pool.keys().iter().map(|key| (key.id, &*key.name));
        let accounts = names.pool.accounts().iter().map(|a| (a.id, &*a.name));
        let outcomes = Outcome::ALL.map(|outcome| Choice {
            value: outcome.name().to_owned(),
            text: words::outcome(names.shell, outcome),
            is_chosen: filter.outcome == Some(outcome),
            is_name: false,
        });
        let classes = CLASSES.map(|class| Choice {
            value: class_name(class),
            text: class_name(class),
            is_chosen: filter.status == Some(class),
            is_name: true,
        });
        Self {
            keys: of(keys, filter.key, |id| names.key(Some(id)).text),
            accounts: of(accounts, filter.account, |id| names.account(Some(id)).text),
            outcomes: outcomes.into(),
            classes: classes.into(),
        }
    }
}

/// What there is, and what was chosen although it is there no more.
fn of<'a, Id: Copy + PartialEq + ToString>(
    there: impl Iterator<Item = (Id, &'a str)>,
    chosen: Option<Id>,
    removed: impl Fn(Id) -> String,
) -> Vec<Choice> {
    let mut choices: Vec<Choice> = there
        .map(|(id, name)| Choice {
            value: id.to_string(),
            text: name.to_owned(),
            is_chosen: chosen == Some(id),
            is_name: true,
        })
        .collect();
    if let Some(id) = chosen.filter(|_| !choices.iter().any(|choice| choice.is_chosen)) {
        choices.push(Choice {
            value: id.to_string(),
            text: removed(id),
            is_chosen: true,
            is_name: false,
        });
    }
    choices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_read_back_from_its_address() {
        let id = RequestId::from_u128(7);
        let filter = Filter {
            key: Some(KeyId::from_u128(1)),
            account: Some(AccountId::from_u128(2)),
            outcome: Some(Outcome::ClientGone),
            status: Some(4),
            before: Some(id),
        };
        let uri = filter.address(Some(id)).parse::<http::Uri>().unwrap();
        let asked = axum::extract::Query::<Asked>::try_from_uri(&uri).unwrap();
        assert_eq!(asked.read().unwrap(), filter);
        assert_eq!(Filter::default().address(None), "/requests");
    }

    #[test]
    fn an_empty_value_is_no_wish_and_an_unreadable_one_is_refused() {
        let status = |text: &str| {
            let asked = Asked {
                status: Some(text.to_owned()),
                ..Asked::default()
            };
            asked.read().ok().map(|filter| filter.status)
        };
        assert_eq!(status(""), Some(None));
        assert_eq!(status("5xx"), Some(Some(5)));
        assert_eq!(status("6xx"), None);
        assert_eq!(status("all"), None);
    }
}
