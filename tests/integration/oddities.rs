//! What stands on the wire in cases that no client library makes on purpose.
use crate::{
    harness::{KEY, World, chat, post},
    wire::{Reader, exchange},
};
use fairlane::{
    domain::ledger::Outcome,
    sim::{Act, Framing, Rule},
};
use tokio::io::AsyncWriteExt as _;

const CHAT: &str = "/v1/chat/completions";

#[tokio::test]
async fn an_answer_that_has_no_body_by_nature_is_no_failure() {
    let world = World::start().await;
    let act = Act {
        framing: Some(Framing::ContentLength),
        ..Act::default().body("{\"a\":1}")
    };
    world.sim.script([Rule::new(act).method("HEAD")]);
    world
        .sim
        .script([Rule::new(Act::status(204).body("")).method("DELETE")]);
    for (method, status) in [("HEAD", 200), ("DELETE", 204)] {
        let head = format!(
            "{method} /v1/files/file-1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n\r\n"
        );
        let reply = exchange(&world, head).await;
        assert_eq!(reply.status, status);
        let row = world.ledger().await.swap_remove(0);
        assert_eq!(
            (row.outcome, row.error.as_deref()),
            (Outcome::Ok, None),
            "{method}"
        );
    }
    world.end().await;
}

#[tokio::test]
async fn an_upstream_that_switches_protocols_unasked_is_a_fault_of_its() {
    let world = World::start().await;
    world.sim.script([Rule::new(Act::raw(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nhello",
    ))]);
    let answer = world.answer(post(CHAT, chat(false).to_string())).await;
    assert_eq!(
        (answer.status.as_u16(), answer.reason()),
        (502, "upstream_ambiguous")
    );
    assert_eq!(world.seen(CHAT).len(), 1);
    world.end().await;
}

#[tokio::test]
async fn a_connection_whose_request_was_not_read_to_the_end_is_not_used_again() {
    let world = World::start().await;
    let act = Act {
        early: true,
        ..Act::default().body("{\"a\":1}")
    };
    world.sim.script([Rule::new(act).times(1)]);
    let mut body = chat(false);
    body["pad"] = "x".repeat(8 << 20).into();
    let first = world.answer(post(CHAT, body.to_string())).await;
    let second = world.post(CHAT, &chat(false)).await;
    assert_eq!(
        (first.status.as_u16(), second.status.as_u16()),
        (200, 200),
        "{first:?} {second:?}"
    );
    world.end().await;
}

#[tokio::test]
async fn what_upstream_says_beyond_an_answer_reaches_nobody_else() {
    let world = World::start().await;
    let twice =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{\"a\":1}";
    let evil = twice.replace(":1", ":2");
    world
        .sim
        .script([Rule::new(Act::raw(format!("{twice}{evil}"))).times(1)]);
    let first = world.post(CHAT, &chat(false)).await;
    assert_eq!(&first.body[..], b"{\"a\":1}");
    let second = world.post(CHAT, &chat(false)).await;
    assert!(second.json()["choices"].is_array(), "{second:?}");
    world.end().await;
}

#[tokio::test]
async fn every_answer_to_a_preflight_has_an_id_too() {
    let world = World::start().await;
    let reply = exchange(&world, format!("OPTIONS {CHAT} HTTP/1.1\r\nHost: x\r\nOrigin: http://a\r\nAccess-Control-Request-Method: POST\r\n\r\n")).await;
    assert!(
        reply.header("x-request-id").starts_with("req_"),
        "{:?}",
        reply.headers
    );
    world.end().await;
}

#[tokio::test]
async fn what_follows_a_long_answer_on_the_same_connection_is_answered() {
    let world = World::start().await;
    let mut stream = world.raw().await;
    let body = chat(true).to_string();
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.repeat(3).as_bytes()).await.unwrap();
    let mut reader = Reader::new(&mut stream);
    for _ in 0..3 {
        let reply = reader.reply(false).await;
        assert_eq!((reply.status, reply.is_whole), (200, true));
    }
    world.end().await;
}
