//! Traffic counts what became of it, and goes nowhere but loopback.
use super::*;
use crate::sim::{Act, Close, Config, Rule, Sim, SimHandle};

fn traffic(sim: &SimHandle, profile: Profile) -> TrafficHandle {
    let keys = vec![("ann".to_owned(), "sk-ann".to_owned(), profile)];
    let base_url = sim.base_url();
    Traffic { base_url, keys }.start().unwrap()
}

fn check(base_url: &str, expect: Option<&str>) {
    let got = loopback(base_url).map(|a| a.to_string());
    assert_eq!(got.as_deref(), expect, "{base_url}");
}

#[test]
fn traffic_goes_to_loopback_alone() {
    check("http://127.0.0.1:80", Some("127.0.0.1:80"));
    check("http://localhost:80/", Some("127.0.0.1:80"));
    check("http://[::1]:80", Some("[::1]:80"));
    check("http://192.0.2.1:80", None);
    check("http://example.com:80", None);
    check("https://127.0.0.1:80", None);
    check("http://127.0.0.1", None);
}

#[tokio::test]
async fn answers_are_counted_with_their_tokens() {
    let sim = Sim::start(Config::recording()).await.unwrap();
    let people = traffic(&sim, Profile::Interactive);
    let two = |s: &Snapshot| s.total().ok >= 2;
    let got = people.wait_for(two).await.unwrap().total();
    assert!(
        got.tokens > 0 && got.failed == 0 && got.refusals() == 0,
        "{got:?}"
    );
    let log = sim.log();
    let surfaces: std::collections::BTreeSet<_> = log.iter().map(|r| &*r.target).collect();
    assert_eq!(
        surfaces.into_iter().collect::<Vec<_>>(),
        ["/v1/chat/completions", "/v1/messages"]
    );
    assert!(
        log.iter()
            .all(|r| r.credential.as_deref() == Some("sk-ann"))
    );
}

#[tokio::test]
async fn a_volley_comes_all_at_once() {
    let sim = Sim::start(Config::default()).await.unwrap();
    sim.script([Rule::new(Act {
        stall_after: Some(0),
        ..Act::chunks(["x"])
    })]);
    let agents = traffic(&sim, Profile::Bursty);
    sim.wait_for_stats("sk-ann", |s| s.in_flight == 12)
        .await
        .unwrap();
    assert_eq!(agents.snapshot().total().in_flight, 12);
    assert_eq!(agents.stop().await.total().in_flight, 0);
    sim.wait_for_stats("sk-ann", |s| s.in_flight == 0)
        .await
        .unwrap();
}

#[tokio::test]
async fn refusals_are_counted_by_their_reason() {
    let sim = Sim::start(Config::default()).await.unwrap();
    let fair = Act::status(429).header("x-fairlane-reason", "account_cooling");
    sim.script([Rule::new(fair).times(2), Rule::new(Act::status(503))]);
    let jobs = traffic(&sim, Profile::Batch);
    let three = |s: &Snapshot| s.total().refusals() >= 3;
    let got = jobs.wait_for(three).await.unwrap().total();
    assert_eq!((got.refused["account_cooling"], got.refused["503"]), (2, 1));
}

#[test]
fn counts_are_told_in_one_line() {
    let counts = Counts {
        ok: 7,
        refused: [("account_cooling".to_owned(), 2)].into(),
        failed: 1,
        in_flight: 3,
        tokens: 99,
    };
    let expect = "7 ok, 3 in flight, 1 failed, 99 tokens, 2 account_cooling";
    assert_eq!(counts.to_string(), expect);
}

#[tokio::test]
async fn a_broken_answer_is_a_failure_and_traffic_goes_on() {
    let sim = Sim::start(Config::default()).await.unwrap();
    sim.script([Rule::new(Act::close(Close::MidBody)).times(1)]);
    let jobs = traffic(&sim, Profile::Batch);
    let both = |s: &Snapshot| s.total().failed == 1 && s.total().ok >= 1;
    jobs.wait_for(both).await.unwrap();
}
