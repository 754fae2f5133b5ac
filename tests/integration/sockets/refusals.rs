//! Requests for sockets that get none.
use super::{Socket, ask};
use crate::harness::{KEY, Setup, World, get};
use serde_json::json;

#[tokio::test]
async fn a_socket_needs_a_key() {
    let world = World::start().await;
    let (head, _) = ask(&world, "/v1/responses", &[]).await;
    assert!(head.starts_with("http/1.1 401 "), "{head}");
    assert!(
        head.contains("x-fairlane-reason: invalid_client_key"),
        "{head}"
    );
    world.end().await;
}

#[tokio::test]
async fn without_an_edge_that_could_serve_it_the_client_is_sent_to_http() {
    let only_anthropic = json!(["anthropic"]);
    let world = Setup::default()
        .with("/endpoints/0/protocols", only_anthropic)
        .start()
        .await;
    let key = format!("Bearer {KEY}");
    for target in ["/v1/responses", "/v1/realtime?model=m"] {
        let (head, _) = ask(&world, target, &[("authorization", &key)]).await;
        assert!(head.starts_with("http/1.1 426 "), "{head}");
        assert!(
            head.contains("x-fairlane-reason: upgrade_required"),
            "{head}"
        );
    }
    world.end().await;
}

#[tokio::test]
async fn realtime_without_an_upgrade_is_told_to_ask_for_one() {
    let world = World::start().await;
    let answer = world.answer(get("/v1/realtime?model=m")).await;
    assert_eq!(
        (answer.status.as_u16(), answer.reason()),
        (426, "upgrade_required")
    );
    world.end().await;
}

#[tokio::test]
async fn a_model_outside_the_key_s_scope_is_refused_on_the_socket() {
    let world = Setup::default()
        .with("/keys/0/models", json!(["other"]))
        .start()
        .await;
    let mut socket = Socket::open(&world, "/v1/responses").await;
    let told = socket.turn(&json!({})).await;
    assert_eq!(told["status"], 403, "{told}");
    assert_eq!(told["error"]["code"], "model_not_allowed");
    let nameless = socket.turn(&json!({"model": null})).await;
    assert_eq!(nameless["status"], 400, "{nameless}");
    drop(socket);
    world.end().await;
}
