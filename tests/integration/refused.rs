//! What upstream refuses, and whose fault that is: a client's, a credential's, a purse's, an
//! endpoint's, or everybody's at once.
use crate::{
    hand::Caller,
    harness::{Setup, World, chat, get, post, request, sha256},
    pool::{CHAT, ranked, secret},
};
use fairlane::{
    clock::Instant,
    domain::{
        pool::{DisabledReason, State},
        settings::Layer,
    },
    reload::Reload,
    sim::{Act, Encoding, Framing, Rule},
    standing::{self, Pace},
    store::Store,
    upstream::Client,
};
use futures_util::future::{join, join_all};
use http::{Method, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

const AUTH: State = State::Disabled(DisabledReason::Auth);
const BILLING: State = State::Disabled(DisabledReason::Billing);

#[tokio::test]
async fn a_clients_mistake_is_its_own_and_nobody_elses() {
    let world = ranked(&["two", "three"]).start().await;
    let marked = "/v1/responses";
    let error = r#"{"error": {"message":"no such thing",  "type":"invalid_request_error"}}"#;
    for status in [400, 403, 404, 409, 413, 415, 422] {
        world.sim.clear_rules();
        let act = Act::status(status).header("content-type", "application/json");
        world.sim.script([Rule::new(act.body(error)).path(marked)]);
        let before = world.seen(marked).len();
        let wrong = json!({"model": "m", "input": "wrong"});
        let wrong = join_all((0..30).map(|_| world.post(marked, &wrong)));
        let right = chat(false);
        let right = join_all((0..10).map(|_| world.post(CHAT, &right)));
        let (wrong, right) = join(wrong, right).await;
        for answer in wrong {
            assert_eq!((answer.status.as_u16(), answer.reason()), (status, ""));
            assert_eq!(answer.body, error);
        }
        assert!(right.iter().all(|a| a.status == 200), "{status}: {right:?}");
        let seen = world.seen(marked).len() - before;
        assert_eq!(seen, 30, "{status}: one attempt each");
    }
    world.check_unharmed().await;
    world.end().await;
}

#[tokio::test]
async fn a_path_or_method_that_does_not_exist_asks_nobody_and_harms_nobody() {
    let world = ranked(&["two"]).start().await;
    let check = async |method: Method, path: &str, status: u16| {
        for _ in 0..10 {
            let asked = request(method.clone(), path).body(Full::from("{}"));
            let answer = world.answer(asked.unwrap()).await;
            assert_eq!(answer.status.as_u16(), status, "{method} {path}");
        }
    };
    check(Method::POST, "/v1/chat/complete", 404).await;
    check(Method::POST, "/v1/v1/chat/completions", 404).await;
    check(Method::POST, "/v1/", 404).await;
    check(Method::GET, CHAT, 405).await;
    check(Method::DELETE, "/v1/messages", 405).await;
    assert!(world.sim.log().is_empty());
    assert_eq!(world.post(CHAT, &chat(false)).await.status, StatusCode::OK);
    world.check_unharmed().await;
    world.end().await;
}

#[tokio::test]
async fn a_refused_credential_is_taken_out_once_and_its_clients_are_served_elsewhere() {
    let world = ranked(&["two"]).start().await;
    let refusal = Act {
        message: Some("this key is not known".to_owned()),
        ..Act::status(401)
    };
    let held = Act {
        delay_headers_ms: Some(200),
        ..refusal
    };
    world
        .sim
        .script([Rule::new(held).credential(&secret("one"))]);
    let all = (0..10).map(|n| world.answer(post(CHAT, chat(n % 2 == 0).to_string())));
    for answer in join_all(all).await {
        assert_eq!((answer.status.as_u16(), answer.reason()), (200, ""));
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(!body.contains("not known"), "{body}");
    }
    world.credential_becomes("one", AUTH).await;
    let asked = world.asked(CHAT).len();
    for _ in 0..5 {
        assert_eq!(world.post(CHAT, &chat(false)).await.status, StatusCode::OK);
    }
    assert_eq!(world.asked(CHAT)[asked..], ["two"; 5]);
    let id = world.credential("one").await.id.to_string();
    let done = world.done_by_upstream().await;
    assert_eq!(done, [("disable_credential".to_owned(), id)]);
    assert_eq!(world.account("one").await.state, State::Active);
    world.end().await;
}

#[tokio::test]
async fn a_refusal_of_the_old_secret_says_nothing_of_the_new_one() {
    let world = World::start().await;
    let late = Act {
        delay_headers_ms: Some(500),
        ..Act::status(401)
    };
    world
        .sim
        .script([Rule::new(late).credential(&secret("one"))]);
    let asked = Caller::post(world.address(), CHAT, &chat(false).to_string()).await;
    world.sim.wait_for(|log| log.len() == 1).await.unwrap();
    let path = format!("/credentials/{}/rotate", world.credential("one").await.id);
    let fresh = json!({"secret": "sk-upstream-number-fresh"});
    world.admin(Method::POST, &path, &fresh).await;
    assert!(asked.end().await.status() < 500);
    // Whatever is still to be kept is kept by the stop.
    let world = world.restart(&[]).await;
    world.check_unharmed().await;
    assert_eq!(world.post(CHAT, &chat(false)).await.status, StatusCode::OK);
    world.end().await;
}

#[tokio::test]
async fn a_refusal_of_a_list_that_the_instance_asked_for_disables_nobody() {
    let world = ranked(&["two"]).start().await;
    world
        .sim
        .script([Rule::new(Act::status(401)).path("/v1/models")]);
    for _ in 0..3 {
        world.answer(get("/v1/models")).await;
    }
    assert!(!world.seen("/v1/models").is_empty());
    world.check_unharmed().await;
    assert_eq!(world.post(CHAT, &chat(false)).await.status, StatusCode::OK);
    world.end().await;
}

#[tokio::test]
async fn an_error_of_any_length_and_coding_is_understood_and_passed_on_whole() {
    let world = World::start().await;
    let long = json!({"error": {"message": "x".repeat(300_000), "type": "t"}}).to_string();
    for framing in [Framing::ContentLength, Framing::Chunked] {
        for encoding in [None, Some(Encoding::Gzip), Some(Encoding::Zstd)] {
            world.sim.clear_rules();
            let act = Act {
                framing: Some(framing),
                encoding,
                split_every: Some(7000),
                ..Act::status(400).body(long.clone())
            };
            world.sim.script([Rule::new(act).path(CHAT)]);
            let answer = world.post(CHAT, &chat(false)).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST);
            let said = answer.header("content-encoding").to_owned();
            assert_eq!(said, encoding.map_or("", Encoding::name));
            let length = answer.body.len();
            match encoding {
                None => assert_eq!(answer.body, long),
                Some(_) => assert!((50..3000).contains(&length), "{length}"),
            }
        }
    }
    world.check_unharmed().await;
    world.end().await;
}

