//! The choice of an edge and the giving back of its slots, by the size of the pool; and what fair
//! share and a long queue add to it.
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot set up has failed"
)]

use divan::{Bencher, black_box};
use fairlane::domain::{
    admission::{
        Admission, Decision, Demand, Effects, Kinds, LeaseId, Limits, Numbers, Owner, Part,
        Strategy,
    },
    ids::{AccountId, CredentialId, EndpointId, KeyId},
    moment::Moment,
    pool::{
        Account, BaseUrl, ClientKey, Credential, Endpoint, KeyLimits, ModelRow, Origin, Pool,
        QuotaScope, State, edges::Contents,
    },
    protocol::Protocol,
    secret::Secret,
};
use std::{cell::RefCell, collections::VecDeque, sync::Arc};

fn main() {
    divan::main();
}

fn contents(accounts: u128) -> Contents {
    let endpoint = Endpoint {
        id: EndpointId::from_u128(1),
        name: "one".into(),
        base_url: BaseUrl::parse("https://api.example.com").unwrap(),
        protocols: vec![Protocol::OpenAi],
        models: None,
        headers: Vec::new(),
        state: State::Active,
    };
    let account = |n| Account {
        id: AccountId::from_u128(n),
        name: format!("account-{n}").into(),
        quota_scope: QuotaScope::Account,
        stream_limit: None,
        create_limit: None,
        job_limit: None,
        priority: 0,
        weight: 1,
        cooldown_per_model: false,
        trust_reset: false,
        state: State::Active,
        made_for: None,
    };
    let catalog: Arc<[ModelRow]> = (0..MODELS).map(model_row).collect();
    let credential = |n: u128| Credential {
        id: CredentialId::from_u128(n),
        name: format!("credential-{n}").into(),
        is_named: true,
        secret: Secret::clean(&format!("sk-benchmark-{n:06}")).unwrap().0,
        fingerprint: [0; 32],
        origin: Origin::Operator,
        accounts: vec![AccountId::from_u128(n / CREDENTIALS)],
        endpoints: vec![EndpointId::from_u128(1)],
        models: Some(Arc::clone(&catalog)),
        stream_limit: None,
        create_limit: None,
        job_limit: None,
        state: State::Active,
    };
    Contents {
        endpoints: vec![endpoint],
        accounts: (0..accounts).map(account).collect(),
        credentials: (0..accounts * CREDENTIALS).map(credential).collect(),
        keys: Vec::new(),
    }
}

/// Credentials of each account, each with so many models.
const CREDENTIALS: u128 = 10;
const MODELS: usize = 50;

fn model_row(n: usize) -> ModelRow {
    ModelRow {
        model: format!("model-{n}").into(),
        upstream_model: None,
    }
}

const NOW: Moment = Moment::from_millis(1);

const LIMITS: Limits = Limits {
    stream: 8,
    create: 8,
    reserve: 1,
    waiters_per_key: 200,
    may_park: true,
    strategy: Strategy::LeastLoaded,
    breaker_threshold: 5,
    job: 2,
    fair_share_pct: 0,
};

fn admission(accounts: u128) -> Admission {
    let pool = Arc::new(Pool::new(contents(accounts)));
    Admission::new(Numbers::default().layout(pool, LIMITS))
}

fn demand() -> Arc<Demand> {
    Arc::new(Demand {
        key: None,
        protocol: Protocol::OpenAi,
        model: Some("model-7".into()),
        kinds: Kinds::GENERATE,
        reattach: false,
        owner: Owner::Nobody,
        preferred: None,
        tried: Vec::new(),
        until: NOW,
        is_moving: false,
        holder: fairlane::domain::ids::RequestId::from_u128(0),
    })
}

#[divan::bench(args = [1, 14, 100, 1000])]
fn choose_and_give_back(bencher: Bencher<'_, '_>, accounts: u128) {
    let mut admission = admission(accounts);
    let demand = demand();
    bencher.bench_local(|| {
        let Decision::Granted(grant) =
            admission.request(NOW, black_box(&demand), &mut Effects::default())
        else {
            return;
        };
        admission.release(NOW, grant.lease, Part::All, &mut Effects::default());
    });
}

/// The same where most slots are taken, and each account by a different number of streams.
#[divan::bench(args = [14, 1000])]
fn choose_in_a_busy_pool(bencher: Bencher<'_, '_>, accounts: u128) {
    let mut admission = admission(accounts);
    let demand = demand();
    for _ in 0..accounts * 6 {
        admission.request(NOW, &demand, &mut Effects::default());
    }
    bencher.bench_local(|| {
        let Decision::Granted(grant) =
            admission.request(NOW, black_box(&demand), &mut Effects::default())
        else {
            return;
        };
        admission.release(NOW, grant.lease, Part::All, &mut Effects::default());
    });
}

/// What a pool edit costs besides the disk: the edges worked out, and admission's view of them.
#[divan::bench(args = [100, 1000], sample_count = 10)]
fn work_out_a_changed_pool(bencher: Bencher<'_, '_>, accounts: u128) {
    let mut numbers = Numbers::default();
    bencher
        .with_inputs(|| contents(accounts))
        .bench_local_values(|contents| numbers.layout(Arc::new(Pool::new(contents)), LIMITS));
}

