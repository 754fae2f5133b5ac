//! Which edge is chosen: strategies, owners, preferences; and that the quick way chooses what a look
//! at everything would.
use super::*;
use crate::domain::ids::EndpointId;
use proptest::prelude::{TestCaseError, any, prop_assert, prop_assert_eq, proptest};

fn by(strategy: super::super::Strategy, accounts: u128) -> Admission {
    let limits = Limits { strategy, ..LIMITS };
    Admission::new(layout(sample::contents(accounts), limits))
}

fn ids(a: &mut Admission, count: usize) -> Vec<u128> {
    let next = |a: &mut Admission| ask(a, demand(STREAM)).unwrap();
    (0..count).map(|_| next(a).1.as_u128()).collect()
}

#[test]
fn strategies_choose_by_load_by_turn_or_by_place() {
    let mut least = by(super::super::Strategy::LeastLoaded, 3);
    let (first, _) = ask(&mut least, demand(STREAM)).unwrap();
    ids(&mut least, 2);
    least.release(NOW, first, Part::All, &mut Effects::default());
    assert_eq!(ids(&mut least, 1), [1], "the emptiest");
    let mut round = by(super::super::Strategy::RoundRobin, 3);
    let (first, _) = ask(&mut round, demand(STREAM)).unwrap();
    round.release(NOW, first, Part::All, &mut Effects::default());
    assert_eq!(ids(&mut round, 3), [2, 3, 1], "each in turn, however empty");
    let mut fill = by(super::super::Strategy::FillFirst, 3);
    assert_eq!(ids(&mut fill, 5), [1, 1, 2, 2, 3], "one after the other");
}

#[test]
fn an_owner_is_never_left_and_reading_reaches_it_in_any_state() {
    let bound = |kinds| Demand {
        owner: Owner::Bound(CredentialId::from_u128(2)),
        ..demand(kinds)
    };
    let mut a = admission(|_| (), 3);
    for _ in 0..2 {
        assert_eq!(ask(&mut a, bound(STREAM)).unwrap().1.as_u128(), 2);
    }
    let Decision::Parked(waiter) =
        a.request(NOW, &Arc::new(bound(STREAM)), &mut Effects::default())
    else {
        panic!("an owner that is full is waited for");
    };
    assert_eq!(
        a.why_waiting(waiter, &mut Effects::default())
            .unwrap()
            .reason,
        Reason::OwnerSaturated
    );
    for state in [State::Draining, State::Disabled(DisabledReason::Auth)] {
        let mut a = admission(|c| c.credentials[1].state = state, 3);
        let generating = ask(&mut a, bound(STREAM)).map(|_| ());
        assert_eq!(generating, Err(Reason::OwnerUnavailable));
        assert_eq!(ask(&mut a, bound(Kinds::NONE)).unwrap().1.as_u128(), 2);
        let reattach = Demand {
            reattach: true,
            ..bound(STREAM)
        };
        assert_eq!(ask(&mut a, reattach).unwrap().1.as_u128(), 2);
    }
    let mut gone = admission(|_| (), 1);
    let reading = ask(&mut gone, bound(Kinds::NONE)).map(|_| ());
    assert_eq!(reading, Err(Reason::OwnerUnavailable));
}

#[test]
fn a_preference_is_followed_while_it_can_be_and_never_waited_for() {
    let mut a = admission(|_| (), 3);
    let preferring = || Demand {
        preferred: Some(CredentialId::from_u128(3)),
        ..demand(STREAM)
    };
    let mut next = || ask(&mut a, preferring()).unwrap().1.as_u128();
    assert_eq!([next(), next(), next()], [3, 3, 1]);
    let mut out = admission(|c| c.credentials[2].state = State::Draining, 3);
    assert_eq!(ask(&mut out, preferring()).unwrap().1.as_u128(), 1);
}

#[test]
fn explaining_names_first_what_would_be_chosen_and_why_not_the_others() {
    let odd = |c: &mut Contents| {
        c.credentials[0].state = State::Draining;
        c.accounts[3].stream_limit = Some(2);
        c.accounts[2].priority = 1;
    };
    let mut a = admission(odd, 4);
    let (lease, chosen) = ask(&mut a, demand(STREAM)).unwrap();
    a.release(NOW, lease, Part::All, &mut Effects::default());
    let explained = a.explain(&demand(STREAM));
    let order: Vec<u128> = explained
        .iter()
        .map(|e| e.edge.credential().id.as_u128())
        .collect();
    let (_, next) = ask(&mut a, demand(STREAM)).unwrap();
    assert_eq!(order[0], next.as_u128());
    assert_ne!(chosen, next, "turns go round");
    assert_eq!(&order[2..], [3, 1], "the later priority, then what cannot");
    assert_eq!(
        explained[3].why_not,
        Some(Why::OutOfService(State::Draining))
    );
    assert!(explained[..3].iter().all(|e| e.why_not.is_none()));
}

