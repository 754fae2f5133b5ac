//! Whatever happens to the list of credentials, cooldown, slots and secret stay with their id.
use super::*;
use crate::domain::pool::Fingerprint;
use proptest::prelude::{any, prop_oneof, proptest};
use proptest::strategy::Strategy as _;

/// A credential as the naive books know it.
#[derive(Clone, Debug)]
struct Known {
    id: u128,
    secret: Fingerprint,
    is_out: bool,
    streams: u32,
    cools_until: u64,
}

#[derive(Clone, Copy, Debug)]
enum Edit {
    Insert(usize),
    Delete(usize),
    Swap(usize, usize),
    Rotate(usize),
    Drain(usize),
    Disable(usize),
    Enable(usize),
    Send { limited: bool },
    Finish(usize),
    Wait(u64),
}

fn edit() -> impl proptest::strategy::Strategy<Value = Edit> {
    let n = || any::<usize>();
    prop_oneof![
        1 => n().prop_map(Edit::Insert),
        1 => n().prop_map(Edit::Delete),
        1 => (n(), n()).prop_map(|(a, b)| Edit::Swap(a, b)),
        1 => n().prop_map(Edit::Rotate),
        1 => n().prop_map(Edit::Drain),
        1 => n().prop_map(Edit::Disable),
        1 => n().prop_map(Edit::Enable),
        4 => any::<bool>().prop_map(|limited| Edit::Send { limited }),
        3 => n().prop_map(Edit::Finish),
        2 => (1..30_000u64).prop_map(Edit::Wait),
    ]
}

/// The pool as the operator edits it: one account of scope `credential`, so that every credential
/// has slots and cooldown of its own.
struct Operator {
    machine: Admission,
    numbers: Numbers,
    contents: Contents,
    known: Vec<Known>,
    held: Vec<(LeaseId, u128, bool)>,
    minted: u128,
    ms: u64,
}

impl Operator {
    fn new() -> Self {
        let mut contents = sample::contents(3);
        contents.accounts.truncate(1);
        contents.accounts[0].quota_scope = QuotaScope::Credential;
        for credential in &mut contents.credentials {
            credential.accounts = vec![AccountId::from_u128(1)];
        }
        let known = contents.credentials.iter().map(|c| Known {
            id: c.id.as_u128(),
            secret: c.fingerprint,
            is_out: false,
            streams: 0,
            cools_until: 0,
        });
        let known = known.collect();
        let mut numbers = Numbers::default();
        let layout = numbers.layout(Arc::new(Pool::new(contents.clone())), LIMITS);
        Self {
            machine: Admission::new(layout),
            numbers,
            contents,
            known,
            held: Vec::new(),
            minted: 3,
            ms: 0,
        }
    }

    fn known(&mut self, id: u128) -> &mut Known {
        self.known.iter_mut().find(|k| k.id == id).unwrap()
    }

    fn swap_in(&mut self) {
        let pool = Arc::new(Pool::new(self.contents.clone()));
        let layout = self.numbers.layout(pool, LIMITS);
        self.machine
            .reconfigure(at(self.ms), layout, &mut Effects::default());
    }

    fn set_state(&mut self, n: usize, state: State) {
        let count = self.contents.credentials.len();
        if count == 0 {
            return;
        }
        let credential = &mut self.contents.credentials[n % count];
        credential.state = state;
        let id = credential.id.as_u128();
        self.known(id).is_out = state != State::Active;
        self.swap_in();
    }

    fn play(&mut self, edit: Edit) {
        let count = self.contents.credentials.len();
        match edit {
            Edit::Insert(n) => {
                self.minted += 1;
                let credential = sample::credential(self.minted, 1, 1);
                self.known.push(Known {
                    id: self.minted,
                    secret: credential.fingerprint,
                    is_out: false,
                    streams: 0,
                    cools_until: 0,
                });
                self.contents
                    .credentials
                    .insert(n % (count + 1), credential);
                self.swap_in();
            }
            Edit::Delete(n) if count > 0 => {
                let gone = self.contents.credentials.remove(n % count);
                self.known(gone.id.as_u128()).is_out = true;
                self.swap_in();
            }
            Edit::Swap(a, b) if count > 0 => {
                self.contents.credentials.swap(a % count, b % count);
                self.swap_in();
            }
            Edit::Rotate(n) if count > 0 => {
                let credential = &mut self.contents.credentials[n % count];
                credential.fingerprint[31] ^= 0x5a;
                let (id, secret) = (credential.id.as_u128(), credential.fingerprint);
                self.known(id).secret = secret;
                self.swap_in();
            }
            Edit::Drain(n) => self.set_state(n, State::Draining),
            Edit::Disable(n) => self.set_state(n, State::Disabled(DisabledReason::Auth)),
            Edit::Enable(n) => self.set_state(n, State::Active),
            Edit::Send { limited } => self.send(limited),
            Edit::Finish(n) if !self.held.is_empty() => {
                let (lease, id, limited) = self.held.remove(n % self.held.len());
                self.finish(lease, id, limited);
            }
            Edit::Wait(ms) => {
                self.ms += ms;
                pass_time(&mut self.machine, self.ms);
            }
            _ => (),
        }
    }

    fn send(&mut self, limited: bool) {
        let decision = self.machine.request(
            at(self.ms),
            &Arc::new(demand(STREAM)),
            &mut Effects::default(),
        );
        let grant = match decision {
            Decision::Granted(grant) => grant,
            Decision::Parked(waiter) => {
                self.machine
                    .withdraw(at(0), waiter, &mut Effects::default());
                return;
            }
            Decision::Refused(_) => return,
        };
        let (id, ms) = (grant.edge.credential().id.as_u128(), self.ms);
        let secret = grant.edge.credential().fingerprint;
        let known = self.known(id);
        assert!(!known.is_out, "something that takes no work was selected");
        assert!(known.cools_until <= ms, "something that cools was selected");
        assert_eq!(known.secret, secret, "an id has another's secret");
        known.streams += 1;
        self.held.push((grant.lease, id, limited));
    }

    fn finish(&mut self, lease: LeaseId, id: u128, limited: bool) {
        let evidence = if limited { LIMITED } else { Evidence::Answered };
        finish(&mut self.machine, self.ms, lease, evidence);
        let ms = self.ms;
        let known = self.known(id);
        known.streams -= 1;
        if limited {
            known.cools_until = known.cools_until.max(ms + 20_000);
        }
    }

    fn check(&self) {
        for known in &self.known {
            let subject = Subject::Credential(CredentialId::from_u128(known.id));
            let standing = self.machine.standing(subject).unwrap();
            assert_eq!(
                standing.streams, known.streams,
                "slots moved to another credential"
            );
            if known.cools_until > self.ms {
                let Stage::Cooling(until) = standing.cooldown.stage() else {
                    panic!("a cooldown was lost or moved: {known:?} {standing:?}");
                };
                assert!(until >= at(known.cools_until), "an end moved earlier");
            }
        }
    }
}

proptest! {
    #[test]
    fn whatever_happens_to_the_list_everything_stays_with_its_id(
        edits in proptest::collection::vec(edit(), 1..120)
    ) {
        let mut operator = Operator::new();
        for edit in edits {
            operator.play(edit);
            operator.check();
        }
    }
}
