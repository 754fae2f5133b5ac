//! Endpoints that do not speak WebSocket: found out once, and not asked again.
use super::{Socket, ask};
use crate::harness::{KEY, Setup, World, secret_of};
use fairlane::{
    domain::{ledger::Outcome, pool::State},
    sim::{Act, Rule},
};
use http::Method;
use serde_json::json;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// The provider refuses every upgrade below `path`.
fn refuse(world: &World, path: &str, status: u16) {
    world
        .sim
        .script([Rule::new(Act::status(status)).method("GET").path(path)]);
}

/// How often an upgrade was asked for below `path`.
fn asked(world: &World, path: &str) -> usize {
    let seen = world.seen(path);
    seen.iter().filter(|r| r.method == "GET").count()
}

/// The first line of the answer to a request for a socket.
async fn upgrade(world: &World, target: &str) -> String {
    let key = format!("Bearer {KEY}");
    let (head, _) = ask(world, target, &[("authorization", &key)]).await;
    head.lines().next().unwrap().to_owned()
}

/// An account that is preferred at an endpoint below `/mute`, and one at an endpoint that speaks.
fn mute_and_speaking() -> Setup {
    let mut setup = Setup::default().account("two");
    let row = json!({"name": "mute", "base_url": "{base}/mute", "protocols": ["openai"]});
    setup.pool["endpoints"].as_array_mut().unwrap().push(row);
    setup
        .with("/credentials/0/endpoints", json!(["mute"]))
        .with("/accounts/1/priority", json!(1))
}

#[tokio::test]
async fn a_turn_at_an_endpoint_without_websocket_closes_and_the_next_upgrade_is_sent_to_http() {
    for status in [200, 302, 400, 404, 405, 426, 501] {
        let world = World::start().await;
        refuse(&world, "/v1/responses", status);
        let mut socket = Socket::open(&world, "/v1/responses").await;
        socket.create(&json!({})).await;
        let frame = socket.closed().await.unwrap();
        assert_eq!(frame.code, CloseCode::Again, "{status}");
        assert!(frame.reason.contains("HTTP"), "{frame:?}");
        let row = world.last_row().await;
        assert_eq!((row.outcome, row.status), (Outcome::Refused, Some(426)));
        drop(socket);
        for _ in 0..2 {
            let answer = upgrade(&world, "/v1/responses").await;
            assert!(answer.starts_with("http/1.1 426 "), "{status}: {answer}");
        }
        assert_eq!(asked(&world, "/v1/responses"), 1, "{status}");
        let body = json!({"model": "m", "input": "say a word"});
        assert_eq!(world.post("/v1/responses", &body).await.status, 200);
        world.end().await;
    }
}

#[tokio::test]
async fn a_turn_goes_on_to_an_endpoint_that_speaks_and_later_ones_go_there_at_once() {
    let world = mute_and_speaking().start().await;
    refuse(&world, "/mute/v1/responses", 404);
    for _ in 0..3 {
        let mut socket = Socket::open(&world, "/v1/responses").await;
        assert_eq!(socket.turn(&json!({})).await["type"], "response.completed");
    }
    assert_eq!(asked(&world, "/mute/v1/responses"), 1);
    let turns = world.seen("/v1/responses");
    let turns = turns.iter().filter(|r| r.method == "WS");
    assert!(
        turns
            .clone()
            .all(|r| r.credential == Some(secret_of("two")))
    );
    assert_eq!(turns.count(), 3);
    world.end().await;
}

