//! Who is let in when: lanes, their order, owners, and those who need several slots at once.
use super::*;
use crate::domain::ids::RequestId;

fn limits() -> Limits {
    Limits {
        stream: 1,
        reserve: 0,
        create: 0,
        waiters_per_key: 1000,
        ..LIMITS
    }
}

fn full(accounts: u128, change: impl FnOnce(&mut Contents)) -> Admission {
    let mut contents = sample::contents(accounts);
    contents.keys = (1..=9).map(|n| key(n, 1)).collect();
    change(&mut contents);
    Admission::new(layout(contents, limits()))
}

fn key(n: u128, weight: u32) -> Arc<ClientKey> {
    let mut key = (*sample::key(n)).clone();
    key.weight = weight;
    Arc::new(key)
}

fn by(n: u128) -> Demand {
    Demand {
        key: Some(key(n, 1)),
        ..demand(STREAM)
    }
}

fn at_owner(credential: u128, asked: Demand) -> Demand {
    Demand {
        owner: Owner::Bound(CredentialId::from_u128(credential)),
        ..asked
    }
}

/// Takes everything, so that whoever comes next waits. The leases are in the order of the accounts.
fn take_all(a: &mut Admission, accounts: usize) -> Vec<LeaseId> {
    let mut leases: Vec<(CredentialId, LeaseId)> = Vec::new();
    for _ in 0..accounts {
        let asked = Demand {
            key: None,
            ..demand(STREAM)
        };
        let (lease, credential) = ask(a, asked).unwrap();
        leases.push((credential, lease));
    }
    leases.sort_unstable();
    leases.into_iter().map(|(_, lease)| lease).collect()
}

/// Whoever waits, named by `holder`.
fn park(a: &mut Admission, holder: u128, asked: Demand) -> WaiterId {
    let holder = RequestId::from_u128(holder);
    let asked = Arc::new(Demand { holder, ..asked });
    match a.request(NOW, &asked, &mut Effects::default()) {
        Decision::Parked(waiter) => waiter,
        other => panic!("{other:?}"),
    }
}

/// Gives a slot back, and tells who was let in, by the number of its request.
fn free(a: &mut Admission, lease: LeaseId) -> Vec<(u128, LeaseId)> {
    let mut effects = Effects::default();
    a.release(NOW, lease, Part::All, &mut effects);
    let leases = effects.settled.into_iter().map(|s| s.answer.unwrap().lease);
    leases.map(|l| (a.leases[&l].holder.as_u128(), l)).collect()
}

fn names(let_in: &[(u128, LeaseId)]) -> Vec<u128> {
    let_in.iter().map(|(name, _)| *name).collect()
}

#[test]
fn within_a_lane_it_is_first_come_first_served() {
    let mut a = full(1, |_| ());
    let mut lease = take_all(&mut a, 1)[0];
    for n in 1..=3 {
        park(&mut a, n, by(1));
    }
    for n in 1..=3 {
        let next = free(&mut a, lease);
        assert_eq!(names(&next), [n]);
        lease = next[0].1;
    }
}

#[test]
fn keys_that_hold_less_are_let_in_first_and_equals_by_age() {
    let mut a = full(4, |_| ());
    let leases = take_all(&mut a, 4);
    for n in [11, 12, 13] {
        park(&mut a, n, by(1));
    }
    park(&mut a, 21, by(2));
    park(&mut a, 31, by(3));
    assert_eq!(
        names(&free(&mut a, leases[0])),
        [11],
        "the oldest of equals"
    );
    assert_eq!(
        names(&free(&mut a, leases[1])),
        [21],
        "key 1 holds one by now"
    );
    assert_eq!(names(&free(&mut a, leases[2])), [31]);
    assert_eq!(
        names(&free(&mut a, leases[3])),
        [12],
        "the oldest of equals again"
    );
}

#[test]
fn weight_moves_a_key_up() {
    let mut a = full(4, |_| ());
    let leases = take_all(&mut a, 4);
    for n in [11, 12, 13] {
        park(&mut a, n, by(1));
    }
    for n in [21, 22, 23] {
        let heavy = Demand {
            key: Some(key(2, 2)),
            ..demand(STREAM)
        };
        park(&mut a, n, heavy);
    }
    let order: Vec<u128> = leases
        .iter()
        .flat_map(|l| names(&free(&mut a, *l)))
        .collect();
    // (held + 1) / weight: 1/2 for the heavy one, then 1 for both, then 3/2.
    assert_eq!(order, [21, 11, 22, 23]);
}

