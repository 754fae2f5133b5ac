//! The live picture over HTTP: who holds, who waits, and putting things right by hand.
use super::*;
use crate::{
    domain::{
        admission::{Demand, Kinds, Owner},
        ids::RequestId,
        moment::Moment,
        protocol::Protocol,
    },
    engine::{
        admission::{Denied, Lease},
        live::Stage,
    },
};
use std::{future::Future, time::Duration};

/// One account of two ordinary slots, and a key.
async fn pool() -> Bench {
    let mut environment = Layer::default();
    let threshold = Some(Setting::Integer(50));
    environment.put(Name::FairShareCongestionThresholdPct, threshold);
    let bench = empty(environment).await;
    let document = json!({
        "endpoints": [{"name": "e", "preset": "openai"}],
        "accounts": [{"name": "team", "stream_limit": 3}],
        "credentials": [{"name": "c", "secret": "sk-upstream-secret-0001", "accounts": ["team"], "endpoints": ["e"]}],
        "keys": [{"name": "ci", "secret": "fl-a-key-of-these-tests-1", "weight": 3}],
    });
    bench.ok("PUT", "/pool", &document).await;
    bench
}

impl Bench {
    fn admit(&self, holder: u128) -> impl Future<Output = Result<Lease, Denied>> {
        let admission = self.state.reload().configuration().admission().clone();
        let demand = Arc::new(Demand {
            holder: RequestId::from_u128(holder),
            key: self.pool().keys().first().cloned(),
            protocol: Protocol::OpenAi,
            model: Some("m".into()),
            kinds: Kinds::GENERATE,
            reattach: false,
            owner: Owner::Nobody,
            preferred: None,
            tried: Vec::new(),
            until: Moment::from_millis(u64::MAX),
            is_moving: false,
        });
        async move {
            admission
                .admit(&demand, Duration::from_mins(1), || ())
                .await
        }
    }
}

/// What differs from run to run, as a word: ids by their kind, times and spans.
fn steady(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                if (name.ends_with("_ms") && value.is_number()) || name.ends_with("_at") {
                    *value = json!("(a time)");
                }
                steady(value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(steady),
        Value::String(text) if text.contains("-7") || text.starts_with("req_") => {
            let kind = text.split('_').next().unwrap();
            *text = format!("({kind})");
        }
        _ => (),
    }
}

#[tokio::test]
async fn who_holds_and_who_waits_is_shown_as_reviewed() {
    let bench = pool().await;
    let live = bench.live.desk().enter(RequestId::from_u128(1), false);
    live.is_from(bench.pool().keys()[0].id);
    live.reach(Stage::Admitted);
    let first = bench.admit(1).await.unwrap();
    let mut second = bench.admit(2).await.unwrap();
    second.release_create();
    let waits = bench.admit(3);
    tokio::pin!(waits);
    assert!(futures_util::poll!(&mut waits).is_pending());
    let mut shown = bench.get("/concurrency").await;
    steady(&mut shown);
    shown["waiters"][0]["requests"][0]["until"] = json!("(a time)");
    for part in ["accounts", "credentials", "endpoints"] {
        for thing in shown[part].as_array_mut().unwrap() {
            thing.as_object_mut().unwrap().remove("cooldown");
        }
    }
    insta::assert_json_snapshot!(shown);
    drop((first, second));
    drop(waits.await.unwrap());
    let shown = bench.get("/concurrency").await;
    for part in ["waiters", "leases"] {
        assert_eq!(shown[part], json!([]));
    }
}

#[tokio::test]
async fn a_lease_is_released_in_the_callers_name_and_lets_the_next_in() {
    let bench = pool().await;
    let _first = bench.admit(1).await.unwrap();
    let _second = bench.admit(2).await.unwrap();
    let waits = bench.admit(3);
    tokio::pin!(waits);
    assert!(futures_util::poll!(&mut waits).is_pending());
    let shown = bench.get("/concurrency").await;
    let lease = shown["leases"][0]["id"].as_str().unwrap();
    let path = format!("/concurrency?action=release-lease&lease={lease}");
    let done = bench.ok("POST", &path, &Value::Null).await;
    assert_eq!(done, json!({"action": "release-lease"}));
    let _third = waits.await.unwrap();
    let gone = (404, "NOT_FOUND", "");
    bench.refused(("POST", &path), &Value::Null, gone).await;
    let line = bench.get("/audit").await["items"][0].clone();
    assert_eq!(line["action"], "release_lease");
    assert_eq!(line["subject"], lease);
    assert_eq!(line["actor"], "token tests");
    assert_eq!(line["detail"], RequestId::from_u128(1).to_string());
}

#[tokio::test]
async fn counting_anew_says_what_was_wrong_and_is_written_down() {
    let bench = pool().await;
    let _held = bench.admit(1).await.unwrap();
    let path = "/concurrency?action=reset-semaphores";
    let done = bench.ok("POST", path, &Value::Null).await;
    let nothing = json!({"action": "reset-semaphores", "slots_corrected": 0, "granted": 0});
    assert_eq!(done, nothing);
    let line = bench.get("/audit").await["items"][0].clone();
    assert_eq!(line["action"], "reset_semaphores");
    assert_eq!(line["detail"], "1 leases, 0 waiting");
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_plainly() {
    let bench = pool().await;
    let refused = async |query: &str, expect| {
        let path = format!("/concurrency{query}");
        bench.refused(("POST", &path), &Value::Null, expect).await
    };
    let query = |field| (400, "INVALID_QUERY", field);
    refused("", query("action")).await;
    refused("?action=reset", query("action")).await;
    refused("?action=release-lease", query("lease")).await;
    refused("?action=release-lease&lease=7", query("lease")).await;
    refused("?action=release-lease&lease=lease_007", query("lease")).await;
    let missing = (404, "NOT_FOUND", "");
    refused("?action=release-lease&lease=lease_7", missing).await;
    let limiter = refused("?action=reset-limiter&credential=x", missing).await;
    assert!(limiter["message"].as_str().unwrap().contains("limiter"));
    let lines = bench.get("/audit").await;
    let actions = lines["items"].as_array().unwrap().iter();
    assert!(
        actions
            .clone()
            .all(|l| !l["action"].as_str().unwrap().contains("lease"))
    );
}

#[tokio::test]
async fn what_is_held_on_each_account_stands_in_the_metrics_and_no_key_does() {
    let bench = pool().await;
    let _held = bench.admit(1).await.unwrap();
    let answer = bench.raw("GET", "/metrics", Some(TOKEN), Vec::new()).await;
    let account = bench.pool().accounts()[0].id;
    let lease = |kind, count| {
        format!("fairlane_account_leases{{account=\"{account}\",kind=\"{kind}\"}} {count}\n")
    };
    for (kind, count) in [("stream", 1), ("create", 1), ("job", 0)] {
        assert!(answer.text.contains(&lease(kind, count)), "{}", answer.text);
    }
    assert!(answer.text.contains("fairlane_stream_pool_capacity 2\n"));
    assert!(answer.text.contains("fairlane_stream_pool_inflight 1\n"));
    assert!(!answer.text.contains("key_0"), "{}", answer.text);
}
