//! Names instead of ids, and words for what happens.
use super::shell::Shell;
use crate::{
    domain::ids::{AccountId, KeyId},
    engine::{live::Stage, picture::Picture},
};
use std::collections::HashMap;

/// What something is called.
#[derive(Clone)]
pub(super) struct Named {
    pub(super) text: String,
    /// Whether the text is a name, the same in every language.
    pub(super) is_name: bool,
}

/// Where names come from.
pub(super) struct Names<'a> {
    pub(super) shell: &'a Shell,
    pub(super) picture: &'a Picture,
    keys: HashMap<KeyId, &'a str>,
    accounts: HashMap<AccountId, &'a str>,
}

impl<'a> Names<'a> {
    pub(super) fn new(shell: &'a Shell, picture: &'a Picture) -> Self {
        let pool = &picture.pool;
        Self {
            shell,
            picture,
            keys: pool.keys().iter().map(|k| (k.id, &*k.name)).collect(),
            accounts: pool.accounts().iter().map(|a| (a.id, &*a.name)).collect(),
        }
    }

    pub(super) fn key(&self, id: Option<KeyId>) -> Named {
        match id.map(|id| self.keys.get(&id)) {
            Some(Some(name)) => named(name),
            Some(None) => self.said("busy-key-removed"),
            None => self.said("busy-key-none"),
        }
    }

    pub(super) fn account(&self, id: AccountId) -> Named {
        match self.accounts.get(&id) {
            Some(name) => named(name),
            None => self.said("conc-gone"),
        }
    }

    fn said(&self, key: &'static str) -> Named {
        Named {
            text: self.shell.t(key).to_string(),
            is_name: false,
        }
    }

    pub(super) fn stage(&self, stage: Stage) -> String {
        let key = match stage {
            Stage::Received => "stage-received",
            Stage::Authenticated => "stage-authenticated",
            Stage::Parsed => "stage-parsed",
            Stage::Selected => "stage-selected",
            Stage::Parked => "stage-parked",
            Stage::Admitted => "stage-admitted",
            Stage::Dispatched => "stage-dispatched",
            Stage::UpstreamHeaders => "stage-upstream-headers",
            Stage::FirstByte => "stage-first-byte",
            Stage::Finished => "stage-finished",
        };
        self.shell.t(key).to_string()
    }
}

fn named(name: &str) -> Named {
    Named {
        text: name.to_owned(),
        is_name: true,
    }
}
