//! That reservations come back on every way out, and that what an earlier process saw is waited for.
use super::*;
use crate::domain::{pool::edges::sample, reason::Reason};
use futures_util::poll;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

fn limited(limits: impl FnOnce(&mut ClientKey)) -> ClientKey {
    let mut key = (*sample::key(1)).clone();
    limits(&mut key);
    key
}

async fn in_flight(allowance: &Allowance, key: &ClientKey) -> u64 {
    allowance.used(&[key.id]).await[0].in_flight
}

fn earlier(key: &ClientKey, tokens: u64) -> Vec<Earlier> {
    vec![Earlier {
        key: key.id,
        tokens,
        starts: vec![(unix_millis(), 3)],
    }]
}

#[tokio::test(start_paused = true)]
async fn a_reservation_comes_back_once_however_its_request_ends() {
    let all = Allowance::default();
    let key = limited(|key| key.limits.concurrency = Some(1));
    let dropped = all.reserve(&key).await.unwrap();
    let refused = all.reserve(&key).await.unwrap_err();
    assert_eq!(refused.reason, Reason::KeyConcurrencyCap);
    drop(dropped);
    assert_eq!(in_flight(&all, &key).await, 0);
    all.reserve(&key).await.unwrap().settle(Some(7));
    assert_eq!(in_flight(&all, &key).await, 0);
    let of_a_panic = all.clone();
    let panicked = crate::tasks::spawn("panics", async move {
        let key = limited(|_| ());
        let _held = of_a_panic.reserve(&key).await.unwrap();
        panic!("on purpose");
    });
    panicked.await.unwrap();
    assert_eq!(in_flight(&all, &key).await, 0);
    assert_eq!(all.used(&[key.id]).await[0].tokens, Some(7));
}

#[tokio::test(start_paused = true)]
async fn a_limited_key_waits_for_what_was_used_earlier_and_others_do_not() {
    let all = Allowance::default();
    let free = limited(|_| ());
    let key = limited(|key| key.limits.tokens_per_day = Some(10));
    let (answer, answered) = tokio::sync::oneshot::channel();
    let answered = Arc::new(tokio::sync::Mutex::new(Some(answered)));
    let asked = Arc::new(Mutex::new(None));
    let (of, seen) = (answered.clone(), asked.clone());
    let recalled = all.recall(move |wanted: Wanted| {
        *seen.lock().unwrap() = Some(wanted);
        let answered = of.clone();
        async move {
            let answered = answered.lock().await.take().unwrap();
            Ok::<_, String>(answered.await.unwrap())
        }
    });
    tokio::pin!(recalled);
    assert!(poll!(&mut recalled).is_pending());
    // Nobody has needed it, so nothing is read; one that is not limited is counted meanwhile.
    all.reserve(&free).await.unwrap().settle(Some(4));
    assert_eq!(*asked.lock().unwrap(), None);
    let waiting = all.reserve(&key);
    tokio::pin!(waiting);
    assert!(poll!(&mut waiting).is_pending());
    assert!(poll!(&mut recalled).is_pending());
    let wanted = asked.lock().unwrap().unwrap();
    assert_eq!(wanted.day_from_ms % (24 * 3_600_000), 0);
    assert!(wanted.day_from_ms <= wanted.until_ms && wanted.minute_from_ms < wanted.until_ms);
    assert!(poll!(&mut waiting).is_pending());
    answer.send(earlier(&key, 6)).unwrap();
    recalled.await;
    let refused = waiting.await.unwrap_err();
    assert_eq!(
        (refused.reason, refused.used),
        (Reason::KeyBudgetExhausted, 10)
    );
    assert_eq!(all.used(&[key.id]).await[0].requests, Some(4));
}

#[tokio::test(start_paused = true)]
async fn a_log_that_cannot_be_read_holds_nobody_up_and_is_asked_again() {
    let all = Allowance::default();
    let key = limited(|key| key.limits.tokens_per_day = Some(10));
    let looks = AtomicU32::new(0);
    let mut rows = earlier(&key, 10);
    rows[0].starts.clear();
    let recalled = all.recall(|_| {
        let first = looks.fetch_add(1, Ordering::Relaxed) == 0;
        let rows = rows.clone();
        async move { if first { Err("locked") } else { Ok(rows) } }
    });
    let requests = async {
        all.reserve(&key).await.unwrap().settle(None);
        tokio::time::sleep(TRY_AGAIN_AFTER * 2).await;
        all.reserve(&key).await.unwrap_err()
    };
    let ((), refused) = tokio::join!(recalled, requests);
    assert_eq!(refused.reason, Reason::KeyBudgetExhausted);
}

#[tokio::test(start_paused = true)]
async fn what_an_unreadable_log_may_hold_is_unknown_and_not_nothing() {
    let all = Allowance::default();
    let key = limited(|_| ());
    let is_readable = AtomicBool::new(false);
    let recalled = all.recall(|_| {
        let rows = earlier(&key, 10);
        let is_readable = is_readable.load(Ordering::Relaxed);
        async move { if is_readable { Ok(rows) } else { Err("locked") } }
    });
    let _held = all.reserve(&key).await.unwrap();
    let used = async || all.used(&[key.id]).await[0];
    let expect = |requests, tokens| Used {
        requests,
        in_flight: 1,
        tokens,
    };
    let look = async {
        assert_eq!(used().await, expect(None, None));
        // By then this process has seen all of the last minute, but not all of this day.
        tokio::time::sleep(Duration::from_millis(SPAN_MS)).await;
        assert_eq!(used().await, expect(Some(0), None));
        is_readable.store(true, Ordering::Relaxed);
        tokio::time::sleep(TRY_AGAIN_AFTER).await;
        assert_eq!(used().await.tokens, Some(10));
    };
    tokio::join!(recalled, look);
}

#[tokio::test(start_paused = true)]
async fn the_counts_of_keys_that_are_gone_are_forgotten() {
    let all = Allowance::default();
    let key = limited(|_| ());
    all.reserve(&key).await.unwrap().settle(Some(5));
    all.follow(&Pool::new(sample::contents(1)));
    assert_eq!(all.used(&[key.id]).await[0].tokens, Some(5));
    all.follow(&Pool::default());
    let nothing = Used {
        requests: Some(0),
        in_flight: 0,
        tokens: Some(0),
    };
    assert_eq!(all.used(&[key.id]).await[0], nothing);
}
