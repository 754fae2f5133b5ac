//! Fair share in the machine: whom it concerns, and when its numbers change.
use super::*;
use crate::domain::ids::{KeyId, RequestId};

/// Every account has this many ordinary slots.
const SLOTS: u32 = 8;

fn limits(fair_share_pct: u32) -> Limits {
    Limits {
        stream: SLOTS + 1,
        create: 0,
        waiters_per_key: 1000,
        fair_share_pct,
        ..LIMITS
    }
}

fn key(n: u128, weight: u32) -> Arc<ClientKey> {
    let mut key = (*sample::key(n)).clone();
    key.weight = weight;
    Arc::new(key)
}

fn keys() -> Vec<Arc<ClientKey>> {
    (1..=6)
        .map(|n| key(n, if n == 2 { 3 } else { 1 }))
        .collect()
}

fn pool(accounts: u128, change: impl FnOnce(&mut Contents)) -> Contents {
    let mut contents = sample::contents(accounts);
    contents.keys = keys();
    change(&mut contents);
    contents
}

fn tight(accounts: u128, pct: u32) -> Admission {
    Admission::new(layout(pool(accounts, |_| ()), limits(pct)))
}

fn of(key: Option<u128>) -> Demand {
    Demand {
        key: key.map(|n| Arc::clone(&keys()[usize::try_from(n).unwrap() - 1])),
        ..demand(STREAM)
    }
}

/// What becomes of a request of that key.
fn send(a: &mut Admission, asked: Demand) -> Result<LeaseId, Reason> {
    let mut effects = Effects::default();
    match a.request(NOW, &Arc::new(asked), &mut effects) {
        Decision::Granted(grant) => Ok(grant.lease),
        Decision::Refused(refusal) => Err(refusal.reason),
        Decision::Parked(waiter) => {
            let why = a
                .why_waiting(waiter, &mut Effects::default())
                .unwrap()
                .reason;
            a.withdraw(NOW, waiter, &mut effects);
            Err(why)
        }
    }
}

fn fill(a: &mut Admission, key: Option<u128>, count: usize) -> Vec<LeaseId> {
    (0..count).map(|_| send(a, of(key)).unwrap()).collect()
}

#[test]
fn a_loose_pool_is_anybodys_and_a_tight_one_is_shared_out() {
    let mut a = tight(2, 75);
    // 12 of 16 is the threshold: up to there one key may have everything, and alone beyond it.
    fill(&mut a, Some(1), 12);
    fill(&mut a, Some(3), 2);
    assert_eq!(
        send(&mut a, of(Some(1))),
        Err(Reason::ApiKeyStreamFairShare)
    );
    fill(&mut a, Some(3), 2);
    assert_eq!(send(&mut a, of(Some(3))), Err(Reason::AccountStreamCap));
}

#[test]
fn a_key_alone_has_all_of_it() {
    fill(&mut tight(2, 1), Some(1), 16);
}

#[test]
fn weights_part_the_pool() {
    let mut a = tight(2, 1);
    // Weights 1 and 3 of 16 slots: 4 and 12.
    fill(&mut a, Some(2), 1);
    fill(&mut a, Some(1), 4);
    assert_eq!(
        send(&mut a, of(Some(1))),
        Err(Reason::ApiKeyStreamFairShare)
    );
    fill(&mut a, Some(2), 11);
    assert_eq!(send(&mut a, of(Some(2))), Err(Reason::AccountStreamCap));
}

#[test]
fn requests_without_a_key_count_and_are_not_held_back() {
    let mut a = tight(1, 50);
    fill(&mut a, None, 4);
    fill(&mut a, Some(1), 2);
    fill(&mut a, Some(3), 1);
    // 7 of 8 in use, two keys: 4 each, and what has no key is nobody's share.
    fill(&mut a, None, 1);
    assert_eq!(send(&mut a, of(None)), Err(Reason::AccountStreamCap));
}

#[test]
fn where_an_unlimited_account_can_serve_nobody_is_held_back() {
    let unlimited = |c: &mut Contents| c.accounts[1].stream_limit = Some(0);
    let mut a = Admission::new(layout(pool(2, unlimited), limits(1)));
    fill(&mut a, Some(3), 1);
    fill(&mut a, Some(1), 40);
}

#[test]
fn coming_back_uses_the_reserve_and_asks_nobody() {
    let mut a = tight(1, 1);
    fill(&mut a, Some(3), 2);
    fill(&mut a, Some(1), 4);
    let back = |key| Demand {
        reattach: true,
        ..of(key)
    };
    assert_eq!(
        send(&mut a, of(Some(1))),
        Err(Reason::ApiKeyStreamFairShare)
    );
    fill(&mut a, Some(3), 2);
    assert!(send(&mut a, back(Some(1))).is_ok());
    assert_eq!(send(&mut a, back(Some(1))), Err(Reason::AccountStreamCap));
}

