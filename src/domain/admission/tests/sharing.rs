//! Fair share in the machine: whom it concerns, when its numbers change, and that what is kept equals
//! a count from scratch, whatever happens.
use super::*;
use crate::domain::{ids::RequestId, pool::EdgeIndex};
use std::collections::{BTreeSet, HashMap as Map};

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

/// Shares as they should be, counted from nothing but leases, waiters and the pool.
fn from_scratch(a: &Admission, asked: &Demand) -> Option<Share> {
    let key = asked.key.as_ref()?;
    let view = a.view();
    let candidates = |d: &Demand| -> Vec<EdgeIndex> {
        let pool = &a.layout.pool;
        let edges = a.layout.offers(d).edges();
        edges
            .filter(|e| pool.is_in_scope(pool.edge(*e), d.scope()))
            .collect()
    };
    let mut capacity: Map<u32, u64> = Map::new();
    for edge in candidates(asked) {
        if view.serves(edge, asked.model.as_deref()) {
            for gate in &a.layout.gates(edge).shared {
                capacity.insert(gate.subject, gate.ordinary.into());
            }
        }
    }
    if capacity.values().any(|c| *c == 0) {
        return None;
    }
    let here =
        |subjects: &[u32]| subjects.iter().filter(|s| capacity.contains_key(s)).count() as u64;
    let mut share = Share {
        capacity: capacity.values().sum(),
        in_flight: 0,
        mine: 0,
        weight: key.weight.into(),
        weights: 0,
        threshold_pct: a.layout.limits.fair_share_pct,
    };
    let mut active = BTreeSet::from([(key.id, key.weight)]);
    for row in a.leases.values().filter(|row| row.held.stream) {
        let held = here(&row.gates.subjects);
        share.in_flight += held;
        if let Some(id) = row.key.filter(|_| held > 0) {
            active.insert((id, row.weight));
            share.mine += if id == key.id { held } else { 0 };
        }
    }
    for row in a.waiters.values().filter(|row| row.demand.kinds.stream) {
        let edges = candidates(&row.demand);
        let wants = |e: &EdgeIndex| {
            a.layout
                .gates(*e)
                .shared
                .iter()
                .any(|g| capacity.contains_key(&g.subject))
        };
        if let Some(key) = row.demand.key.as_ref().filter(|_| edges.iter().any(wants)) {
            active.insert((key.id, key.weight));
        }
    }
    share.weights = active.iter().map(|(_, w)| u64::from(*w)).sum();
    Some(share)
}

#[derive(Clone, Debug)]
enum Event {
    Ask {
        key: u128,
        scope: u128,
        owner: u128,
        seed: u8,
    },
    Answer {
        n: usize,
        evidence: u8,
    },
    Release {
        n: usize,
        part: bool,
    },
    Leave {
        n: usize,
    },
    Time {
        ms: u64,
    },
    Swap {
        seed: u8,
    },
}

fn event() -> impl proptest::strategy::Strategy<Value = Event> {
    prop_oneof![
        8 => (0u128..=5, 0u128..8, 0u128..8, any::<u8>())
            .prop_map(|(key, scope, owner, seed)| Event::Ask { key, scope, owner, seed }),
        2 => (0usize..40, 0u8..8).prop_map(|(n, evidence)| Event::Answer { n, evidence }),
        4 => (0usize..40, any::<bool>()).prop_map(|(n, part)| Event::Release { n, part }),
        1 => (0usize..40).prop_map(|n| Event::Leave { n }),
        1 => (0u64..40_000).prop_map(|ms| Event::Time { ms }),
        1 => any::<u8>().prop_map(|seed| Event::Swap { seed }),
    ]
}

/// Three accounts of their own, one credential charged to two of them, one account that limits each of
/// its two credentials; two models, one of them not everybody's.
fn varied(seed: u8) -> (Contents, Limits) {
    let mut contents = pool(4, |_| ());
    contents.accounts[3].quota_scope = QuotaScope::Credential;
    contents.accounts[2].cooldown_per_model = seed & 1 != 0;
    contents.credentials.push(sample::credential(5, 4, 1));
    let mut both = sample::credential(6, 1, 1);
    both.accounts.push(AccountId::from_u128(2));
    contents.credentials.push(both);
    let only = |model: &str| {
        Some(Arc::from([crate::domain::pool::ModelRow {
            model: model.into(),
            upstream_model: None,
        }]))
    };
    contents.credentials[0].models = only("a");
    contents.credentials[1].models = only("b");
    if seed & 2 != 0 {
        contents.accounts[1].state = State::Draining;
    }
    if seed & 4 != 0 {
        contents.accounts[2].stream_limit = Some(u32::from(seed >> 6));
    }
    let limits = Limits {
        stream: 2 + u32::from(seed >> 5),
        create: 3,
        breaker_threshold: 2,
        fair_share_pct: [0, 1, 60, 100][usize::from(seed >> 3) % 4],
        ..limits(0)
    };
    (contents, limits)
}

struct World {
    machine: Admission,
    numbers: Numbers,
    now: Moment,
    held: Vec<LeaseId>,
    parked: Vec<WaiterId>,
}

