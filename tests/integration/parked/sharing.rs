//! Keys that wait side by side: what each gets of a pool that is too small for all.
use super::{CHAT, EVENT, HELD, LONG, asking, check_refused, hold, holder, tight, waiters};
use crate::{
    hand::{Caller, WAYS},
    harness::{Setup, World, chat},
    pool::key_of,
};
use futures_util::future::join_all;
use serde_json::{Value, json};

/// That many keys, two accounts of four slots each, fair from that percentage on.
fn shared(keys: usize, threshold: &str) -> Setup {
    tight(4, LONG, LONG)
        .account("two")
        .with("/accounts/1/stream_limit", json!(4))
        .with("/keys", keys_of(keys))
        .env("FAIRLANE_FAIR_SHARE_CONGESTION_THRESHOLD_PCT", threshold)
}

pub(super) fn keys_of(count: usize) -> Value {
    (0..count)
        .map(|n| json!({"name": format!("key{n}"), "secret": key_of(n)}))
        .collect()
}

async fn holders(world: &World, key: usize, count: usize) -> Vec<Caller> {
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(holder(world, &key_of(key)).await);
    }
    all
}

/// Clients of that key that ask one after the other for a stream which they will hold, and wait
/// behind those who wait already.
async fn wanting(world: &World, key: usize, count: usize) -> Vec<Caller> {
    let (.., before) = world.app.in_flight();
    let mut all = Vec::new();
    for n in 1..=count {
        all.push(asking(world, &key_of(key), HELD, &[], &chat(true)).await);
        waiters(world, before + n).await;
    }
    all
}

#[tokio::test]
async fn a_greedy_key_lets_others_in_at_the_next_release() {
    let world = shared(3, "80").start().await;
    hold(&world);
    // Alone, it may have everything.
    let mut greedy = holders(&world, 0, 8).await;
    let more = wanting(&world, 0, 12).await;
    for (n, other) in [1, 2].into_iter().enumerate() {
        let mut one = wanting(&world, other, 1).await.remove(0);
        greedy.remove(0).leave(WAYS[n]);
        one.until(EVENT).await;
        // Its own next request does not come before anybody else's.
        greedy.push(one);
    }
    waiters(&world, 12).await;
    assert!(more.iter().all(Caller::is_quiet));
    drop((greedy, more));
    world.end().await;
}

#[tokio::test]
async fn one_key_alone_fills_the_pool_and_gives_way_as_its_own_streams_end() {
    let world = shared(2, "15").start().await;
    hold(&world);
    let mut first = holders(&world, 0, 8).await;
    let mut second = wanting(&world, 1, 6).await;
    let mut again = wanting(&world, 0, 2).await;
    assert!(first.iter().all(Caller::is_quiet), "a stream was cut off");
    // Up to half of eight slots, one by one, in the order in which they came.
    for n in 0..4 {
        first.remove(0).leave(WAYS[n % 2]);
        second[n].until(EVENT).await;
        waiters(&world, 7 - n).await;
    }
    assert!(second[4].is_quiet() && second[5].is_quiet());
    // From here on each has its share, and the next slot is that of whoever gave one up.
    first.remove(0).leave(WAYS[0]);
    again[0].until(EVENT).await;
    second.remove(0).leave(WAYS[0]);
    second[3].until(EVENT).await;
    assert!(again[1].is_quiet());
    drop((first, second, again));
    world.end().await;
}

#[tokio::test]
async fn a_key_that_crowds_the_queue_is_refused_at_once_and_takes_nobodys_place() {
    let world = tight(2, "5", LONG)
        .with("/keys", keys_of(2))
        .env("FAIRLANE_WAITERS_PER_KEY", "20")
        .start()
        .await;
    hold(&world);
    let held = holders(&world, 0, 2).await;
    let mut crowd = Vec::new();
    for _ in 0..50 {
        crowd.push(asking(&world, &key_of(0), CHAT, &[], &chat(false)).await);
    }
    let mut five = Vec::new();
    for _ in 0..5 {
        five.push(asking(&world, &key_of(1), CHAT, &[], &chat(false)).await);
    }
    let crowd = join_all(crowd.into_iter().map(Caller::end)).await;
    let refused = |reason: &str| {
        let is_so = |got: &&_| super::Received::header(got, "x-fairlane-reason") == reason;
        crowd.iter().filter(is_so).count()
    };
    for got in &crowd {
        check_refused(got, got.header("x-fairlane-reason"));
    }
    let (full, waited) = (refused("queue_full"), refused("account_stream_cap"));
    assert!(full >= 30 && full + waited == 50, "{full} and {waited}");
    for got in join_all(five.into_iter().map(Caller::end)).await {
        check_refused(&got, "account_stream_cap");
    }
    drop(held);
    world.end().await;
}

#[tokio::test]
async fn a_key_that_is_refused_for_its_share_is_told_what_it_holds_of_it() {
    let world = shared(2, "50")
        .env("FAIRLANE_CAPACITY_WAIT_SECONDS", "0")
        .start()
        .await;
    hold(&world);
    let other = holders(&world, 1, 1).await;
    let mine = holders(&world, 0, 4).await;
    let got = asking(&world, &key_of(0), CHAT, &[], &chat(true)).await;
    let got = got.end().await;
    check_refused(&got, "api_key_stream_fair_share");
    let text = got.text();
    assert!(text.contains("holds 4 streams of a share of 4"), "{text}");
    assert!(text.contains("weight"), "{text}");
    drop((other, mine));
    world.end().await;
}
