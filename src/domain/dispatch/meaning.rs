//! What an answer of upstream's means: for the pool, and for the request that got it.
//!
//! Invariant: a meaning is a fact about one answer. Whether the request does move also depends on
//! what it is and on what was tried; that is the [`Plan`](super::Plan)'s part.

/// What an answer means. Found by [`judge`](crate::protocol::verdict::judge).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Meaning {
    /// Upstream took the request: any status below 400.
    Accepted,
    /// Too much at this time: the account, or the credential, cools.
    Limited(Limited),
    /// Nothing left to spend, and no word of when that ends: the account is of no use until
    /// somebody pays or raises a limit.
    BillingRefused,
    /// The credential is not accepted.
    AuthRefused,
    /// Too busy, and nothing was done: 503 and 529.
    Refused {
        /// Whether the body is an error as this provider's own programs write it. If not, who
        /// refused is unknown, and with it whether nothing was done.
        has_provider_shape: bool,
    },
    /// The network in front of the provider says that it never reached it.
    OriginUnreached,
    /// It went wrong there, perhaps after the work was done: any other 5xx.
    Failed,
    /// The request itself is at fault: any other 4xx.
    ClientsFault,
}

/// What is known of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limited {
    /// How long from the answer's receipt, in milliseconds. `None`: upstream did not say; 0: it
    /// named a time that has passed.
    pub wait_ms: Option<u64>,
    /// Whether a quota is used up, rather than a pace exceeded.
    pub is_quota: bool,
}

impl Meaning {
    /// Whether it counts on the endpoint's breaker. Limits and what a client or a credential is
    /// guilty of do not: the endpoint works.
    pub const fn trips_breaker(self) -> bool {
        match self {
            Self::Refused { .. } | Self::OriginUnreached | Self::Failed => true,
            Self::Accepted
            | Self::Limited(_)
            | Self::BillingRefused
            | Self::AuthRefused
            | Self::ClientsFault => false,
        }
    }

    /// Whether another account may get the request; `retry_5xx` is the operator's leave to send
    /// again what may have been done.
    pub const fn is_movable(self, retry_5xx: bool) -> bool {
        match self {
            Self::Limited(_)
            | Self::BillingRefused
            | Self::AuthRefused
            | Self::Refused { .. }
            | Self::OriginUnreached => true,
            Self::Failed => retry_5xx,
            Self::Accepted | Self::ClientsFault => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITED: Meaning = Meaning::Limited(Limited {
        wait_ms: None,
        is_quota: false,
    });
    const REFUSED: Meaning = Meaning::Refused {
        has_provider_shape: false,
    };

    fn check(meaning: Meaning, trips: bool, moves: bool, moves_with_leave: bool) {
        assert_eq!(meaning.trips_breaker(), trips, "{meaning:?}");
        assert_eq!(meaning.is_movable(false), moves, "{meaning:?}");
        assert_eq!(meaning.is_movable(true), moves_with_leave, "{meaning:?}");
    }

    #[test]
    fn only_what_the_endpoint_is_guilty_of_trips_its_breaker() {
        check(REFUSED, true, true, true);
        check(Meaning::OriginUnreached, true, true, true);
        check(Meaning::Failed, true, false, true);
    }

    #[test]
    fn what_another_account_could_serve_moves() {
        check(LIMITED, false, true, true);
        check(Meaning::BillingRefused, false, true, true);
        check(Meaning::AuthRefused, false, true, true);
        check(Meaning::Accepted, false, false, false);
        check(Meaning::ClientsFault, false, false, false);
    }
}
