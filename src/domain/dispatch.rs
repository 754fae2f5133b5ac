//! What follows when an attempt failed: proof before repetition.
//!
//! Rule: a request is sent again only if it provably never left ([`Provenance::NotDispatched`]), if
//! upstream refused it ([`meaning`]), or if repeating it cannot do anything twice (GET and HEAD).
//! Nothing else is ever repeated, unless the operator asks for it.
pub mod meaning;

use self::meaning::Meaning;
use super::{
    admission::Tried,
    ids::{AccountId, CredentialId, EndpointId},
    reason::Reason,
};

/// What is proven about a request whose attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Provenance {
    /// No byte of it left for upstream.
    NotDispatched,
    /// Everything else.
    Unknown,
}

impl Provenance {
    /// The word in logs and labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotDispatched => "not_dispatched",
            Self::Unknown => "unknown",
        }
    }
}

/// Why an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// No connection could be made, or the connection broke.
    Connection,
    /// Upstream's headers did not come in time.
    HeaderTimeout,
    /// A WebSocket was asked for, and the endpoint does not speak that.
    NotSpoken,
}

/// Why a request goes on to another edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// An attempt got no answer.
    Failure(Cause),
    /// Upstream refused it.
    Refusal(Meaning),
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Ask admission for an edge on another account, and send there.
    Move,
    /// Answer with this reason.
    GiveUp(Reason),
}

/// What a request cannot leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// It may go anywhere.
    None,
    /// The only account that its key may use.
    Account,
    /// The credential that owns what it refers to.
    Owner,
}

/// What of a request bears on where it may go next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mobility {
    /// What it cannot leave.
    pub tie: Tie,
    /// Whether sending it twice does nothing twice.
    pub is_repeatable: bool,
    /// Whether the operator lets requests move on after answers that may have cost something.
    pub retries_5xx: bool,
    /// Whether a limit that it meets cools what is limited.
    pub is_evidence: bool,
}

/// The attempts of one request.
#[derive(Clone, Debug)]
pub struct Plan {
    max_attempts: u32,
    attempts: u32,
    mobility: Mobility,
    first_failure: Option<Reason>,
    is_committed: bool,
}

impl Plan {
    /// Nothing tried yet; there will be at most `max_attempts` attempts.
    pub const fn new(max_attempts: u32, mobility: Mobility) -> Self {
        Self {
            max_attempts,
            attempts: 0,
            mobility,
            first_failure: None,
            is_committed: false,
        }
    }

    /// Something was sent to the client: whatever is tried from here on stands as it ends.
    pub const fn commit(&mut self) {
        self.is_committed = true;
    }

    /// An attempt begins.
    pub const fn begin(&mut self) {
        self.attempts += 1;
    }

    /// How many attempts have begun.
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// An attempt on `edge` failed before any answer; `tried` collects where not to go again.
    pub fn after_failure(
        &mut self,
        provenance: Provenance,
        cause: Cause,
        edge: Place<'_>,
        tried: &mut Vec<Tried>,
    ) -> Next {
        let reason = match (cause, provenance) {
            (Cause::NotSpoken, _) => Reason::UpgradeRequired,
            (Cause::HeaderTimeout, _) => Reason::UpstreamTimeout,
            (Cause::Connection, Provenance::NotDispatched) => Reason::UpstreamUnreachable,
            (Cause::Connection, Provenance::Unknown) => Reason::UpstreamAmbiguous,
        };
        let first = *self.first_failure.get_or_insert(reason);
        let may_repeat = provenance == Provenance::NotDispatched
            || (self.mobility.is_repeatable && cause == Cause::Connection);
        let may_move = !self.is_committed && self.attempts < self.max_attempts;
        // The same credential may work at another endpoint, which an owner is not left for.
        if cause == Cause::NotSpoken && may_move {
            tried.push(Tried::Endpoint(edge.endpoint));
            Next::Move
        } else if may_repeat && self.mobility.tie == Tie::None && may_move {
            tried.extend(edge.accounts.iter().copied().map(Tried::Account));
            Next::Move
        } else if may_repeat {
            Next::GiveUp(first)
        } else {
            Next::GiveUp(reason)
        }
    }

