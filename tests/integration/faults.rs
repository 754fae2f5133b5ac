//! What follows when upstream cannot be reached, takes a request and is gone, or says nothing.
use crate::harness::{Answer, SECRET, Setup, World, chat, secret_of};
use fairlane::{
    domain::{ledger::Outcome, reason::Reason},
    sim::{Act, Close, Rule},
};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpSocket;

const CHAT: &str = "/v1/chat/completions";

/// An address that refuses connections for as long as this lives: bound, and never listening.
struct Closed(TcpSocket);

impl Closed {
    fn new() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        Self(socket)
    }

    fn base_url(&self) -> String {
        format!("http://{}", self.0.local_addr().unwrap())
    }
}

fn message(answer: &Answer) -> String {
    answer.json()["error"]["message"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Account "one" is preferred and its endpoint is at `base`; account "two" works.
fn preferring(base: &str) -> Setup {
    let protocols = json!(["openai", "anthropic", "gemini"]);
    Setup::default()
        .account("two")
        .with(
            "/endpoints",
            json!([
                {"name": "first", "base_url": base, "protocols": protocols},
                {"name": "sim", "base_url": "{base}", "protocols": protocols},
            ]),
        )
        .with("/credentials/0/endpoints", json!(["first"]))
        .with("/accounts/1/priority", json!(1))
}

#[tokio::test]
async fn what_cannot_be_delivered_moves_to_another_account() {
    let closed = Closed::new();
    let world = preferring(&closed.base_url()).start().await;
    for (path, body) in [
        (CHAT, chat(false)),
        (CHAT, chat(true)),
        (
            "/v1/messages",
            json!({"model": "m", "max_tokens": 3, "messages": [{"role": "user", "content": "x"}]}),
        ),
        (
            "/v1beta/models/m:generateContent",
            json!({"contents": [{"parts": [{"text": "x"}]}]}),
        ),
    ] {
        let answer = world.post(path, &body).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {answer:?}");
        let log = world.sim.log();
        assert_eq!(log.last().unwrap().credential, Some(secret_of("two")));
        let row = world.ledger().await.swap_remove(0);
        assert_eq!((row.outcome, row.attempts), (Outcome::Ok, 2), "{path}");
    }
    assert_eq!(world.sim.log().len(), 4);
    world.end().await;
}

#[tokio::test]
async fn what_nobody_takes_is_unreachable_and_can_be_tried_again() {
    let closed = Closed::new();
    let world = Setup::default()
        .account("two")
        .with("/endpoints/0/base_url", json!(closed.base_url()))
        .start()
        .await;
    let answer = world.post(CHAT, &chat(false)).await;
    assert_eq!(
        (answer.status, answer.reason()),
        (StatusCode::BAD_GATEWAY, "upstream_unreachable")
    );
    assert_eq!(answer.header("x-should-retry"), "");
    let message = message(&answer);
    assert!(message.contains("not sent"), "{message}");
    let port = closed.0.local_addr().unwrap().port().to_string();
    assert!(!message.contains(&port), "an address leaked: {message}");
    let row = world.ledger().await.swap_remove(0);
    let told = (row.outcome, row.reason, row.attempts);
    assert_eq!(
        told,
        (Outcome::Failed, Some(Reason::UpstreamUnreachable), 2)
    );
    world.end().await;
}

#[tokio::test]
async fn a_key_of_one_account_moves_nowhere_else() {
    let closed = Closed::new();
    let setup = preferring(&closed.base_url()).with("/keys/0/accounts", json!(["one"]));
    let world = setup.start().await;
    let answer = world.post(CHAT, &chat(false)).await;
    assert_eq!(answer.reason(), "upstream_unreachable");
    assert!(world.seen(CHAT).is_empty());
    world.end().await;
}

/// Breaks a generation off like `act` says; two accounts could take it, and one request is sent.
async fn check_ambiguous(act: Act) {
    let world = Setup::default().account("two").start().await;
    // First on a fresh connection, then on ones that have served before.
    for warm_up in [0, 8] {
        for _ in 0..warm_up {
            assert_eq!(world.post(CHAT, &chat(false)).await.status, StatusCode::OK);
        }
        for (path, body) in [
            (CHAT, chat(true)),
            ("/v1/responses", json!({"model": "m", "input": "x"})),
            ("/v1/messages", json!({"model": "m", "max_tokens": 3})),
        ] {
            let before = world.sim.log().len();
            world
                .sim
                .script([Rule::new(act.clone()).path(path).times(1)]);
            let answer = world.post(path, &body).await;
            let told = (answer.status, answer.reason());
            assert_eq!(
                told,
                (StatusCode::BAD_GATEWAY, "upstream_ambiguous"),
                "{act:?}"
            );
            assert_eq!(answer.header("x-should-retry"), "false");
            assert!(message(&answer).contains("not repeated"));
            let log = world.sim.log();
            assert_eq!(log.len(), before + 1, "sent more than once: {act:?}");
            assert!(log[before].is_complete);
            let row = world.ledger().await.swap_remove(0);
            assert_eq!((row.outcome, row.attempts), (Outcome::Failed, 1));
        }
    }
    world.end().await;
}

#[tokio::test]
async fn a_request_that_may_have_arrived_is_never_sent_again() {
    check_ambiguous(Act::close(Close::BeforeHeaders)).await;
    check_ambiguous(Act::close(Close::BeforeHeaders).reset()).await;
    check_ambiguous(Act::close(Close::MidHeaders)).await;
    check_ambiguous(Act::raw("no HTTP at all\r\n\r\n")).await;
}

#[tokio::test]
async fn a_resting_connection_that_upstream_has_closed_costs_nobody_an_error() {
    let world = World::start().await;
    world
        .sim
        .script([Rule::new(Act::close(Close::AfterBody)).path(CHAT)]);
    for _ in 0..20 {
        let answer = world.post(CHAT, &chat(false)).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    }
    assert_eq!(world.seen(CHAT).len(), 20);
    world.end().await;
}

#[tokio::test]
async fn silence_before_the_headers_ends_in_a_timeout_and_no_second_attempt() {
    let world = Setup::default()
        .account("two")
        .env("FAIRLANE_HEADER_TIMEOUT_SECONDS", "1")
        .start()
        .await;
    world.sim.script([Rule::new(Act::delayed_ms(3_600_000))]);
    let answer = world.post(CHAT, &chat(false)).await;
    assert_eq!(
        (answer.status, answer.reason()),
        (StatusCode::GATEWAY_TIMEOUT, "upstream_timeout")
    );
    assert_eq!(answer.header("x-should-retry"), "false");
    let log = world
        .sim
        .wait_for(|log| log.iter().all(|r| r.closed.is_some()))
        .await
        .unwrap();
    assert_eq!(log.len(), 1, "sent more than once");
    let row = world.ledger().await.swap_remove(0);
    assert_eq!(
        (row.outcome, row.reason),
        (Outcome::Failed, Some(Reason::UpstreamTimeout))
    );
    world.end().await;
}

#[tokio::test]
async fn silence_within_an_answer_cuts_it_off() {
    let world = Setup::default()
        .env("FAIRLANE_IDLE_TIMEOUT_SECONDS", "1")
        .start()
        .await;
    let act = Act {
        stall_after: Some(1),
        ..Act::chunks(include_str!("golden/chat.sse").split_inclusive("\n\n"))
    };
    world.sim.script([Rule::new(act)]);
    let response = world
        .send(crate::harness::post(CHAT, chat(true).to_string()))
        .await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(
        http_body_util::BodyExt::collect(response.into_body())
            .await
            .is_err()
    );
    world
        .sim
        .wait_for(|log| log.iter().all(|r| r.closed.is_some()))
        .await
        .unwrap();
    assert_eq!(world.ledger().await[0].outcome, Outcome::Broken);
    world.end().await;
}

#[tokio::test]
async fn nobody_is_told_to_stay_away_for_more_than_a_minute() {
    let world = World::start().await;
    let check = async |said: &str, expect: &str| {
        world.sim.clear_rules();
        world
            .sim
            .script([Rule::new(Act::status(400).header("retry-after", said))]);
        let answer = world.post(CHAT, &chat(false)).await;
        assert_eq!(answer.header("retry-after"), expect, "{said}");
    };
    check("7", "7").await;
    check("60", "60").await;
    check("61", "60").await;
    check("86400", "60").await;
    check("99999999999999999999999", "60").await;
    check("3600.5", "60").await;
    check("Wed, 21 Oct 2099 07:28:00 GMT", "60").await;
    check(
        "Wed, 21 Oct 2015 07:28:00 GMT",
        "Wed, 21 Oct 2015 07:28:00 GMT",
    )
    .await;
    check("soon", "soon").await;
    world.end().await;
}

#[tokio::test]
async fn upstreams_own_refusal_of_a_credential_is_not_taken_for_the_clients() {
    let mut setup = Setup::default();
    setup.sim.allowed = Some(vec!["sk-something-else-000".to_owned()]);
    let world = setup.start().await;
    let answer = world.post(CHAT, &chat(false)).await;
    assert_eq!(
        (answer.status, answer.reason()),
        (StatusCode::UNAUTHORIZED, "")
    );
    let row = world.ledger().await.swap_remove(0);
    assert_eq!((row.outcome, row.status), (Outcome::Failed, Some(401)));
    let shown: Value = answer.json();
    assert!(!shown.to_string().contains(SECRET) && !format!("{row:?}").contains(SECRET));
    world.end().await;
}
