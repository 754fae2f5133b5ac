//! Waiting, leaving, and slots that come back whatever happens to their holder.
use super::*;
use crate::domain::{
    admission::{Kinds, Limits, Numbers, Owner, Strategy},
    pool::{Pool, edges::sample},
    protocol::Protocol,
};

const PATIENCE: Duration = Duration::from_secs(30);

fn admission(streams: u32) -> Admission {
    let limits = Limits {
        stream: streams,
        create: 0,
        reserve: 0,
        waiters_per_key: 100,
        may_park: true,
        strategy: Strategy::LeastLoaded,
        breaker_threshold: 5,
        job: 2,
        fair_share_pct: 0,
    };
    let pool = Arc::new(Pool::new(sample::contents(1)));
    Admission::new(Numbers::default().layout(pool, limits))
}

fn demand() -> Arc<Demand> {
    Arc::new(Demand {
        key: Some(sample::key(1)),
        protocol: Protocol::OpenAi,
        model: Some("m".into()),
        kinds: Kinds::STREAM,
        reattach: false,
        owner: Owner::Nobody,
        preferred: None,
        tried: Vec::new(),
        until: Moment::from_millis(1_000_000),
        is_moving: false,
        holder: crate::domain::ids::RequestId::from_u128(0),
    })
}

async fn admit(admission: &Admission) -> Result<Lease, Denied> {
    admission.admit(&demand(), PATIENCE, || ()).await
}

#[tokio::test(start_paused = true)]
async fn a_released_slot_goes_to_the_one_who_waits() {
    let admission = admission(1);
    let first = admit(&admission).await.unwrap();
    let second = admit(&admission);
    tokio::pin!(second);
    assert!(futures_util::poll!(&mut second).is_pending());
    assert_eq!(admission.counts(), (1, 1));
    drop(first);
    let second = second.await.unwrap();
    assert_eq!(admission.counts(), (1, 0));
    drop(second);
    assert_eq!(admission.counts(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn patience_ends_with_the_reason_that_was_waited_for() {
    let admission = admission(1);
    let _held = admit(&admission).await.unwrap();
    let denied = admit(&admission).await.unwrap_err();
    assert_eq!(denied.refusal.reason, Reason::AccountStreamCap);
    assert_eq!(denied.refusal.limit, Some((1, 1)));
    assert_eq!(denied.waited, PATIENCE);
    assert!((1..=60).contains(&denied.retry_after_seconds));
    assert_eq!(admission.counts(), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn who_leaves_the_queue_leaves_nothing_behind() {
    let admission = admission(1);
    let held = admit(&admission).await.unwrap();
    {
        let leaving = admit(&admission);
        tokio::pin!(leaving);
        assert!(futures_util::poll!(&mut leaving).is_pending());
    }
    assert_eq!(admission.counts(), (1, 0));
    drop(held);
    assert_eq!(admission.counts(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_slot_granted_to_somebody_who_has_just_left_comes_back() {
    let admission = admission(1);
    let held = admit(&admission).await.unwrap();
    let leaving = Box::pin(admit(&admission));
    let mut leaving = leaving;
    assert!(futures_util::poll!(&mut leaving).is_pending());
    drop(held);
    assert_eq!(admission.counts(), (1, 0));
    drop(leaving);
    assert_eq!(admission.counts(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn closing_answers_everyone_who_waits_and_everyone_who_comes() {
    let admission = admission(1);
    let _held = admit(&admission).await.unwrap();
    let waiting = admit(&admission);
    tokio::pin!(waiting);
    assert!(futures_util::poll!(&mut waiting).is_pending());
    admission.close();
    for answer in [waiting.await, admit(&admission).await] {
        assert_eq!(answer.unwrap_err().refusal.reason, Reason::ShuttingDown);
    }
    assert_eq!(admission.counts(), (1, 0));
}

#[tokio::test]
async fn a_panicking_holder_gives_its_slot_back() {
    let admission = admission(1);
    let lease = admit(&admission).await.unwrap();
    let task = crate::tasks::spawn("test", async move {
        let _lease = lease;
        panic!("on purpose");
    });
    task.await.unwrap();
    assert_eq!(admission.counts(), (0, 0));
}
