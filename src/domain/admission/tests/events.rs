//! For any sequence of events: the books agree, and nobody waits beside a free slot.
use super::*;
use proptest::prelude::{any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Strategy as _;

#[derive(Clone, Copy, Debug)]
enum Event {
    Ask { account_scope: bool, create: bool },
    Release(usize),
    ReleaseCreate(usize),
    Withdraw(usize),
    Swap { accounts: u128, stream: u32 },
}

fn event() -> impl proptest::strategy::Strategy<Value = Event> {
    prop_oneof![
        4 => (any::<bool>(), any::<bool>())
            .prop_map(|(account_scope, create)| Event::Ask { account_scope, create }),
        3 => any::<usize>().prop_map(Event::Release),
        2 => any::<usize>().prop_map(Event::ReleaseCreate),
        1 => any::<usize>().prop_map(Event::Withdraw),
        1 => (1..4u128, 0..4u32).prop_map(|(accounts, stream)| Event::Swap { accounts, stream }),
    ]
}

/// Plays events against the machine and keeps its own, naive books beside it.
struct Books {
    machine: Admission,
    held: Vec<LeaseId>,
    parked: Vec<(WaiterId, Arc<Demand>)>,
}

impl Books {
    fn play(&mut self, event: Event) {
        let mut effects = Effects::default();
        match event {
            Event::Ask {
                account_scope,
                create,
            } => self.ask(account_scope, create),
            Event::Release(n) if !self.held.is_empty() => {
                let lease = self.held.remove(n % self.held.len());
                self.machine.release(NOW, lease, Part::All, &mut effects);
            }
            Event::ReleaseCreate(n) if !self.held.is_empty() => {
                let lease = self.held[n % self.held.len()];
                self.machine.release(NOW, lease, Part::Create, &mut effects);
            }
            Event::Withdraw(n) if !self.parked.is_empty() => {
                let (waiter, _) = self.parked.remove(n % self.parked.len());
                assert!(
                    self.machine
                        .why_waiting(waiter, &mut Effects::default())
                        .is_some()
                );
                assert!(self.machine.withdraw(NOW, waiter, &mut effects));
                assert!(!self.machine.withdraw(NOW, waiter, &mut effects));
            }
            Event::Swap { accounts, stream } => {
                let limits = Limits { stream, ..LIMITS };
                let layout = layout(sample::contents(accounts), limits);
                self.machine.reconfigure(NOW, layout, &mut effects);
            }
            _ => (),
        }
        for one in effects.settled {
            self.parked.retain(|(w, _)| *w != one.waiter);
            self.held.extend(one.answer.ok().map(|g| g.lease));
        }
    }

    fn ask(&mut self, account_scope: bool, create: bool) {
        let mut key = (*sample::key(1)).clone();
        key.accounts = account_scope.then(|| vec![AccountId::from_u128(1)]);
        let demand = Arc::new(Demand {
            key: Some(Arc::new(key)),
            ..demand(Kinds {
                create,
                ..Kinds::STREAM
            })
        });
        match self.machine.request(NOW, &demand, &mut Effects::default()) {
            Decision::Granted(grant) => self.held.push(grant.lease),
            Decision::Parked(waiter) => self.parked.push((waiter, demand)),
            Decision::Refused(_) => (),
        }
    }

    fn check(&mut self) {
        assert_eq!(self.machine.leases(), self.held.len());
        assert_eq!(self.machine.waiters(), self.parked.len());
        let held: u32 = self.machine.subjects.all().map(|u| u.stream).sum();
        // One account and one credential are charged for every lease.
        assert_eq!(held as usize, self.held.len() * 2);
        for (_, demand) in &self.parked {
            assert!(
                self.machine.view().select(demand).is_none(),
                "a free slot while a waiter could be admitted"
            );
        }
    }
}

proptest! {
    #[test]
    fn for_any_sequence_of_events_the_books_agree(
        events in proptest::collection::vec(event(), 1..120)
    ) {
        let machine = admission(|_| (), 2);
        let mut books = Books { machine, held: Vec::new(), parked: Vec::new() };
        for event in events {
            books.play(event);
            books.check();
        }
        let mut effects = Effects::default();
        while let Some(lease) = books.held.pop() {
            books.machine.release(NOW, lease, Part::All, &mut effects);
            books.held.extend(effects.settled.drain(..).filter_map(|s| s.answer.ok()).map(|g| g.lease));
        }
        prop_assert_eq!(books.machine.leases(), 0);
        prop_assert!(books.machine.subjects.all().all(|u| u.stream == 0 && u.create == 0));
    }
}
