//! Those who wait, grouped by whose they are and what they wait for.
use crate::domain::{admission::Waiting, ids::KeyId, moment::Moment, reason::Reason};
use std::collections::HashMap;

/// Requests of one key that wait for the same thing.
#[derive(Clone, Debug)]
pub struct Waits {
    /// Whose; `None` stands for requests without a key.
    pub key: Option<KeyId>,
    /// What keeps them.
    pub reason: Reason,
    /// How long the one has waited that waits longest.
    pub oldest_ms: u64,
    /// When the first of them may go, where that is known.
    pub free_at: Option<Moment>,
    /// Who, oldest first; there is at least one.
    pub members: Vec<Waiting>,
}

/// What lets somebody go who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frees {
    /// Somebody's response ends.
    StreamEnds,
    /// Upstream begins to answer somebody.
    CreateEnds,
    /// Somebody's job ends.
    JobEnds,
    /// A slot of that credential or owner comes free.
    SlotEnds,
    /// A cooldown ends, or its probe succeeds.
    CooldownEnds,
    /// The key gives up a stream itself, others do, or its share grows.
    ShareGrows,
    /// Something else happens to the pool.
    PoolChanges,
}

impl Frees {
    /// Everything that can.
    pub const ALL: [Self; 7] = [
        Self::StreamEnds,
        Self::CreateEnds,
        Self::JobEnds,
        Self::SlotEnds,
        Self::CooldownEnds,
        Self::ShareGrows,
        Self::PoolChanges,
    ];

    /// The word in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::StreamEnds => "stream_ends",
            Self::CreateEnds => "create_ends",
            Self::JobEnds => "job_ends",
            Self::SlotEnds => "slot_ends",
            Self::CooldownEnds => "cooldown_ends",
            Self::ShareGrows => "share_grows",
            Self::PoolChanges => "pool_changes",
        }
    }

    /// What would free those who wait for that reason.
    pub const fn of(reason: Reason) -> Self {
        match reason {
            Reason::AccountStreamCap => Self::StreamEnds,
            Reason::AccountCreateCap => Self::CreateEnds,
            Reason::AccountJobCap => Self::JobEnds,
            Reason::CredentialCap | Reason::OwnerSaturated => Self::SlotEnds,
            Reason::AccountCooling | Reason::UsageLimitReached => Self::CooldownEnds,
            Reason::ApiKeyStreamFairShare => Self::ShareGrows,
            _ => Self::PoolChanges,
        }
    }
}

pub(super) fn group(waiting: Vec<Waiting>, now: Moment) -> Vec<Waits> {
    let mut groups: Vec<Waits> = Vec::new();
    let mut places: HashMap<(Option<KeyId>, Reason), usize> = HashMap::new();
    for one in waiting {
        let place = *places.entry((one.key, one.why.reason)).or_insert_with(|| {
            groups.push(Waits {
                key: one.key,
                reason: one.why.reason,
                oldest_ms: 0,
                free_at: None,
                members: Vec::new(),
            });
            groups.len() - 1
        });
        if let Some(group) = groups.get_mut(place) {
            group.oldest_ms = group.oldest_ms.max(now.since(one.parked_at));
            let known = group.free_at.into_iter().chain(one.why.free_at);
            group.free_at = known.min();
            group.members.push(one);
        }
    }
    for group in &mut groups {
        group.members.sort_by_key(|one| (one.parked_at, one.waiter));
    }
    groups.sort_by_key(|group| (std::cmp::Reverse(group.oldest_ms), group.key));
    groups
}
