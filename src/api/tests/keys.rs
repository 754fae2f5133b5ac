//! What client keys use of their limits, as it is read.
use super::*;

#[tokio::test]
async fn a_key_that_is_read_says_what_it_uses_of_its_limits() {
    let bench = bench().await;
    let limits =
        json!({"name": "ci", "requests_per_minute": 60, "concurrency": 2, "tokens_per_day": 5000});
    let made = bench.ok("POST", "/keys", &limits).await;
    bench.ok("POST", "/keys", &json!({"name": "free"})).await;
    let path = format!("/keys/{}", id(&made));
    let used = |requests: u64, in_flight: u64, tokens: u64| json!({"requests_per_minute": requests, "concurrency": in_flight, "tokens_per_day": tokens});
    assert_eq!(bench.get(&path).await["used"], used(0, 0, 0));
    let allowance = bench.state.reload().configuration().allowance();
    let key = Arc::clone(&bench.pool().keys()[0]);
    allowance.reserve(&key).await.unwrap().settle(Some(7));
    let _held = allowance.reserve(&key).await.unwrap();
    let read = bench.get(&path).await;
    assert_eq!(read["used"], used(2, 1, 7));
    let free = &bench.get("/keys").await["items"];
    assert_eq!((&free[0], &free[1]["used"]), (&read, &used(0, 0, 0)));
    // It cannot be written, and says nothing of what a change has done.
    let body = json!({"used": used(0, 0, 0)});
    let expect = (400, "INVALID_FIELD", "used");
    bench.refused(("PATCH", &path), &body, expect).await;
    let changed = bench.ok("PATCH", &path, &json!({"weight": 2})).await;
    assert_eq!(changed["used"], Value::Null);
}

#[tokio::test]
async fn what_an_unreadable_log_may_hold_of_a_keys_use_is_null() {
    let bench = bench().await;
    bench.ok("POST", "/keys", &json!({"name": "ci"})).await;
    let allowance = bench.state.reload().configuration().allowance();
    let recalled = allowance.recall(async |_| Err("locked"));
    let read = async {
        let used = bench.get("/keys").await["items"][0]["used"].clone();
        let expect = json!({"requests_per_minute": null, "concurrency": 0, "tokens_per_day": null});
        assert_eq!(used, expect);
    };
    tokio::select! {
        () = recalled => panic!("it is never read"),
        () = read => (),
    }
}
