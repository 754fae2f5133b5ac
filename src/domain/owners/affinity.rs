//! Soft owners: requests of one conversation go to one edge where they can, because the provider has
//! their beginning in its cache there.
//!
//! Invariant: this is a preference, never a duty. It is lost after a while without use, and under
//! pressure the least recently used goes first; memory is bounded whatever clients invent.
use super::{
    super::ids::{CredentialId, EndpointId, KeyId},
    Recent,
};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// How many conversations are remembered: some ten MiB.
pub const CAPACITY: usize = 100_000;

/// Where a request names the conversation that it belongs to, in order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AffinitySource {
    /// The field `prompt_cache_key`.
    PromptCacheKey,
    /// The header `session-id`.
    SessionId,
    /// The header `session_id`.
    SessionIdUnderscored,
    /// The header `thread-id`.
    ThreadId,
    /// The header `x-session-id`.
    XSessionId,
    /// The header `x-claude-code-session-id`.
    ClaudeCodeSessionId,
}

impl AffinitySource {
    /// The headers, in order of precedence; the field stands before all of them.
    pub const HEADERS: [(Self, &'static str); 5] = [
        (Self::SessionId, "session-id"),
        (Self::SessionIdUnderscored, "session_id"),
        (Self::ThreadId, "thread-id"),
        (Self::XSessionId, "x-session-id"),
        (Self::ClaudeCodeSessionId, "x-claude-code-session-id"),
    ];
}

/// A conversation of a client key. Two that fall together by chance merely share a preference, so
/// that 64 bits do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AffinityKey(u64);

impl AffinityKey {
    /// The conversation that `caller` names with `value`; `None` is a keyless request.
    pub fn new(caller: Option<KeyId>, source: AffinitySource, value: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        (caller, source, value).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// An edge that is preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preferred {
    /// Its credential.
    pub credential: CredentialId,
    /// Its endpoint.
    pub endpoint: EndpointId,
}

/// Now, and how long a preference lasts without use. The numbers are of one clock that only goes
/// forward, whatever it counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Now.
    pub now_ms: u64,
    /// How long; 0 means that there are no preferences.
    pub ttl_ms: u64,
}

#[derive(Debug)]
struct Kept {
    edge: Preferred,
    used_at_ms: u64,
}

/// Which conversation prefers which edge.
#[derive(Debug)]
pub struct Affinities {
    recent: Recent<AffinityKey, Kept>,
    turned_at_ms: u64,
}

impl Affinities {
    /// None yet, and at most `capacity` at any time.
    pub fn new(capacity: usize) -> Self {
        Self {
            recent: Recent::new(capacity),
            turned_at_ms: 0,
        }
    }

    /// The edge that this conversation prefers; asking renews it.
    pub fn preferred(&mut self, key: AffinityKey, moment: Moment) -> Option<Preferred> {
        self.tidy(moment);
        let kept = self.recent.use_of(&key)?;
        if moment.now_ms.saturating_sub(kept.used_at_ms) >= moment.ttl_ms {
            self.recent.remove(&key);
            return None;
        }
        kept.used_at_ms = moment.now_ms;
        Some(kept.edge)
    }

    /// This conversation was served by `edge`, and prefers it from now on.
    pub fn prefer(&mut self, key: AffinityKey, edge: Preferred, moment: Moment) {
        self.tidy(moment);
        let used_at_ms = moment.now_ms;
        self.recent.put(key, Kept { edge, used_at_ms });
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.recent.count()
    }

    /// Lets go of what nobody has used for long, so that a quiet table is a small one.
    fn tidy(&mut self, moment: Moment) {
        if moment.now_ms.saturating_sub(self.turned_at_ms) > moment.ttl_ms {
            self.recent.turn();
            self.turned_at_ms = moment.now_ms;
        }
    }
}
