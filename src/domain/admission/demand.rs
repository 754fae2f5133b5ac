//! What a request asks of the pool, and why it may not have it.
use super::Share;
use crate::domain::{
    ids::{AccountId, CredentialId, EndpointId, KeyId, RequestId},
    moment::Moment,
    pool::{ClientKey, Pool},
    protocol::Protocol,
    reason::Reason,
};
use std::sync::Arc;

/// Which kinds of slot a request needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Kinds {
    /// Until the response has ended.
    pub stream: bool,
    /// Until upstream's response headers.
    pub create: bool,
    /// From submit until a terminal state is known.
    pub job: bool,
}

impl Kinds {
    /// No slot at all.
    pub const NONE: Self = Self {
        stream: false,
        create: false,
        job: false,
    };
    /// A stream alone: a session, or coming back to a running response.
    pub const STREAM: Self = Self {
        stream: true,
        ..Self::NONE
    };
    /// Starting a request that holds nothing after it has been answered.
    pub const CREATE: Self = Self {
        create: true,
        ..Self::NONE
    };
    /// An ordinary generating request.
    pub const GENERATE: Self = Self {
        stream: true,
        create: true,
        ..Self::NONE
    };

    /// Streams, creates, jobs: whether each is among them.
    pub(super) const fn each(self) -> [bool; 3] {
        [self.stream, self.create, self.job]
    }

    /// What is left when `freed` is given back.
    #[must_use]
    pub fn without(self, freed: Self) -> Self {
        Self {
            stream: self.stream && !freed.stream,
            create: self.create && !freed.create,
            job: self.job && !freed.job,
        }
    }
}

/// What a request asks of the pool.
#[derive(Clone, Debug)]
pub struct Demand {
    /// The request itself, for whoever asks who holds or waits for what.
    pub holder: RequestId,
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
    /// Whether it refers to state that only one credential can have.
    pub owner: Owner,
    /// The credential that it was on before, which it prefers without waiting for it.
    pub preferred: Option<CredentialId>,
    /// Where it must not go: where it was already, or what is known not to serve it.
    pub tried: Vec<Tried>,
    /// How long it may wait.
    pub until: Moment,
    /// Whether it has been admitted before and moves on: fair share is not asked again.
    pub is_moving: bool,
}

/// Whose state a request refers to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Owner {
    /// Nobody's.
    #[default]
    Nobody,
    /// Somebody's, whom fairlane does not know: it can only be the only account in scope.
    Unknown,
    /// This credential's; it is never left.
    Bound(CredentialId),
}

/// Where a request must not go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tried {
    /// To any credential of that account.
    Account(AccountId),
    /// To that credential.
    Credential(CredentialId),
    /// To that endpoint, by whatever credential.
    Endpoint(EndpointId),
}

impl Demand {
    /// The id of its key.
    pub fn key_id(&self) -> Option<KeyId> {
        self.key.as_ref().map(|k| k.id)
    }

    /// Whether it reads or ends what an owner has, and so reaches it in any state.
    pub fn reaches_owner(&self) -> bool {
        self.owner != Owner::Nobody && (self.kinds == Kinds::NONE || self.reattach)
    }

    /// Whether it starts a stream as most do, so that a place in the order says if there is room.
    pub(super) fn is_ordinary(&self) -> bool {
        self.kinds.stream && self.kinds.create && !self.reattach
    }

    /// Whether cooldowns hold it back.
    pub fn is_limited(&self) -> bool {
        !self.reaches_owner()
    }

    /// Whether its answer says anything of a limit.
    pub fn is_evidence(&self) -> bool {
        self.kinds != Kinds::NONE && self.is_limited()
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
    pub candidates: u32,
    /// How many of them are disabled.
    pub disabled: u32,
    /// How many drain.
    pub draining: u32,
    /// How many are at an endpoint that rests.
    pub resting: u32,
    /// How many cool.
    pub cooling: u32,
    /// When a candidate is expected to be free again, where that is known.
    pub free_at: Option<Moment>,
}

impl Refusal {
    /// A refusal without numbers.
    pub const fn bare(reason: Reason) -> Self {
        Self {
            reason,
            limit: None,
            candidates: 0,
            disabled: 0,
            draining: 0,
            resting: 0,
            cooling: 0,
            free_at: None,
        }
    }

    /// A refusal because the key holds its share of a congested pool.
    pub fn fair_share(share: &Share) -> Self {
        let count = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let (limit, mine) = (count(share.streams()), count(share.mine));
        Self::limit(Reason::ApiKeyStreamFairShare, limit, mine)
    }

    /// A refusal because `used` of `limit` are in use.
    pub const fn limit(reason: Reason, limit: usize, used: usize) -> Self {
        Self {
            limit: Some((limit, used)),
            ..Self::bare(reason)
        }
    }
}
