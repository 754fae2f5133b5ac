//! The single shot after a limit: who has it, what it proves, to whom it passes; and who a limit
//! holds back at all.
use crate::{
    hand::{Caller, Received, Way, within},
    harness::{Setup, World, chat, get, post},
    pool::{CHAT, limited, ranked, secret},
};
use fairlane::sim::{Act, Close, Record, Rule};
use futures_util::future::join_all;
use http::StatusCode;
use serde_json::{Value, json};

const NO_WAIT: (&str, &str) = ("FAIRLANE_CAPACITY_WAIT_SECONDS", "0");

fn slowly(act: Act) -> Act {
    Act {
        delay_headers_ms: Some(250),
        ..act
    }
}

/// Four clients wait for an account that cools; the oldest is to have the first shot. What it
/// comes to is `shot`'s; the shot after it is slow.
async fn waiting(world: &World, shot: Act) -> Vec<Caller> {
    world.sim.script([
        Rule::new(limited("1")).path(CHAT).times(1),
        Rule::new(shot).path(CHAT).times(1),
        Rule::new(slowly(Act::default())).path(CHAT).times(1),
    ]);
    let mut callers = Vec::new();
    for n in 1..=4 {
        callers.push(Caller::post(world.address(), CHAT, &chat(false).to_string()).await);
        let is_in = |(live, ..): (usize, usize, usize)| live >= n || !world.seen(CHAT).is_empty();
        world.until("a client to be there", is_in).await;
        if n == 1 {
            let is_parked = |(.., waiting): (usize, usize, usize)| waiting == 1;
            world.until("the oldest to wait", is_parked).await;
        }
    }
    callers
}

/// After the limit and the shot that said nothing, one more went alone, and then the rest.
fn check_passed(log: &[Record]) {
    assert_eq!(log.len(), 5, "{log:#?}");
    let second = &log[2];
    assert!(log[1].started_ms >= log[0].received_ms.unwrap() + 990);
    let verdict_at = second.answered_ms.unwrap();
    for later in &log[3..] {
        assert!(later.started_ms >= verdict_at, "{log:#?}");
    }
}

/// A shot that says nothing of the limit passes to the next; its own client sees `status`.
async fn check_says_nothing(shot: Act, status: u16) {
    let world = Setup::default()
        .env("FAIRLANE_BREAKER_FAILURE_THRESHOLD", "100")
        .start()
        .await;
    let callers = waiting(&world, slowly(shot)).await;
    let got: Vec<Received> = join_all(callers.into_iter().map(Caller::end)).await;
    let mut statuses: Vec<u16> = got.iter().map(Received::status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, status]);
    let log = world.seen(CHAT);
    check_passed(&log);
    assert!(log[2].started_ms >= log[1].finished_ms.unwrap(), "{log:#?}");
    let is_over = async || world.cooldowns().await.is_empty();
    world.eventually("the end of the cooldown", is_over).await;
    world.end().await;
}

#[tokio::test]
async fn a_shot_that_says_nothing_of_the_limit_passes_to_the_next() {
    check_says_nothing(Act::status(404), 404).await;
    check_says_nothing(Act::status(500), 500).await;
    check_says_nothing(Act::close(Close::BeforeHeaders), 502).await;
}

#[tokio::test]
async fn a_shot_whose_client_leaves_passes_to_the_next() {
    let world = World::start().await;
    let mut callers = waiting(&world, Act::delayed_ms(3_600_000)).await;
    let is_out = |log: &[Record]| log.len() == 2 && log[1].is_complete;
    world.sim.wait_for(is_out).await.unwrap();
    callers.remove(0).leave(Way::Reset);
    let got = join_all(callers.into_iter().map(Caller::end)).await;
    assert!(got.iter().all(|got| got.status() == 200), "{got:?}");
    check_passed(&world.seen(CHAT));
    world.end().await;
}

#[tokio::test]
async fn a_burst_that_meets_the_same_limit_is_one_step_and_not_many() {
    let world = World::start().await;
    world
        .sim
        .script([Rule::new(slowly(Act::status(429))).path(CHAT).times(10)]);
    let ask = chat(false).to_string();
    let mut callers = Vec::new();
    for _ in 0..10 {
        callers.push(Caller::post(world.address(), CHAT, &ask).await);
    }
    world.sim.wait_for(|log| log.len() == 10).await.unwrap();
    assert_eq!(world.cooldown("one").await.length_ms, 1000);
    let got = join_all(callers.into_iter().map(Caller::end)).await;
    assert!(got.iter().all(|got| got.status() == 200), "{got:?}");
    assert_eq!(world.seen(CHAT).len(), 20);
    world.end().await;
}

