//! What a request is tied to, and what its answer ties: who owns the things that it names, and who
//! will own those that it makes.
//!
//! Invariants: a request that names nothing touches neither the disk nor the memory of owners; the
//! id of what upstream keeps for good is on disk before a client sees it, and where the disk refuses
//! that, the client sees no id.
use super::{call::Call, refuse::Refused, ticket::Ticket};
use crate::{
    domain::{
        admission::Owner,
        ids::{CredentialId, KeyId},
        owners::{
            Binding, Reference, Role,
            affinity::{AffinityKey, Preferred},
        },
        pool::{ClientKey, Pool},
        reason::Reason,
    },
    engine::{
        dispatch::{Dispatched, Undelivered},
        held::{Held, Patience},
        owners::Maker,
    },
    ports::Unstored,
    protocol::{
        operation::{Effect, Leases},
        owned::{self, Making},
        peek::Peeked,
    },
};
use http::{HeaderValue, header};
use std::time::Duration;

/// How much of an answer is held back until what it makes is on disk. Such answers are a few KiB
/// long, and say what they make at their beginning.
const HELD_BYTES: usize = 1 << 20;

/// What a request is tied to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ties {
    /// Whose state it refers to.
    pub(super) owner: Owner,
    /// Where its conversation was before.
    pub(super) preferred: Option<CredentialId>,
    /// Whose it is.
    pub(super) key: Option<KeyId>,
    /// The conversation that it belongs to, where it names one.
    conversation: Option<AffinityKey>,
    /// Whether it continues a response, so that its client knows what to do if that is lost.
    is_continuation: bool,
}

impl Ties {
    /// Tied to what that credential has of the key's.
    pub(super) fn to(credential: CredentialId, key: Option<&ClientKey>) -> Self {
        Self {
            owner: Owner::Bound(credential),
            preferred: None,
            key: key.map(|k| k.id),
            conversation: None,
            is_continuation: false,
        }
    }
}

