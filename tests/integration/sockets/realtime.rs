//! Realtime sessions: one lease each, and messages passed as they are.
use super::{Socket, ask, capped};
use crate::{
    hand::within,
    harness::{KEY, SECRET, Setup, World},
};
use fairlane::{
    domain::ledger::Outcome,
    sim::{Act, Rule},
};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tokio_tungstenite::tungstenite::{
    Message,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

#[tokio::test]
async fn a_session_holds_one_slot_until_it_is_closed() {
    let world = capped(1, "0").start().await;
    let mut socket = Socket::open(&world, "/v1/realtime?model=m").await;
    assert_eq!(socket.event().await["type"], "session.created");
    assert_eq!(world.app.in_flight(), (1, 1, 0));
    let key = format!("Bearer {KEY}");
    let (head, _) = ask(&world, "/v1/realtime?model=m", &[("authorization", &key)]).await;
    assert!(head.starts_with("http/1.1 429 "), "{head}");
    assert!(head.contains("retry-after: "), "{head}");
    socket
        .say(Message::text(r#"{"type":"response.create"}"#))
        .await;
    assert_eq!(socket.event().await["type"], "response.done");
    let frame = CloseFrame {
        code: CloseCode::Library(4001),
        reason: "enough".into(),
    };
    socket.say(Message::Close(Some(frame.clone()))).await;
    assert_eq!(socket.closed().await, Some(frame));
    let row = world
        .rows()
        .await
        .into_iter()
        .find(|r| r.status == Some(101))
        .unwrap();
    assert_eq!((row.outcome, row.output_tokens), (Outcome::Ok, Some(4)));
    world.end().await;
}

#[tokio::test]
async fn messages_of_every_size_and_kind_arrive_as_they_are() {
    let world = World::start().await;
    let mut socket = Socket::open(&world, "/v1/realtime?model=m").await;
    socket.event().await;
    for message in [
        Message::text(""),
        Message::text("é漢🌍"),
        Message::binary(vec![0, 255, 1]),
        Message::text("x".repeat(20 << 20)),
        Message::binary(vec![7; 3 << 20]),
    ] {
        socket.say(message.clone()).await;
        assert!(socket.hear().await == message, "another message came back");
    }
    drop(socket);
    world.end().await;
}

#[tokio::test]
async fn ten_thousand_small_messages_come_back_complete_and_in_order() {
    const COUNT: usize = 10_000;
    let world = World::start().await;
    let mut socket = Socket::open(&world, "/v1/realtime?model=m").await;
    socket.event().await;
    let (mut out, mut back) = socket.split();
    let numbered = |n: usize| Message::text(format!("message {n}"));
    let saying = async {
        for n in 0..COUNT {
            out.send(numbered(n)).await.unwrap();
        }
    };
    let hearing = async {
        for n in 0..COUNT {
            let message = within("a message", back.next()).await.unwrap().unwrap();
            assert_eq!(message, numbered(n));
        }
    };
    tokio::join!(saying, hearing);
    drop((out, back));
    world.end().await;
}

#[tokio::test]
async fn compression_is_declined_towards_clients_and_never_offered_to_upstream() {
    let world = World::start().await;
    let key = format!("Bearer {KEY}");
    let headers = [
        ("authorization", &*key),
        (
            "sec-websocket-extensions",
            "permessage-deflate; client_max_window_bits",
        ),
    ];
    let (head, stream) = ask(&world, "/v1/realtime?model=m", &headers).await;
    assert!(head.starts_with("http/1.1 101 "), "{head}");
    assert!(!head.contains("sec-websocket-extensions"), "{head}");
    let mut socket = Socket::on(stream).await;
    socket.event().await;
    let seen = world.seen("/v1/realtime");
    let mut names = seen[0].headers.iter().map(|(name, _)| name.to_lowercase());
    assert!(names.all(|name| name != "sec-websocket-extensions"));
    drop(socket);
    world.end().await;
}

#[tokio::test]
async fn a_message_over_the_limit_closes_with_1009() {
    let setup = Setup::default().env("FAIRLANE_REQUEST_BODY_LIMIT_MB", "1");
    let world = setup.start().await;
    let mut socket = Socket::open(&world, "/v1/realtime?model=m").await;
    socket.event().await;
    socket.say(Message::binary(vec![0; (1 << 20) + 1])).await;
    assert_eq!(socket.closed().await.unwrap().code, CloseCode::Size);
    drop(socket);
    world.end().await;
}

#[tokio::test]
async fn a_refusal_of_upstream_is_a_real_status_and_moves_first() {
    let world = Setup::default().account("two").start().await;
    world
        .sim
        .script([Rule::new(Act::status(429)).path("/v1/realtime").times(1)]);
    let mut socket = Socket::open(&world, "/v1/realtime?model=m").await;
    socket.event().await;
    drop(socket);
    world
        .sim
        .script([Rule::new(Act::status(400)).path("/v1/realtime").times(1)]);
    let key = format!("Bearer {KEY}");
    let (head, _) = ask(&world, "/v1/realtime?model=m", &[("authorization", &key)]).await;
    assert!(head.starts_with("http/1.1 400 "), "{head}");
    world.end().await;
}

#[tokio::test]
async fn a_key_in_the_subprotocol_is_the_clients_and_goes_no_further() {
    let world = World::start().await;
    let offer = format!("realtime, openai-insecure-api-key.{KEY}");
    let headers = [("sec-websocket-protocol", &*offer)];
    let (head, stream) = ask(&world, "/v1/realtime?model=m", &headers).await;
    assert!(head.starts_with("http/1.1 101 "), "{head}");
    assert!(
        head.contains("sec-websocket-protocol: realtime\r\n"),
        "{head}"
    );
    let mut socket = Socket::on(stream).await;
    socket.event().await;
    let seen = world.seen("/v1/realtime");
    assert_eq!(seen[0].credential.as_deref(), Some(SECRET));
    assert!(!format!("{:?}", seen[0]).contains(KEY), "{:?}", seen[0]);
    drop(socket);
    world.end().await;
}

#[tokio::test]
async fn a_session_asks_each_edge_for_its_own_name_of_the_model() {
    let models = json!([{"model": "fast", "upstream_model": "gpt realtime"}]);
    let world = Setup::default()
        .with("/credentials/0/models", models)
        .start()
        .await;
    let mut socket = Socket::open(&world, "/v1/realtime?a=1&model=fast").await;
    socket.event().await;
    let seen = world.seen("/v1/realtime");
    assert_eq!(seen[0].target, "/v1/realtime?a=1&model=gpt%20realtime");
    drop(socket);
    world.end().await;
}
