//! The choice of an edge and the giving back of its slots, by the size of the pool.
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot set up has failed"
)]

use divan::{Bencher, black_box};
use fairlane::domain::{
    admission::{Admission, Decision, Demand, Kinds, Limits, Part},
    ids::{AccountId, CredentialId, EndpointId},
    pool::{
        Account, BaseUrl, Credential, Endpoint, Origin, Pool, QuotaScope, State, edges::Contents,
    },
    protocol::Protocol,
    secret::Secret,
};
use std::sync::Arc;

fn main() {
    divan::main();
}

fn pool(accounts: u128) -> Pool {
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
        state: State::Active,
        made_for: None,
    };
    let credential = |n: u128| Credential {
        id: CredentialId::from_u128(n),
        name: format!("credential-{n}").into(),
        is_named: true,
        secret: Secret::clean(&format!("sk-benchmark-{n:06}")).unwrap().0,
        fingerprint: [0; 32],
        origin: Origin::Operator,
        accounts: vec![AccountId::from_u128(n)],
        endpoints: vec![EndpointId::from_u128(1)],
        models: None,
        stream_limit: None,
        create_limit: None,
        job_limit: None,
        state: State::Active,
    };
    Pool::new(Contents {
        endpoints: vec![endpoint],
        accounts: (1..=accounts).map(account).collect(),
        credentials: (1..=accounts).map(credential).collect(),
        keys: Vec::new(),
    })
}

fn demand() -> Arc<Demand> {
    Arc::new(Demand {
        key: None,
        protocol: Protocol::OpenAi,
        model: Some("gpt-4o-mini".into()),
        kinds: Kinds {
            stream: true,
            create: true,
        },
        reattach: false,
        needs_owner: false,
        tried: Vec::new(),
    })
}

#[divan::bench(args = [1, 14, 100, 1000])]
fn choose_and_give_back(bencher: Bencher<'_, '_>, accounts: u128) {
    let limits = Limits {
        stream: 8,
        create: 4,
        reserve: 1,
        waiters_per_key: 200,
        may_park: true,
    };
    let mut admission = Admission::new(Arc::new(pool(accounts)), limits);
    let demand = demand();
    bencher.bench_local(|| {
        let Decision::Granted(grant) = admission.request(black_box(&demand)) else {
            return;
        };
        admission.release(grant.lease, Part::All, &mut Vec::new());
    });
}
