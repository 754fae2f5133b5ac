//! How everything in the pool stands, seen at one moment: what is in flight, what cools, what rests.
//!
//! Invariant: times are told as milliseconds since 1970; the process's own time line stays inside.
use super::{admission::Admission, explain::unix_ms};
use crate::domain::{
    admission::{Standing, Subject},
    breaker::Breaker,
    ids::EndpointId,
    moment::Moment,
};
use std::collections::HashMap;

/// How everything stands.
#[derive(Clone, Debug, Default)]
pub struct Look {
    standings: HashMap<Subject, Standing>,
    breakers: HashMap<EndpointId, Breaker>,
    at_endpoints: HashMap<EndpointId, usize>,
    now: (Moment, i64),
}

impl Look {
    /// Looks; `now_ms` is now in milliseconds since 1970.
    pub fn new(admission: &Admission, now_ms: i64) -> Self {
        Self {
            standings: admission.standings().into_iter().collect(),
            breakers: admission.breakers().into_iter().collect(),
            at_endpoints: admission.at_endpoints(),
            now: (admission.now(), now_ms),
        }
    }

    /// How a subject stands; one that came into the pool a moment ago has nothing in flight.
    pub fn standing(&self, subject: Subject) -> Standing {
        self.standings.get(&subject).cloned().unwrap_or_default()
    }

    /// Whether nothing of a subject as a whole cools or awaits a verdict.
    pub fn lets_pass(&self, subject: Subject) -> bool {
        let standing = self.standings.get(&subject);
        standing.is_none_or(|standing| standing.cooldown.lets_pass())
    }

    /// An endpoint's breaker.
    pub fn breaker(&self, endpoint: EndpointId) -> Breaker {
        self.breakers.get(&endpoint).copied().unwrap_or_default()
    }

    /// Requests in flight at an endpoint.
    pub fn at_endpoint(&self, endpoint: EndpointId) -> usize {
        self.at_endpoints.get(&endpoint).copied().unwrap_or(0)
    }

    /// A moment in milliseconds since 1970.
    pub fn unix_ms(&self, moment: Moment) -> i64 {
        unix_ms(self.now, moment)
    }

    /// When this was so, in milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.now.1
    }
}

/// For samples of pages that show what is seldom so.
#[cfg(test)]
impl Look {
    pub(crate) fn put(&mut self, subject: Subject, standing: Standing) {
        self.standings.insert(subject, standing);
    }

    pub(crate) fn put_breaker(&mut self, endpoint: EndpointId, breaker: Breaker) {
        self.breakers.insert(endpoint, breaker);
    }
}
