//! A client key's own limits at the door: a reservation for each unit of a client's work, or the
//! words that refuse it.
//!
//! A unit is an HTTP request that may go upstream, whatever it asks for, or one turn on a WebSocket;
//! a list of models that fairlane answers itself is none. It is reserved once, after its key and
//! model are known to be allowed and before anything is asked of the pool, and held to its end, over
//! every attempt and every wait.
use super::{Door, refuse::Refused};
use crate::{
    domain::{allowance::Excess, pool::ClientKey, reason::Reason},
    engine::{admission::RETRY_AFTER_MAX_SECONDS, allowance::Reservation},
    protocol::usage::Usage,
};

impl Door {
    /// Reserves one unit of work for whoever sent it; nothing for those without a key. Whoever gets
    /// the reservation holds it as long as the work lasts, and settles it with the [`tokens`] that
    /// it used; dropped, it counts with none.
    pub(super) async fn reserve(
        &self,
        key: Option<&ClientKey>,
    ) -> Result<Option<Reservation>, Refused> {
        let Some(key) = key else {
            return Ok(None);
        };
        let allowance = self.gateway.configuration.allowance();
        allowance.reserve(key).await.map(Some).map_err(refused)
    }
}

/// What counts of an answer's usage; `None` if upstream has not reported any.
pub(super) fn tokens(usage: &Usage) -> Option<u64> {
    match (usage.input, usage.output) {
        (None, None) => None,
        (input, output) => Some(input.unwrap_or(0).saturating_add(output.unwrap_or(0))),
    }
}

fn refused(excess: Excess) -> Refused {
    let mut refused = Refused::new(excess.reason, message(&excess));
    if let Some(ms) = excess.free_in_ms {
        refused.retry_after = Some(ms.div_ceil(1000));
        // A minute's place is free within 61 seconds: that is no later than clients may be told.
        if ms > (RETRY_AFTER_MAX_SECONDS + 1) * 1000 {
            refused.resets_at = crate::clock::unix_millis()
                .checked_add_unsigned(ms)
                .map(|at| at.div_euclid(1000));
        }
    }
    refused
}

fn message(excess: &Excess) -> String {
    let Excess { limit, used, .. } = excess;
    match excess.reason {
        Reason::KeyRateLimited => format!(
            "This client key may send {limit} requests a minute and has sent {used} in the last minute; a higher requests_per_minute of the key would help."
        ),
        Reason::KeyConcurrencyCap => format!(
            "This client key may have {limit} requests in flight at once and has {used}; a higher concurrency of the key would help."
        ),
        _ => {
            let minutes = excess.free_in_ms.unwrap_or(0).div_ceil(60_000);
            let (hours, minutes) = (minutes / 60, minutes % 60);
            format!(
                "This client key may use {limit} tokens a day and has used {used} today; the day ends at midnight UTC, in {hours} h {minutes} min. A higher tokens_per_day of the key would help."
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reason: Reason, free_in_ms: Option<u64>, expect: (Option<u64>, bool), text: &str) {
        let refused = refused(Excess {
            reason,
            limit: 60,
            used: 61,
            free_in_ms,
        });
        assert_eq!((refused.retry_after, refused.resets_at.is_some()), expect);
        assert!(refused.message.contains(text), "{}", refused.message);
        assert!(refused.message.contains("60") && refused.message.contains("61"));
    }

    #[test]
    fn a_refusal_says_the_limit_its_use_and_when_to_return() {
        check(
            Reason::KeyRateLimited,
            Some(1),
            (Some(1), false),
            "requests_per_minute",
        );
        check(
            Reason::KeyRateLimited,
            Some(61_000),
            (Some(61), false),
            "in the last minute",
        );
        check(
            Reason::KeyConcurrencyCap,
            None,
            (Some(1), false),
            "concurrency",
        );
        check(
            Reason::KeyConcurrencyCap,
            Some(2_500),
            (Some(3), false),
            "at once",
        );
        check(
            Reason::KeyBudgetExhausted,
            Some(7_260_001),
            (Some(7_261), true),
            "in 2 h 2 min",
        );
    }

    #[test]
    fn tokens_read_and_written_count_and_those_from_a_cache_only_once() {
        let check = |input, output, expect| {
            let cached = input;
            let usage = Usage {
                input,
                output,
                cached,
            };
            assert_eq!(tokens(&usage), expect);
        };
        check(None, None, None);
        check(Some(3), None, Some(3));
        check(None, Some(4), Some(4));
        check(Some(3), Some(4), Some(7));
    }
}
