//! Sockets whose credential works at two endpoints: what stays where it was, and what goes on.
use super::Socket;
use crate::harness::{SECRET, Setup, World};
use fairlane::{
    domain::ids::EndpointId,
    sim::{Act, Close, Rule},
};
use http::Method;
use serde_json::{Value, json};

/// One credential at the endpoints `sim` and `second`, the latter below `/second`.
async fn two_endpoints() -> World {
    let mut setup = Setup::default();
    let row = json!({"name": "second", "base_url": "{base}/second", "protocols": ["openai"]});
    setup.pool["endpoints"].as_array_mut().unwrap().push(row);
    let both = json!(["sim", "second"]);
    setup.with("/credentials/0/endpoints", both).start().await
}

async fn endpoint(world: &World, name: &str) -> EndpointId {
    let all = world.app.store().endpoints().await.unwrap();
    all.into_iter().find(|e| &*e.name == name).unwrap().id
}

/// Takes an endpoint out of service, or back.
async fn set(world: &World, name: &str, verb: &str) {
    let path = format!("/endpoints/{}/{verb}", endpoint(world, name).await);
    world.admin(Method::POST, &path, &Value::Null).await;
}

/// The endpoints that turns went to, in their order.
fn turns(world: &World) -> Vec<&'static str> {
    let seen = world.seen("/v1/responses");
    let turns = seen.iter().filter(|r| r.method == "WS");
    turns
        .inspect(|r| assert_eq!(r.credential.as_deref(), Some(SECRET)))
        .map(|r| {
            if r.target.starts_with("/second") {
                "second"
            } else {
                "sim"
            }
        })
        .collect()
}

/// A socket whose first turn was at the endpoint `second`, though `sim` is as good by now.
async fn at_second(world: &World) -> Socket {
    set(world, "sim", "disable").await;
    let mut socket = Socket::open(world, "/v1/responses").await;
    assert_eq!(socket.turn(&json!({})).await["type"], "response.completed");
    assert_eq!(turns(world), ["second"]);
    set(world, "sim", "enable").await;
    socket
}

/// The next turn on the socket to upstream is its last.
async fn lose(world: &World, socket: &mut Socket) {
    world
        .sim
        .script([Rule::new(Act::close(Close::MidBody)).method("WS").times(1)]);
    let told = socket.turn(&json!({})).await;
    assert_eq!(told["error"]["code"], "upstream_ambiguous", "{told}");
}

#[tokio::test]
async fn turns_are_counted_at_the_endpoint_that_their_socket_leads_to() {
    let world = two_endpoints().await;
    let mut socket = at_second(&world).await;
    for _ in 0..3 {
        assert_eq!(socket.turn(&json!({})).await["type"], "response.completed");
    }
    assert_eq!(turns(&world), ["second"; 4]);
    let second = endpoint(&world, "second").await;
    let rows = world.rows().await;
    assert_eq!(rows.len(), 4);
    assert!(
        rows.iter().all(|row| row.endpoint == Some(second)),
        "{rows:?}"
    );
    drop(socket);
    world.end().await;
}

#[tokio::test]
async fn a_turn_does_not_go_out_on_a_socket_to_an_endpoint_out_of_service() {
    let world = two_endpoints().await;
    let mut socket = at_second(&world).await;
    set(&world, "second", "drain").await;
    let told = socket.turn(&json!({})).await;
    assert_eq!(
        told["error"]["code"], "previous_response_not_found",
        "{told}"
    );
    assert_eq!(turns(&world), ["second"]);
    drop(socket);
    world.end().await;
}

#[tokio::test]
async fn a_lost_socket_is_dialled_again_at_the_same_endpoint() {
    let world = two_endpoints().await;
    let mut socket = at_second(&world).await;
    lose(&world, &mut socket).await;
    assert_eq!(socket.turn(&json!({})).await["type"], "response.completed");
    assert_eq!(turns(&world), ["second"; 3]);
    drop(socket);
    world.end().await;
}

#[tokio::test]
async fn a_lost_socket_is_dialled_elsewhere_where_its_endpoint_cannot_be_had() {
    let unreachable = Rule::new(Act::close(Close::BeforeHeaders));
    let mute = Rule::new(Act::status(404));
    for rule in [None, Some(unreachable), Some(mute)] {
        let world = two_endpoints().await;
        let mut socket = at_second(&world).await;
        lose(&world, &mut socket).await;
        match rule {
            None => set(&world, "second", "disable").await,
            Some(rule) => {
                let rule = rule.method("GET").path("/second/v1/responses");
                world.sim.script([rule]);
            }
        }
        for _ in 0..2 {
            assert_eq!(socket.turn(&json!({})).await["type"], "response.completed");
        }
        assert_eq!(turns(&world), ["second", "second", "sim", "sim"]);
        drop(socket);
        world.end().await;
    }
}

#[tokio::test]
async fn a_socket_that_cannot_be_had_anywhere_says_what_happened_where_it_was() {
    let world = two_endpoints().await;
    let mut socket = at_second(&world).await;
    lose(&world, &mut socket).await;
    set(&world, "sim", "disable").await;
    world
        .sim
        .script([Rule::new(Act::close(Close::BeforeHeaders))
            .method("GET")
            .path("/second/v1/responses")]);
    let told = socket.turn(&json!({})).await;
    assert_eq!(told["error"]["code"], "upstream_unreachable", "{told}");
    drop(socket);
    world.end().await;
}
