//! When it trips, how it rests, and who ends that.
use super::*;
use proptest::prelude::*;

fn at(ms: u64) -> Moment {
    Moment::from_millis(ms)
}

fn tripped() -> Breaker {
    let mut breaker = Breaker::default();
    for shot in 0..3 {
        assert_eq!(breaker.fail(at(0), shot, 3), shot == 2);
    }
    breaker
}

#[test]
fn only_failures_in_a_row_trip_it() {
    let mut breaker = Breaker::default();
    breaker.fail(at(0), 1, 3);
    breaker.fail(at(0), 2, 3);
    breaker.succeed(3);
    assert!(!breaker.fail(at(0), 4, 3));
    assert!(!breaker.fail(at(0), 5, 3));
    assert!(breaker.lets_pass());
    assert!(breaker.fail(at(0), 6, 3));
    assert_eq!(breaker.free_at(), Some(at(REST_MS)));
}

#[test]
fn after_its_rest_one_request_decides() {
    let mut breaker = tripped();
    assert!(!breaker.handle_timeout(at(REST_MS - 1)));
    assert!(breaker.handle_timeout(at(REST_MS)));
    assert!(breaker.take_shot(at(REST_MS), 9));
    assert!(!breaker.lets_pass());
    assert!(!breaker.succeed(1), "an older request says nothing");
    assert!(breaker.fail(at(REST_MS + 5), 9, 3));
    breaker.handle_timeout(at(2 * REST_MS + 5));
    breaker.take_shot(at(2 * REST_MS + 5), 10);
    assert!(breaker.succeed(10));
    assert_eq!(breaker, Breaker::default());
}

#[test]
fn a_shot_that_says_nothing_or_hangs_goes_to_the_next() {
    let mut breaker = tripped();
    breaker.handle_timeout(at(REST_MS));
    breaker.take_shot(at(REST_MS), 9);
    assert!(breaker.pass_shot(9));
    assert!(breaker.take_shot(at(REST_MS), 10));
    assert!(breaker.handle_timeout(at(REST_MS + VERDICT_MS)));
    assert_eq!(breaker, Breaker::Due);
}

proptest! {
    #[test]
    fn for_any_order_at_most_one_shot_is_out(
        events in proptest::collection::vec((0..5u8, 0..6u64, 0..40_000u64), 1..200)
    ) {
        let mut breaker = Breaker::default();
        let mut now = 0;
        for (event, shot, ms) in events {
            match event {
                0 => { breaker.fail(at(now), shot, 3); }
                1 => { breaker.succeed(shot); }
                2 => {
                    let is_due = breaker == Breaker::Due;
                    prop_assert_eq!(breaker.take_shot(at(now), shot), is_due);
                }
                3 => { breaker.pass_shot(shot); }
                _ => { now += ms; breaker.handle_timeout(at(now)); }
            }
            if let Breaker::Resting { until } = breaker {
                prop_assert!(until <= at(now + REST_MS));
            }
        }
    }
}
