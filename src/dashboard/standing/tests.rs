//! Which words stand for what.
use super::*;
use crate::{
    dashboard::{i18n::I18n, shell::Theme, time::Zone},
    domain::pool::edges::sample,
};

fn shell() -> Shell {
    Shell {
        locale: I18n::load().unwrap().locale(Some("en"), None),
        theme: Theme::System,
        zone: Zone::of(None),
        here: "/".into(),
    }
}

/// Icon, and notes as one text, of account 1 with a standing, a state and a cap of 8.
fn of(standing: Standing, state: State) -> (&'static str, String) {
    let mut look = Look::default();
    let account = Account {
        state,
        ..sample::account(1)
    };
    look.put(Subject::Account(account.id), standing);
    let credential = sample::credential(1, 1, 1);
    let stand = Stand::account(&shell(), &look, &account, (&[&credential], 8));
    let notes: Vec<String> = stand.notes.into_iter().map(|n| n.text).collect();
    (stand.icon, notes.join("; "))
}

fn busy(streams: u32) -> Standing {
    Standing {
        streams,
        ..Standing::default()
    }
}

#[test]
fn what_drains_is_drained_once_nothing_is_in_flight() {
    assert_eq!(of(busy(1), State::Draining).0, "draining");
    let creates = Standing {
        creates: 1,
        ..Standing::default()
    };
    assert_eq!(of(creates, State::Draining).0, "draining");
    assert_eq!(of(busy(0), State::Draining).0, "drained");
}

#[test]
fn an_account_at_its_cap_is_full() {
    assert_eq!(of(busy(7), State::Active).0, "active");
    assert_eq!(of(busy(8), State::Active).0, "full");
}

#[test]
fn a_cooldown_says_how_long_and_a_far_one_both_ends() {
    let check = |cooldown, icon, notes: &str| {
        let standing = Standing {
            cooldown,
            ..busy(8)
        };
        assert_eq!(of(standing, State::Active), (icon, notes.to_owned()));
    };
    let far = samples::cooling(3_600_000, Some(7_200_000));
    check(
        samples::cooling(40_500, None),
        "cooling",
        "free in 41 s (00:00:40)",
    );
    check(
        far,
        "cooling",
        "the provider says: free in 2 h (02:00:00); one request looks in 1 h (01:00:00)",
    );
    let due = samples::cooling(0, None);
    let next = "the next request goes alone; its answer decides";
    check(due, "probing", next);
}

#[test]
fn what_was_decided_stands_before_what_cools() {
    let standing = Standing {
        cooldown: samples::cooling(41_000, None),
        ..busy(1)
    };
    let disabled = State::Disabled(DisabledReason::Operator);
    assert_eq!(of(standing, disabled), ("disabled", String::new()));
}

#[test]
fn credentials_that_cool_by_themselves_are_counted_at_their_account() {
    let account = Account {
        quota_scope: QuotaScope::Credential,
        ..sample::account(1)
    };
    let both = [sample::credential(1, 1, 1), sample::credential(2, 1, 1)];
    let mut look = Look::default();
    let cools = Standing {
        cooldown: samples::cooling(41_000, None),
        ..Standing::default()
    };
    look.put(subject(&both[1]), cools);
    let stand = Stand::account(&shell(), &look, &account, (&[&both[0], &both[1]], 8));
    assert_eq!(stand.notes[0].text, "one of its 2 credentials cools");
    assert!(stand.can_clear);
    assert!(!stand.is_plain());
}

#[test]
fn an_endpoint_rests_until_one_request_tries_again() {
    let endpoint = sample::endpoint(1, crate::domain::protocol::Protocol::OpenAi);
    let mut look = Look::default();
    let until = crate::domain::moment::Moment::from_millis(60_000);
    look.put_breaker(endpoint.id, Breaker::Resting { until });
    let stand = Stand::endpoint(&shell(), &look, &endpoint);
    assert_eq!((stand.icon, stand.token), ("resting", "bad"));
    assert!(stand.notes[0].text.contains("tries again in 1 min"));
}
