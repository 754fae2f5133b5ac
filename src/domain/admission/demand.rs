//! What a request asks of the pool, and why it may not have it.
use crate::domain::{
    ids::{AccountId, KeyId},
    pool::{ClientKey, Pool},
    protocol::Protocol,
    reason::Reason,
};
use std::sync::Arc;

/// Which kinds of slot a request needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    /// Until the response has ended.
    pub stream: bool,
    /// Until upstream's response headers.
    pub create: bool,
}

impl Kinds {
    /// No slot at all.
    pub const NONE: Self = Self {
        stream: false,
        create: false,
    };

    /// What is left when `freed` is given back.
    #[must_use]
    pub fn without(self, freed: Self) -> Self {
        Self {
            stream: self.stream && !freed.stream,
            create: self.create && !freed.create,
        }
    }
}

/// What a request asks of the pool.
#[derive(Clone, Debug)]
pub struct Demand {
    /// Whose it is; `None` for requests without a client key.
    pub key: Option<Arc<ClientKey>>,
    /// What it speaks.
    pub protocol: Protocol,
    /// What it asks for, where the operation names a model.
    pub model: Option<Arc<str>>,
    /// The slots that it needs.
    pub kinds: Kinds,
    /// Whether it comes back to a running response, and so may use the reserve.
    pub reattach: bool,
    /// Whether it refers to state that only one account can have.
    pub needs_owner: bool,
    /// Accounts that it was on already and must not go to again.
    pub tried: Vec<AccountId>,
}

impl Demand {
    /// The id of its key.
    pub fn key_id(&self) -> Option<KeyId> {
        self.key.as_ref().map(|k| k.id)
    }

    /// The accounts that its key may use; `None` means all.
    pub fn scope(&self) -> Option<&[AccountId]> {
        self.key.as_ref().and_then(|k| k.accounts.as_deref())
    }
}

impl Demand {
    /// The demand with its key as `pool` has it, where that is another than before; or why it may
    /// not go on.
    pub(super) fn renewed(&self, pool: &Pool) -> Result<Option<Self>, Reason> {
        let Some(before) = &self.key else {
            return Ok(None);
        };
        let key = pool.key(&before.hash).ok_or(Reason::InvalidClientKey)?;
        if key == before {
            return Ok(None);
        }
        if self.model.as_ref().is_some_and(|m| !key.may_use_model(m)) {
            return Err(Reason::ModelNotAllowed);
        }
        Ok(Some(Self {
            key: Some(Arc::clone(key)),
            ..self.clone()
        }))
    }
}

/// Why a request may not go, with the numbers that its message needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason.
    pub reason: Reason,
    /// The limit that was hit and how much of it is used, where there is one.
    pub limit: Option<(usize, usize)>,
    /// How many candidates there were.
    pub candidates: usize,
    /// How many of them are disabled, and how many draining.
    pub out_of_service: (usize, usize),
}

impl Refusal {
    /// A refusal without numbers.
    pub const fn bare(reason: Reason) -> Self {
        Self {
            reason,
            limit: None,
            candidates: 0,
            out_of_service: (0, 0),
        }
    }

    /// A refusal because `used` of `limit` are in use.
    pub const fn limit(reason: Reason, limit: usize, used: usize) -> Self {
        Self {
            limit: Some((limit, used)),
            ..Self::bare(reason)
        }
    }
}
