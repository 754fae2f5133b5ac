//! Admission played from seeds in virtual time, against a judge that counts everything anew.
//!
//! Invariant: no clock and no chance but the seed's: what fails once fails again.
#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a simulation that cannot set up has failed, and its numbers are small"
)]

mod judge;
mod machine;
mod mutants;
mod plan;
mod report;
mod rng;
mod several;
mod world;

use machine::Real;
use std::thread;
use world::{Looks, Totals, World};

/// Everything is judged at every event.
const CLOSELY: Looks = Looks {
    closely_until: u64::MAX,
    then_every: 1,
};

fn play(seed: u64, requests: u64, looks: Looks) -> Totals {
    let (plan, _) = world::setting::of(seed);
    match World::new(Real::new(&plan), seed, looks).run(requests) {
        Ok(totals) => totals,
        Err(broken) => panic!(
            "seed {}, event {}: {}",
            broken.seed, broken.event, broken.rule
        ),
    }
}

/// Plays every seed, two at a time, and adds up.
fn play_all(seeds: std::ops::Range<u64>, requests: u64, looks: Looks) -> Totals {
    let half = |odd: u64| {
        let seeds = seeds.clone().filter(move |seed| seed % 2 == odd);
        seeds.fold(Totals::default(), |sum, seed| {
            sum.and(&play(seed, requests, looks))
        })
    };
    thread::scope(|scope| {
        let odd = scope.spawn(|| half(1));
        let even = half(0);
        even.and(&odd.join().unwrap())
    })
}

#[test]
fn fifty_thousand_requests_break_no_rule_at_any_event() {
    let totals = play_all(0..50, 1_000, CLOSELY);
    println!("judged at every event: {totals:#?}");
    assert_eq!((totals.requests, totals.looks), (50_000, totals.events));
}

#[test]
fn a_million_requests_break_no_rule_and_leave_nothing_behind() {
    let looks = Looks {
        closely_until: 0,
        then_every: 5_000,
    };
    let totals = play_all(100..108, 125_000, looks);
    println!("judged at samples: {totals:#?}");
    assert_eq!(totals.requests, 1_000_000);
    // A world in which nothing goes wrong would prove nothing.
    let kinds = [
        totals.granted,
        totals.parked,
        totals.refused,
        totals.ran_out,
        totals.left,
        totals.limited,
        totals.failed,
        totals.held_back,
        totals.changes,
    ];
    assert!(kinds.iter().all(|n| *n > 1_000), "{totals:#?}");
}

#[test]
fn a_seed_is_played_alike_every_time() {
    let figures = |seed| format!("{:?}", play(seed, 500, CLOSELY));
    assert_eq!(figures(3), figures(3));
    assert_ne!(figures(3), figures(4));
}
