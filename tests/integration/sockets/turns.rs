//! Turns that end, fail, wait, overlap and are left.
use super::{Socket, capped};
use crate::harness::{Setup, World, secret_of};
use fairlane::{
    domain::ledger::Outcome,
    sim::{Act, Close, Rule},
};
use serde_json::json;
use tokio_tungstenite::tungstenite::{Message, protocol::frame::coding::CloseCode};

/// How often upstream has taken a turn.
fn taken(world: &World) -> usize {
    let seen = world.seen("/v1/responses");
    seen.iter()
        .filter(|r| r.method == "WS" && !r.is_limited)
        .count()
}

#[tokio::test]
async fn turns_follow_one_another_and_each_has_its_row() {
    let world = World::start().await;
    let mut socket = Socket::open(&world, "/v1/responses").await;
    let first = socket.turn(&json!({"store": false})).await;
    assert_eq!(first["type"], "response.completed", "{first}");
    world.quiet().await;
    let id = first["response"]["id"].clone();
    let second = socket
        .turn(&json!({"store": false, "previous_response_id": id}))
        .await;
    assert_eq!(second["type"], "response.completed", "{second}");
    let rows = world.rows().await;
    assert_eq!(rows.len(), 2, "{rows:?}");
    for row in rows {
        assert_eq!((row.outcome, row.status), (Outcome::Ok, Some(200)));
        assert_eq!(row.model.as_deref(), Some("m"));
        assert!(row.output_tokens.is_some_and(|n| n > 0), "{row:?}");
        assert!(row.credential.is_some());
    }
    world.end().await;
}

#[tokio::test]
async fn idle_sockets_hold_no_slot_and_a_turn_too_many_waits() {
    let world = capped(2, "30").start().await;
    let mut sockets = Vec::new();
    for _ in 0..10 {
        let mut socket = Socket::open(&world, "/v1/responses").await;
        assert_eq!(socket.turn(&json!({})).await["type"], "response.completed");
        sockets.push(socket);
    }
    world.quiet().await;
    let slow = Act {
        stall_after: Some(1),
        ..Act::default()
    };
    world.sim.script([Rule::new(slow).method("WS").times(2)]);
    for socket in &mut sockets[..2] {
        socket.create(&json!({})).await;
        assert_eq!(socket.event().await["type"], "response.created");
    }
    sockets[2].create(&json!({})).await;
    world
        .until("a third that waits", |(_, _, waiting)| waiting == 1)
        .await;
    sockets.remove(0).leave();
    assert_eq!(sockets[1].ending().await["type"], "response.completed");
    drop(sockets);
    world.end().await;
}

#[tokio::test]
async fn a_turn_that_waits_in_vain_is_told_when_to_come_again() {
    let world = capped(1, "0").start().await;
    let slow = Act {
        stall_after: Some(1),
        ..Act::default()
    };
    world.sim.script([Rule::new(slow).method("WS").times(1)]);
    let mut busy = Socket::open(&world, "/v1/responses").await;
    busy.create(&json!({})).await;
    busy.event().await;
    let mut socket = Socket::open(&world, "/v1/responses").await;
    let told = socket.turn(&json!({})).await;
    assert_eq!(told["status"], 429, "{told}");
    assert_eq!(told["error"]["type"], "rate_limit_error");
    assert_eq!(told["error"]["code"], "account_stream_cap");
    let wait: u64 = told["headers"]["retry-after"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=60).contains(&wait));
    busy.leave();
    world.quiet().await;
    assert_eq!(socket.turn(&json!({})).await["type"], "response.completed");
    drop(socket);
    world.end().await;
}