#[tokio::test]
async fn who_cannot_be_served_in_time_any_more_is_told_so_and_does_not_wait_in_vain() {
    let setup = Setup::default().env("FAIRLANE_CAPACITY_WAIT_SECONDS", "120");
    let world = setup.start().await;
    world.sim.script([
        Rule::new(limited("1")).path(CHAT).times(1),
        Rule::new(limited("1000")).path(CHAT),
    ]);
    let ask = chat(false).to_string();
    let mut callers = vec![Caller::post(world.address(), CHAT, &ask).await];
    world
        .until("the first to wait", |(_, _, waiting)| waiting == 1)
        .await;
    for _ in 0..3 {
        callers.push(Caller::post(world.address(), CHAT, &ask).await);
    }
    let all = join_all(callers.into_iter().map(Caller::end));
    for got in within("everybody to be told", all).await {
        assert_eq!(got.status(), 429);
        assert!(got.head.contains("\r\nretry-after: "), "{}", got.head);
    }
    assert_eq!(world.seen(CHAT).len(), 2);
    world.end().await;
}

#[tokio::test]
async fn who_comes_while_the_shot_is_out_waits_for_its_verdict_however_short_its_patience() {
    let setup = Setup::default().env("FAIRLANE_CAPACITY_WAIT_SECONDS", "5");
    let world = setup.start().await;
    world.sim.script([
        Rule::new(limited("1")).path(CHAT).times(1),
        Rule::new(slowly(Act::default())).path(CHAT).times(1),
    ]);
    let oldest = Caller::post(world.address(), CHAT, &chat(false).to_string()).await;
    world.sim.wait_for(|log| log.len() == 2).await.unwrap();
    let answer = world.post(CHAT, &chat(false)).await;
    assert_eq!((answer.status.as_u16(), answer.reason()), (200, ""));
    assert_eq!(oldest.end().await.status(), 200);
    world.end().await;
}

#[tokio::test]
async fn who_waits_for_a_slot_at_an_endpoint_that_begins_to_rest_is_told_so() {
    let world = Setup::default()
        .with("/accounts/0/stream_limit", json!(1))
        .env("FAIRLANE_ACCOUNT_STREAM_RESERVE", "0")
        .env("FAIRLANE_BREAKER_FAILURE_THRESHOLD", "1")
        .env("FAIRLANE_CAPACITY_WAIT_SECONDS", "120")
        .start()
        .await;
    let act = slowly(Act::status(503));
    world.sim.script([Rule::new(act).path(CHAT)]);
    let ask = chat(false);
    let answers = within(
        "both",
        join_all([world.post(CHAT, &ask), world.post(CHAT, &ask)]),
    )
    .await;
    let mut told: Vec<_> = answers
        .iter()
        .map(|a| (a.status.as_u16(), a.reason()))
        .collect();
    told.sort_unstable();
    assert_eq!(told, [(503, ""), (503, "no_serviceable_account")]);
    assert_eq!(world.seen(CHAT).len(), 1);
    world.end().await;
}

#[tokio::test]
async fn who_was_refused_elsewhere_waits_for_what_cools() {
    let world = ranked(&["two"]).start().await;
    world.sim.script([
        Rule::new(Act::status(529)).credential(&secret("one")),
        Rule::new(limited("1")).credential(&secret("two")).times(1),
    ]);
    let answer = world.post(CHAT, &chat(false)).await;
    assert_eq!((answer.status.as_u16(), answer.reason()), (200, ""));
    assert_eq!(world.asked(CHAT), ["one", "two", "two"]);
    world.end().await;
}

fn gemini(model: &str) -> String {
    format!("/v1beta/models/{model}:generateContent")
}

