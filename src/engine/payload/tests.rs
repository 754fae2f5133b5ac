//! Bodies come out as they went in, within the budget or past it.
use super::*;
use http_body_util::BodyExt as _;

async fn through(budget: &Arc<Budget>, body: &[u8], piece: usize, stated: bool) -> Payload {
    let mut collector = Collector::new(budget);
    for part in body.chunks(piece) {
        let expected = stated.then_some(body.len() as u64);
        let part = Bytes::copy_from_slice(part);
        collector.push(part, expected).await.unwrap();
    }
    assert_eq!(collector.length(), body.len() as u64);
    collector.finish()
}

fn body(length: usize) -> Vec<u8> {
    (0..=250u8).cycle().take(length).collect()
}

#[tokio::test]
async fn a_body_can_be_sent_again_and_again() {
    let large = body(3 << 20);
    for (limit, spooled) in [(BUDGET_BYTES, false), (1 << 20, true)] {
        for stated in [true, false] {
            let budget = Budget::new(limit);
            let payload = through(&budget, &large, 100_000, stated).await;
            assert_eq!(payload.is_spooled(), spooled, "{limit} {stated}");
            assert_eq!(payload.bytes().await.unwrap(), large);
            for _ in 0..2 {
                let sent = payload.outgoing().collect().await.unwrap().to_bytes();
                assert_eq!(sent, large);
            }
            drop(payload);
            assert_eq!(budget.used(), 0);
        }
    }
}

#[tokio::test]
async fn small_bodies_stay_in_memory_whatever_is_used() {
    let budget = Budget::new(10);
    let small = body(1 << 20);
    let first = through(&budget, &small, small.len(), true).await;
    let second = through(&budget, &small, 1000, false).await;
    assert!(!first.is_spooled() && !second.is_spooled());
    assert_eq!(budget.used(), 2 << 20);
    drop((first, second));
    assert_eq!(budget.used(), 0);
}

#[tokio::test]
async fn an_empty_body_takes_nothing() {
    let budget = Budget::new(10);
    let payload = Collector::new(&budget).finish();
    assert_eq!((payload.length(), budget.used()), (0, 0));
    assert!(payload.outgoing().is_end_stream());
}

#[tokio::test]
async fn a_stretch_can_be_sent_in_other_words() {
    for limit in [BUDGET_BYTES, 1 << 20] {
        let plain = body(2 << 20);
        let payload = through(&Budget::new(limit), &plain, 100_000, true).await;
        let renamed = payload.with_replaced(1000..1010, Bytes::from_static(b"other"));
        assert_eq!(renamed.length(), plain.len() as u64 - 5);
        let sent = renamed.outgoing().collect().await.unwrap().to_bytes();
        let expect = [&plain[..1000], b"other", &plain[1010..]].concat();
        assert_eq!(sent, expect);
    }
}
