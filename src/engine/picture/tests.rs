//! Pictures of small pools: what is counted, what is a share, and who is grouped with whom.
use super::*;
use crate::domain::{
    admission::{
        Admission, Decision, Demand, Effects, Numbers, Owner, Standing, Strategy, Subject,
    },
    breaker::Breaker,
    cooldown::{Cooldown, Kept},
    ids::EndpointId,
    pool::{
        ClientKey, DisabledReason, QuotaScope, State,
        edges::{Contents, sample},
    },
    protocol::Protocol,
    reason::Reason,
};
use crate::engine::live::Registry;

const NOW: Moment = Moment::from_millis(100_000);

/// Accounts of 4 streams, one of them in reserve.
const LIMITS: Limits = Limits {
    stream: 4,
    create: 9,
    job: 2,
    reserve: 1,
    fair_share_pct: 80,
    waiters_per_key: 99,
    may_park: true,
    strategy: Strategy::LeastLoaded,
    breaker_threshold: 5,
};

struct Scene {
    pool: Arc<Pool>,
    limits: Limits,
    look: Look,
    machine: Admission,
    asked: u128,
}

fn scene(limits: Limits, accounts: u128, change: impl FnOnce(&mut Contents)) -> Scene {
    let mut contents = sample::contents(accounts);
    contents.keys = (1..=4).map(sample::key).collect();
    change(&mut contents);
    let pool = Arc::new(Pool::new(contents));
    let layout = Numbers::default().layout(Arc::clone(&pool), limits);
    Scene {
        machine: Admission::new(layout),
        look: Look::default(),
        limits,
        pool,
        asked: 0,
    }
}

impl Scene {
    /// `count` requests of that key, whatever becomes of them.
    fn ask(&mut self, key: Option<usize>, count: usize) {
        for _ in 0..count {
            self.asked += 1;
            let demand = Demand {
                holder: RequestId::from_u128(self.asked),
                key: key.map(|n| Arc::clone(&self.pool.keys()[n])),
                protocol: Protocol::OpenAi,
                model: Some("m".into()),
                kinds: Kinds::GENERATE,
                reattach: false,
                owner: Owner::Nobody,
                preferred: None,
                tried: Vec::new(),
                until: NOW.plus(30_000),
                is_moving: false,
            };
            let at = Moment::from_millis(NOW.as_millis() - 10_000);
            let decision = self
                .machine
                .request(at, &Arc::new(demand), &mut Effects::default());
            assert!(!matches!(decision, Decision::Refused(_)), "{decision:?}");
        }
    }

    fn picture(mut self) -> Picture {
        let state = (NOW, self.machine.held(), self.machine.waiting());
        Picture::of(self.pool, self.limits, self.look, state)
    }
}

fn cooling() -> Standing {
    let kept = Kept {
        ends_in_ms: 40_000,
        told_in_ms: None,
        length_ms: 40_000,
        is_quota: false,
    };
    Standing {
        cooldown: Cooldown::restored(NOW, kept),
        ..Standing::default()
    }
}

fn shares(picture: &Picture) -> Vec<Option<u64>> {
    picture.keys.iter().map(|key| key.share).collect()
}

#[test]
fn totals_are_those_that_admission_keeps() {
    let mut scene = scene(LIMITS, 3, |_| ());
    scene.ask(Some(0), 2);
    scene.ask(None, 3);
    let standings = scene.machine.standings().into_iter();
    let accounts = standings.filter(|(subject, _)| matches!(subject, Subject::Account(_)));
    let in_use: u64 = accounts
        .map(|(_, standing)| u64::from(standing.streams))
        .sum();
    let picture = scene.picture();
    let totals = picture.totals;
    assert_eq!((totals.in_flight, in_use), (5, 5));
    assert_eq!((totals.capacity, totals.reserve), (Some(9), 3));
    assert_eq!(totals.leases, 5);
    assert_eq!((totals.waiters, totals.oldest_wait_ms), (0, None));
    let of_accounts: u64 = picture.accounts.iter().map(|on| on.used.streams).sum();
    assert_eq!(of_accounts, 5);
    let of_credentials: u64 = picture.credentials.iter().map(|used| used.creates).sum();
    assert_eq!(of_credentials, 5);
    let nobodys = picture.keys.last().unwrap();
    assert_eq!((nobodys.key, nobodys.used.streams), (None, 3));
    assert_eq!(nobodys.share, None);
}