    /// An attempt on `edge` was answered. Gives whether another may take the request; `tried`
    /// collects where not to go again.
    ///
    /// A limit that cools what is limited needs no entry there: it may be asked again once that is
    /// over. That goes for a request that cannot leave its account too, since a limit is a refusal.
    /// Where nothing cools, as after a look at what an owner has, nothing would hold the request back
    /// from meeting the same limit at once.
    pub fn may_move_after(
        &self,
        meaning: Meaning,
        edge: Place<'_>,
        tried: &mut Vec<Tried>,
    ) -> bool {
        let Mobility {
            tie,
            retries_5xx,
            is_evidence,
            ..
        } = self.mobility;
        let may_move = !self.is_committed && self.attempts < self.max_attempts;
        if !may_move || !meaning.is_movable(retries_5xx) {
            return false;
        }
        match meaning {
            Meaning::Limited(_) if is_evidence => true,
            // Another credential of the same account may be accepted.
            Meaning::AuthRefused if tie != Tie::Owner => {
                tried.push(Tried::Credential(edge.credential));
                true
            }
            _ if tie == Tie::None => {
                tried.extend(edge.accounts.iter().copied().map(Tried::Account));
                true
            }
            _ => false,
        }
    }

    /// Nothing is left to move to: the answer is the first failure.
    pub const fn exhausted(&self) -> Option<Reason> {
        self.first_failure
    }
}

