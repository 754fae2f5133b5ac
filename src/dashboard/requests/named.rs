//! Names instead of ids, where the thing is still there.
use super::super::shell::Shell;
use crate::domain::{
    ids::{AccountId, CredentialId, EndpointId, KeyId},
    pool::Pool,
};

/// What something is called.
pub(super) struct Named {
    pub(super) text: String,
    /// Whether the text is a name, the same in every language, and no sentence.
    pub(super) is_name: bool,
}

/// Where names come from.
pub(super) struct Names<'a> {
    pub(super) shell: &'a Shell,
    pub(super) pool: &'a Pool,
}

impl<'a> Names<'a> {
    pub(super) fn new(shell: &'a Shell, pool: &'a Pool) -> Self {
        Self { shell, pool }
    }

    pub(super) fn key(&self, id: Option<KeyId>) -> Named {
        self.named(id, |id| {
            let found = self.pool.keys().iter().find(|key| key.id == id);
            found.map(|key| &*key.name)
        })
    }

    pub(super) fn account(&self, id: Option<AccountId>) -> Named {
        self.named(id, |id| {
            let found = self.pool.accounts().iter().find(|a| a.id == id);
            found.map(|account| &*account.name)
        })
    }

    pub(super) fn credential(&self, id: Option<CredentialId>) -> Named {
        self.named(id, |id| {
            let found = self.pool.credentials().iter().find(|c| c.id == id);
            found.map(|credential| &*credential.name)
        })
    }

    pub(super) fn endpoint(&self, id: Option<EndpointId>) -> Named {
        self.named(id, |id| {
            let found = self.pool.endpoints().iter().find(|e| e.id == id);
            found.map(|endpoint| &*endpoint.name)
        })
    }

    fn named<Id: Copy + ToString>(
        &self,
        id: Option<Id>,
        find: impl Fn(Id) -> Option<&'a str>,
    ) -> Named {
        let Some(id) = id else {
            return Named {
                text: self.shell.t("requests-nobody").to_string(),
                is_name: false,
            };
        };
        match find(id) {
            Some(name) => Named {
                text: name.to_owned(),
                is_name: true,
            },
            None => Named {
                text: self
                    .shell
                    .t("requests-removed")
                    .text("id", shortened(&id.to_string()))
                    .to_string(),
                is_name: false,
            },
        }
    }
}

/// An id without its middle: `acc_0190…9f3c`.
fn shortened(id: &str) -> String {
    match (id.get(..8), id.get(id.len().saturating_sub(4)..)) {
        (Some(head), Some(tail)) if id.len() > 16 => format!("{head}…{tail}"),
        _ => id.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_ids_lose_their_middle() {
        assert_eq!(shortened("req_0190-aaaa-bbbb-9f3c"), "req_0190…9f3c");
        assert_eq!(shortened("short"), "short");
    }
}