#[test]
fn it_is_congested_from_the_threshold_on_and_never_where_that_is_zero_or_nothing_is_limited() {
    let congested = |limits: Limits, count| {
        let mut scene = scene(limits, 2, |_| ());
        scene.ask(None, count);
        scene.picture().totals
    };
    // 80 % of 6 are 4.8.
    assert!(!congested(LIMITS, 4).is_congested());
    assert!(congested(LIMITS, 5).is_congested());
    assert_eq!(congested(LIMITS, 5).congested_from(), Some(5));
    let off = Limits {
        fair_share_pct: 0,
        ..LIMITS
    };
    assert!(!congested(off, 6).is_congested());
    assert_eq!(congested(off, 6).congested_from(), None);
    let unlimited = Limits {
        stream: 0,
        ..LIMITS
    };
    let totals = congested(unlimited, 9);
    assert_eq!((totals.capacity, totals.is_congested()), (None, false));
}

#[test]
fn shares_are_parted_by_weight_among_those_that_hold_or_wait_and_whoever_asks() {
    let mut scene = scene(LIMITS, 4, |contents| {
        Arc::make_mut(&mut contents.keys[1]).weight = 2;
    });
    scene.ask(Some(0), 5);
    scene.ask(Some(1), 1);
    let picture = scene.picture();
    // 12 slots; 3 parts are active, and whoever is idle would add its own.
    assert_eq!(shares(&picture), [Some(4), Some(8), Some(3), Some(3)]);
    assert!(picture.keys[0].is_over() && !picture.keys[1].is_over());
    assert!(picture.keys[2].is_idle());
}

#[test]
fn a_share_is_of_what_the_key_may_use_and_what_serves_now_and_never_under_two() {
    let narrow = |key: &mut Arc<ClientKey>| {
        let scope = vec![AccountId::from_u128(1)];
        Arc::make_mut(key).accounts = Some(scope);
    };
    let mut scene = scene(LIMITS, 4, |contents| {
        narrow(&mut contents.keys[2]);
        contents.accounts[3].state = State::Disabled(DisabledReason::Operator);
    });
    scene.ask(Some(0), 3);
    scene.ask(Some(1), 3);
    let cools = Subject::Account(AccountId::from_u128(3));
    scene.look.put(cools, cooling());
    // Two accounts serve: 6 slots for two keys; on the first one 3 for three keys.
    assert_eq!(
        shares(&scene.picture()),
        [Some(3), Some(3), Some(2), Some(2)]
    );
}

#[test]
fn congestion_is_of_what_can_serve_now() {
    // An endpoint for each account, so that one can rest by itself.
    let mut scene = scene(LIMITS, 3, |contents| {
        contents.endpoints = (1..=3)
            .map(|n| sample::endpoint(n, Protocol::OpenAi))
            .collect();
        contents.credentials = (1..=3).map(|n| sample::credential(n, n, n)).collect();
    });
    scene.ask(None, 6);
    let held = scene.machine.held();
    let totals = |look: &Look| {
        let state = (NOW, held.clone(), Vec::new());
        Picture::of(Arc::clone(&scene.pool), LIMITS, look.clone(), state).totals
    };
    let check = |look: &Look, serving, from, is_congested| {
        let totals = totals(look);
        assert_eq!((totals.capacity, totals.in_flight), (Some(9), 6));
        assert_eq!((totals.serving, totals.congested_from()), (serving, from));
        assert_eq!(totals.is_congested(), is_congested);
    };
    let mut look = Look::default();
    // 80 % of 9 are 7.2; of 6, with 2 streams on what cools, 4.8 and 2.
    check(&look, Some(9), Some(8), false);
    let cools = Subject::Account(AccountId::from_u128(3));
    look.put(cools, cooling());
    check(&look, Some(6), Some(7), false);
    // 80 % of 3 are 2.4, and 4 are elsewhere.
    let rests = Breaker::Resting { until: NOW };
    look.put_breaker(EndpointId::from_u128(2), rests);
    check(&look, Some(3), Some(7), false);
    look.put_breaker(EndpointId::from_u128(1), rests);
    check(&look, Some(0), None, false);
    look.put(cools, Standing::default());
    check(&look, Some(3), Some(7), false);
    look.put_breaker(EndpointId::from_u128(2), Breaker::Due);
    check(&look, Some(6), Some(7), false);
}