#[tokio::test]
async fn what_only_an_endpoint_without_websocket_serves_is_sent_to_http_and_the_rest_is_not() {
    let world = mute_and_speaking()
        .with("/credentials/0/models", json!([{"model": "rare"}]))
        .with("/credentials/1/models", json!([{"model": "m"}]))
        .start()
        .await;
    refuse(&world, "/mute/v1/responses", 405);
    for _ in 0..2 {
        let mut socket = Socket::open(&world, "/v1/responses").await;
        socket.create(&json!({"model": "rare"})).await;
        assert_eq!(socket.closed().await.unwrap().code, CloseCode::Again);
        drop(socket);
    }
    assert_eq!(asked(&world, "/mute/v1/responses"), 1);
    let mut socket = Socket::open(&world, "/v1/responses").await;
    assert_eq!(socket.turn(&json!({})).await["type"], "response.completed");
    drop(socket);
    world.end().await;
}

#[tokio::test]
async fn an_endpoint_is_asked_again_once_its_configuration_changes() {
    let world = World::start().await;
    world.sim.script([Rule::new(Act::status(404))
        .method("GET")
        .path("/v1/responses")
        .times(1)]);
    let mut socket = Socket::open(&world, "/v1/responses").await;
    socket.create(&json!({})).await;
    socket.closed().await;
    drop(socket);
    let answer = upgrade(&world, "/v1/responses").await;
    assert!(answer.starts_with("http/1.1 426 "), "{answer}");
    let id = world.app.store().endpoints().await.unwrap()[0].id;
    let headers = json!({"headers": {"x-route": "b"}});
    world
        .admin(Method::PATCH, &format!("/endpoints/{id}"), &headers)
        .await;
    let mut socket = Socket::open(&world, "/v1/responses").await;
    assert_eq!(socket.turn(&json!({})).await["type"], "response.completed");
    drop(socket);
    world.end().await;
}

#[tokio::test]
async fn an_upgrade_that_is_refused_for_who_asks_or_when_is_no_sign_of_a_missing_websocket() {
    for status in [401, 403, 429, 503] {
        let world = Setup::default().account("two").start().await;
        let refusal = Act::status(status).header("retry-after", "30");
        world.sim.script([Rule::new(refusal)
            .method("GET")
            .path("/v1/responses")
            .times(1)]);
        let mut socket = Socket::open(&world, "/v1/responses").await;
        let told = socket.turn(&json!({})).await;
        // What another account can do moves; the rest is for the client to read.
        match status {
            403 => assert_eq!(told["status"], 403, "{told}"),
            _ => assert_eq!(told["type"], "response.completed", "{status}: {told}"),
        }
        if status == 401 {
            let used = world.seen("/v1/responses")[0].credential.clone();
            let name = if used == Some(secret_of("two")) {
                "two"
            } else {
                "one"
            };
            let reason = fairlane::domain::pool::DisabledReason::Auth;
            world
                .credential_becomes(name, State::Disabled(reason))
                .await;
        }
        let answer = upgrade(&world, "/v1/responses").await;
        assert!(answer.starts_with("http/1.1 101 "), "{status}: {answer}");
        drop(socket);
        world.end().await;
    }
}

#[tokio::test]
async fn a_session_moves_off_an_endpoint_without_websocket_and_learns_of_its_end_by_status() {
    let world = mute_and_speaking().start().await;
    refuse(&world, "/mute/v1/realtime", 405);
    for _ in 0..2 {
        let mut socket = Socket::open(&world, "/v1/realtime?model=m").await;
        assert_eq!(socket.event().await["type"], "session.created");
    }
    assert_eq!(asked(&world, "/mute/v1/realtime"), 1);
    // Turns are another matter.
    let mut socket = Socket::open(&world, "/v1/responses").await;
    socket.turn(&json!({})).await;
    assert_eq!(asked(&world, "/mute/v1/responses"), 1);
    refuse(&world, "/v1/realtime", 426);
    let before = asked(&world, "/v1/realtime");
    for _ in 0..2 {
        let answer = upgrade(&world, "/v1/realtime?model=m").await;
        assert!(answer.starts_with("http/1.1 426 "), "{answer}");
        assert_eq!(asked(&world, "/v1/realtime"), before + 1);
    }
    drop(socket);
    world.end().await;
}
