//! What upstream limits, waits: as long as it was told to, as a whole, and nobody else with it.
use crate::{
    hand::{Caller, within},
    harness::{Answer, SECRET, Setup, World, chat, post, secret_of},
    pool::{CHAT, chat_with, key_of, limited, ranked, rows_and_last, secret},
};
use fairlane::{
    domain::{
        admission::Subject,
        pool::{DisabledReason, State},
    },
    sim::{Act, Encoding, Rule},
};
use futures_util::future::join_all;
use http::{Method, StatusCode};
use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};
use std::ops::RangeInclusive;

/// Each act in turn meets an account of its own, which is to cool for so many seconds; the
/// request is to be served by another within the same call.
async fn check_waits(rows: &[(Act, RangeInclusive<u64>)]) {
    let world = rows_and_last(rows.len()).start().await;
    for (n, (act, seconds)) in rows.iter().enumerate() {
        let name = format!("row{n}");
        world
            .sim
            .script([Rule::new(act.clone()).credential(&secret_of(&name))]);
        let answer = world.answer(chat_with(&key_of(n))).await;
        assert_eq!(answer.status, StatusCode::OK, "{act:?}: {answer:?}");
        let kept = world.cooldown(&name).await;
        let told = kept.told_in_ms.unwrap_or(0).max(kept.length_ms);
        assert!(
            (*seconds.start() * 1000..=*seconds.end() * 1000).contains(&told),
            "{act:?}: {kept:?}"
        );
        // Once more while it cools, where that is longer than this test may take.
        let goes_on = *seconds.start() > 60;
        if goes_on {
            let answer = world.answer(chat_with(&key_of(n))).await;
            assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        }
        let expect = [&*name, "last", "last"];
        let asked = world.asked(CHAT);
        let since = asked.len() - if goes_on { 3 } else { 2 };
        assert_eq!(asked[since..], expect[..asked.len() - since], "{act:?}");
    }
    world.end().await;
}

fn body(value: &Value) -> Act {
    Act::status(429)
        .header("content-type", "application/json")
        .body(value.to_string())
}

#[tokio::test]
async fn a_wait_that_is_given_as_a_date_is_kept_to_in_every_form() {
    let date = |format: &str| {
        let at = Timestamp::now() + 600.seconds();
        at.strftime(format).to_string()
    };
    let forms = [
        date("%a, %d %b %Y %H:%M:%S GMT"),
        date("%A, %d-%b-%y %H:%M:%S GMT"),
        date("%a %b %e %H:%M:%S %Y"),
        date("%a, %d %b %Y %H:%M:%S GMT").to_lowercase(),
    ];
    let rows = forms.map(|form| (limited(&form), 500..=600));
    check_waits(&rows).await;
}

#[tokio::test]
async fn a_wait_that_only_the_body_states_is_kept_to() {
    let in_ten_minutes = Timestamp::now().as_second() + 600;
    let message = |text: &str| body(&json!({"error": {"message": text, "type": "requests"}}));
    check_waits(&[
        (message("Please try again in 7m12s."), 432..=432),
        (message("Please try again in 850ms."), 1..=1),
        (
            body(&json!({"error": {"message": "x", "resets_at": in_ten_minutes}})),
            500..=600,
        ),
        (
            body(&json!({"error": {"message": "x", "resets_in_seconds": 700}})),
            700..=700,
        ),
        (
            body(
                &json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "410s"}]}}),
            ),
            410..=410,
        ),
        (
            Act::status(429).body("Your limit resets in 3 days"),
            259_100..=259_200,
        ),
        // A longer one in the header is not cut by what the body says.
        (
            message("try again in 2s").header("retry-after", "500"),
            500..=500,
        ),
        // What nobody can read is as good as no hint.
        (message("Come back when the moon is full."), 1..=1),
        (message("Slow down.").header("retry-after", "soon"), 1..=1),
    ])
    .await;
}