#[test]
fn whoever_moves_on_and_whoever_only_starts_is_not_asked_again() {
    let mut a = tight(1, 1);
    fill(&mut a, Some(3), 2);
    fill(&mut a, Some(1), 4);
    assert_eq!(
        send(&mut a, of(Some(1))),
        Err(Reason::ApiKeyStreamFairShare)
    );
    let creates = Demand {
        kinds: Kinds::CREATE,
        ..of(Some(1))
    };
    assert!(send(&mut a, creates).is_ok());
    let moving = Demand {
        is_moving: true,
        ..of(Some(1))
    };
    assert!(send(&mut a, moving).is_ok());
}

#[test]
fn the_first_denial_of_a_request_is_told_once_with_its_numbers() {
    let mut a = tight(1, 1);
    fill(&mut a, Some(3), 2);
    let held = fill(&mut a, Some(1), 4);
    let mut effects = Effects::default();
    let asked = Demand {
        holder: RequestId::from_u128(9),
        ..of(Some(1))
    };
    let parked = a.request(NOW, &Arc::new(asked), &mut effects);
    assert!(matches!(parked, Decision::Parked(_)));
    let share = Share {
        capacity: 8,
        in_flight: 6,
        mine: 4,
        weight: 1,
        weights: 2,
        threshold_pct: 1,
    };
    let told = Note::HeldBack {
        request: RequestId::from_u128(9),
        key: sample::key(1).id,
        share,
    };
    assert_eq!(effects.notes, [told]);
    // Somebody else's leaving lets it be looked at again, and held back again.
    let mut effects = Effects::default();
    let other = fill(&mut a, Some(4), 1);
    a.release(NOW, other[0], Part::All, &mut effects);
    assert!(effects.notes.is_empty() && effects.settled.is_empty());
    a.release(NOW, held[0], Part::All, &mut effects);
    assert_eq!(effects.settled.len(), 1, "within its share again");
}

#[test]
fn whoever_stands_behind_one_that_is_held_back_is_told_of_too() {
    let mut a = tight(1, 1);
    fill(&mut a, Some(3), 2);
    fill(&mut a, Some(1), 4);
    let told = |effects: &Effects| -> Vec<u128> {
        let notes = effects.notes.iter();
        let held_back = notes.filter_map(|note| match note {
            Note::HeldBack { request, .. } => Some(request.as_u128()),
            _ => None,
        });
        held_back.collect()
    };
    let mut effects = Effects::default();
    for n in 1..=3 {
        let asked = Demand {
            holder: RequestId::from_u128(n),
            ..of(Some(1))
        };
        a.request(NOW, &Arc::new(asked), &mut effects);
    }
    assert_eq!(told(&effects), [1, 2, 3]);
    // One that found the pool full is told of when it is held back for the first time.
    let mut effects = Effects::default();
    let last = fill(&mut a, Some(3), 2);
    let asked = Demand {
        holder: RequestId::from_u128(4),
        ..of(Some(1))
    };
    let parked = a.request(NOW, &Arc::new(asked), &mut effects);
    let Decision::Parked(fourth) = parked else {
        panic!("{parked:?}")
    };
    a.release(NOW, last[0], Part::All, &mut effects);
    assert_eq!(told(&effects), []);
    let why = a.why_waiting(fourth, &mut effects).unwrap();
    assert_eq!(why.reason, Reason::ApiKeyStreamFairShare);
    a.why_waiting(fourth, &mut effects);
    assert_eq!(told(&effects), [4]);
}

#[test]
fn a_share_grows_when_another_key_gives_up_waiting() {
    let mut a = tight(1, 1);
    fill(&mut a, None, 3);
    fill(&mut a, Some(1), 4);
    fill(&mut a, Some(3), 1);
    let mut effects = Effects::default();
    let mut park = |a: &mut Admission, n| match a.request(NOW, &Arc::new(of(Some(n))), &mut effects)
    {
        Decision::Parked(waiter) => waiter,
        other => panic!("{other:?}"),
    };
    park(&mut a, 1);
    let leaving = park(&mut a, 4);
    let mut effects = Effects::default();
    // 8 slots: with three keys that hold or want some, 2 each; 4 are a key's with two.
    a.release(NOW, LeaseId(1), Part::All, &mut effects);
    assert_eq!(effects.settled.len(), 1, "the one who has nothing yet");
    assert!(!a.withdraw(NOW, leaving, &mut effects));
}

/// Account 1 is filled first, account 2 after it; 80 of 100 make them congested.
fn one_after_the_other() -> Admission {
    let later = |c: &mut Contents| c.accounts[1].priority = 1;
    Admission::new(layout(pool(2, later), limits(80)))
}

fn parks(a: &mut Admission, key: u128) {
    let parked = a.request(NOW, &Arc::new(of(Some(key))), &mut Effects::default());
    assert!(matches!(parked, Decision::Parked(_)));
    assert_eq!(a.waiters(), 1);
}

