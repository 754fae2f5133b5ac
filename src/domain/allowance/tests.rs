//! The limits of keys one by one, and all together against a reference that keeps everything.
use super::*;
use proptest::prelude::*;

const KEY: KeyId = KeyId::from_u128(1);

/// The first moment of a day.
const MIDNIGHT: i64 = 20_000 * DAY_MS;

fn at(ms: u64) -> Now {
    Now {
        at: Moment::from_millis(ms),
        unix_ms: MIDNIGHT + i64::try_from(ms).unwrap(),
    }
}

const NONE: KeyLimits = KeyLimits {
    requests_per_minute: None,
    concurrency: None,
    tokens_per_day: None,
};

fn a_minute(n: u32) -> KeyLimits {
    KeyLimits {
        requests_per_minute: Some(n),
        ..NONE
    }
}

fn at_once(n: u32) -> KeyLimits {
    KeyLimits {
        concurrency: Some(n),
        ..NONE
    }
}

fn a_day(n: u64) -> KeyLimits {
    KeyLimits {
        tokens_per_day: Some(n),
        ..NONE
    }
}

/// What is reserved at `now` is in flight, or refused as `expect` says.
#[track_caller]
fn check(
    allowance: &mut Allowance,
    (now, limits): (Now, KeyLimits),
    expect: Result<(), Excess>,
) -> Option<Reservation> {
    let before = allowance.used(now, KEY);
    let got = allowance.reserve(now, KEY, &limits);
    let after = allowance.used(now, KEY);
    assert_eq!(got.as_ref().map(|_| ()).map_err(|e| *e), expect);
    let taken = u64::from(got.is_ok());
    assert_eq!(after.in_flight, before.in_flight + taken);
    assert_eq!(after.requests, before.requests + taken);
    got.ok()
}

fn excess(reason: Reason, (used, limit): (u64, u64), free_in_ms: Option<u64>) -> Excess {
    Excess {
        reason,
        limit,
        used,
        free_in_ms,
    }
}

/// A request that ends in the moment in which it begins, whatever the limits.
fn passes(allowance: &mut Allowance, now: Now, tokens: Option<u64>) {
    let reservation = allowance.reserve(now, KEY, &NONE).unwrap();
    allowance.settle(now, reservation, tokens);
}

#[test]
fn a_place_in_the_minute_is_free_again_when_sixty_whole_seconds_have_followed() {
    let mut all = Allowance::default();
    passes(&mut all, at(1_500), None);
    passes(&mut all, at(9_999), None);
    let full = |ms| excess(Reason::KeyRateLimited, (2, 2), Some(ms));
    check(&mut all, (at(10_000), a_minute(2)), Err(full(52_000)));
    check(&mut all, (at(61_999), a_minute(2)), Err(full(1)));
    let first = check(&mut all, (at(62_000), a_minute(2)), Ok(()));
    check(&mut all, (at(62_001), a_minute(2)), Err(full(7_999)));
    all.settle(at(62_001), first.unwrap(), None);
    // Ending gives no place back.
    check(&mut all, (at(62_001), a_minute(2)), Err(full(7_999)));
    check(&mut all, (at(500_000), a_minute(1)), Ok(()));
}

#[test]
fn requests_at_once_are_let_in_as_others_end() {
    let mut all = Allowance::default();
    let full = |ms| excess(Reason::KeyConcurrencyCap, (2, 2), ms);
    let first = check(&mut all, (at(0), at_once(2)), Ok(()));
    let second = check(&mut all, (at(0), at_once(2)), Ok(()));
    check(&mut all, (at(10), at_once(2)), Err(full(None)));
    all.settle(at(8_000), first.unwrap(), Some(1));
    check(&mut all, (at(8_000), at_once(2)), Ok(()));
    // They last 8 seconds, so that one of two ends every 4.
    check(&mut all, (at(8_000), at_once(2)), Err(full(Some(4_000))));
    all.settle(at(8_000), second.unwrap(), None);
    check(&mut all, (at(8_000), at_once(2)), Ok(()));
}

#[test]
fn the_tokens_of_a_day_end_with_it() {
    let mut all = Allowance::default();
    let day_ms = u64::try_from(DAY_MS).unwrap();
    let spent = |used, ms| excess(Reason::KeyBudgetExhausted, (used, 100), Some(ms));
    passes(&mut all, at(0), Some(99));
    let last = check(&mut all, (at(1), a_day(100)), Ok(()));
    // What is in flight may exceed it, since nobody knows by how much.
    all.settle(at(2), last.unwrap(), Some(50));
    let late = at(day_ms - 1);
    check(&mut all, (at(2), a_day(100)), Err(spent(149, day_ms - 2)));
    check(&mut all, (late, a_day(100)), Err(spent(149, 1)));
    let over_night = all.reserve(late, KEY, &NONE).unwrap();
    check(&mut all, (at(day_ms), a_day(100)), Ok(()));
    // It counts for the day on which it began.
    all.settle(at(day_ms), over_night, Some(1000));
    assert_eq!(all.used(at(day_ms), KEY).tokens, 0);
    // A clock that is put back ends a day as well.
    passes(&mut all, at(day_ms), Some(100));
    let back = Now {
        unix_ms: MIDNIGHT,
        ..at(day_ms)
    };
    check(&mut all, (back, a_day(100)), Ok(()));
}

