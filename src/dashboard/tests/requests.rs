//! The request log in the browser: narrowing, paging, one request.
use super::*;
use crate::domain::{
    ids::{KeyId, RequestId},
    ledger::{Entry, Outcome},
    protocol::Protocol,
    reason::Reason,
};

const STARTED: i64 = 1_700_000_000_000;

pub(super) fn entry(n: u128) -> Entry {
    let is_refused = n == 7;
    Entry {
        id: RequestId::from_u128((u128::from(STARTED.unsigned_abs()) << 80) | n),
        started_at: STARTED,
        key: Some(KeyId::from_u128(n % 2)),
        account: None,
        credential: None,
        endpoint: None,
        protocol: Some(Protocol::OpenAi),
        method: "POST".into(),
        path: "/v1/chat/completions".into(),
        model: Some(format!("model-{n}.").into()),
        upstream_model: None,
        status: Some(if is_refused { 429 } else { 200 }),
        reason: is_refused.then_some(Reason::QueueFull),
        outcome: if is_refused {
            Outcome::Refused
        } else {
            Outcome::Ok
        },
        attempts: 1,
        request_bytes: 10,
        response_bytes: 20,
        queued_ms: Some(100),
        headers_ms: Some(1200),
        first_byte_ms: Some(1300),
        total_ms: Some(1500),
        input_tokens: None,
        output_tokens: None,
        cached_tokens: None,
        upstream_request_id: Some("up-1".into()),
        error: is_refused.then(|| "<script>x</script>".into()),
    }
}

/// With that many requests in the log.
async fn logged(count: u128) -> Bench {
    let bench = bench().await;
    bench.set_up().await;
    for n in 0..count {
        assert!(bench.state.store().try_log(Box::new(entry(n))));
    }
    bench.state.store().flush().await.unwrap();
    bench
}

/// The models of the rows that are shown, in their order.
fn models(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    let cells = answer.text.split(" translate=\"no\">model-").skip(1);
    cells
        .map(|cell| cell.split('.').next().unwrap().to_owned())
        .collect()
}

fn numbers(range: impl Iterator<Item = u128>) -> Vec<String> {
    range.map(|n| n.to_string()).collect()
}

#[tokio::test]
async fn every_request_is_on_one_page_and_the_newest_on_the_first() {
    let bench = logged(53).await;
    let first = bench.get("/requests").await;
    assert_eq!(models(&first), numbers((3..53).rev()));
    let older = first.text.split("rel=\"next\" href=\"").nth(1).unwrap();
    let older = older.split('"').next().unwrap();
    let second = bench.get(older).await;
    assert_eq!(models(&second), numbers((0..3).rev()));
    assert!(!second.text.contains("rel=\"next\""));
    second.says("href=\"/requests\">Newest requests");
}

#[tokio::test]
async fn the_list_is_narrowed_by_what_stands_in_the_address() {
    let bench = logged(9).await;
    let key = KeyId::from_u128(1);
    let check = async |query: &str, expect: &[&str]| {
        let answer = bench.get(&format!("/requests?{query}")).await;
        assert_eq!(models(&answer), expect, "{query}");
    };
    check("outcome=refused", &["7"]).await;
    check("status=4xx&key=&account=&outcome=", &["7"]).await;
    check(&format!("key={key}"), &["7", "5", "3", "1"]).await;
    check(&format!("key={key}&status=2xx"), &["5", "3", "1"]).await;
    for wrong in ["status=9xx", "key=ci", "outcome=good", "before=1"] {
        let answer = bench.get(&format!("/requests?{wrong}")).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{wrong}");
    }
}

#[tokio::test]
async fn an_empty_list_says_what_was_looked_at() {
    let bench = logged(0).await;
    bench
        .get("/requests")
        .await
        .says("No request in the log yet");
    let narrowed = bench.get("/requests?outcome=broken&status=5xx").await;
    narrowed.says("No request matches");
    narrowed.says("<li>Outcome: Broken off</li><li>Status: 5xx</li>");
    let old = format!("/requests?before={}", entry(0).id);
    bench.get(&old).await.says("There are no older requests");
}

#[tokio::test]
async fn one_request_says_why_it_ended_so_and_where_its_time_went() {
    let bench = logged(8).await;
    let page = bench.get(&format!("/requests/{}", entry(7).id)).await;
    page.says("The key had as many requests waiting as it may.");
    page.says("<code translate=\"no\">queue_full</code>");
    page.says("class=\"step-headers\" x=\"66\" width=\"734\"");
    page.says("<td class=\"number\">1,100</td><td class=\"number\">1,200</td>");
    page.says("up-1");
    page.says("removed (key_0000…0001)");
    assert!(!page.text.contains("<script>x"));
    for unknown in [entry(99).id.to_string(), "req_1".to_owned()] {
        let answer = bench.get(&format!("/requests/{unknown}")).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{unknown}");
    }
}
