//! Caps, choice, waiting, and what is shown of them.
use super::*;
use crate::domain::reason::Reason;
use crate::domain::{
    ids::{AccountId, CredentialId},
    pool::{
        ClientKey, DisabledReason, Pool, QuotaScope, State,
        edges::{Contents, sample},
    },
    protocol::Protocol,
};

const LIMITS: Limits = Limits {
    stream: 3,
    create: 2,
    reserve: 1,
    waiters_per_key: 3,
    may_park: true,
    strategy: super::Strategy::LeastLoaded,
    breaker_threshold: 3,
    job: 2,
    fair_share_pct: 0,
};
const STREAM: Kinds = Kinds::STREAM;
const BOTH: Kinds = Kinds::GENERATE;

const NOW: Moment = Moment::from_millis(1_000_000);

fn demand(kinds: Kinds) -> Demand {
    Demand {
        key: Some(sample::key(1)),
        protocol: Protocol::OpenAi,
        model: Some("m".into()),
        kinds,
        reattach: false,
        owner: Owner::Nobody,
        preferred: None,
        tried: Vec::new(),
        until: NOW.plus(60_000),
        is_moving: false,
        holder: crate::domain::ids::RequestId::from_u128(0),
    }
}

fn admission(change: impl FnOnce(&mut Contents), accounts: u128) -> Admission {
    let mut contents = sample::contents(accounts);
    change(&mut contents);
    Admission::new(layout(contents, LIMITS))
}

/// Ids of the samples are numbered alike in every snapshot, so that numbers begin anew here.
fn layout(contents: Contents, limits: Limits) -> Layout {
    let mut numbers = Numbers::default();
    // Whatever a snapshot leaves out keeps its number.
    let all = sample::contents(9);
    numbers.layout(Arc::new(Pool::new(all)), limits);
    numbers.layout(Arc::new(Pool::new(contents)), limits)
}

fn ask(admission: &mut Admission, demand: Demand) -> Result<(LeaseId, CredentialId), Reason> {
    match admission.request(NOW, &Arc::new(demand), &mut Effects::default()) {
        Decision::Granted(g) => Ok((g.lease, g.edge.credential().id)),
        Decision::Refused(refusal) => Err(refusal.reason),
        Decision::Parked(_) => panic!("parked"),
    }
}

fn chosen(admission: &mut Admission, count: usize) -> Vec<u128> {
    let mut next = || ask(admission, demand(STREAM)).unwrap().1.as_u128();
    (0..count).map(|_| next()).collect()
}

#[test]
fn the_least_loaded_edge_is_chosen_and_equals_take_turns() {
    let mut a = admission(|_| (), 3);
    assert_eq!(chosen(&mut a, 6), [1, 2, 3, 1, 2, 3]);
}

#[test]
fn a_lower_priority_number_goes_first_until_it_is_full() {
    let mut a = admission(|c| c.accounts[0].priority = 1, 2);
    assert_eq!(chosen(&mut a, 4), [2, 2, 1, 1]);
}

#[test]
fn turns_follow_weight_where_nothing_is_capped() {
    let unlimited = |c: &mut Contents| {
        for account in &mut c.accounts {
            account.stream_limit = Some(0);
        }
        c.accounts[0].weight = 2;
    };
    let mut a = admission(unlimited, 2);
    let first = chosen(&mut a, 300).iter().filter(|n| **n == 1).count();
    assert_eq!(first, 200);
}

#[test]
fn the_reserve_is_for_reattaching_alone() {
    let mut a = admission(|_| (), 1);
    chosen(&mut a, 2);
    assert!(matches!(
        a.request(NOW, &Arc::new(demand(STREAM)), &mut Effects::default()),
        Decision::Parked(_)
    ));
    let reattach = Demand {
        reattach: true,
        ..demand(STREAM)
    };
    assert!(ask(&mut a, reattach).is_ok());
}