#[test]
fn nobody_waits_behind_one_of_its_own_key_that_wants_something_else() {
    let mut a = full(2, |_| ());
    let leases = take_all(&mut a, 2);
    park(&mut a, 1, at_owner(1, by(1)));
    park(&mut a, 2, by(1));
    assert_eq!(names(&free(&mut a, leases[1])), [2]);
    assert_eq!(names(&free(&mut a, leases[0])), [1]);
}

#[test]
fn among_equals_the_one_with_fewer_places_to_go_is_first() {
    let mut a = full(2, |_| ());
    let leases = take_all(&mut a, 2);
    park(&mut a, 1, by(1));
    park(&mut a, 2, at_owner(1, by(2)));
    assert_eq!(names(&free(&mut a, leases[0])), [2]);
}

#[test]
fn newcomers_leave_alone_what_an_owners_waiter_needs() {
    // Key 1 holds its share, so that its own waiter may not go; until it may, the others go elsewhere.
    let mut contents = sample::contents(2);
    contents.keys = (1..=9).map(|n| key(n, 1)).collect();
    let tight = Limits {
        stream: 4,
        fair_share_pct: 1,
        ..limits()
    };
    let mut a = Admission::new(layout(contents, tight));
    let own = |credential| at_owner(credential, by(1));
    let held: Vec<LeaseId> = [1, 1, 1, 2].map(|c| ask(&mut a, own(c)).unwrap().0).into();
    ask(&mut a, at_owner(2, by(2))).unwrap();
    park(&mut a, 1, own(1));
    // Both have room; account 2 has more of it taken.
    let chosen = [by(3), by(4)].map(|d| ask(&mut a, d).unwrap().1.as_u128());
    assert_eq!(chosen, [2, 2]);
    // Where there is nothing else, they take it.
    assert_eq!(ask(&mut a, by(5)).unwrap().1.as_u128(), 1);
    free(&mut a, held[0]);
    assert_eq!(a.waiters(), 1);
}

#[test]
fn newcomers_leave_alone_what_an_owners_waiter_needs_though_it_be_together_with_another_account() {
    // Credential 4 is charged to accounts 1 and 3, and nothing else can take work on account 3.
    let mut contents = sample::contents(3);
    contents.keys = (1..=9).map(|n| key(n, 1)).collect();
    contents.accounts[0].stream_limit = Some(8);
    contents.credentials[2].state = State::Draining;
    let mut both = sample::credential(4, 1, 1);
    both.accounts.push(AccountId::from_u128(3));
    contents.credentials.push(both);
    let tight = Limits {
        stream: 4,
        fair_share_pct: 1,
        ..limits()
    };
    let mut a = Admission::new(layout(contents, tight));
    for n in 2..=4 {
        ask(&mut a, at_owner(2, by(n))).unwrap();
    }
    // 16 slots and four keys: with four streams of account 1 its share is taken.
    for _ in 0..4 {
        ask(&mut a, at_owner(1, by(1))).unwrap();
    }
    park(&mut a, 1, at_owner(1, by(1)));
    // Account 2 is the fullest, but the only one that nobody waits for.
    assert_eq!(ask(&mut a, by(5)).unwrap().1.as_u128(), 2);
}

#[test]
fn a_key_that_has_just_been_let_in_elsewhere_has_lost_its_turn() {
    let mut a = full(1, |_| ());
    take_all(&mut a, 1);
    let creates = |n| Demand {
        kinds: BOTH,
        ..by(n)
    };
    park(&mut a, 11, by(1));
    park(&mut a, 12, creates(1));
    park(&mut a, 21, creates(2));
    // Two slots at once: the second is for the key that has none, though the other one is older.
    let mut contents = sample::contents(1);
    contents.keys = vec![key(1, 1), key(2, 1)];
    let mut effects = Effects::default();
    let wider = Limits {
        stream: 3,
        ..limits()
    };
    a.reconfigure(NOW, layout(contents, wider), &mut effects);
    let leases = effects.settled.into_iter().map(|s| s.answer.unwrap().lease);
    let holders: Vec<u128> = leases.map(|l| a.leases[&l].holder.as_u128()).collect();
    assert_eq!(holders, [11, 21]);
}