impl World {
    fn new(seed: u8) -> Self {
        let (contents, limits) = varied(seed);
        let mut numbers = Numbers::default();
        let layout = numbers.layout(Arc::new(Pool::new(contents)), limits);
        Self {
            machine: Admission::new(layout),
            numbers,
            now: NOW,
            held: Vec::new(),
            parked: Vec::new(),
        }
    }

    fn demand(&self, key: u128, scope: u128, owner: u128, seed: u8) -> Demand {
        let mut demand = of((key > 0).then_some(key));
        if let Some(key) = demand.key.as_mut().filter(|_| scope < 3) {
            // A key has one scope, whatever it asks for.
            let mut scoped = (**key).clone();
            if scoped.id != sample::key(1).id {
                let reaches = scoped.id.as_u128() % 3 + 1;
                scoped.accounts = Some((1..=reaches).map(AccountId::from_u128).collect());
            }
            *key = Arc::new(scoped);
        }
        demand.model = Some(if seed & 1 == 0 { "a" } else { "b" }.into());
        demand.kinds = [STREAM, BOTH, BOTH, Kinds::CREATE][usize::from(seed >> 1) % 4];
        demand.reattach = seed & 0x30 == 0x30 && demand.kinds == STREAM;
        if (1..=2).contains(&owner) {
            demand.owner = Owner::Bound(CredentialId::from_u128(owner * 2));
        }
        demand.until = self.now.plus(30_000);
        demand
    }

    fn play(&mut self, event: &Event) {
        let mut effects = Effects::default();
        match *event {
            Event::Ask {
                key,
                scope,
                owner,
                seed,
            } => {
                let demand = Arc::new(self.demand(key, scope, owner, seed));
                match self.machine.request(self.now, &demand, &mut effects) {
                    Decision::Granted(grant) => self.held.push(grant.lease),
                    Decision::Parked(waiter) => self.parked.push(waiter),
                    Decision::Refused(_) => (),
                }
            }
            Event::Answer { n, evidence } if n < self.held.len() => {
                let evidence = match evidence {
                    0 | 1 => Evidence::Limited {
                        wait_ms: Some(5_000),
                        is_quota: false,
                    },
                    2 | 3 => Evidence::Failed,
                    _ => Evidence::Success,
                };
                self.machine
                    .observe(self.now, self.held[n], evidence, &mut effects);
            }
            Event::Release { n, part } if n < self.held.len() => {
                let part = if part { Part::Create } else { Part::All };
                let lease = self.held[n];
                if part == Part::All {
                    self.held.remove(n);
                }
                self.machine.release(self.now, lease, part, &mut effects);
            }
            Event::Leave { n } if n < self.parked.len() => {
                let waiter = self.parked.remove(n);
                self.machine.withdraw(self.now, waiter, &mut effects);
            }
            Event::Time { ms } => {
                self.now = self.now.plus(ms);
                self.machine.handle_timeout(self.now, &mut effects);
            }
            Event::Swap { seed } => {
                let (contents, limits) = varied(seed);
                let layout = self.numbers.layout(Arc::new(Pool::new(contents)), limits);
                self.machine.reconfigure(self.now, layout, &mut effects);
            }
            _ => (),
        }
        for one in effects.settled {
            self.parked.retain(|w| *w != one.waiter);
            self.held.extend(one.answer.ok().map(|g| g.lease));
        }
    }

    fn check(&mut self) {
        let a = &mut self.machine;
        assert_eq!(
            (a.leases(), a.waiters()),
            (self.held.len(), self.parked.len())
        );
        let waiting: Vec<_> = a
            .waiters
            .iter()
            .map(|(id, row)| (*id, Arc::clone(&row.demand)))
            .collect();
        let is_on = a.layout.limits.fair_share_pct > 0;
        let aside: Vec<u32> = a
            .hold
            .iter()
            .flat_map(|_| a.subjects.take_set_aside())
            .collect();
        for n in 1..=6 {
            let asked = of(Some(n));
            let (view, sets) = a.split();
            let set = sets.of(view, &asked);
            if is_on {
                assert_eq!(a.sets.share(set, &asked), from_scratch(a, &asked));
            }
        }
        for (id, demand) in waiting {
            let share = from_scratch(a, &demand).filter(|_| is_on);
            let is_gated = demand.kinds.stream && !demand.reattach && !demand.is_moving;
            let is_held_back = is_gated && share.is_some_and(|share| !share.admits());
            let could_go = a.view().select(&demand).is_some();
            assert!(
                !could_go || is_held_back || !aside.is_empty(),
                "{id:?} could go"
            );
        }
        assert!(aside.is_empty() || a.lanes.needs_several());
        a.drop_hold();
        a.advance_hold(self.now, &mut Effects::default());
    }
}

proptest! {
    #[test]
    fn what_is_kept_is_what_a_count_would_give_and_nobody_waits_beside_a_free_slot(
        seed in any::<u8>(),
        events in proptest::collection::vec(event(), 1..150),
    ) {
        let mut world = World::new(seed);
        for event in events {
            world.play(&event);
            world.check();
        }
    }
}
