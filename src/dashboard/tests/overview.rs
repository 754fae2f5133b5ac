//! Overview: what it says of requests, keys and accounts, and of nothing at all.
use super::*;
use crate::{
    clock,
    domain::{
        admission::{Demand, Kinds, Owner},
        ids::RequestId,
        ledger::{Entry, Outcome},
        moment::Moment,
        pool::State as Standing,
        protocol::Protocol,
    },
};
use std::time::Duration;

const ACCOUNT: &str = "preset=openai&name=team&base_url=https://api.openai.com/v1&secret=sk-0123456789abcdef&limit=own&own_limit=";

async fn with_a_key() -> Bench {
    with_a_key_and("2").await
}

/// With so many streams on the account.
async fn with_a_key_and(limit: &str) -> Bench {
    let bench = bench().await;
    bench.set_up().await;
    bench
        .post("/setup/account", &format!("{ACCOUNT}{limit}"))
        .await;
    let made = bench.post("/setup/key", "name=nightly").await;
    assert_eq!(made.status, StatusCode::OK);
    bench
}

fn demand(bench: &Bench) -> Arc<Demand> {
    demand_of(bench, "nightly")
}

fn demand_of(bench: &Bench, name: &str) -> Arc<Demand> {
    let pool = bench.state.reload().configuration().pool();
    let key = pool.keys().iter().find(|key| &*key.name == name);
    Arc::new(Demand {
        key: key.cloned(),
        protocol: Protocol::OpenAi,
        model: Some("m".into()),
        kinds: Kinds::STREAM,
        reattach: false,
        owner: Owner::Nobody,
        preferred: None,
        tried: Vec::new(),
        until: Moment::default(),
        is_moving: false,
        holder: crate::domain::ids::RequestId::from_u128(0),
    })
}

#[tokio::test]
async fn nothing_is_said_to_be_nothing_and_every_tile_leads_on() {
    let bench = with_a_key().await;
    let page = bench.get("/").await;
    page.says("Nothing in this period.");
    page.says("No key holds a stream, none waits.");
    page.says("Every account takes work.");
    page.says("plus 1 in reserve");
    assert!(!page.text.contains("0.00"));
    page.says("Fair share is off");
    for path in ["/concurrency", "/concurrency#waits", "/pool", "/requests"] {
        page.says(&format!("href=\"{path}\"><span class=\"tile-name\""));
        assert_eq!(bench.get(path).await.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn who_holds_and_who_waits_is_shown_by_key_while_it_lasts() {
    let bench = with_a_key().await;
    let demand = demand(&bench);
    let admission = bench.state.reload().configuration().admission();
    let patience = Duration::from_secs(30);
    let held = admission.admit(&demand, patience, || ()).await.unwrap();
    let waits = admission.admit(&demand, patience, || ());
    tokio::pin!(waits);
    assert!(futures_util::poll!(&mut waits).is_pending());
    let page = bench.get("/").await;
    page.says(
        "translate=\"no\">nightly</a></th><td class=\"number\">1</td><td class=\"number\">1</td>",
    );
    page.says("In flight: now 1, peak 1, capacity 1");
    drop(held);
    drop(waits.await.unwrap());
    let page = bench.get("/").await;
    page.says("No key holds a stream, none waits.");
    page.says("In flight: now 0, peak 1, capacity 1");
}

#[tokio::test]
async fn a_key_over_its_share_stands_first_and_says_so_while_the_pool_is_congested() {
    let bench = with_a_key_and("6").await;
    assert_eq!(
        bench.post("/setup/key", "name=people").await.status,
        StatusCode::OK
    );
    let form = "version=0&fair_share_congestion_threshold_pct=80&was.fair_share_congestion_threshold_pct=0";
    let saved = bench
        .post("/settings", &format!("{form}&confirmed=yes"))
        .await;
    assert_eq!(saved.location(), "/settings?done=saved");

    let admission = bench.state.reload().configuration().admission();
    let patience = Duration::from_secs(30);
    let mut held = Vec::new();
    for _ in 0..5 {
        let demand = demand_of(&bench, "nightly");
        held.push(admission.admit(&demand, patience, || ()).await.unwrap());
    }
    bench.get("/").await.says("Congested: keys are held");
    let people = demand_of(&bench, "people");
    let waits = admission.admit(&people, patience, || ());
    tokio::pin!(waits);
    assert!(futures_util::poll!(&mut waits).is_pending());
    let page = bench.get("/").await;
    // 5 slots for two keys.
    let over = "<td class=\"number\">5<em class=\"is-over\">over its share</em></td>\
                <td class=\"number\">2</td><td class=\"number\">0</td>";
    page.says(&format!("translate=\"no\">nightly</a></th>{over}"));
    page.says("translate=\"no\">people</a></th><td class=\"number\">0</td><td class=\"number\">2</td><td class=\"number\">1</td>");
    held.truncate(3);
    drop(waits.await.unwrap());
    let page = bench.get("/").await;
    page.says("Not congested (from 4 on)");
    assert!(!page.text.contains("over its share"));
}

#[tokio::test]
async fn a_request_is_counted_and_timed_once_it_has_ended() {
    let bench = with_a_key().await;
    let now = clock::unix_millis();
    let entry = Entry {
        id: RequestId::from_u128(u128::from(now.unsigned_abs()) << 80),
        started_at: now,
        key: None,
        account: None,
        credential: None,
        endpoint: None,
        protocol: Some(Protocol::OpenAi),
        method: "POST".into(),
        path: "/v1/chat/completions".into(),
        model: None,
        upstream_model: None,
        status: Some(200),
        reason: None,
        outcome: Outcome::Ok,
        attempts: 1,
        request_bytes: 1,
        response_bytes: 1,
        queued_ms: None,
        headers_ms: Some(300),
        first_byte_ms: Some(340),
        total_ms: Some(400),
        input_tokens: None,
        output_tokens: None,
        cached_tokens: None,
        upstream_request_id: None,
        error: None,
    };
    assert!(bench.state.store().try_log(Box::new(entry)));
    bench.state.store().flush().await.unwrap();
    let page = bench.get("/").await;
    page.says("Requests by minute: 1 in all, at most 1 a minute");
    page.says("Half within 340 ms, 95 of 100 within 340 ms, from one answer.");
}

#[tokio::test]
async fn an_account_that_stands_aside_is_listed_with_its_state() {
    let bench = with_a_key().await;
    let id = bench.state.reload().configuration().pool().accounts()[0].id;
    let drained = bench.post(&format!("/pool/accounts/{id}/drain"), "").await;
    let place = format!("/pool?done=drained&at=accounts/{id}");
    assert_eq!(drained.location(), place);
    let pool = Arc::clone(&bench.state.reload().configuration().pool());
    assert_eq!(pool.accounts()[0].state, Standing::Draining);
    let page = bench.get("/").await;
    page.says(&format!(
        "href=\"/pool/accounts/{id}\" translate=\"no\">team</a>"
    ));
    page.says("<span>Drained</span>");
    page.says("No account takes work: every request is refused.");
    page.says("Open the pool");
}