impl Call<'_> {
    /// What this request is tied to, or why it can go nowhere.
    pub(super) async fn ties(
        &self,
        key: Option<KeyId>,
        peeked: Option<&Peeked>,
    ) -> Result<Ties, Refused> {
        let named = owned::references(&self.route, peeked, &self.parts.headers);
        let owner = if named.is_empty() {
            Owner::Nobody
        } else {
            // Boxed, so that requests which name nothing need no room for it.
            Box::pin(self.owner(&named, key)).await?
        };
        let conversation = self.conversation(key, peeked);
        let ttl = self.policy.affinity;
        let owners = &self.door.gateway.owners;
        let preferred = conversation.filter(|_| owner == Owner::Nobody);
        let preferred = preferred.and_then(|c| owners.preferred(c, ttl));
        Ok(Ties {
            owner,
            preferred: preferred.map(|edge| edge.credential),
            key,
            conversation,
            is_continuation: peeked.is_some_and(|p| p.previous_response_id.is_some()),
        })
    }

    async fn owner(&self, named: &[Reference], key: Option<KeyId>) -> Result<Owner, Refused> {
        let owners = &self.door.gateway.owners;
        let binding = owners.resolve(named, key).await.map_err(unreadable)?;
        let is_continuation = named
            .iter()
            .any(|reference| reference.role == Role::Continued);
        match binding {
            Binding::None => Ok(Owner::Nobody),
            Binding::Unknown { .. } => Ok(Owner::Unknown),
            Binding::Foreign { is_continued } => Err(Refused {
                is_continued,
                ..Refused::owner_unknown()
            }),
            Binding::Conflict => Err(Refused::new(
                Reason::OwnerConflict,
                "This request refers to things that two different accounts hold; no one account has them all.",
            )),
            Binding::Bound(owner) => {
                let pool = self.door.gateway.configuration.pool();
                let credential = owner.credential;
                if is_gone(&pool, credential) {
                    return Err(Refused::owner_gone(is_continuation));
                }
                if self.is_new_work() && !takes_work(&pool, credential) {
                    return Err(Refused::owner_unavailable());
                }
                Ok(Owner::Bound(credential))
            }
        }
    }

    /// Whether it makes something although it needs no slot; admission knows by their slots that
    /// other requests are new work.
    fn is_new_work(&self) -> bool {
        let route = &self.route;
        route.leases == Leases::NONE && !route.reattach && route.operation.effect() == Effect::Makes
    }

    /// The conversation that a generating request names, unless nobody is to remember it.
    fn conversation(&self, key: Option<KeyId>, peeked: Option<&Peeked>) -> Option<AffinityKey> {
        if !self.route.leases.stream || self.policy.affinity == Duration::ZERO {
            return None;
        }
        let (source, value) = owned::affinity(peeked, &self.parts.headers)?;
        Some(AffinityKey::new(key, source, value))
    }

    /// Takes down what a successful answer says of owners, before the client sees any of it.
    pub(super) async fn settle_owners(
        &self,
        ties: Ties,
        dispatched: Dispatched,
        ticket: &Ticket,
    ) -> Result<Dispatched, Refused> {
        if !dispatched.answer.head.status.is_success() {
            return Ok(dispatched);
        }
        let owners = &self.door.gateway.owners;
        let edge = &dispatched.edge;
        if let Some(conversation) = ties.conversation {
            let preferred = Preferred {
                credential: edge.credential().id,
                endpoint: edge.endpoint().id,
            };
            owners.prefer(conversation, preferred, self.policy.affinity);
        }
        if let Some(state) = owned::turn_state(&dispatched.answer.head.headers) {
            ticket.learns(vec![state], edge);
        }
        if let Some(object) = owned::ended(&self.route)
            && let Err(error) = owners.forget(object, ties.key).await
        {
            // It is gone upstream, and naming it leads there: nothing worse than its own 404.
            tracing::warn!(request = %ticket.id(), %error, "the owner of what was deleted is still stored");
        }
        match owned::making(self.route.operation) {
            Making::Nothing | Making::InPassing => Ok(dispatched),
            Making::BeforeAnswer => Box::pin(self.bound(ties.key, dispatched, ticket)).await,
        }
    }

    /// Holds an answer back until what it makes is on disk.
    async fn bound(
        &self,
        key: Option<KeyId>,
        dispatched: Dispatched,
        ticket: &Ticket,
    ) -> Result<Dispatched, Refused> {
        let Dispatched {
            mut answer,
            edge,
            lease,
        } = dispatched;
        let held = Held::read(answer.body, Patience::Between(self.policy.idle), HELD_BYTES).await;
        let codings = answer.head.headers.get_all(header::CONTENT_ENCODING);
        let document = held.document(codings.iter().map(HeaderValue::as_bytes));
        let Some(document) = document else {
            tracing::warn!(request = %ticket.id(), "an answer could not be read, so that its owner is not known");
            answer.body = Box::pin(held);
            return Ok(Dispatched {
                answer,
                edge,
                lease,
            });
        };
        let made = owned::made(self.route.operation, &document);
        let maker = Maker::at(key, &edge);
        let owners = &self.door.gateway.owners;
        if let Err(error) = owners.bind_durably(made, maker).await {
            return Err(unwritten(error));
        }
        answer.body = Box::pin(held);
        Ok(Dispatched {
            answer,
            edge,
            lease,
        })
    }

    /// What a refusal of admission means for the client of a request that is tied to something.
    pub(super) fn tied(&self, ties: Ties, error: Undelivered) -> Refused {
        let reason = match &error {
            Undelivered::Denied(denied) => denied.refusal.reason,
            Undelivered::Failed { reason, .. } => *reason,
        };
        let pool = self.door.gateway.configuration.pool();
        match (reason, ties.owner) {
            (Reason::OwnerUnknown, _) => Refused {
                is_continued: ties.is_continuation,
                ..Refused::from(error)
            },
            (Reason::OwnerUnavailable, Owner::Bound(owner)) if is_gone(&pool, owner) => {
                Refused::owner_gone(ties.is_continuation)
            }
            _ => error.into(),
        }
    }
}

fn is_gone(pool: &Pool, credential: CredentialId) -> bool {
    // Most have edges, which are found at once.
    let has_edges = pool.edges_of(credential).next().is_some();
    !has_edges && pool.credentials().iter().all(|c| c.id != credential)
}

fn takes_work(pool: &Pool, credential: CredentialId) -> bool {
    let mut edges = pool.edges_of(credential);
    edges.any(|index| pool.takes_work(pool.edge(index)))
}

pub(super) fn unreadable(error: Unstored) -> Refused {
    Refused {
        detail: Some(error.0),
        ..Refused::new(
            Reason::StoreUnavailable,
            "Which account holds what this request refers to cannot be looked up now.",
        )
    }
}

/// The work is done, and repeating the request would do it twice.
pub(super) fn unwritten(error: Unstored) -> Refused {
    Refused {
        is_final: true,
        detail: Some(error.0),
        ..Refused::new(
            Reason::StoreUnavailable,
            "The provider has done this, but what it made cannot be recorded now, so its id is withheld; sending the request again would do it again.",
        )
    }
}