/// And what of that happens while requests wait for the lock.
#[divan::bench(args = [100, 1000], sample_count = 10)]
fn bring_a_changed_pool_into_force(bencher: Bencher<'_, '_>, accounts: u128) {
    let mut numbers = Numbers::default();
    let pool = Arc::new(Pool::new(contents(accounts)));
    let mut admission = Admission::new(numbers.layout(Arc::clone(&pool), LIMITS));
    bencher
        .with_inputs(|| numbers.layout(Arc::clone(&pool), LIMITS))
        .bench_local_values(|layout| {
            admission.reconfigure(NOW, layout, &mut Effects::default());
        });
}

/// Client keys that want something of a tight pool at once.
const KEYS: u128 = 10_000;

fn key(n: u128) -> Arc<ClientKey> {
    let mut hash = [0; 32];
    hash[..16].copy_from_slice(&n.to_le_bytes());
    Arc::new(ClientKey {
        id: KeyId::from_u128(n),
        name: format!("key-{n}").into(),
        hash,
        secret_hint: "".into(),
        weight: 1,
        accounts: None,
        models: None,
        limits: KeyLimits::default(),
        expires_at: None,
    })
}

/// A thousand accounts.
fn thousand() -> Contents {
    contents(1000)
}

/// A thousand accounts, of which some share a credential with the next.
fn thousand_some_shared() -> Contents {
    let mut contents = thousand();
    for credential in contents.credentials.iter_mut().step_by(100) {
        let next = (credential.accounts[0].as_u128() + 1) % 1000;
        credential.accounts.push(AccountId::from_u128(next));
    }
    contents
}

/// A pool, congested: every key holds at most one stream of 7,000, `free` slots are left.
fn tight(mut contents: Contents, free: usize) -> (Admission, Vec<Arc<Demand>>, Vec<LeaseId>) {
    contents.keys = (0..KEYS).map(key).collect();
    let demands: Vec<Arc<Demand>> = contents
        .keys
        .iter()
        .map(|key| {
            Arc::new(Demand {
                key: Some(Arc::clone(key)),
                until: Moment::from_millis(1_000_000),
                ..Demand::clone(&demand())
            })
        })
        .collect();
    let limits = Limits {
        create: 0,
        fair_share_pct: 80,
        ..LIMITS
    };
    let pool = Arc::new(Pool::new(contents));
    let mut admission = Admission::new(Numbers::default().layout(pool, limits));
    let taken = demands.iter().take(7000 - free);
    let leases =
        taken.map(
            |demand| match admission.request(NOW, demand, &mut Effects::default()) {
                Decision::Granted(grant) => grant.lease,
                other => unreachable!("{other:?}"),
            },
        );
    let leases = leases.collect();
    (admission, demands, leases)
}

/// The gate is asked each time: a lease is granted to one key after the other. Giving it back is not
/// counted.
#[divan::bench(sample_size = 1, sample_count = 5000)]
fn decide_by_fair_share(bencher: Bencher<'_, '_>) {
    decide(bencher, thousand());
}

/// The same where streams of some credentials take a slot on two accounts.
#[divan::bench(sample_size = 1, sample_count = 5000)]
fn decide_by_fair_share_with_shared_credentials(bencher: Bencher<'_, '_>) {
    decide(bencher, thousand_some_shared());
}

fn decide(bencher: Bencher<'_, '_>, contents: Contents) {
    let (admission, demands, _) = tight(contents, 1000);
    let admission = RefCell::new((admission, None::<LeaseId>));
    let mut turn = demands.iter().cycle();
    bencher
        .with_inputs(|| {
            let (admission, last) = &mut *admission.borrow_mut();
            if let Some(lease) = last.take() {
                admission.release(NOW, lease, Part::All, &mut Effects::default());
            }
            turn.next().unwrap()
        })
        .bench_local_values(|demand| {
            let (admission, last) = &mut *admission.borrow_mut();
            match admission.request(NOW, demand, &mut Effects::default()) {
                Decision::Granted(grant) => *last = Some(grant.lease),
                other => unreachable!("there is room within every share: {other:?}"),
            }
        });
}

/// Each of 10,000 keys has a request parked. One lease is released, which lets one of them in; the
/// key that has left comes again at the end.
#[divan::bench]
fn wake_one_of_ten_thousand(bencher: Bencher<'_, '_>) {
    let (mut admission, demands, leases) = tight(thousand(), 0);
    let mut held: VecDeque<LeaseId> = leases.into();
    for demand in &demands {
        admission.request(NOW, demand, &mut Effects::default());
    }
    assert_eq!(admission.waiters(), demands.len());
    let mut turn = demands.iter().cycle();
    bencher.bench_local(|| {
        let mut effects = Effects::default();
        admission.release(NOW, held.pop_front().unwrap(), Part::All, &mut effects);
        let woken = effects.settled.pop().unwrap().answer.unwrap();
        held.push_back(woken.lease);
        admission.request(NOW, turn.next().unwrap(), &mut effects)
    });
}

/// What the parking and leaving alone cost there.
#[divan::bench]
fn park_and_leave_among_ten_thousand(bencher: Bencher<'_, '_>) {
    let (mut admission, demands, _) = tight(thousand(), 0);
    for demand in &demands {
        admission.request(NOW, demand, &mut Effects::default());
    }
    let mut turn = demands.iter().cycle();
    bencher.bench_local(|| {
        let mut effects = Effects::default();
        let demand = turn.next().unwrap();
        let Decision::Parked(waiter) = admission.request(NOW, demand, &mut effects) else {
            unreachable!("the pool is full");
        };
        admission.withdraw(NOW, waiter, &mut effects)
    });
}