/// Account "one" with a second credential, and account "two" after it.
fn two_keys() -> Setup {
    let mut setup = ranked(&["two"]);
    let neighbour = json!({"name": "neighbour", "secret": secret("neighbour"), "accounts": ["one"], "endpoints": ["sim"]});
    let credentials = setup.pool["credentials"].as_array_mut();
    credentials.unwrap().push(neighbour);
    setup
}

#[tokio::test]
async fn a_refused_credential_does_not_take_its_neighbours_along() {
    let world = two_keys().start().await;
    world
        .sim
        .script([Rule::new(Act::status(401)).credential(&secret("one"))]);
    for _ in 0..4 {
        assert_eq!(world.post(CHAT, &chat(false)).await.status, StatusCode::OK);
    }
    world.credential_becomes("one", AUTH).await;
    assert_eq!(world.credential("neighbour").await.state, State::Active);
    assert!(!world.asked(CHAT).contains(&"two".to_owned()));
    world.end().await;
}

#[tokio::test]
async fn an_unpaid_account_is_taken_out_with_all_its_credentials() {
    let world = two_keys().start().await;
    world.sim.script([
        Rule::new(Act::status(402)).credential(&secret("one")),
        Rule::new(Act::status(402)).credential(&secret("neighbour")),
    ]);
    assert_eq!(world.post(CHAT, &chat(false)).await.status, StatusCode::OK);
    world.account_becomes("one", BILLING).await;
    let asked = world.asked(CHAT);
    assert_eq!((asked.len(), &*asked[1]), (2, "two"));
    assert_eq!(world.post(CHAT, &chat(false)).await.status, StatusCode::OK);
    assert_eq!(world.asked(CHAT)[2..], ["two"]);
    assert_eq!(world.credential("one").await.state, State::Active);
    let id = world.account("one").await.id.to_string();
    let done = world.done_by_upstream().await;
    assert_eq!(done, [("disable_account".to_owned(), id)]);
    assert_eq!(world.cooldowns().await, []);
    world.end().await;
}

