//! Ends that only move later, one shot at most, and what counts as evidence.
use super::*;
use proptest::prelude::*;

fn at(ms: u64) -> Moment {
    Moment::from_millis(ms)
}

fn limit(sent_at: u64, wait_ms: Option<u64>) -> Limit {
    Limit {
        sent_at: at(sent_at),
        wait_ms,
        is_quota: false,
        is_trusted: false,
    }
}

fn cooling(sent_at: u64, now: u64, wait_ms: Option<u64>) -> Cooldown {
    let mut cooldown = Cooldown::default();
    cooldown.limit(at(now), limit(sent_at, wait_ms));
    cooldown
}

#[test]
fn a_hint_is_kept_to_and_none_is_below_the_floor() {
    let check = |wait: Option<u64>, until: u64| {
        assert_eq!(
            cooling(0, 100, wait).stage(),
            Stage::Cooling(at(100 + until))
        );
    };
    check(Some(20_000), 20_000);
    check(Some(0), 1_000);
    check(Some(999), 1_000);
    check(None, 1_000);
    check(Some(TRUSTED_MS), TRUSTED_MS);
}

#[test]
fn a_short_hint_cannot_cut_a_long_one_in_either_order() {
    for waits in [[1_000, 30_000], [30_000, 1_000]] {
        let mut cooldown = cooling(0, 100, Some(waits[0]));
        cooldown.limit(at(400), limit(0, Some(waits[1])));
        let long = if waits[0] > waits[1] { 30_100 } else { 30_400 };
        assert_eq!(cooldown.stage(), Stage::Cooling(at(long)));
    }
}

#[test]
fn without_a_hint_each_shot_that_fails_doubles_the_wait_up_to_a_minute() {
    let mut now = 0;
    let mut cooldown = cooling(0, now, None);
    let mut lengths = vec![cooldown.length_ms()];
    for shot in 1..9 {
        now = cooldown.next_wakeup().unwrap().as_millis();
        assert!(cooldown.handle_timeout(at(now)));
        assert!(cooldown.take_shot(at(now), shot));
        now += 5;
        cooldown.limit(at(now), limit(now - 5, None));
        lengths.push(cooldown.length_ms());
    }
    let seconds: Vec<u64> = lengths.iter().map(|ms| ms / 1000).collect();
    assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
}

#[test]
fn many_requests_that_meet_one_limit_are_one_step() {
    let mut cooldown = cooling(0, 100, None);
    for _ in 0..20 {
        cooldown.limit(at(150), limit(50, None));
    }
    assert_eq!(cooldown.length_ms(), 1_000);
    assert_eq!(cooldown.stage(), Stage::Cooling(at(1_150)));
}

#[test]
fn a_far_reset_is_looked_at_every_hour_unless_it_is_trusted() {
    let day = 24 * TRUSTED_MS;
    let mut cooldown = cooling(0, 0, Some(day));
    assert_eq!(cooldown.stage(), Stage::Cooling(at(TRUSTED_MS)));
    assert_eq!(cooldown.told_until(), Some(at(day)));
    let now = TRUSTED_MS;
    cooldown.handle_timeout(at(now));
    assert!(cooldown.take_shot(at(now), 1));
    cooldown.limit(at(now + 10), limit(now, Some(day - now)));
    assert_eq!(cooldown.stage(), Stage::Cooling(at(2 * TRUSTED_MS + 10)));
    let mut trusted = Cooldown::default();
    trusted.limit(
        at(0),
        Limit {
            is_trusted: true,
            ..limit(0, Some(day))
        },
    );
    assert_eq!(trusted.stage(), Stage::Cooling(at(day)));
}

#[test]
fn success_is_evidence_only_if_it_was_sent_after_the_cooldown_began() {
    let mut cooldown = cooling(50, 100, Some(5_000));
    assert!(!cooldown.succeed(at(60)));
    assert!(!cooldown.lets_pass());
    cooldown.handle_timeout(at(5_100));
    assert!(cooldown.take_shot(at(5_200), 1));
    assert!(cooldown.succeed(at(5_200)));
    assert_eq!(cooldown, Cooldown::default());
}

#[test]
fn a_shot_without_a_verdict_counts_as_not_limited_and_keeps_the_backoff() {
    let mut cooldown = cooling(0, 0, Some(8_000));
    cooldown.handle_timeout(at(8_000));
    cooldown.take_shot(at(9_000), 1);
    assert!(!cooldown.handle_timeout(at(9_000 + VERDICT_MS - 1)));
    assert!(cooldown.handle_timeout(at(9_000 + VERDICT_MS)));
    assert_eq!(cooldown.stage(), Stage::Open);
    assert_eq!(cooldown.length_ms(), 8_000);
}

#[test]
fn what_is_kept_is_taken_up_again() {
    let cooldown = cooling(0, 0, Some(90_000));
    let kept = cooldown.kept(at(30_000)).unwrap();
    let restored = Cooldown::restored(at(5), kept);
    assert_eq!(restored.stage(), Stage::Cooling(at(60_005)));
    let over = Cooldown::restored(at(5), cooldown.kept(at(90_000)).unwrap());
    assert_eq!(over.stage(), Stage::Due);
    assert_eq!(Cooldown::default().kept(at(0)), None);
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Limit { age: u64, wait: Option<u64> },
    Succeed { age: u64 },
    Shoot,
    Pass(usize),
    Wait(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (0..90_000u64, proptest::option::of(0..9_000_000u64))
            .prop_map(|(age, wait)| Event::Limit { age, wait }),
        (0..90_000u64).prop_map(|age| Event::Succeed { age }),
        Just(Event::Shoot),
        any::<usize>().prop_map(Event::Pass),
        (0..100_000u64).prop_map(Event::Wait),
    ]
}

proptest! {
    #[test]
    fn ends_move_only_later_and_one_shot_at_most_is_out(
        events in proptest::collection::vec(event(), 1..200)
    ) {
        let mut now = 1_000_000;
        let mut cooldown = Cooldown::default();
        let mut out: Vec<(Shot, u64)> = Vec::new();
        for (event, shot) in events.into_iter().zip(1u64..) {
            let before = cooldown.stage();
            match event {
                Event::Limit { age, wait } => cooldown.limit(at(now), limit(now - age, wait)),
                Event::Succeed { age } => {
                    let sent_at = at(now - age);
                    if cooldown.succeed(sent_at) {
                        out.clear();
                    }
                }
                Event::Shoot => {
                    if cooldown.take_shot(at(now), shot) {
                        // Whoever had it before has lost it by a verdict, by time or by passing it on.
                        out = vec![(shot, now)];
                    }
                }
                Event::Pass(n) if !out.is_empty() => {
                    let (shot, _) = out.remove(n % out.len());
                    cooldown.pass_shot(shot);
                }
                Event::Pass(_) => (),
                Event::Wait(ms) => {
                    now += ms;
                    cooldown.handle_timeout(at(now));
                }
            }
            if let (Stage::Cooling(was), Stage::Cooling(is)) = (before, cooldown.stage()) {
                prop_assert!(is >= was, "an end moved earlier");
            }
            if let Stage::Cooling(until) = cooldown.stage() {
                prop_assert!(until <= at(now + TRUSTED_MS), "a far hint was trusted");
                prop_assert!(!cooldown.lets_pass());
            }
            // While one is out nobody else gets through.
            if matches!(cooldown.stage(), Stage::Probing(_)) {
                prop_assert!(!cooldown.take_shot(at(now), u64::MAX));
            }
        }
    }
}
