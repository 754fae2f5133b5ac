//! The pool and the clients that a seed begins with.
use super::Client;
use crate::{
    plan::{Account, Caps, Credential, Endpoint, Key, Plan},
    rng::Rng,
};

/// How many models clients ask for.
pub(crate) const MODELS: usize = 3;

/// A pool of every kind of thing, and clients of every kind; a little more is asked for than there
/// is room for.
pub(crate) fn of(seed: u64) -> (Plan, Vec<Client>) {
    let mut rng = Rng::new(seed);
    let accounts = rng.within(4, 6) as usize;
    let keys = rng.within(4, 8) as usize;
    let mut plan = Plan {
        accounts: (0..accounts).map(|n| account(&mut rng, n)).collect(),
        credentials: Vec::new(),
        endpoints: endpoints(),
        keys: (0..keys).map(|_| key(&mut rng, accounts)).collect(),
        caps: Caps {
            stream: 4,
            create: 3,
            job: 2,
            reserve: 1,
            threshold_pct: rng.of(&[0, 50, 80, 80, 100]),
            waiters_per_key: 20,
            may_park: true,
            breaker: 3,
        },
    };
    for n in 0..accounts {
        let count = if plan.accounts[n].is_by_credential {
            3
        } else {
            rng.within(1, 2)
        };
        for _ in 0..count {
            plan.credentials.push(credential(&mut rng, vec![n]));
        }
    }
    for _ in 0..2 {
        let (one, other) = (rng.place(accounts), rng.place(accounts));
        if one != other {
            plan.credentials
                .push(credential(&mut rng, vec![one, other]));
        }
    }
    let clients = clients(&mut rng, keys, accounts as u64);
    (plan, clients)
}

fn account(rng: &mut Rng, place: usize) -> Account {
    let is_by_credential = place % 4 == 3;
    Account {
        // One in a while is unlimited: fair share is out of force then.
        stream: rng.of(&[None, None, None, Some(1), Some(2), Some(6)]),
        create: rng.of(&[None, None, None, Some(2), Some(0)]),
        job: rng.of(&[None, None, Some(1), Some(0)]),
        priority: i32::from(rng.chance(250)),
        is_by_credential,
        is_by_model: !is_by_credential && rng.chance(250),
        is_active: true,
    }
}

fn endpoints() -> Vec<Endpoint> {
    let endpoint = |models| Endpoint {
        models,
        is_active: true,
    };
    vec![endpoint(None), endpoint(Some(vec![0, 1])), endpoint(None)]
}

fn credential(rng: &mut Rng, accounts: Vec<usize>) -> Credential {
    let lists = [None, None, Some(vec![0]), Some(vec![1, 2])];
    let ends = [vec![0], vec![0, 1], vec![1], vec![2]];
    Credential {
        accounts,
        endpoints: ends[rng.place(ends.len())].clone(),
        models: lists[rng.place(lists.len())].clone(),
        stream: rng.of(&[None, None, None, Some(2), Some(3)]),
        create: rng.of(&[None, None, None, Some(1)]),
        job: None,
        is_active: true,
    }
}

fn key(rng: &mut Rng, accounts: usize) -> Key {
    let scope = (0..accounts).filter(|_| rng.chance(500)).collect();
    Key {
        weight: rng.of(&[1, 1, 1, 2, 3, 7]),
        accounts: rng.chance(250).then_some(scope),
    }
}

/// The first key floods, the second comes in volleys, the last are people; some have no key.
fn clients(rng: &mut Rng, keys: usize, accounts: u64) -> Vec<Client> {
    // Some three streams an account and second and a half: what the pool has room for.
    let every_ms = 1_000 / accounts;
    let client = |key, volley, every_ms, length_ms| Client {
        key,
        volley,
        every_ms,
        length_ms,
    };
    let mut all = vec![client(None, 1, every_ms * 12, 1_500)];
    for key in 0..keys {
        all.push(match key {
            0 => client(Some(0), 12, every_ms * 12, 2_500),
            1 => client(Some(1), 30, 15_000, 2_500),
            n if n % 3 == 2 => client(Some(n), 1, 1_500, 400),
            n => client(Some(n), rng.within(1, 2), every_ms * keys as u64, 2_000),
        });
    }
    all
}