/// Where an attempt went.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// By which credential.
    pub credential: CredentialId,
    /// At whose cost.
    pub accounts: &'a [AccountId],
    /// Where.
    pub endpoint: EndpointId,
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: Mobility = Mobility {
        tie: Tie::None,
        is_repeatable: false,
        retries_5xx: false,
        is_evidence: true,
    };
    const PLACE: Place<'_> = Place {
        credential: CredentialId::from_u128(7),
        accounts: &[AccountId::from_u128(1)],
        endpoint: EndpointId::from_u128(4),
    };

    fn check(mobility: Mobility, failures: &[(Provenance, Cause)], expect: Next) {
        let mut plan = Plan::new(3, mobility);
        let mut next = Next::Move;
        for (provenance, cause) in failures {
            assert_eq!(next, Next::Move, "went on after giving up");
            plan.begin();
            next = plan.after_failure(*provenance, *cause, PLACE, &mut Vec::new());
        }
        assert_eq!(next, expect);
    }

    const UNSENT: (Provenance, Cause) = (Provenance::NotDispatched, Cause::Connection);
    const LOST: (Provenance, Cause) = (Provenance::Unknown, Cause::Connection);
    const SILENT: (Provenance, Cause) = (Provenance::Unknown, Cause::HeaderTimeout);

    #[test]
    fn what_never_left_moves_on_until_the_attempts_are_used_up() {
        let unreachable = Next::GiveUp(Reason::UpstreamUnreachable);
        check(FREE, &[UNSENT], Next::Move);
        check(FREE, &[UNSENT, UNSENT], Next::Move);
        check(FREE, &[UNSENT, UNSENT, UNSENT], unreachable);
        for tie in [Tie::Account, Tie::Owner] {
            check(Mobility { tie, ..FREE }, &[UNSENT], unreachable);
        }
    }

    #[test]
    fn an_endpoint_that_speaks_no_websocket_is_left_for_another_whoever_owns_the_request() {
        let mute: (Provenance, Cause) = (Provenance::NotDispatched, Cause::NotSpoken);
        let gives_up = Next::GiveUp(Reason::UpgradeRequired);
        for tie in [Tie::None, Tie::Account, Tie::Owner] {
            let mobility = Mobility { tie, ..FREE };
            check(mobility, &[mute], Next::Move);
            check(mobility, &[mute, mute, mute], gives_up);
        }
        let mut plan = Plan::new(3, FREE);
        plan.begin();
        let mut tried = Vec::new();
        plan.after_failure(mute.0, mute.1, PLACE, &mut tried);
        assert_eq!(tried, vec![Tried::Endpoint(PLACE.endpoint)]);
        assert_eq!(plan.exhausted(), Some(Reason::UpgradeRequired));
        plan.commit();
        assert_eq!(
            plan.after_failure(mute.0, mute.1, PLACE, &mut tried),
            gives_up
        );
    }

    #[test]
    fn what_may_have_arrived_is_never_sent_again() {
        let ambiguous = Next::GiveUp(Reason::UpstreamAmbiguous);
        check(FREE, &[LOST], ambiguous);
        check(FREE, &[SILENT], Next::GiveUp(Reason::UpstreamTimeout));
        check(FREE, &[UNSENT, LOST], ambiguous);
    }

    #[test]
    fn nothing_moves_once_the_client_was_sent_something() {
        let reading = Mobility {
            is_repeatable: true,
            ..FREE
        };
        let mut plan = Plan::new(3, reading);
        plan.begin();
        assert!(plan.may_move_after(LIMITED, PLACE, &mut Vec::new()));
        plan.commit();
        plan.begin();
        let mut tried = Vec::new();
        for (provenance, cause) in [UNSENT, LOST] {
            let next = plan.after_failure(provenance, cause, PLACE, &mut tried);
            assert_eq!(next, Next::GiveUp(Reason::UpstreamUnreachable));
        }
        assert!(!plan.may_move_after(LIMITED, PLACE, &mut tried));
        assert!(!plan.may_move_after(Meaning::AuthRefused, PLACE, &mut tried));
        assert_eq!(tried, Vec::new());
    }

    #[test]
    fn reading_may_be_repeated() {
        let reading = Mobility {
            is_repeatable: true,
            ..FREE
        };
        check(reading, &[LOST], Next::Move);
        check(reading, &[SILENT], Next::GiveUp(Reason::UpstreamTimeout));
    }

    /// Whether a request moves after an answer, and what it is not to go back to.
    fn answered(mobility: Mobility, meaning: Meaning) -> (bool, Vec<Tried>) {
        let mut plan = Plan::new(2, mobility);
        plan.begin();
        let mut tried = Vec::new();
        let moves = plan.may_move_after(meaning, PLACE, &mut tried);
        plan.begin();
        assert!(
            !plan.may_move_after(meaning, PLACE, &mut Vec::new()),
            "the attempts are used up"
        );
        (moves, tried)
    }

    #[test]
    fn a_refusal_moves_and_what_may_have_been_done_does_not() {
        let account = vec![Tried::Account(AccountId::from_u128(1))];
        let refused = Meaning::Refused {
            has_provider_shape: true,
        };
        assert_eq!(answered(FREE, refused), (true, account.clone()));
        assert_eq!(
            answered(FREE, Meaning::OriginUnreached),
            (true, account.clone())
        );
        assert_eq!(
            answered(FREE, Meaning::BillingRefused),
            (true, account.clone())
        );
        assert_eq!(answered(FREE, Meaning::Failed), (false, Vec::new()));
        assert_eq!(answered(FREE, Meaning::ClientsFault), (false, Vec::new()));
        assert_eq!(answered(FREE, Meaning::Accepted), (false, Vec::new()));
        let asked_for = Mobility {
            retries_5xx: true,
            ..FREE
        };
        assert_eq!(answered(asked_for, Meaning::Failed), (true, account));
    }

    const LIMITED: Meaning = Meaning::Limited(meaning::Limited {
        wait_ms: None,
        is_quota: false,
    });

    #[test]
    fn a_limit_that_cools_nothing_is_met_once_on_each_account() {
        let look = Mobility {
            is_evidence: false,
            ..FREE
        };
        let account = vec![Tried::Account(AccountId::from_u128(1))];
        assert_eq!(answered(look, LIMITED), (true, account));
        for tie in [Tie::Account, Tie::Owner] {
            let bound = Mobility { tie, ..look };
            assert_eq!(answered(bound, LIMITED), (false, Vec::new()));
        }
    }

    #[test]
    fn what_is_bound_waits_for_a_limit_and_never_leaves() {
        let credential = vec![Tried::Credential(PLACE.credential)];
        let single = Mobility {
            tie: Tie::Account,
            ..FREE
        };
        let owned = Mobility {
            tie: Tie::Owner,
            ..FREE
        };
        assert_eq!(answered(single, LIMITED), (true, Vec::new()));
        assert_eq!(answered(owned, LIMITED), (true, Vec::new()));
        assert_eq!(answered(single, Meaning::AuthRefused), (true, credential));
        assert_eq!(answered(owned, Meaning::AuthRefused), (false, Vec::new()));
        assert_eq!(
            answered(single, Meaning::OriginUnreached),
            (false, Vec::new())
        );
    }
}
