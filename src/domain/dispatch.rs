//! What follows when an attempt failed: proof before repetition.
//!
//! Rule: a request is sent again only if it provably never left ([`Provenance::NotDispatched`]),
//! or if repeating it cannot do anything twice (GET and HEAD). Nothing else is ever repeated.
pub mod meaning;

use super::{ids::AccountId, reason::Reason};

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
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Ask admission for an edge on another account, and send there.
    Move,
    /// Answer with this reason.
    GiveUp(Reason),
}

/// The attempts of one request.
#[derive(Clone, Debug)]
pub struct Plan {
    max_attempts: u32,
    attempts: u32,
    /// Whether another account may take it.
    is_movable: bool,
    /// Whether sending it twice does nothing twice.
    is_repeatable: bool,
    first_failure: Option<Reason>,
}

impl Plan {
    /// Nothing tried yet; at most `max_attempts` accounts will be.
    pub const fn new(max_attempts: u32, is_movable: bool, is_repeatable: bool) -> Self {
        Self {
            max_attempts,
            attempts: 0,
            is_movable,
            is_repeatable,
            first_failure: None,
        }
    }

    /// An attempt begins.
    pub const fn begin(&mut self) {
        self.attempts += 1;
    }

    /// How many attempts have begun.
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// An attempt on `accounts` failed before any answer; `tried` collects where not to go again.
    pub fn after_failure(
        &mut self,
        provenance: Provenance,
        cause: Cause,
        accounts: impl Iterator<Item = AccountId>,
        tried: &mut Vec<AccountId>,
    ) -> Next {
        let reason = match (cause, provenance) {
            (Cause::HeaderTimeout, _) => Reason::UpstreamTimeout,
            (Cause::Connection, Provenance::NotDispatched) => Reason::UpstreamUnreachable,
            (Cause::Connection, Provenance::Unknown) => Reason::UpstreamAmbiguous,
        };
        let first = *self.first_failure.get_or_insert(reason);
        let may_repeat = provenance == Provenance::NotDispatched
            || (self.is_repeatable && cause == Cause::Connection);
        if may_repeat && self.is_movable && self.attempts < self.max_attempts {
            tried.extend(accounts);
            Next::Move
        } else if may_repeat {
            Next::GiveUp(first)
        } else {
            Next::GiveUp(reason)
        }
    }

    /// Nothing is left to move to: the answer is the first failure.
    pub fn exhausted(&self) -> Option<Reason> {
        self.first_failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(movable: bool, repeatable: bool, failures: &[(Provenance, Cause)], expect: Next) {
        let mut plan = Plan::new(3, movable, repeatable);
        let mut next = Next::Move;
        for (provenance, cause) in failures {
            assert_eq!(next, Next::Move, "went on after giving up");
            plan.begin();
            let account = [AccountId::from_u128(1)].into_iter();
            next = plan.after_failure(*provenance, *cause, account, &mut Vec::new());
        }
        assert_eq!(next, expect);
    }

    const UNSENT: (Provenance, Cause) = (Provenance::NotDispatched, Cause::Connection);
    const LOST: (Provenance, Cause) = (Provenance::Unknown, Cause::Connection);
    const SILENT: (Provenance, Cause) = (Provenance::Unknown, Cause::HeaderTimeout);

    #[test]
    fn what_never_left_moves_on_until_the_attempts_are_used_up() {
        let unreachable = Next::GiveUp(Reason::UpstreamUnreachable);
        check(true, false, &[UNSENT], Next::Move);
        check(true, false, &[UNSENT, UNSENT], Next::Move);
        check(true, false, &[UNSENT, UNSENT, UNSENT], unreachable);
        check(false, false, &[UNSENT], unreachable);
    }

    #[test]
    fn what_may_have_arrived_is_never_sent_again() {
        check(
            true,
            false,
            &[LOST],
            Next::GiveUp(Reason::UpstreamAmbiguous),
        );
        check(
            true,
            false,
            &[SILENT],
            Next::GiveUp(Reason::UpstreamTimeout),
        );
        check(
            true,
            false,
            &[UNSENT, LOST],
            Next::GiveUp(Reason::UpstreamAmbiguous),
        );
    }

    #[test]
    fn reading_may_be_repeated() {
        check(true, true, &[LOST], Next::Move);
        check(true, true, &[SILENT], Next::GiveUp(Reason::UpstreamTimeout));
    }
}
