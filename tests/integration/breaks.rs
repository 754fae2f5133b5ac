//! Half an answer never looks like a whole one, and none of it is lost.
use crate::{
    harness::{KEY, World},
    wire::exchange,
};
use fairlane::{
    domain::ledger::Outcome,
    sim::{Act, Close, Framing, Rule},
};

const CHAT: &str = "/v1/chat/completions";

/// Asks and reads as far as there is an answer: its head always comes, its end never does.
async fn check_cut(world: &World, path: &str, act: Act, expect: &str) {
    world.sim.clear_rules();
    world.sim.script([Rule::new(act.clone())]);
    let body = r#"{"model":"m","stream":true}"#;
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let reply = exchange(world, head + body).await;
    assert_eq!(
        (reply.status, reply.is_whole),
        (200, false),
        "{path} {act:?}"
    );
    assert_eq!(reply.text(), expect, "{path} {act:?}");
    let row = world.ledger().await.swap_remove(0);
    assert_eq!(
        (row.outcome, row.attempts),
        (Outcome::Broken, 1),
        "{path} {act:?}"
    );
}

const STREAMS: [(&str, &str); 4] = [
    (CHAT, include_str!("golden/chat.sse")),
    ("/v1/responses", include_str!("golden/responses.sse")),
    ("/v1/messages", include_str!("golden/messages.sse")),
    (
        "/v1beta/models/m:streamGenerateContent?alt=sse",
        include_str!("golden/gemini.sse"),
    ),
];

#[tokio::test]
async fn an_answer_that_breaks_off_does_so_after_everything_that_came() {
    let world = World::start().await;
    for (path, golden) in STREAMS {
        let events: Vec<_> = golden.split_inclusive("\n\n").collect();
        let act = |close| Act {
            close_after: Some(1),
            close: Some(close),
            ..Act::chunks(events.clone())
        };
        check_cut(&world, path, act(Close::AfterHeaders), "").await;
        check_cut(&world, path, act(Close::MidBody), events[0]).await;
        let claimed = Act {
            claim_bytes: Some(10_000),
            chunks: None,
            close: Some(Close::AfterBody),
            ..Act::default()
                .body("{\"a\":")
                .header("content-type", "application/json")
        };
        check_cut(&world, path, claimed, "{\"a\":").await;
    }
    world.end().await;
}

#[tokio::test]
async fn an_answer_that_ends_cleanly_in_the_middle_is_cut_after_everything_that_came() {
    let world = World::start().await;
    for (path, golden) in STREAMS {
        let events: Vec<_> = golden.split_inclusive("\n\n").collect();
        let half = &events[..events.len() / 2];
        check_cut(
            &world,
            path,
            Act::chunks(half.iter().copied()),
            &half.concat(),
        )
        .await;
        let document = Act {
            framing: Some(Framing::Chunked),
            ..Act::default().body("{\"a\":1,")
        };
        check_cut(&world, path, document, "{\"a\":1,").await;
        // All of a stated length would look whole, so the last byte is kept back.
        let stated = Act::default().body("{\"a\":1,");
        check_cut(&world, path, stated, "{\"a\":1").await;
    }
    world.end().await;
}

#[tokio::test]
async fn a_stream_that_lacks_only_its_terminal_chunk_is_cut() {
    let world = World::start().await;
    for (path, golden) in STREAMS {
        let act = Act {
            close: Some(Close::NoTerminator),
            ..Act::chunks([golden])
        };
        check_cut(&world, path, act, golden).await;
    }
    world.end().await;
}
