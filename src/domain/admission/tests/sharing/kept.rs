//! What is kept for fair share equals a count from scratch, whatever happens.
use super::*;
use crate::domain::pool::EdgeIndex;
use proptest::prelude::{any, prop_oneof, proptest};
use proptest::strategy::Strategy as _;
use std::collections::{BTreeSet, HashMap as Map};

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
            share.mine += u64::from(id == key.id);
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