/// The same choice as a look at every edge would make it, written without any of the code above.
fn naive(a: &Admission, contents: &Contents, used: &[u32]) -> Option<Vec<u128>> {
    let mut best: Option<(i32, u64, Vec<u128>)> = None;
    for (n, credential) in contents.credentials.iter().enumerate() {
        let account = &contents.accounts[n];
        let cap = u64::from(account.stream_limit.unwrap_or(LIMITS.stream));
        let ordinary = if cap == 0 {
            0
        } else {
            cap.saturating_sub(1).max(1)
        };
        let serves = credential
            .models
            .as_ref()
            .is_none_or(|rows| rows.iter().any(|r| &*r.model == "m"));
        let is_active = credential.state == State::Active && account.state == State::Active;
        let is_full = ordinary > 0 && u64::from(used[n]) >= ordinary;
        if !serves || !is_active || is_full {
            continue;
        }
        // Shares in parts that all caps used here divide.
        let share = (u64::from(used[n]) * 27_720)
            .checked_div(ordinary)
            .unwrap_or(0);
        let id = credential.id.as_u128();
        match &mut best {
            Some((priority, least, ids)) if (*priority, *least) == (account.priority, share) => {
                ids.push(id);
            }
            Some((priority, least, _)) if (*priority, *least) < (account.priority, share) => (),
            _ => best = Some((account.priority, share, vec![id])),
        }
    }
    assert_eq!(a.leases(), used.iter().sum::<u32>() as usize);
    best.map(|(_, _, ids)| ids)
}

fn play(contents: &Contents, steps: &[(bool, usize)]) -> Result<(), TestCaseError> {
    let pool = Arc::new(Pool::new(contents.clone()));
    let mut a = Admission::new(Numbers::default().layout(pool, LIMITS));
    let mut used = vec![0; contents.credentials.len()];
    let mut held: Vec<(LeaseId, usize)> = Vec::new();
    for (asks, n) in steps {
        if *asks || held.is_empty() {
            let expect = naive(&a, contents, &used);
            let got = match a.request(NOW, &Arc::new(demand(STREAM)), &mut Effects::default()) {
                Decision::Granted(grant) => Some(grant),
                Decision::Parked(waiter) => {
                    a.withdraw(NOW, waiter, &mut Effects::default());
                    None
                }
                Decision::Refused(_) => None,
            };
            let id = got.as_ref().map(|g| g.edge.credential().id.as_u128());
            match (&expect, id) {
                (Some(best), Some(id)) => prop_assert!(best.contains(&id), "{id} of {best:?}"),
                (expect, id) => prop_assert_eq!(expect.is_some(), id.is_some()),
            }
            if let (Some(grant), Some(id)) = (got, id) {
                let at = contents
                    .credentials
                    .iter()
                    .position(|c| c.id.as_u128() == id);
                used[at.unwrap()] += 1;
                held.push((grant.lease, at.unwrap()));
            }
        } else {
            let (lease, at) = held.remove(n % held.len());
            a.release(NOW, lease, Part::All, &mut Effects::default());
            used[at] -= 1;
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_quick_choice_is_the_choice_of_a_look_at_everything(
        accounts in proptest::collection::vec((0..3i32, 0..8u32, 0..6u8, 0..4u8), 1..80),
        steps in proptest::collection::vec((any::<bool>(), any::<usize>()), 1..200)
    ) {
        let mut contents = sample::contents(0);
        for ((priority, cap, state, models), n) in accounts.into_iter().zip(1u128..) {
            let mut account = sample::account(n);
            account.priority = priority;
            account.stream_limit = Some(cap);
            if state == 0 {
                account.state = State::Draining;
            }
            let mut credential = sample::credential(n, n, 1);
            credential.endpoints = vec![EndpointId::from_u128(1)];
            let row = |model: &str| crate::domain::pool::ModelRow {
                model: model.into(),
                upstream_model: None,
            };
            credential.models = match models {
                0 => Some([row("other")].into()),
                1 => Some([row("other"), row("m")].into()),
                _ => None,
            };
            contents.accounts.push(account);
            contents.credentials.push(credential);
        }
        play(&contents, &steps)?;
    }
}