#[tokio::test]
async fn where_limits_are_by_model_the_others_go_on() {
    let world = Setup::default()
        .with("/accounts/0/cooldown_per_model", json!(true))
        .env(NO_WAIT.0, NO_WAIT.1)
        .start()
        .await;
    world
        .sim
        .script([Rule::new(limited("600")).path("models/busy:")]);
    let contents = json!({"contents": []});
    let go = async |model: &str| world.post(&gemini(model), &contents).await;
    assert_eq!(
        (
            go("busy").await.status.as_u16(),
            go("free").await.status.as_u16()
        ),
        (429, 200)
    );
    assert_eq!(go("busy").await.reason(), "account_cooling");
    assert_eq!(go("free").await.status, StatusCode::OK);
    assert_eq!(world.seen("models/busy").len(), 1);
    world.end().await;
}

#[tokio::test]
async fn a_limit_on_a_credential_of_two_accounts_cools_both() {
    let credential = |name: &str, accounts: &[&str], model: &str| json!({"name": name, "secret": secret(name), "accounts": accounts, "endpoints": ["sim"], "models": [{"model": model}]});
    let world = ranked(&["two", "three"])
        .with(
            "/credentials",
            json!([
                credential("both", &["one", "two"], "shared"),
                credential("one", &["one"], "m1"),
                credential("two", &["two"], "m2"),
                credential("three", &["three"], "m3"),
            ]),
        )
        .env(NO_WAIT.0, NO_WAIT.1)
        .start()
        .await;
    world
        .sim
        .script([Rule::new(limited("600")).credential(&secret("both"))]);
    let contents = json!({"contents": []});
    let go = async |model: &str| world.post(&gemini(model), &contents).await;
    for model in ["m1", "m2", "m3"] {
        assert_eq!(go(model).await.status, StatusCode::OK, "{model}");
    }
    assert_eq!(go("shared").await.status, 429);
    for model in ["shared", "m1", "m2"] {
        assert_eq!(go(model).await.reason(), "account_cooling", "{model}");
    }
    assert_eq!(go("m3").await.status, StatusCode::OK);
    world.end().await;
}

#[tokio::test]
async fn what_is_no_work_neither_begins_nor_ends_a_limit_and_is_not_held_back_by_one() {
    let world = Setup::default().env(NO_WAIT.0, NO_WAIT.1).start().await;
    let path = "/v1/files/file-1";
    let look = async |act: Act| {
        world.sim.clear_rules();
        world.sim.script([Rule::new(act).path(path)]);
        let before = world.seen(path).len();
        let answer = world.answer(get(path)).await;
        assert_eq!(answer.reason(), "");
        assert_eq!(world.seen(path).len(), before + 1, "asked more than once");
        answer.status.as_u16()
    };
    assert_eq!(look(limited("600")).await, 429);
    world.check_unharmed().await;
    world.sim.clear_rules();
    world.sim.script([Rule::new(limited("600")).path(CHAT)]);
    assert_eq!(world.post(CHAT, &chat(false)).await.status, 429);
    assert_eq!(look(Act::default().body("{}")).await, 200);
    assert_eq!(look(limited("1")).await, 429);
    let refused = world.post(CHAT, &chat(false)).await;
    assert_eq!(refused.reason(), "account_cooling");
    assert!(world.cooldown("one").await.ends_in_ms > 300_000);
    world.end().await;
}

#[tokio::test]
async fn work_of_every_kind_begins_a_limit_and_is_held_back_by_it() {
    let kinds: [(&str, Value); 4] = [
        ("/v1/embeddings", json!({"model": "m", "input": "x"})),
        (
            "/v1/images/generations",
            json!({"model": "m", "prompt": "x"}),
        ),
        (
            "/v1/messages",
            json!({"model": "m", "max_tokens": 1, "messages": []}),
        ),
        (CHAT, chat(true)),
    ];
    for (path, body) in &kinds {
        let world = Setup::default().env(NO_WAIT.0, NO_WAIT.1).start().await;
        world.sim.script([Rule::new(limited("600")).path(path)]);
        let first = world.answer(post(path, body.to_string())).await;
        assert_eq!((first.status.as_u16(), first.reason()), (429, ""), "{path}");
        for (other, body) in &kinds {
            let held = world.post(other, body).await;
            assert_eq!(held.reason(), "account_cooling", "{path} {other}");
        }
        assert_eq!(world.sim.log().len(), 1, "{path}");
        world.end().await;
    }
}