#[test]
fn where_keys_are_not_held_to_shares_there_is_none() {
    let off = Limits {
        fair_share_pct: 0,
        ..LIMITS
    };
    assert_eq!(shares(&scene(off, 1, |_| ()).picture()), [None; 4]);
    let unlimited = |contents: &mut Contents| contents.accounts[0].stream_limit = Some(0);
    let picture = scene(LIMITS, 2, unlimited).picture();
    assert_eq!(shares(&picture), [None; 4]);
    assert_eq!(picture.accounts[0].caps.streams, None);
}

#[test]
fn caps_that_apply_to_each_credential_count_once_for_each() {
    let picture = scene(LIMITS, 2, |contents| {
        contents.accounts[0].quota_scope = QuotaScope::Credential;
        contents.credentials[1].accounts = vec![AccountId::from_u128(1)];
    })
    .picture();
    let caps = picture.accounts[0].caps;
    assert_eq!(
        (caps.streams, caps.reserve, caps.jobs),
        (Some(8), 2, Some(4))
    );
    assert_eq!(caps.ordinary(), Some(6));
    let own = scene(LIMITS, 1, |contents| {
        contents.accounts[0].quota_scope = QuotaScope::Credential;
        let mut second = sample::credential(2, 1, 1);
        second.stream_limit = Some(10);
        contents.credentials.push(second);
    })
    .picture();
    // 3 of 4 for the first, 9 of 10 for the second.
    assert_eq!(own.accounts[0].caps.ordinary(), Some(12));
    assert_eq!(
        (own.totals.capacity, own.totals.serving),
        (Some(12), Some(12))
    );
}

#[test]
fn those_who_wait_are_grouped_by_key_and_reason() {
    let off = Limits {
        fair_share_pct: 0,
        ..LIMITS
    };
    let mut scene = scene(off, 1, |_| ());
    scene.ask(Some(0), 5);
    scene.ask(Some(1), 1);
    let picture = scene.picture();
    let groups: Vec<_> = picture
        .waits
        .iter()
        .map(|w| (w.key, w.members.len()))
        .collect();
    let ids: Vec<_> = picture.pool.keys().iter().map(|key| Some(key.id)).collect();
    assert_eq!(groups, [(ids[0], 2), (ids[1], 1)]);
    let first = &picture.waits[0];
    assert_eq!(
        (first.reason, first.oldest_ms),
        (Reason::AccountStreamCap, 10_000)
    );
    assert_eq!(Frees::of(first.reason), Frees::StreamEnds);
    assert!(first.members[0].waiter < first.members[1].waiter);
    let waiting: Vec<usize> = picture.keys.iter().map(|key| key.waiting).collect();
    assert_eq!(waiting, [2, 1, 0, 0]);
    assert_eq!(picture.totals.oldest_wait_ms, Some(10_000));
    assert_eq!(picture.accounts[0].by_key, [(ids[0], 3)]);
}

#[test]
fn a_live_request_is_shown_with_the_lease_that_it_holds() {
    let mut scene = scene(LIMITS, 1, |_| ());
    scene.ask(Some(0), 1);
    let picture = scene.picture();
    let registry = Registry::default();
    let desk = registry.desk();
    let holds = desk.enter(RequestId::from_u128(1), false);
    let other = desk.enter(RequestId::from_u128(2), false);
    let live = picture.live(registry.snapshot());
    let lease = |id| live.iter().find(|(request, _)| request.id == id).unwrap().1;
    assert_eq!(lease(holds.id).unwrap().lease, picture.leases[0].lease);
    assert!(lease(other.id).is_none());
}
