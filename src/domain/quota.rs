//! Whether a provider counts each credential of an account on its own, or all together: told by what
//! neighbours were answered at the same time.
//!
//! Rule: a credential that is limited while a neighbour succeeds within the same second speaks for
//! quotas by credential; neighbours that are limited together speak for one quota of the account. A
//! burst is one piece of evidence, however many requests were in it.
//!
//! Invariant: nothing is concluded where the evidence does not clearly point one way.
use super::{ids::CredentialId, pool::QuotaScope};
use std::collections::{BTreeMap, BTreeSet};

/// How near two answers must be to be of the same time.
const SAME_MS: i64 = 1_000;

/// How many times as much must speak for one than for the other.
const CLEARLY: usize = 2;

/// One answer of upstream's to a credential of the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Which credential asked.
    pub credential: CredentialId,
    /// When it was answered, in milliseconds since 1970.
    pub at_ms: i64,
    /// Whether the answer was a 429; else it was a success.
    pub is_limited: bool,
}

/// Two answers that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The credential that was limited.
    pub limited: CredentialId,
    /// Its neighbour.
    pub neighbour: CredentialId,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
}

/// What the answers say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// What it is, where the evidence is clear.
    pub scope: Option<QuotaScope>,
    /// Seconds in which one was limited while a neighbour succeeded.
    pub apart: usize,
    /// Seconds in which neighbours were limited together.
    pub together: usize,
    /// The newest evidence for the verdict.
    pub newest: Option<Pair>,
    /// Answers that were limits.
    pub limited: usize,
}

/// Judges some answers to the credentials of one account, in any order.
pub fn judge(answers: &[Answered]) -> Verdict {
    let mut answers = answers.to_vec();
    answers.sort_unstable_by_key(|a| a.at_ms);
    let mut seconds: BTreeMap<i64, (QuotaScope, Pair)> = BTreeMap::new();
    let limited: Vec<&Answered> = answers.iter().filter(|a| a.is_limited).collect();
    let mut judged = BTreeSet::new();
    for one in &limited {
        // The same credential again at the same moment says nothing new.
        if !judged.insert((one.at_ms, one.credential)) {
            continue;
        }
        if let Some((scope, pair)) = neighbours(&answers, one) {
            let second = one.at_ms.div_euclid(SAME_MS);
            let known = seconds.entry(second).or_insert((scope, pair));
            // A success is proof; a limit may have reached both for reasons of their own.
            if scope == QuotaScope::Credential {
                *known = (scope, pair);
            }
        }
    }
    let newest = |scope| {
        let mut all = seconds.values().rev();
        all.find(|(s, _)| *s == scope).map(|(_, pair)| *pair)
    };
    let count = |scope| seconds.values().filter(|(s, _)| *s == scope).count();
    let (apart, together) = (count(QuotaScope::Credential), count(QuotaScope::Account));
    let scope = if apart >= CLEARLY * together && apart > 0 {
        Some(QuotaScope::Credential)
    } else if together >= CLEARLY * apart && together > 0 {
        Some(QuotaScope::Account)
    } else {
        None
    };
    Verdict {
        scope,
        apart,
        together,
        newest: scope.and_then(newest),
        limited: limited.len(),
    }
}

/// What the answers to neighbours at the same time say of one that was limited.
fn neighbours(answers: &[Answered], one: &Answered) -> Option<(QuotaScope, Pair)> {
    let begin = answers.partition_point(|a| a.at_ms < one.at_ms - SAME_MS);
    let near = answers.get(begin..).unwrap_or_default().iter();
    let near = near.take_while(|a| a.at_ms <= one.at_ms + SAME_MS);
    let mut together = None;
    for other in near.filter(|a| a.credential != one.credential) {
        let pair = Pair {
            limited: one.credential,
            neighbour: other.credential,
            at_ms: one.at_ms,
        };
        if !other.is_limited {
            return Some((QuotaScope::Credential, pair));
        }
        together = Some((QuotaScope::Account, pair));
    }
    together
}

#[cfg(test)]
mod tests {
    use super::*;
    use QuotaScope::{Account, Credential};

    /// (credential, milliseconds, whether limited), and what they say: scope, apart, together.
    fn check(answers: &[(u128, i64, bool)], expect: (Option<QuotaScope>, usize, usize)) {
        let answered = |(n, at_ms, is_limited): &(u128, i64, bool)| Answered {
            credential: CredentialId::from_u128(*n),
            at_ms: *at_ms,
            is_limited: *is_limited,
        };
        let answers: Vec<Answered> = answers.iter().map(answered).collect();
        let verdict = judge(&answers);
        let got = (verdict.scope, verdict.apart, verdict.together);
        assert_eq!(got, expect, "{answers:?}");
        assert_eq!(verdict.newest.is_some(), verdict.scope.is_some());
    }

    #[test]
    fn a_neighbour_that_succeeds_at_the_same_time_has_a_quota_of_its_own() {
        check(&[(1, 0, true), (2, 900, false)], (Some(Credential), 1, 0));
        check(&[(2, 0, false), (1, 1_000, true)], (Some(Credential), 1, 0));
    }

    #[test]
    fn neighbours_that_are_limited_together_share_one() {
        check(&[(1, 0, true), (2, 500, true)], (Some(Account), 0, 1));
    }

    #[test]
    fn what_is_not_of_the_same_time_or_of_the_same_credential_says_nothing() {
        check(&[], (None, 0, 0));
        check(&[(1, 0, true), (2, 1_001, false)], (None, 0, 0));
        check(&[(1, 0, true), (1, 10, false)], (None, 0, 0));
        check(&[(1, 0, false), (2, 10, false)], (None, 0, 0));
    }

    #[test]
    fn a_burst_is_one_piece_of_evidence() {
        let burst: Vec<_> = (0..50).map(|n| (n % 2, 5, true)).collect();
        check(&burst, (Some(Account), 0, 1));
    }

    #[test]
    fn a_success_among_limits_is_proof() {
        let answers = [(1, 0, true), (2, 10, true), (3, 20, false)];
        check(&answers, (Some(Credential), 1, 0));
    }

    #[test]
    fn evidence_both_ways_decides_only_where_it_is_clear() {
        let apart = |at| [(1, at, true), (2, at, false)];
        let together = |at| [(1, at, true), (2, at, true)];
        let of = |parts: &[[(u128, i64, bool); 2]]| parts.concat();
        check(&of(&[apart(0), together(9_000)]), (None, 1, 1));
        let twice = [apart(0), apart(5_000), together(9_000)];
        check(&of(&twice), (Some(Credential), 2, 1));
        let twice = [together(0), together(5_000), apart(9_000)];
        check(&of(&twice), (Some(Account), 1, 2));
    }

    #[test]
    fn the_newest_evidence_is_named() {
        let answers = [
            (1, 0, true),
            (2, 0, false),
            (3, 60_000, true),
            (2, 60_400, false),
        ];
        let answers = answers.map(|(n, at_ms, is_limited)| Answered {
            credential: CredentialId::from_u128(n),
            at_ms,
            is_limited,
        });
        let newest = judge(&answers).newest.unwrap();
        assert_eq!(
            (newest.limited, newest.at_ms),
            (CredentialId::from_u128(3), 60_000)
        );
    }
}