#[tokio::test]
async fn a_wait_in_a_packed_body_is_kept_to_as_well() {
    let packed = |encoding| Act {
        encoding: Some(encoding),
        ..body(&json!({"error": {"message": "x", "resets_in_seconds": 700}}))
    };
    check_waits(&[
        (packed(Encoding::Gzip), 700..=700),
        (packed(Encoding::Zstd), 700..=700),
    ])
    .await;
}

#[tokio::test]
async fn a_limit_without_a_code_is_a_limit_whatever_its_body_is() {
    let html = "<html><body>Too many requests</body></html>";
    check_waits(&[
        (
            body(&json!({"error": {"message": "Rate limit exceeded"}})),
            1..=1,
        ),
        (Act::status(429).body(""), 1..=1),
        (
            Act::status(429)
                .header("content-type", "text/html")
                .body(html),
            1..=1,
        ),
        (
            Act::status(429)
                .header("content-type", "text/plain")
                .body("slow down"),
            1..=1,
        ),
    ])
    .await;
}

#[tokio::test]
async fn the_only_accounts_limit_reaches_the_client_as_it_came_with_a_wait_of_a_minute_at_most() {
    let rows = [
        (limited("7"), "7"),
        (limited("3600"), "60"),
        (limited("Wed, 21 Oct 2099 07:28:00 GMT"), "60"),
        (Act::status(429), "1"),
    ];
    let alone = (0..rows.len()).map(|n| {
        let accounts = [format!("row{n}")];
        json!({"name": format!("key{n}"), "secret": key_of(n), "accounts": accounts})
    });
    let world = rows_and_last(rows.len())
        .with("/keys", alone.collect())
        .env("FAIRLANE_CAPACITY_WAIT_SECONDS", "0")
        .start()
        .await;
    let odd = "{ \"error\" : {\"message\":\"Rate limit exceeded\", \"x\": [1,  2]}}\n";
    for (n, (act, retry_after)) in rows.into_iter().enumerate() {
        let rule = Rule::new(act.body(odd)).credential(&secret_of(&format!("row{n}")));
        world.sim.script([rule]);
        let answer = world.answer(chat_with(&key_of(n))).await;
        assert_eq!((answer.status.as_u16(), answer.reason()), (429, ""));
        assert_eq!(answer.body, odd, "{retry_after}");
        assert_eq!(answer.header("retry-after"), retry_after);
        assert_eq!(world.seen(CHAT).len(), n + 1);
    }
    world.end().await;
}

/// Two requests meet limits at once: one that is told `at_once`, one that is told `later`.
async fn check_the_longer_counts(at_once: &str, later: &str) {
    let world = ranked(&["two"]).start().await;
    let slow = Act {
        delay_headers_ms: Some(300),
        ..limited(later)
    };
    world.sim.script([
        Rule::new(slow).credential(SECRET).times(1),
        Rule::new(limited(at_once)).credential(SECRET).times(1),
    ]);
    let first = Caller::post(world.address(), CHAT, &chat(false).to_string()).await;
    let arrived = |log: &[_]| log.len() == 1;
    world.sim.wait_for(arrived).await.unwrap();
    let second = world.post(CHAT, &chat(false)).await;
    assert_eq!(second.status, StatusCode::OK);
    assert_eq!(first.end().await.status(), 200);
    let is_long = async || world.cooldown("one").await.ends_in_ms > 300_000;
    world.eventually("the longer wait", is_long).await;
    assert_eq!(world.post(CHAT, &chat(false)).await.status, StatusCode::OK);
    assert_eq!(world.asked(CHAT), ["one", "one", "two", "two", "two"]);
    world.end().await;
}

#[tokio::test]
async fn of_two_waits_the_longer_counts_whichever_comes_first() {
    check_the_longer_counts("1", "600").await;
    check_the_longer_counts("600", "1").await;
}

/// One request on each surface.
fn surfaces() -> [(&'static str, Value, &'static str); 5] {
    let contents = json!({"contents": [{"parts": [{"text": "x"}]}]});
    [
        (CHAT, chat(true), "/error/code"),
        (
            "/v1/responses",
            json!({"model": "m", "input": "x"}),
            "/error/code",
        ),
        (
            "/v1/embeddings",
            json!({"model": "m", "input": "x"}),
            "/error/code",
        ),
        (
            "/v1/messages",
            json!({"model": "m", "max_tokens": 3, "messages": []}),
            "/error/type",
        ),
        (
            "/v1beta/models/m:generateContent",
            contents,
            "/error/status",
        ),
    ]
}