#[tokio::test]
async fn failing_turns_leave_nothing_and_the_socket_usable() {
    let world = World::start().await;
    let mut socket = Socket::open(&world, "/v1/responses").await;
    for n in 0..30 {
        let act = match n % 8 {
            1 => Some(Act::status(400)),
            2 => Some(Act::close(Close::BeforeHeaders)),
            3 => Some(Act::close(Close::MidBody)),
            4 => Some(Act::status(500)),
            _ => None,
        };
        let fails = act.is_some();
        let rules = act.map(|act| Rule::new(act).method("WS").times(1));
        world.sim.script(rules);
        let end = match n % 8 {
            5 => {
                socket.say(Message::text("{\"type\":")).await;
                socket.ending().await
            }
            6 => {
                socket.say(Message::text(r#"{"type":"unheard.of"}"#)).await;
                socket.ending().await
            }
            7 => {
                socket.create(&json!({})).await;
                let first = socket.turn(&json!({})).await;
                assert_eq!(first["type"], "response.completed", "turn {n}: {first}");
                socket.ending().await
            }
            _ => socket.turn(&json!({"store": true})).await,
        };
        let expect = if fails || matches!(n % 8, 5 | 6) {
            "error"
        } else {
            "response.completed"
        };
        assert_eq!(end["type"], expect, "turn {n}: {end}");
        world.quiet().await;
    }
    // Five turns of every eight steps go alone and two together; the rest are none.
    assert_eq!(world.rows().await.len(), 26);
    assert_eq!(taken(&world), 26);
    drop(socket);
    world.end().await;
}

#[tokio::test]
async fn what_was_sent_and_lost_is_told_and_never_sent_again() {
    let world = Setup::default().account("two").start().await;
    for close in [Close::BeforeHeaders, Close::MidBody] {
        let mut socket = Socket::open(&world, "/v1/responses").await;
        let first = socket.turn(&json!({"store": true})).await;
        let continued = json!({"previous_response_id": first["response"]["id"]});
        let before = taken(&world);
        world
            .sim
            .script([Rule::new(Act::close(close)).method("WS").times(1)]);
        let told = socket.turn(&continued).await;
        assert_eq!(told["error"]["code"], "upstream_ambiguous", "{told}");
        assert_eq!(taken(&world), before + 1);
        let mut fresh = Socket::open(&world, "/v1/responses").await;
        for socket in [&mut fresh, &mut socket] {
            assert_eq!(socket.turn(&json!({})).await["type"], "response.completed");
        }
        drop((fresh, socket));
    }
    world.end().await;
}

#[tokio::test]
async fn a_close_before_any_event_reaches_the_client_as_it_is() {
    let world = Setup::default()
        .account("two")
        .account("three")
        .start()
        .await;
    let act = Act {
        close_code: Some(1009),
        message: Some("message too big".to_owned()),
        ..Act::default()
    };
    world.sim.script([Rule::new(act).method("WS").times(1)]);
    let mut socket = Socket::open(&world, "/v1/responses").await;
    socket.create(&json!({})).await;
    let frame = socket.closed().await.unwrap();
    assert_eq!(
        (frame.code, frame.reason.as_str()),
        (CloseCode::Size, "message too big")
    );
    assert_eq!(taken(&world), 1);
    world.check_unharmed().await;
    let mut again = Socket::open(&world, "/v1/responses").await;
    assert_eq!(again.turn(&json!({})).await["type"], "response.completed");
    drop((socket, again));
    world.end().await;
}

#[tokio::test]
async fn a_refusal_of_the_first_turn_moves_to_another_account_unseen() {
    let world = Setup::default().account("two").start().await;
    world
        .sim
        .script([Rule::new(Act::status(429).header("retry-after", "30"))
            .method("WS")
            .times(1)]);
    let mut socket = Socket::open(&world, "/v1/responses").await;
    assert_eq!(socket.turn(&json!({})).await["type"], "response.completed");
    assert_eq!(taken(&world), 2);
    assert_eq!(world.last_row().await.attempts, 2);
    drop(socket);
    world.end().await;
}

#[tokio::test]
async fn overlapping_turns_each_hold_a_slot_and_each_end() {
    let world = World::start().await;
    let mut socket = Socket::open(&world, "/v1/responses").await;
    socket.create(&json!({})).await;
    socket.create(&json!({})).await;
    assert_eq!(socket.ending().await["type"], "response.completed");
    assert_eq!(socket.ending().await["type"], "response.completed");
    assert_eq!(world.rows().await.len(), 2);
    drop(socket);
    world.end().await;
}

#[tokio::test]
async fn what_is_no_turn_passes_and_what_is_no_json_does_not() {
    let world = World::start().await;
    let mut socket = Socket::open(&world, "/v1/responses").await;
    socket.say(Message::text("{\"type\":")).await;
    assert_eq!(socket.event().await["error"]["code"], "invalid_request");
    socket.turn(&json!({})).await;
    socket
        .say(Message::text(r#"{"type":"something.new"}"#))
        .await;
    let answer = socket.event().await;
    assert_eq!(
        answer["error"]["message"],
        "This message is not known here."
    );
    assert_eq!(socket.turn(&json!({})).await["type"], "response.completed");
    assert_eq!(world.rows().await.len(), 2);
    drop(socket);
    world.end().await;
}

#[tokio::test]
async fn a_client_that_leaves_mid_turn_frees_its_slot_and_upstream() {
    let world = World::start().await;
    let act = Act {
        stall_after: Some(1),
        ..Act::default()
    };
    world.sim.script([Rule::new(act).method("WS").times(1)]);
    let mut socket = Socket::open(&world, "/v1/responses").await;
    socket.create(&json!({})).await;
    socket.event().await;
    assert_eq!(world.app.in_flight(), (1, 1, 0));
    socket.leave();
    let row = world.last_row().await;
    assert_eq!(row.outcome, Outcome::ClientGone);
    let left = |log: &[fairlane::sim::Record]| {
        log.iter()
            .any(|r| r.method == "WS" && r.finished_ms.is_some())
    };
    crate::hand::within("upstream to be left", async {
        while !left(&world.sim.log()) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    world.end().await;
}

#[tokio::test]
async fn a_socket_stays_with_its_credential_and_says_so_when_that_is_gone() {
    let world = Setup::default().account("two").start().await;
    let mut socket = Socket::open(&world, "/v1/responses").await;
    socket.turn(&json!({})).await;
    let used = world.seen("/v1/responses")[0].credential.clone().unwrap();
    for _ in 0..4 {
        assert_eq!(socket.turn(&json!({})).await["type"], "response.completed");
    }
    let seen = world.seen("/v1/responses");
    assert!(seen.iter().all(|r| r.credential.as_ref() == Some(&used)));
    assert!(used == crate::harness::SECRET || used == secret_of("two"));
    world
        .sim
        .script([Rule::new(Act::status(401)).method("WS").times(1)]);
    assert_eq!(socket.turn(&json!({})).await["status"], 401);
    // The refusal is taken up in the background.
    let lost = loop {
        let end = socket.turn(&json!({})).await;
        if end["type"] == "error" {
            break end;
        }
    };
    assert_eq!(
        lost["error"]["code"], "previous_response_not_found",
        "{lost}"
    );
    assert_eq!(lost["status"], 400);
    drop(socket);
    world.end().await;
}

#[tokio::test]
async fn sockets_are_closed_as_going_away_when_the_instance_stops() {
    let world = Setup::default()
        .env("FAIRLANE_SHUTDOWN_GRACE_SECONDS", "0")
        .start()
        .await;
    let mut socket = Socket::open(&world, "/v1/responses").await;
    socket.turn(&json!({})).await;
    let World {
        app,
        sim,
        dir: _dir,
    } = world;
    let (stopped, frame) = tokio::join!(app.stop(), socket.closed());
    stopped.unwrap();
    assert_eq!(frame.unwrap().code, CloseCode::Away);
    sim.stop().await;
}