#[tokio::test]
async fn where_nobody_is_left_the_last_real_answer_is_what_the_client_sees() {
    let world = ranked(&["two"]).start().await;
    let act = |status: u16, body: &str| {
        Act::status(status)
            .header("content-type", "application/json")
            .header("retry-after", "3600")
            .header("x-of-upstream", "kept")
            .body(body.to_owned())
    };
    let last = "{ \"error\":{\"message\":  \"bad key\"} }";
    world.sim.script([
        Rule::new(act(529, "{}")).credential(&secret("one")),
        Rule::new(act(401, last)).credential(&secret("two")),
    ]);
    let answer = world.post(CHAT, &chat(false)).await;
    assert_eq!((answer.status.as_u16(), answer.reason()), (401, ""));
    assert_eq!(sha256(&answer.body), sha256(last.as_bytes()));
    assert_eq!(answer.header("x-of-upstream"), "kept");
    assert_eq!(answer.header("retry-after"), "60");
    assert_eq!(world.asked(CHAT), ["one", "two"]);
    world.end().await;
}

/// Account "one" reaches two endpoints, of which the first is preferred by nobody; account "two"
/// only the first.
fn two_endpoints() -> Setup {
    let protocols = json!(["openai"]);
    ranked(&["two"])
        .with(
            "/endpoints",
            json!([
                {"name": "sim", "base_url": "{base}", "protocols": protocols},
                {"name": "alt", "base_url": "{base}/alt", "protocols": protocols},
            ]),
        )
        .with("/credentials/0/endpoints", json!(["alt"]))
        .with("/credentials/1/endpoints", json!(["sim"]))
        .env("FAIRLANE_BREAKER_FAILURE_THRESHOLD", "3")
}

#[tokio::test]
async fn failures_of_an_endpoint_make_it_rest_and_nothing_else() {
    for status in [503, 529, 521, 522, 523, 525, 526, 530] {
        let world = two_endpoints().start().await;
        world
            .sim
            .script([Rule::new(Act::status(status)).path("/alt/")]);
        for _ in 0..6 {
            let answer = world.post(CHAT, &chat(false)).await;
            assert_eq!(answer.status, StatusCode::OK, "{status}: {answer:?}");
        }
        assert_eq!(world.seen("/alt/").len(), 3, "{status}");
        world.check_unharmed().await;
        world.end().await;
    }
}

#[tokio::test]
async fn failures_that_may_have_cost_something_are_passed_on_and_count_as_well() {
    for status in [500, 502, 504, 520, 524, 527] {
        let world = two_endpoints().start().await;
        world
            .sim
            .script([Rule::new(Act::status(status)).path("/alt/")]);
        for n in 1..=3 {
            let answer = world.post(CHAT, &chat(false)).await;
            assert_eq!((answer.status.as_u16(), answer.reason()), (status, ""));
            assert_eq!(world.seen(CHAT).len(), n, "sent more than once");
        }
        assert_eq!(world.post(CHAT, &chat(false)).await.status, StatusCode::OK);
        assert_eq!(world.seen("/alt/").len(), 3, "{status}");
        world.check_unharmed().await;
        world.end().await;
    }
}

#[tokio::test]
async fn limits_and_refusals_never_make_an_endpoint_rest() {
    let world = ranked(&["two", "three", "four"])
        .env("FAIRLANE_BREAKER_FAILURE_THRESHOLD", "1")
        .env("FAIRLANE_MAX_ATTEMPTS", "10")
        .start()
        .await;
    world.sim.script([
        Rule::new(crate::pool::limited("600")).credential(&secret("one")),
        Rule::new(Act::status(401)).credential(&secret("two")),
        Rule::new(Act::status(402)).credential(&secret("three")),
        Rule::new(Act::status(404)).path("/v1/responses"),
    ]);
    let wrong = json!({"model": "m", "input": "x"});
    for _ in 0..3 {
        assert_eq!(world.post(CHAT, &chat(false)).await.status, StatusCode::OK);
        assert_eq!(world.post("/v1/responses", &wrong).await.status, 404);
    }
    world.end().await;
}

#[tokio::test]
async fn an_endpoint_that_rests_is_told_apart_from_a_limit_and_asks_nobody() {
    let world = Setup::default()
        .env("FAIRLANE_BREAKER_FAILURE_THRESHOLD", "2")
        .start()
        .await;
    world.sim.script([Rule::new(Act::status(503)).path(CHAT)]);
    for _ in 0..2 {
        assert_eq!(world.post(CHAT, &chat(false)).await.reason(), "");
    }
    for _ in 0..3 {
        let answer = world.post(CHAT, &chat(false)).await;
        assert_eq!(
            (answer.status.as_u16(), answer.reason()),
            (503, "no_serviceable_account")
        );
        let seconds: u64 = answer.header("retry-after").parse().unwrap();
        assert!((1..=60).contains(&seconds));
        let message = answer.json()["error"]["message"].to_string();
        assert!(message.contains("1 rest"), "{message}");
    }
    assert_eq!(world.seen(CHAT).len(), 2);
    world.check_unharmed().await;
    world.end().await;
}