/// Refuses on each surface in its own shape, with such a wait, and asks nobody.
async fn check_refused(
    world: &World,
    (status, reason): (u16, &str),
    wait: RangeInclusive<u64>,
    words: [&str; 3],
) {
    let before = world.sim.log().len();
    for (path, ask, pointer) in surfaces() {
        let answer: Answer = world.post(path, &ask).await;
        assert_eq!(
            (answer.status.as_u16(), answer.reason()),
            (status, reason),
            "{path}: {answer:?}"
        );
        let shown = answer.json();
        let said = shown.pointer(pointer).unwrap().as_str().unwrap();
        assert!(words.contains(&said), "{path}: {shown}");
        let seconds: u64 = answer.header("retry-after").parse().unwrap();
        assert!(wait.contains(&seconds), "{path}: {seconds}");
    }
    assert_eq!(world.sim.log().len(), before, "somebody was asked");
}

#[tokio::test]
async fn while_every_account_cools_the_client_is_told_until_when_and_nobody_is_asked() {
    let world = ranked(&["two"])
        .env("FAIRLANE_CAPACITY_WAIT_SECONDS", "0")
        .start()
        .await;
    world.sim.script([
        Rule::new(limited("20")).credential(SECRET),
        Rule::new(limited("50")).credential(&secret("two")),
    ]);
    let first = world.post(CHAT, &chat(false)).await;
    assert_eq!((first.status.as_u16(), first.reason()), (429, ""));
    assert_eq!(world.asked(CHAT), ["one", "two"]);
    let limit = ["account_cooling", "rate_limit_error", "RESOURCE_EXHAUSTED"];
    check_refused(&world, (429, "account_cooling"), 1..=24, limit).await;
    let disable = async |name: &str| {
        let path = format!("/accounts/{}/disable", world.account(name).await.id);
        world.admin(Method::POST, &path, &Value::Null).await;
    };
    disable("one").await;
    check_refused(&world, (429, "account_cooling"), 25..=60, limit).await;
    disable("two").await;
    let out = ["no_serviceable_account", "overloaded_error", "UNAVAILABLE"];
    check_refused(&world, (503, "no_serviceable_account"), 1..=60, out).await;
    world.end().await;
}

#[tokio::test]
async fn limits_in_a_row_take_longer_each_time_and_a_success_begins_anew() {
    let world = World::start().await;
    world
        .sim
        .script([Rule::new(Act::status(429)).path(CHAT).times(2)]);
    assert_eq!(world.post(CHAT, &chat(false)).await.status, StatusCode::OK);
    let log = world.seen(CHAT);
    assert_eq!(log.len(), 3);
    let waited = |n: usize| log[n].started_ms - log[n - 1].received_ms.unwrap();
    assert!(waited(1) >= 990, "{}", waited(1));
    assert!(waited(2) >= 1990, "{}", waited(2));
    world
        .eventually("the end of it", async || world.cooldowns().await.is_empty())
        .await;
    world
        .sim
        .script([Rule::new(Act::status(429)).path(CHAT).times(1)]);
    let again = Caller::post(world.address(), CHAT, &chat(false).to_string()).await;
    assert_eq!(world.cooldown("one").await.length_ms, 1000);
    assert_eq!(again.end().await.status(), 200);
    assert_eq!(world.seen(CHAT).len(), 5);
    world.end().await;
}

#[tokio::test]
async fn a_stray_404_is_the_clients_to_see_and_nobodys_fault() {
    let world = World::start().await;
    let models = async || world.answer(crate::harness::get("/v1/models")).await.json();
    let before = models().await;
    for status in [404, 405, 410] {
        world
            .sim
            .script([Rule::new(Act::status(status).body("")).path(CHAT).times(1)]);
        let stray = world.post(CHAT, &chat(false)).await;
        assert_eq!((stray.status.as_u16(), stray.reason()), (status, ""));
        assert!(stray.body.is_empty());
        assert_eq!(world.post(CHAT, &chat(false)).await.status, StatusCode::OK);
    }
    assert_eq!(world.seen(CHAT).len(), 6);
    assert_eq!(models().await, before);
    world.check_unharmed().await;
    world.end().await;
}