#[test]
fn a_create_slot_is_given_back_before_the_stream() {
    let mut a = admission(|c| c.accounts[0].stream_limit = Some(0), 1);
    let (first, _) = ask(&mut a, demand(BOTH)).unwrap();
    ask(&mut a, demand(BOTH)).unwrap();
    let Decision::Parked(waiter) = a.request(NOW, &Arc::new(demand(BOTH)), &mut Effects::default())
    else {
        panic!("the cap of two creates did not hold");
    };
    let mut effects = Effects::default();
    a.release(NOW, first, Part::Create, &mut effects);
    assert_eq!(effects.settled.len(), 1);
    assert_eq!(effects.settled[0].waiter, waiter);
    assert!(effects.settled[0].answer.is_ok());
    assert_eq!(a.leases(), 3);
}

#[test]
fn giving_back_twice_frees_once() {
    let mut a = admission(|_| (), 1);
    let (lease, _) = ask(&mut a, demand(BOTH)).unwrap();
    let mut effects = Effects::default();
    a.release(NOW, lease, Part::Create, &mut effects);
    a.release(NOW, lease, Part::All, &mut effects);
    a.release(NOW, lease, Part::All, &mut effects);
    assert_eq!((a.leases(), streams(&a)), (0, 0));
}

#[test]
fn a_credential_charged_to_two_accounts_takes_a_slot_in_each_or_none() {
    let both = |c: &mut Contents| {
        c.credentials[0].accounts = vec![AccountId::from_u128(1), AccountId::from_u128(2)];
        c.credentials[1].state = State::Draining;
        c.accounts[1].stream_limit = Some(2);
    };
    let mut a = admission(both, 2);
    ask(&mut a, demand(STREAM)).unwrap();
    assert_eq!(streams(&a), 2);
    assert!(matches!(
        a.request(NOW, &Arc::new(demand(STREAM)), &mut Effects::default()),
        Decision::Parked(_)
    ));
    assert_eq!(streams(&a), 2);
}

#[test]
fn scope_credential_counts_each_credential_for_itself() {
    let grouped = |c: &mut Contents| {
        c.accounts[0].quota_scope = QuotaScope::Credential;
        c.credentials[1].accounts = vec![AccountId::from_u128(1)];
    };
    let mut a = admission(grouped, 2);
    assert_eq!(chosen(&mut a, 4), [1, 2, 1, 2]);
}

#[test]
fn what_cannot_help_by_waiting_is_refused_at_once() {
    let check = |change: fn(&mut Contents), d: Demand, expect: Reason| {
        let mut a = admission(change, 2);
        assert_eq!(ask(&mut a, d).map(|_| ()), Err(expect));
    };
    let disable = |c: &mut Contents| {
        c.accounts[0].state = State::Disabled(DisabledReason::Operator);
        c.credentials[1].state = State::Draining;
    };
    check(disable, demand(STREAM), Reason::NoServiceableAccount);
    let other = Demand {
        protocol: Protocol::Gemini,
        ..demand(STREAM)
    };
    check(|_| (), other, Reason::ModelNotFound);
    let owned = Demand {
        owner: Owner::Unknown,
        ..demand(STREAM)
    };
    check(|_| (), owned, Reason::OwnerUnknown);
    let tried = Demand {
        tried: vec![
            Tried::Account(AccountId::from_u128(1)),
            Tried::Account(AccountId::from_u128(2)),
        ],
        ..demand(STREAM)
    };
    check(|_| (), tried, Reason::NoServiceableAccount);
}

#[test]
fn one_key_may_park_only_so_many() {
    let mut a = admission(|_| (), 1);
    chosen(&mut a, 2);
    for _ in 0..LIMITS.waiters_per_key {
        assert!(matches!(
            a.request(NOW, &Arc::new(demand(STREAM)), &mut Effects::default()),
            Decision::Parked(_)
        ));
    }
    assert_eq!(
        ask(&mut a, demand(STREAM)).map(|_| ()),
        Err(Reason::QueueFull)
    );
    let other = Demand {
        key: Some(sample::key(2)),
        ..demand(STREAM)
    };
    assert!(matches!(
        a.request(NOW, &Arc::new(other), &mut Effects::default()),
        Decision::Parked(_)
    ));
}

