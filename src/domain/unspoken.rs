//! Endpoints that were found not to speak WebSocket, so that nobody is sent there in vain.
//!
//! Invariant: a finding is believed for [`BELIEVED_MS`] at most, and only of the endpoint as it was
//! configured when it was made: what stands there is replaced without a word to anybody.
use super::{ids::EndpointId, moment::Moment, pool::Endpoint};
use rustc_hash::{FxHashMap, FxHashSet};

/// Long enough that clients meet no endpoint in vain again and again, short enough that one which
/// has learnt to speak is found out soon.
pub const BELIEVED_MS: u64 = 10 * 60 * 1000;

/// What a socket is for. An endpoint may have the one and lack the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SocketKind {
    /// Turns of the Responses API.
    Turns,
    /// A realtime session.
    Realtime,
}

#[derive(Debug)]
struct Finding {
    /// What was found so.
    endpoint: Endpoint,
    until: Moment,
}

/// What was found out.
#[derive(Debug, Default)]
pub struct Unspoken(FxHashMap<(EndpointId, SocketKind), Finding>);

impl Unspoken {
    /// An endpoint has refused an upgrade as one that does not speak WebSocket. Gives whether that
    /// is news.
    pub fn refused(&mut self, now: Moment, endpoint: &Endpoint, kind: SocketKind) -> bool {
        let was_known = self.is_unspoken(now, endpoint, kind);
        // What is over is forgotten here, so that endpoints which are gone take no room for ever.
        self.0.retain(|_, finding| finding.until > now);
        let finding = Finding {
            endpoint: endpoint.clone(),
            until: now.plus(BELIEVED_MS),
        };
        self.0.insert((endpoint.id, kind), finding);
        !was_known
    }

    /// An upgrade at that endpoint has succeeded.
    pub fn agreed(&mut self, endpoint: EndpointId, kind: SocketKind) {
        self.0.remove(&(endpoint, kind));
    }

    /// Which of some endpoints are not to be asked.
    pub fn among<'e>(
        &self,
        now: Moment,
        endpoints: impl IntoIterator<Item = &'e Endpoint>,
        kind: SocketKind,
    ) -> FxHashSet<EndpointId> {
        if self.0.is_empty() {
            return FxHashSet::default();
        }
        let endpoints = endpoints.into_iter();
        let silent = endpoints.filter(|endpoint| self.is_unspoken(now, endpoint, kind));
        silent.map(|endpoint| endpoint.id).collect()
    }

    fn is_unspoken(&self, now: Moment, endpoint: &Endpoint, kind: SocketKind) -> bool {
        let finding = self.0.get(&(endpoint.id, kind));
        finding.is_some_and(|f| f.until > now && f.endpoint == *endpoint)
    }
}

#[cfg(test)]
mod tests {
    use super::{SocketKind::*, *};
    use crate::domain::{
        pool::{State, edges::sample},
        protocol::Protocol,
    };

    const NOW: Moment = Moment::from_millis(5);

    fn endpoint(n: u128) -> Endpoint {
        sample::endpoint(n, Protocol::OpenAi)
    }

    /// Whether turns are spoken at `endpoint` by `after_ms`, as far as is known.
    fn check(found: &Unspoken, endpoint: &Endpoint, after_ms: u64, expect: bool) {
        let silent = found.among(NOW.plus(after_ms), [endpoint], Turns);
        assert_eq!(!silent.contains(&endpoint.id), expect, "after {after_ms}");
    }

    fn refused_by(endpoint: &Endpoint) -> Unspoken {
        let mut found = Unspoken::default();
        assert!(found.refused(NOW, endpoint, Turns));
        found
    }

    #[test]
    fn a_refusal_is_believed_for_a_while_and_is_news_once() {
        let endpoint = endpoint(1);
        let mut found = refused_by(&endpoint);
        assert!(!found.refused(NOW, &endpoint, Turns));
        check(&found, &endpoint, 0, false);
        check(&found, &endpoint, BELIEVED_MS - 1, false);
        check(&found, &endpoint, BELIEVED_MS, true);
        assert!(found.refused(NOW.plus(BELIEVED_MS), &endpoint, Turns));
    }

    #[test]
    fn a_refusal_says_nothing_of_others_nor_of_the_other_kind() {
        let (endpoint, other) = (endpoint(1), endpoint(2));
        let found = refused_by(&endpoint);
        check(&found, &other, 0, true);
        assert!(found.among(NOW, [&endpoint], Realtime).is_empty());
    }

    #[test]
    fn an_upgrade_that_succeeds_ends_it() {
        let endpoint = endpoint(1);
        let mut found = refused_by(&endpoint);
        found.agreed(endpoint.id, Realtime);
        check(&found, &endpoint, 0, false);
        found.agreed(endpoint.id, Turns);
        check(&found, &endpoint, 0, true);
    }

    #[test]
    fn whatever_changes_of_an_endpoint_ends_it() {
        let endpoint = endpoint(1);
        let found = refused_by(&endpoint);
        let mut changed = endpoint.clone();
        changed.headers.push(("x-route".into(), "b".into()));
        check(&found, &changed, 0, true);
        let toggled = Endpoint {
            state: State::Draining,
            ..endpoint.clone()
        };
        check(&found, &toggled, 0, true);
        check(&found, &endpoint, 0, false);
    }

    #[test]
    fn what_is_over_takes_no_room() {
        let mut found = refused_by(&endpoint(1));
        let later = NOW.plus(BELIEVED_MS);
        assert!(found.refused(later, &endpoint(2), Turns));
        assert_eq!(found.0.len(), 1);
    }
}