/// Account "one" with two more credentials.
fn siblings() -> Setup {
    let credential = |name: &str, secret: String| json!({"name": name, "secret": secret, "accounts": ["one"], "endpoints": ["sim"]});
    Setup::default().with(
        "/credentials",
        json!([
            credential("one", secret("one")),
            credential("two", secret("two")),
            credential("three", secret("three")),
        ]),
    )
}

/// Several clients wait for an account that cools; `limits` is how often it is limited.
async fn check_single_shots(limits: u32) {
    let world = siblings().start().await;
    let shot = Act {
        delay_headers_ms: Some(300),
        ..Act::default()
    };
    world.sim.script([
        Rule::new(limited("1")).path(CHAT).times(limits),
        Rule::new(shot).path(CHAT).times(1),
    ]);
    let ask = chat(false).to_string();
    let mut callers = vec![Caller::post(world.address(), CHAT, &ask).await];
    world
        .until("the first to wait", |(_, _, waiting)| waiting == 1)
        .await;
    for _ in 0..8 {
        callers.push(Caller::post(world.address(), CHAT, &ask).await);
    }
    let done = join_all(callers.into_iter().map(Caller::end)).await;
    assert!(done.iter().all(|got| got.status() == 200), "{done:?}");
    let log = world.seen(CHAT);
    let limits = limits as usize;
    assert_eq!(log.len(), 9 + limits);
    for n in 1..=limits {
        let began = log[n - 1].received_ms.unwrap();
        assert!(log[n].started_ms >= began + 990, "{n} came too early");
    }
    let verdict_at = log[limits].answered_ms.unwrap();
    for later in &log[limits + 1..] {
        assert!(later.started_ms >= verdict_at, "{later:?}");
    }
    assert_eq!(
        world.sim.stats().len(),
        3,
        "all three keys are of use again"
    );
    world.end().await;
}

#[tokio::test]
async fn a_limit_on_any_key_stops_its_whole_account_and_exactly_one_shot_follows() {
    check_single_shots(1).await;
}

#[tokio::test]
async fn a_shot_that_meets_the_limit_again_lets_nobody_through() {
    check_single_shots(2).await;
}

#[tokio::test]
async fn a_limit_never_moves_a_request_to_a_neighbour_key_of_the_same_account() {
    let world = siblings()
        .env("FAIRLANE_CAPACITY_WAIT_SECONDS", "0")
        .start()
        .await;
    world.sim.script([Rule::new(limited("600")).path(CHAT)]);
    assert_eq!(world.post(CHAT, &chat(false)).await.status, 429);
    for _ in 0..5 {
        let refused = world.post(CHAT, &chat(false)).await;
        assert_eq!(refused.reason(), "account_cooling");
    }
    assert_eq!(world.seen(CHAT).len(), 1);
    world.end().await;
}

#[tokio::test]
async fn accounts_cool_apart_from_one_another() {
    let world = ranked(&["two"]).start().await;
    world
        .sim
        .script([Rule::new(limited("600")).credential(SECRET)]);
    let all = join_all((0..10).map(|_| world.answer(post(CHAT, chat(true).to_string())))).await;
    assert!(all.iter().all(|a| a.status == 200), "{all:?}");
    let before = world.asked(CHAT).len();
    for _ in 0..10 {
        assert_eq!(world.post(CHAT, &chat(false)).await.status, StatusCode::OK);
    }
    assert!(world.asked(CHAT)[before..].iter().all(|name| name == "two"));
    let one = Subject::Account(world.account("one").await.id);
    world.cooldown("one").await;
    let cools = world.cooldowns().await;
    assert_eq!(cools.iter().map(|(s, _)| *s).collect::<Vec<_>>(), [one]);
    world.end().await;
}