#[test]
fn what_begins_to_cool_leaves_the_rest_less_tight() {
    let mut a = one_after_the_other();
    let held = fill(&mut a, Some(1), 12);
    fill(&mut a, Some(3), 1);
    parks(&mut a, 1);
    let limited = Evidence::Limited {
        wait_ms: Some(5_000),
        is_quota: false,
    };
    a.observe(NOW, held[0], limited, &mut Effects::default());
    assert_eq!(a.waiters(), 0, "5 of 8 are no congestion");
}

#[test]
fn what_awaits_a_verdict_leaves_the_rest_less_tight() {
    let mut a = one_after_the_other();
    let held = fill(&mut a, Some(1), 12);
    let limited = Evidence::Limited {
        wait_ms: Some(5_000),
        is_quota: false,
    };
    let mut effects = Effects::default();
    a.observe(NOW, held[0], limited, &mut effects);
    a.release(NOW, held[0], Part::All, &mut effects);
    fill(&mut a, Some(1), 1);
    fill(&mut a, Some(3), 1);
    a.handle_timeout(NOW.plus(6_000), &mut effects);
    parks(&mut a, 1);
    fill(&mut a, Some(3), 1);
    assert_eq!(a.waiters(), 0, "6 of 8 are no congestion");
}

/// Everything of two accounts is taken, and three wait: key 2 for account 2 alone, of which it holds its
/// share; key 3 for either account; and somebody without a key, whose turn is last.
fn three_that_wait() -> (Contents, Admission) {
    let mut narrow = (*key(2, 3)).clone();
    narrow.accounts = Some(vec![AccountId::from_u128(2)]);
    let narrow = Arc::new(narrow);
    let contents = pool(2, |c| {
        c.accounts[1].priority = 1;
        c.keys[1] = Arc::clone(&narrow);
    });
    let mut a = Admission::new(layout(contents.clone(), limits(1)));
    let second = |asked| Demand {
        key: Some(Arc::clone(&narrow)),
        ..asked
    };
    let at = |n, asked| Demand {
        owner: Owner::Bound(CredentialId::from_u128(n)),
        ..asked
    };
    let mut take = |count, asked: Demand| {
        (0..count).for_each(|_| assert!(send(&mut a, asked.clone()).is_ok()));
    };
    take(6, at(1, of(None)));
    take(2, at(2, of(None)));
    take(2, at(1, of(Some(3))));
    take(6, at(2, second(of(None))));
    for asked in [of(None), of(Some(3)), second(of(None))] {
        let parked = a.request(NOW, &Arc::new(asked), &mut Effects::default());
        assert!(matches!(parked, Decision::Parked(_)));
    }
    (contents, a)
}

#[test]
fn a_share_that_grows_within_a_pass_counts_before_anyone_else_is_let_in() {
    let (contents, mut a) = three_that_wait();
    let wider = Limits {
        stream: SLOTS + 2,
        ..limits(1)
    };
    let mut effects = Effects::default();
    a.reconfigure(NOW, layout(contents, wider), &mut effects);
    // One more slot each. Key 2 holds 6 of 9 and may have as many while key 3 wants some of them;
    // that goes to account 1, and leaves key 2 alone on account 2.
    let settled = effects.settled.into_iter().map(|s| s.answer.unwrap().lease);
    let keys: Vec<_> = settled
        .map(|l| a.leases[&l].key.map(KeyId::as_u128))
        .collect();
    assert_eq!(keys, [Some(3), Some(2)]);
    assert_eq!(a.waiters(), 1);
}

#[test]
fn an_owners_request_that_only_fair_share_holds_back_goes_on_waiting() {
    let mut a = tight(1, 1);
    fill(&mut a, Some(3), 2);
    fill(&mut a, Some(1), 4);
    let owned = Demand {
        owner: Owner::Bound(CredentialId::from_u128(1)),
        ..of(Some(1))
    };
    assert_eq!(
        send(&mut a, owned.clone()),
        Err(Reason::ApiKeyStreamFairShare)
    );
    let parked = a.request(NOW, &Arc::new(owned), &mut Effects::default());
    assert!(matches!(parked, Decision::Parked(_)));
    let mut effects = Effects::default();
    a.reconfigure(NOW, layout(pool(1, |_| ()), limits(1)), &mut effects);
    assert!(effects.settled.is_empty(), "{effects:?}");
}

#[test]
fn a_stream_that_is_charged_to_two_accounts_is_one_stream_of_its_key() {
    let both = |c: &mut Contents| {
        let mut both = sample::credential(3, 1, 1);
        both.accounts.push(AccountId::from_u128(2));
        c.credentials.push(both);
    };
    let tiny = Limits {
        stream: 3,
        ..limits(1)
    };
    let mut a = Admission::new(layout(pool(2, both), tiny));
    fill(&mut a, Some(3), 1);
    let twice = Demand {
        owner: Owner::Bound(CredentialId::from_u128(3)),
        ..of(Some(1))
    };
    // Four slots and two keys: two streams each, and this one takes two slots.
    send(&mut a, twice).unwrap();
    fill(&mut a, Some(1), 1);
    assert_eq!(send(&mut a, of(Some(1))), Err(Reason::AccountStreamCap));
}

mod kept;