#[test]
fn raising_a_cap_lets_waiters_in_and_lowering_one_cuts_nothing_off() {
    let mut a = admission(|_| (), 1);
    chosen(&mut a, 2);
    assert!(matches!(
        a.request(NOW, &Arc::new(demand(STREAM)), &mut Effects::default()),
        Decision::Parked(_)
    ));
    let mut effects = Effects::default();
    let wider = Limits {
        stream: 4,
        ..LIMITS
    };
    a.reconfigure(NOW, layout(sample::contents(1), wider), &mut effects);
    assert_eq!(effects.settled.len(), 1);
    let narrower = Limits {
        stream: 1,
        ..LIMITS
    };
    a.reconfigure(NOW, layout(sample::contents(1), narrower), &mut effects);
    assert_eq!((a.leases(), effects.settled.len()), (3, 1));
}

/// What becomes of a request that waits for a full account when its key is changed like that.
fn waiting_while(change: impl FnOnce(&mut Contents)) -> Option<Result<(), Reason>> {
    let mut a = admission(|_| (), 1);
    chosen(&mut a, 2);
    let waiting = a.request(NOW, &Arc::new(demand(STREAM)), &mut Effects::default());
    assert!(matches!(waiting, Decision::Parked(_)));
    let mut contents = sample::contents(2);
    change(&mut contents);
    let mut effects = Effects::default();
    a.reconfigure(NOW, layout(contents, LIMITS), &mut effects);
    assert_eq!(effects.settled.is_empty(), a.waiters() == 1);
    let one = effects.settled.pop()?;
    Some(one.answer.map(|_| ()).map_err(|r| r.reason))
}

#[test]
fn who_waits_has_the_rights_that_the_key_has_now() {
    let key = |change: fn(&mut ClientKey)| waiting_while(|c| change(Arc::make_mut(&mut c.keys[0])));
    assert_eq!(key(|_| ()), Some(Ok(())));
    let first = |k: &mut ClientKey| k.accounts = Some(vec![AccountId::from_u128(1)]);
    assert_eq!(key(first), None, "the full account is the only one left");
    let other = |k: &mut ClientKey| k.models = Some(vec!["other".into()]);
    assert_eq!(key(other), Some(Err(Reason::ModelNotAllowed)));
    let rotated = |k: &mut ClientKey| k.hash = [9; 32];
    assert_eq!(key(rotated), Some(Err(Reason::InvalidClientKey)));
    let revoked = waiting_while(|c| c.keys.clear());
    assert_eq!(revoked, Some(Err(Reason::InvalidClientKey)));
}

/// Streams on all accounts, as they are counted.
fn streams(a: &Admission) -> u32 {
    let standings = a.standings().into_iter();
    let accounts = standings.filter(|(subject, _)| matches!(subject, Subject::Account(_)));
    accounts.map(|(_, standing)| standing.streams).sum()
}

fn streams_of_the_first(a: &Admission) -> u32 {
    let account = Subject::Account(AccountId::from_u128(1));
    a.standing(account).unwrap().streams
}

#[test]
fn what_keys_and_accounts_hold_is_known_while_they_hold_it() {
    let mut a = admission(|_| (), 1);
    let (first, _) = ask(&mut a, demand(BOTH)).unwrap();
    ask(&mut a, demand(STREAM)).unwrap();
    // Two of three: the last is the reserve.
    let parked = a.request(NOW, &Arc::new(demand(STREAM)), &mut Effects::default());
    assert!(matches!(parked, Decision::Parked(_)));
    let key = Some(sample::key(1).id);
    let held =
        |streams, waiting| std::collections::HashMap::from([(key, Holding { streams, waiting })]);
    assert_eq!(a.holdings(), held(2, 1));
    assert_eq!(streams_of_the_first(&a), 2);
    a.release(NOW, first, Part::Create, &mut Effects::default());
    assert_eq!(a.holdings(), held(2, 1));
    a.release(NOW, first, Part::All, &mut Effects::default());
    assert_eq!(a.holdings(), held(2, 0));
}

#[test]
fn a_draining_account_still_holds_what_it_holds() {
    let mut a = admission(|_| (), 1);
    ask(&mut a, demand(STREAM)).unwrap();
    let mut contents = sample::contents(1);
    contents.accounts[0].state = State::Draining;
    a.reconfigure(NOW, layout(contents, LIMITS), &mut Effects::default());
    assert_eq!(streams_of_the_first(&a), 1);
}

mod choosing;
mod cooling;
mod events;
mod sharing;
mod waiting;