#[tokio::test]
async fn a_credential_without_an_account_cools_as_an_account_of_its_own() {
    let credential =
        |name: &str| json!({"name": name, "secret": secret(name), "endpoints": ["sim"]});
    let world = Setup::default()
        .with("/accounts", json!([]))
        .with(
            "/credentials",
            json!([credential("one"), credential("two")]),
        )
        .start()
        .await;
    world
        .sim
        .script([Rule::new(limited("600")).credential(SECRET)]);
    for _ in 0..6 {
        assert_eq!(world.post(CHAT, &chat(false)).await.status, StatusCode::OK);
    }
    let asked = world.asked(CHAT);
    assert_eq!(asked.iter().filter(|name| *name == "one").count(), 1);
    let cools = async || world.cooldowns().await.len();
    world
        .eventually("a cooldown", async || cools().await > 0)
        .await;
    assert_eq!(cools().await, 1);
    world.end().await;
}

#[tokio::test]
async fn an_account_that_limits_each_key_apart_cools_only_that_key() {
    let world = siblings()
        .with("/accounts/0/quota_scope", json!("credential"))
        .start()
        .await;
    world
        .sim
        .script([Rule::new(limited("600")).credential(SECRET)]);
    for _ in 0..9 {
        assert_eq!(world.post(CHAT, &chat(false)).await.status, StatusCode::OK);
    }
    let asked = world.asked(CHAT);
    let of = |name: &str| asked.iter().filter(|n| *n == name).count();
    assert_eq!((of("one"), of("two") + of("three")), (1, 9), "{asked:?}");
    let id = world.credential("one").await.id;
    let expect = [Subject::Credential(id)];
    let subjects = async || {
        let cools = world.cooldowns().await;
        cools.into_iter().map(|(s, _)| s).collect::<Vec<_>>()
    };
    world
        .eventually("its cooldown", async || subjects().await == expect)
        .await;
    world.end().await;
}

#[tokio::test]
async fn an_account_alone_is_waited_for_and_serves_after_its_limit() {
    let world = World::start().await;
    world
        .sim
        .script([Rule::new(limited("1")).path(CHAT).times(1)]);
    for stream in [true, false] {
        let answer = world.post(CHAT, &chat(stream)).await;
        assert_eq!((answer.status.as_u16(), answer.reason()), (200, ""));
    }
    assert_eq!(world.seen(CHAT).len(), 3);
    world
        .eventually("the end of it", async || world.cooldowns().await.is_empty())
        .await;
    world.end().await;
}

#[tokio::test]
async fn a_limit_that_ends_after_the_clients_patience_is_told_at_once() {
    let world = ranked(&[]).start().await;
    world.sim.script([Rule::new(limited("45")).path(CHAT)]);
    let told = within("an answer", world.post(CHAT, &chat(false))).await;
    assert_eq!(
        (told.status.as_u16(), told.header("retry-after")),
        (429, "45")
    );
    let refused = world.post(CHAT, &chat(false)).await;
    assert_eq!(refused.reason(), "account_cooling");
    world.end().await;
}

#[tokio::test]
async fn an_empty_purse_takes_its_account_out_and_a_stated_reset_only_cools_it() {
    let world = ranked(&["two", "three"]).start().await;
    let empty = Act {
        code: Some("insufficient_quota".to_owned()),
        ..Act::status(429)
    };
    let until = Act {
        code: Some("usage_limit_reached".to_owned()),
        ..limited("600")
    };
    world.sim.script([
        Rule::new(empty).credential(SECRET),
        Rule::new(until).credential(&secret("two")),
    ]);
    assert_eq!(world.post(CHAT, &chat(false)).await.status, StatusCode::OK);
    world
        .account_becomes("one", State::Disabled(DisabledReason::Billing))
        .await;
    assert_eq!(world.account("two").await.state, State::Active);
    assert!(world.cooldown("two").await.is_quota);
    assert_eq!(world.cooldowns().await.len(), 1);
    assert_eq!(world.asked(CHAT), ["one", "two", "three"]);
    world.end().await;
}
