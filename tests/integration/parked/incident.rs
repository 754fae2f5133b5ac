//! The day on which one key took the whole pool: fourteen accounts, one key that wants far more than
//! there is, eight that use it steadily, five people in front of it, and an account that is lost
//! in the middle of it.
use super::{CHAT, LONG, asking, hold, sharing::keys_of};
use crate::{
    hand::{Caller, WAYS, within},
    harness::{Setup, World, chat, secret_of},
    pool::{key_of, limited},
};
use fairlane::{domain::ledger::Outcome, sim::Rule};
use futures_util::future::join_all;
use serde_json::json;
use std::collections::HashSet;

const ACCOUNTS: usize = 14;
const BURSTY: usize = 0;
const STEADY: std::ops::RangeInclusive<usize> = 1..=8;
const PEOPLE: std::ops::RangeInclusive<usize> = 9..=13;

fn pool() -> Setup {
    let names = (1..ACCOUNTS).map(|n| format!("a{n}"));
    let setup = names.fold(Setup::default(), |setup, name| setup.account(&name));
    let setup = (0..ACCOUNTS).fold(setup, |setup, n| {
        setup
            .with(&format!("/accounts/{n}/stream_limit"), json!(8))
            .with(&format!("/accounts/{n}/create_limit"), json!(0))
    });
    setup
        .with("/keys", keys_of(14))
        .env("FAIRLANE_ACCOUNT_STREAM_RESERVE", "1")
        .env("FAIRLANE_FAIR_SHARE_CONGESTION_THRESHOLD_PCT", "80")
        .env("FAIRLANE_CAPACITY_WAIT_SECONDS", LONG)
        .env("FAIRLANE_PARK_COMMIT_SECONDS", LONG)
}

async fn wanting(world: &World, key: usize, count: usize) -> Vec<Caller> {
    let asked = (0..count)
        .map(|_| async move { asking(world, &key_of(key), super::HELD, &[], &chat(true)).await });
    join_all(asked).await
}

/// Everybody in front of the pool asks twice at the same time, and gets two answers.
async fn check_people(world: &World) {
    let asked = PEOPLE.flat_map(|key| [key; 2]).map(|key| async move {
        let caller = asking(world, &key_of(key), CHAT, &[], &chat(true)).await;
        (key, caller.end().await)
    });
    for (key, got) in within("the people's answers", join_all(asked)).await {
        assert_eq!(
            (got.status(), got.is_whole),
            (200, true),
            "key {key}: {got:?}"
        );
    }
}

#[tokio::test]
async fn people_are_never_refused_whatever_one_key_wants() {
    let world = pool().start().await;
    hold(&world);
    let mut steady = Vec::new();
    for key in STEADY {
        steady.extend(wanting(&world, key, 7 - usize::from(key == 8)).await);
    }
    for caller in &mut steady {
        caller.until(super::EVENT).await;
    }
    assert_eq!(steady.len(), 55);
    let mut bursty = wanting(&world, BURSTY, 150).await;
    world
        .until("a hundred and more to wait", |(live, leases, waiters)| {
            live == 205 && leases + waiters == 205 && waiters > 100
        })
        .await;
    check_people(&world).await;
    // One account is lost to a limit that is met by whoever is sent there next.
    let lost = Rule::new(limited("300")).credential(&secret_of("a7"));
    world.sim.clear_rules();
    world.sim.script([lost]);
    hold(&world);
    for round in 0..6 {
        check_people(&world).await;
        // Some of what runs ends, and others of the same keys take its place.
        for n in 0..4 {
            steady.remove(0).leave(WAYS[n % 2]);
            bursty.remove(0).leave(WAYS[n % 2]);
        }
        let key = STEADY.start() + round;
        steady.extend(wanting(&world, key, 4).await);
        bursty.extend(wanting(&world, BURSTY, 4).await);
    }
    check_people(&world).await;
    let was_lost = world.seen("/v1/").iter().any(|r| r.status == Some(429));
    assert!(was_lost, "no account was lost");
    drop((steady, bursty));
    let people = key_ids(&world).await;
    let rows = world.ledger().await;
    let of_people = rows
        .iter()
        .filter(|r| r.key.is_some_and(|k| people.contains(&k)));
    let (mut count, mut failed) = (0, 0);
    for row in of_people {
        count += 1;
        failed += usize::from(row.outcome != Outcome::Ok);
    }
    assert_eq!((count, failed), (80, 0));
    world.end().await;
}

async fn key_ids(world: &World) -> HashSet<fairlane::domain::ids::KeyId> {
    world.quiet().await;
    let keys = world.app.store().keys().await;
    let people: Vec<String> = PEOPLE.map(|n| format!("key{n}")).collect();
    let is_person = |name: &str| people.iter().any(|person| person == name);
    let all = keys.into_iter().flatten();
    all.filter(|key| is_person(&key.name))
        .map(|key| key.id)
        .collect()
}