/// Tests refused credentials again and again, at a pace for tests, until `done`.
async fn retested(world: &World, done: impl AsyncFn() -> bool) {
    let pace = Pace {
        look_every: Duration::from_millis(20),
        wait: |_| Duration::from_millis(40),
    };
    let db = world.db();
    let open = move || {
        let store = Store::open(&db).unwrap();
        let reload = Reload::first(&store, Layer::default()).unwrap();
        (store, reload)
    };
    let (store, reload) = fairlane::blocking::run(open).await.unwrap();
    let watch = fairlane::tasks::spawn("another's reload", reload.clone().watch());
    let tests = standing::retest(store.clone(), reload, Arc::new(Client::default()), pace);
    let tests = fairlane::tasks::spawn("tests of credentials", tests);
    world.eventually("tests to have their effect", done).await;
    for task in [watch, tests] {
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
    }
    fairlane::blocking::run(move || store.close())
        .await
        .unwrap();
}

/// Asks until nobody is left.
async fn use_up(world: &World, names: &[&str]) {
    let began = Instant::now();
    while world.post(CHAT, &chat(false)).await.reason() != "no_serviceable_account" {
        assert!(began.elapsed() < Duration::from_secs(30), "never used up");
    }
    for name in names {
        world.credential_becomes(name, AUTH).await;
    }
}

#[tokio::test]
async fn credentials_that_were_all_refused_come_back_by_themselves_once_upstream_takes_them() {
    let world = ranked(&["two", "three"]).start().await;
    // The operator's own decision stands, whatever a test would say.
    let by_hand = format!("/credentials/{}/disable", world.credential("two").await.id);
    world.admin(Method::POST, &by_hand, &Value::Null).await;
    world.sim.script([Rule::new(Act::status(401))]);
    use_up(&world, &["one", "three"]).await;
    world.sim.clear_rules();
    // One of them is still refused: that says nothing of the other.
    world
        .sim
        .script([Rule::new(Act::status(401)).credential(&secret("three"))]);
    let tested = |name: &'static str| {
        let secret = secret(name);
        let lists = world.seen("/v1/models");
        lists
            .iter()
            .filter(|r| r.credential.as_deref() == Some(&*secret))
            .count()
    };
    let before = (tested("two"), tested("three"));
    retested(&world, async || {
        world.credential("one").await.state == State::Active && tested("three") >= before.1 + 2
    })
    .await;
    let operator = State::Disabled(DisabledReason::Operator);
    assert_eq!(world.credential("two").await.state, operator);
    assert_eq!(world.credential("three").await.state, AUTH);
    assert_eq!(tested("two"), before.0);
    let serves = async || world.post(CHAT, &chat(false)).await.status == 200;
    world.eventually("traffic", serves).await;
    let asked = world.asked(CHAT);
    assert_eq!(asked.last().map(String::as_str), Some("one"));
    let done = world.done_by_upstream().await;
    let enabled: Vec<_> = done
        .iter()
        .filter(|(what, _)| what.starts_with("enable"))
        .collect();
    assert_eq!(enabled.len(), 1, "{done:?}");
    world.end().await;
}

#[tokio::test]
async fn an_outage_of_a_whole_provider_leaves_a_way_back() {
    let names = ["two", "three", "four", "five"];
    // A breaker that trips would hide what the statuses do.
    let world = ranked(&names)
        .env("FAIRLANE_BREAKER_FAILURE_THRESHOLD", "100")
        .start()
        .await;
    for status in [404, 403, 500] {
        world.sim.clear_rules();
        world.sim.script([Rule::new(Act::status(status))]);
        for _ in 0..10 {
            let answer = world.post(CHAT, &chat(false)).await;
            assert_eq!((answer.status.as_u16(), answer.reason()), (status, ""));
        }
        assert_eq!(world.answer(get("/v1/models")).await.reason(), "");
        world.sim.clear_rules();
        assert_eq!(world.post(CHAT, &chat(false)).await.status, StatusCode::OK);
        world.check_unharmed().await;
    }
    world.sim.script([Rule::new(Act::status(401))]);
    use_up(&world, &names).await;
    world.sim.clear_rules();
    retested(&world, async || {
        let all = world.app.store().credentials().await.unwrap();
        all.iter().all(|c| c.state == State::Active)
    })
    .await;
    let serves = async || world.post(CHAT, &chat(false)).await.status == 200;
    world.eventually("traffic", serves).await;
    world.check_unharmed().await;
    world.end().await;
}
