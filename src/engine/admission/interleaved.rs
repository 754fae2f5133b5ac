//! Threads that ask, leave, give back and change the pool at once, in thousands of orders: what is decided
//! and what is taken are one step, and nothing is left at the end.
use super::*;
use crate::domain::{
    admission::{Kinds, Limits, Numbers, Owner, Strategy},
    ids::RequestId,
    pool::{Pool, edges::sample},
    protocol::Protocol,
};
use shuttle::thread;

const ORDERS: usize = 3_000;

/// One account of so many slots, shared out from the first stream on.
fn layout(stream: u32) -> Layout {
    let limits = Limits {
        stream,
        create: 0,
        job: 0,
        reserve: 0,
        fair_share_pct: 1,
        waiters_per_key: 100,
        may_park: true,
        strategy: Strategy::LeastLoaded,
        breaker_threshold: 5,
    };
    let mut contents = sample::contents(1);
    contents.keys = vec![sample::key(1), sample::key(2)];
    Numbers::default().layout(Arc::new(Pool::new(contents)), limits)
}

fn demand(key: u128) -> Arc<Demand> {
    Arc::new(Demand {
        holder: RequestId::from_u128(0),
        key: Some(sample::key(key)),
        protocol: Protocol::OpenAi,
        model: Some("m".into()),
        kinds: Kinds::STREAM,
        reattach: false,
        owner: Owner::Nobody,
        preferred: None,
        tried: Vec::new(),
        until: Moment::from_millis(1_000_000),
        is_moving: false,
    })
}

/// What both keys hold, at one moment.
fn held(admission: &Admission) -> [u64; 2] {
    let (_, leases, _) = admission.picture();
    let streams = leases.iter().filter(|lease| lease.held.stream);
    [1, 2].map(|key| {
        let id = Some(sample::key(key).id);
        streams.clone().filter(|lease| lease.key == id).count() as u64
    })
}

#[test]
fn two_that_ask_for_the_last_slot_never_both_have_it() {
    shuttle::check_random(
        || {
            let admission = Admission::new(layout(3));
            let asking = (0..4).map(|n| {
                let admission = admission.clone();
                thread::spawn(move || {
                    let asked = admission.ask(&demand(n % 2 + 1));
                    assert!(held(&admission).iter().sum::<u64>() <= 3);
                    asked
                })
            });
            let asking: Vec<_> = asking.collect();
            let answers: Vec<Asked> = asking.into_iter().map(|t| t.join().unwrap()).collect();
            let is_granted = |asked: &&Asked| matches!(asked, Asked::Answered(Ok(_)));
            assert_eq!(answers.iter().filter(is_granted).count(), 3);
            assert_eq!(admission.counts(), (3, 1));
            drop(answers);
            assert_eq!(admission.counts(), (0, 0));
        },
        ORDERS,
    );
}

#[test]
fn a_key_that_has_its_share_gets_no_more_however_many_ask_at_once() {
    shuttle::check_random(
        || {
            let admission = Admission::new(layout(6));
            let others: Vec<Asked> = (0..2).map(|_| admission.ask(&demand(2))).collect();
            let asking = (0..4).map(|_| {
                let admission = admission.clone();
                thread::spawn(move || {
                    let asked = admission.ask(&demand(1));
                    assert!(held(&admission)[0] <= 3, "half of six");
                    asked
                })
            });
            let asking: Vec<_> = asking.collect();
            let answers: Vec<Asked> = asking.into_iter().map(|t| t.join().unwrap()).collect();
            assert_eq!(held(&admission), [3, 2]);
            assert_eq!(admission.counts().1, 1);
            drop((answers, others));
            assert_eq!(admission.counts(), (0, 0));
        },
        ORDERS,
    );
}

#[test]
fn whoever_leaves_gives_back_or_changes_the_pool_meanwhile_leaves_nothing_behind() {
    shuttle::check_random(
        || {
            let admission = Admission::new(layout(2));
            let coming = (0..4).map(|n| {
                let admission = admission.clone();
                thread::spawn(move || {
                    let asked = admission.ask(&demand(n % 2 + 1));
                    // One stays a little longer than the other.
                    if n % 2 == 0 {
                        thread::yield_now();
                    }
                    drop(asked);
                })
            });
            let mut threads: Vec<_> = coming.collect();
            let changing = admission.clone();
            threads.push(thread::spawn(move || {
                changing.reconfigure(layout(1));
                changing.reconfigure(layout(3));
            }));
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(admission.counts(), (0, 0));
            assert_eq!(held(&admission), [0, 0]);
        },
        ORDERS,
    );
}
