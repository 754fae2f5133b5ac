//! What client keys' own limits add to a request: its reservation and the settling of it, by the
//! number of keys.
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot set up has failed"
)]

use divan::{Bencher, black_box};
use fairlane::{
    domain::{
        allowance::{Allowance, Now},
        ids::KeyId,
        moment::Moment,
        pool::{ClientKey, KeyLimits},
        reason::Reason,
    },
    engine::allowance::Allowance as Shared,
};
use futures_util::FutureExt as _;

fn main() {
    divan::main();
}

/// So many that none of them is met.
const WIDE: KeyLimits = KeyLimits {
    requests_per_minute: Some(1_000_000),
    concurrency: Some(1000),
    tokens_per_day: Some(1_000_000_000_000),
};

fn key(n: u128, limits: KeyLimits) -> ClientKey {
    let mut hash = [0; 32];
    hash[..16].copy_from_slice(&n.to_le_bytes());
    ClientKey {
        id: KeyId::from_u128(n),
        name: format!("key-{n}").into(),
        hash,
        secret_hint: "".into(),
        weight: 1,
        accounts: None,
        models: None,
        limits,
        expires_at: None,
    }
}

/// The time of the n-th request, of a thousand a second: a key of 10,000 comes again after ten.
fn time_of(n: u64) -> Now {
    Now {
        at: Moment::from_millis(n),
        unix_ms: 1_796_000_000_000_i64.saturating_add_unsigned(n),
    }
}

/// Every key has all limits, and has been counted before.
fn counted(keys: u128) -> (Allowance, Vec<ClientKey>) {
    let mut all = Allowance::default();
    let keys: Vec<ClientKey> = (0..keys).map(|n| key(n, WIDE)).collect();
    for key in &keys {
        let held = all.reserve(time_of(0), key.id, &key.limits).unwrap();
        all.settle(time_of(0), held, Some(1));
    }
    (all, keys)
}

/// The decision alone: one key after the other, each request counted for the next ones.
#[divan::bench(args = [1, 100, 10_000])]
fn reserve_and_settle(bencher: Bencher<'_, '_>, keys: u128) {
    let (mut all, keys) = counted(keys);
    let mut turn = keys.iter().cycle().zip(0..);
    bencher.bench_local(|| {
        let (key, n) = turn.next().unwrap();
        let now = time_of(n);
        let held = all.reserve(now, black_box(key.id), &key.limits).unwrap();
        all.settle(now, held, Some(100));
    });
}

/// The same where a limit is in the way, which also works out when there will be room.
#[divan::bench(args = [1, 100, 10_000])]
fn refuse(bencher: Bencher<'_, '_>, keys: u128) {
    let (mut all, keys) = counted(keys);
    let one = KeyLimits {
        requests_per_minute: Some(1),
        ..WIDE
    };
    let mut turn = keys.iter().cycle();
    bencher.bench_local(|| {
        let key = turn.next().unwrap();
        let refused = all.reserve(time_of(0), black_box(key.id), &one);
        assert_eq!(refused.unwrap_err().reason, Reason::KeyRateLimited);
    });
}

/// And what a request pays in the running process: with the clocks and the lock, taken twice.
#[divan::bench(args = [1, 100, 10_000])]
fn reserve_and_settle_in_the_process(bencher: Bencher<'_, '_>, keys: u128) {
    let all = Shared::default();
    let keys: Vec<ClientKey> = (0..keys).map(|n| key(n, WIDE)).collect();
    for key in &keys {
        drop(all.reserve(key).now_or_never().unwrap().unwrap());
    }
    let mut turn = keys.iter().cycle();
    bencher.bench_local(|| {
        let key = black_box(turn.next().unwrap());
        let held = all.reserve(key).now_or_never().unwrap().unwrap();
        held.settle(Some(100));
    });
}