#[test]
fn a_full_queue_of_one_key_is_no_other_keys_trouble() {
    let few = Limits {
        waiters_per_key: 2,
        ..limits()
    };
    let mut contents = sample::contents(1);
    contents.keys = vec![key(1, 1), key(2, 1)];
    let mut a = Admission::new(layout(contents, few));
    take_all(&mut a, 1);
    park(&mut a, 1, by(1));
    park(&mut a, 2, by(1));
    let refused = a.request(NOW, &Arc::new(by(1)), &mut Effects::default());
    let Decision::Refused(refusal) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(
        (refusal.reason, refusal.limit),
        (Reason::QueueFull, Some((2, 2)))
    );
    park(&mut a, 3, by(2));
}

#[test]
fn a_raised_cap_lets_in_at_once_and_a_lowered_one_cuts_nothing_off() {
    let mut a = full(1, |_| ());
    take_all(&mut a, 1);
    for n in 1..=3 {
        park(&mut a, n, by(1));
    }
    let mut swap = |stream| {
        let mut contents = sample::contents(1);
        contents.keys = vec![key(1, 1)];
        let mut effects = Effects::default();
        let limits = Limits { stream, ..limits() };
        a.reconfigure(NOW, layout(contents, limits), &mut effects);
        (effects.settled.len(), a.leases())
    };
    assert_eq!(swap(3), (2, 3));
    assert_eq!(swap(1), (0, 3));
    assert_eq!(swap(0), (1, 4), "without a cap");
}

/// One credential that is charged to both accounts, besides one of each.
fn charged_twice(contents: &mut Contents) {
    let mut both = sample::credential(3, 1, 1);
    both.accounts.push(AccountId::from_u128(2));
    contents.credentials.push(both);
}

/// One of key 1 that needs both accounts, while others take each as it comes free.
fn contended() -> (Admission, Vec<LeaseId>, WaiterId) {
    let mut a = full(2, charged_twice);
    let leases = [1, 2].map(|c| ask(&mut a, at_owner(c, by(9))).unwrap().0);
    let both = park(&mut a, 1, at_owner(3, by(1)));
    for n in 2..=5 {
        let credential = 2 - (n + 1) % 2;
        park(&mut a, n, at_owner(credential, by(n)));
    }
    (a, leases.into(), both)
}

fn half_time(a: &mut Admission) {
    assert_eq!(a.next_wakeup(), Some(NOW.plus(30_000)));
    a.handle_timeout(NOW.plus(30_000), &mut Effects::default());
}

#[test]
fn who_needs_two_slots_at_once_has_the_first_kept_after_half_its_patience() {
    let (mut a, leases, _) = contended();
    // Before that everyone else takes what comes free.
    let next = free(&mut a, leases[0]);
    assert_eq!(names(&next), [2]);
    half_time(&mut a);
    assert_eq!(names(&free(&mut a, next[0].1)), [] as [u128; 0], "kept");
    assert_eq!(names(&free(&mut a, leases[1])), [1], "now it has both");
}

#[test]
fn what_was_kept_goes_to_the_others_when_its_request_leaves() {
    let (mut a, leases, both) = contended();
    half_time(&mut a);
    assert_eq!(names(&free(&mut a, leases[0])), [] as [u128; 0]);
    let mut effects = Effects::default();
    assert!(a.withdraw(NOW.plus(31_000), both, &mut effects));
    assert_eq!(effects.settled.len(), 1);
    assert_eq!(a.subjects.all().map(|u| u.stream).max(), Some(1));
}

#[test]
fn what_was_kept_goes_to_the_others_when_the_rest_of_it_begins_to_cool() {
    let mut a = full(2, charged_twice);
    let leases = [1, 2].map(|c| ask(&mut a, at_owner(c, by(9))).unwrap().0);
    park(&mut a, 1, at_owner(3, by(1)));
    // One who has nothing to do with account 2.
    let mut narrow = (*key(2, 1)).clone();
    narrow.accounts = Some(vec![AccountId::from_u128(1)]);
    let key = Some(Arc::new(narrow));
    park(&mut a, 2, Demand { key, ..by(2) });
    half_time(&mut a);
    assert_eq!(names(&free(&mut a, leases[0])), [] as [u128; 0], "kept");
    let limited = Evidence::Limited {
        wait_ms: Some(5_000),
        is_quota: false,
    };
    let mut effects = Effects::default();
    a.observe(NOW.plus(31_000), leases[1], limited, &mut effects);
    let leases = effects.settled.into_iter().map(|s| s.answer.unwrap().lease);
    let holders: Vec<u128> = leases.map(|l| a.leases[&l].holder.as_u128()).collect();
    assert_eq!(holders, [2]);
}
