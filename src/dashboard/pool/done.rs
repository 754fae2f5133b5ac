//! What the list says after something was done, and where to go to be told.
//!
//! Invariant: the address names a kind and an id, never a name or a secret.
use super::{Sort, find};
use crate::{
    dashboard::shell::Shell,
    document::single::Thing as _,
    domain::pool::{Account, Credential, Endpoint, edges::Contents},
};
use serde::Deserialize;

/// What was done to bring the person here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Done {
    Added,
    Saved,
    Enabled,
    Drained,
    Disabled,
    Rotated,
    Removed,
    Cleared,
}

impl Done {
    #[cfg(test)]
    pub(super) const ALL: [Self; 8] = [
        Self::Added,
        Self::Saved,
        Self::Enabled,
        Self::Drained,
        Self::Disabled,
        Self::Rotated,
        Self::Removed,
        Self::Cleared,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Saved => "saved",
            Self::Enabled => "enabled",
            Self::Drained => "drained",
            Self::Disabled => "disabled",
            Self::Rotated => "rotated",
            Self::Removed => "removed",
            Self::Cleared => "cleared",
        }
    }

    /// The list, which says that this was done to the thing at `at`.
    pub(super) fn address(self, at: &str) -> String {
        format!("/pool?done={}&at={at}", self.name())
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Added => "pool-done-added",
            Self::Saved => "pool-done-saved",
            Self::Enabled => "pool-done-enabled",
            Self::Drained => "pool-done-drained",
            Self::Disabled => "pool-done-disabled",
            Self::Rotated => "pool-done-rotated",
            Self::Removed => "pool-done-removed",
            Self::Cleared => "pool-done-cleared",
        }
    }
}

/// What was just done, and how to take it back by one click.
pub(super) struct Notice {
    pub(super) text: String,
    pub(super) back: Option<String>,
}

impl Notice {
    /// Nothing is said of a thing that is not there, unless that is what was done.
    pub(super) fn new(shell: &Shell, contents: &Contents, asked: &Asked) -> Option<Self> {
        let done = asked.done?;
        if done == Done::Removed {
            let text = shell.t("pool-done-removed").to_string();
            return Some(Self { text, back: None });
        }
        let (sort, id) = asked.at.split_once('/')?;
        let name = match Sort::from_list(sort)? {
            Sort::Account => find::<Account>(contents, id).ok()?.name(),
            Sort::Credential => find::<Credential>(contents, id).ok()?.name(),
            Sort::Endpoint => find::<Endpoint>(contents, id).ok()?.name(),
        };
        let stops = matches!(done, Done::Drained | Done::Disabled);
        Some(Self {
            text: shell.t(done.words()).text("name", name).to_string(),
            back: stops.then(|| format!("/pool/{sort}/{id}/enable")),
        })
    }
}

#[derive(Default, Deserialize)]
pub(super) struct Asked {
    done: Option<Done>,
    #[serde(default)]
    at: String,
}

#[cfg(test)]
impl Asked {
    pub(super) fn sample(done: Done, at: String) -> Self {
        let done = Some(done);
        Self { done, at }
    }
}