#[test]
fn unknown_tokens_add_nothing() {
    let mut all = Allowance::default();
    passes(&mut all, at(0), None);
    passes(&mut all, at(0), Some(3));
    assert_eq!(all.used(at(0), KEY).tokens, 3);
}

#[test]
fn the_limit_that_lasts_longest_is_told_and_nothing_is_taken_of_the_others() {
    let mut all = Allowance::default();
    let held = all.reserve(at(0), KEY, &NONE).unwrap();
    let limits = KeyLimits {
        requests_per_minute: Some(1),
        concurrency: Some(1),
        tokens_per_day: Some(5),
    };
    let minute = excess(Reason::KeyRateLimited, (1, 1), Some(61_000));
    check(&mut all, (at(0), limits), Err(minute));
    all.settle(at(0), held, Some(5));
    let day = u64::try_from(DAY_MS).unwrap();
    let budget = excess(Reason::KeyBudgetExhausted, (5, 5), Some(day));
    check(&mut all, (at(0), limits), Err(budget));
    assert_eq!(
        all.used(at(0), KEY),
        Used {
            requests: 1,
            in_flight: 0,
            tokens: 5
        }
    );
}

#[test]
fn keys_do_not_count_for_one_another() {
    let mut all = Allowance::default();
    let other = KeyId::from_u128(2);
    let held = all.reserve(at(0), other, &at_once(1)).unwrap();
    check(&mut all, (at(0), at_once(1)), Ok(()));
    all.settle(at(0), held, Some(9));
    assert_eq!(all.used(at(0), KEY).tokens, 0);
    assert_eq!(all.used(at(0), KeyId::from_u128(3)), Used::default());
}

#[test]
fn a_limit_that_is_new_knows_what_was_used_without_it() {
    let mut all = Allowance::default();
    let running = all.reserve(at(0), KEY, &NONE).unwrap();
    passes(&mut all, at(0), Some(10));
    let once = excess(Reason::KeyConcurrencyCap, (1, 1), Some(0));
    check(&mut all, (at(0), at_once(1)), Err(once));
    let minute = excess(Reason::KeyRateLimited, (2, 2), Some(61_000));
    check(&mut all, (at(0), a_minute(2)), Err(minute));
    all.settle(at(0), running, Some(1));
    let day = u64::try_from(DAY_MS).unwrap();
    let budget = excess(Reason::KeyBudgetExhausted, (11, 11), Some(day));
    check(&mut all, (at(0), a_day(11)), Err(budget));
}

#[test]
fn what_an_earlier_process_saw_is_added_to_what_this_one_has_counted() {
    let mut all = Allowance::default();
    let now = at(70_000);
    passes(&mut all, now, Some(1));
    let earlier = Earlier {
        key: KEY,
        tokens: 9,
        // Too long ago, just not, and a while ago.
        starts: vec![
            (MIDNIGHT + 8_999, 1),
            (MIDNIGHT + 10_000, 2),
            (MIDNIGHT + 50_000, 4),
        ],
    };
    all.restore(now, Day::of(now.unix_ms), std::slice::from_ref(&earlier));
    let expect = Used {
        requests: 7,
        in_flight: 0,
        tokens: 10,
    };
    assert_eq!(all.used(now, KEY), expect);
    let minute = excess(Reason::KeyRateLimited, (7, 6), Some(1_000));
    check(&mut all, (now, a_minute(6)), Err(minute));
    // What was read for another day is not of this one.
    all.restore(now, Day::of(now.unix_ms - DAY_MS), &[earlier]);
    assert_eq!(all.used(now, KEY).tokens, 10);
}

#[test]
fn keys_that_are_gone_are_forgotten_when_their_last_request_has_ended() {
    let mut all = Allowance::default();
    let held = all.reserve(at(0), KEY, &NONE).unwrap();
    all.retain(|_| false);
    assert_eq!(all.used(at(0), KEY).in_flight, 1);
    all.settle(at(0), held, None);
    all.retain(|_| false);
    assert!(all.meters.is_empty());
}

/// One step of a random history.
#[derive(Clone, Debug)]
enum Step {
    /// Time passes.
    Wait(u64),
    /// A request of one of two keys arrives.
    Arrive(u128),
    /// One of those in flight ends.
    End(usize, Option<u64>),
    /// A key's limits are others from now on.
    Limit(u128, KeyLimits),
}

