//! When refused credentials are tested.
use super::*;
use crate::domain::pool::edges::sample;

fn pool(state: State) -> Pool {
    let mut contents = sample::contents(2);
    contents.credentials[0].state = state;
    Pool::new(contents)
}

#[tokio::test(start_paused = true)]
async fn a_refused_credential_is_due_after_a_minute_after_ten_and_every_hour() {
    let refused = pool(State::Disabled(DisabledReason::Auth));
    let mut schedule = Schedule::default();
    let start = Instant::now();
    let mut tested = Vec::new();
    for minute in 0..200u64 {
        let now = start + Duration::from_secs(60 * minute);
        for id in schedule.due(&refused, now) {
            assert_eq!(id, CredentialId::from_u128(1));
            tested.push(minute);
        }
    }
    assert_eq!(tested, [1, 10, 70, 130, 190]);
}

#[tokio::test(start_paused = true)]
async fn what_the_operator_disabled_is_never_tested_and_a_new_refusal_begins_anew() {
    let mut schedule = Schedule::default();
    let start = Instant::now();
    let later = |minutes: u64| start + Duration::from_secs(60 * minutes);
    let refused = pool(State::Disabled(DisabledReason::Auth));
    schedule.due(&refused, start);
    assert_eq!(schedule.due(&refused, later(1)).len(), 1);
    for state in [State::Disabled(DisabledReason::Operator), State::Active] {
        assert_eq!(schedule.due(&pool(state), later(100)), []);
    }
    assert_eq!(schedule.due(&refused, later(100)), []);
    assert_eq!(schedule.due(&refused, later(101)).len(), 1);
}

#[test]
fn what_was_mended_is_counted_by_kind() {
    let metrics = Metrics::default();
    let keeper = Keeper::new(metrics.clone());
    keeper.noted(&Note::Healed(Healed {
        slots: 5,
        granted: 2,
    }));
    let text = metrics.render(crate::telemetry::metrics::Snapshot::default());
    let text = text.unwrap();
    for line in [
        "watchdog_heals_total{kind=\"count\"} 5",
        "watchdog_heals_total{kind=\"waiter\"} 2",
    ] {
        assert!(text.contains(line), "{text}");
    }
}