fn step() -> impl Strategy<Value = Step> {
    let limits = (
        proptest::option::of(1..6u32),
        proptest::option::of(1..4u32),
        proptest::option::of(1..200u64),
    );
    let limits = limits.prop_map(
        |(requests_per_minute, concurrency, tokens_per_day)| KeyLimits {
            requests_per_minute,
            concurrency,
            tokens_per_day,
        },
    );
    prop_oneof![
        4 => prop_oneof![0..3_000u64, 0..40_000u64, Just(7 * 3_600_000)].prop_map(Step::Wait),
        8 => (0..2u128).prop_map(Step::Arrive),
        6 => (any::<prop::sample::Index>(), proptest::option::of(0..90u64))
            .prop_map(|(n, tokens)| Step::End(n.index(64), tokens)),
        1 => (0..2u128, limits).prop_map(|(key, limits)| Step::Limit(key, limits)),
    ]
}

/// Everything that ever happened to one key.
#[derive(Default)]
struct History {
    limits: KeyLimits,
    starts: Vec<u64>,
    settled: Vec<(Day, u64)>,
    in_flight: u64,
}

impl History {
    fn tokens_of(&self, day: Day) -> u64 {
        let its = self.settled.iter().filter(|(on, _)| *on == day);
        its.map(|(_, tokens)| tokens).sum()
    }

    /// How many began less than so long ago.
    fn began_within(&self, now: u64, span_ms: u64) -> u64 {
        self.starts.iter().filter(|at| now - **at < span_ms).count() as u64
    }
}

fn judge(history: &History, ms: u64, got: Result<(), Excess>) {
    let now = at(ms);
    let limits = history.limits;
    match got {
        Ok(()) => {
            let most = |limit: Option<u32>| limit.map_or(u64::MAX, u64::from);
            assert!(history.began_within(ms, 60_000) < most(limits.requests_per_minute));
            assert!(history.in_flight < most(limits.concurrency));
            assert!(history.tokens_of(now.day()) < limits.tokens_per_day.unwrap_or(u64::MAX));
        }
        Err(excess) => {
            let (used, limit) = match excess.reason {
                Reason::KeyRateLimited => (
                    history.began_within(ms, window::SPAN_MS),
                    limits.requests_per_minute.map(u64::from),
                ),
                Reason::KeyConcurrencyCap => (history.in_flight, limits.concurrency.map(u64::from)),
                _ => (history.tokens_of(now.day()), limits.tokens_per_day),
            };
            assert_eq!(Some(excess.limit), limit);
            assert!(
                excess.used >= excess.limit && excess.used <= used,
                "{excess:?} {used}"
            );
        }
    }
}

proptest! {
    #[test]
    fn limits_hold_and_counts_are_true_whatever_happens(
        steps in prop::collection::vec(step(), 1..400)
    ) {
        let mut all = Allowance::default();
        let mut ms = 0;
        let mut histories = [History::default(), History::default()];
        let mut held: Vec<(usize, Reservation)> = Vec::new();
        let key = |n: usize| KeyId::from_u128(n as u128);
        for step in steps {
            match step {
                Step::Wait(more) => ms += more,
                Step::Limit(n, limits) => histories[usize::try_from(n).unwrap()].limits = limits,
                Step::Arrive(n) => {
                    let n = usize::try_from(n).unwrap();
                    let history = &mut histories[n];
                    let got = all.reserve(at(ms), key(n), &history.limits);
                    judge(history, ms, got.as_ref().map(|_| ()).map_err(|e| *e));
                    if let Ok(reservation) = got {
                        history.starts.push(ms);
                        history.in_flight += 1;
                        held.push((n, reservation));
                    }
                }
                Step::End(which, tokens) if !held.is_empty() => {
                    let (n, reservation) = held.swap_remove(which % held.len());
                    let history = &mut histories[n];
                    history.settled.push((reservation.day, tokens.unwrap_or(0)));
                    history.in_flight -= 1;
                    all.settle(at(ms), reservation, tokens);
                }
                Step::End(..) => (),
            }
            for (n, history) in histories.iter().enumerate() {
                let used = all.used(at(ms), key(n));
                prop_assert_eq!(used.in_flight, history.in_flight);
                prop_assert_eq!(used.tokens, history.tokens_of(at(ms).day()));
                prop_assert!(used.requests >= history.began_within(ms, 60_000));
                prop_assert!(used.requests <= history.began_within(ms, window::SPAN_MS));
            }
        }
        for (_, reservation) in held {
            all.settle(at(ms), reservation, None);
        }
        prop_assert!((0..2).all(|n| all.used(at(ms), key(n)).in_flight == 0));
    }

    #[test]
    fn who_returns_when_told_finds_a_place_in_the_minute(
        starts in prop::collection::vec(0..60_000u64, 1..40), limit in 1..20u32
    ) {
        let mut all = Allowance::default();
        let mut starts = starts;
        starts.sort_unstable();
        for ms in &starts {
            passes(&mut all, at(*ms), None);
        }
        let now = *starts.last().unwrap();
        if let Err(excess) = all.reserve(at(now), KEY, &a_minute(limit)) {
            let free = excess.free_in_ms.unwrap();
            prop_assert!(free > 0);
            prop_assert!(all.reserve(at(now + free - 1), KEY, &a_minute(limit)).is_err());
            prop_assert!(all.reserve(at(now + free), KEY, &a_minute(limit)).is_ok());
        }
    }
}
