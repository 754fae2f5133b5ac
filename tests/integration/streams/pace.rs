//! Time: a byte that is there is passed on, a long stream is no slow one, and silence ends.
use super::*;
use crate::{
    hand::{Caller, Hand, request},
    harness::Setup,
};
use fairlane::domain::{ledger::Outcome, reason::Reason};

/// Sends one piece after another, each only when the client has the one before.
async fn check_at_once(path: &str, ask: &Value, content_type: &str, pieces: &[&str]) {
    let hand = Hand::start().await;
    let mut setup = Setup::default();
    setup.pool["endpoints"][0]["base_url"] = json!(hand.base_url());
    let world = setup.start().await;
    let accepts = [("accept-encoding", "gzip, br")];
    let mut caller = Caller::connect(world.address()).await;
    caller
        .write(&request(path, &accepts, &ask.to_string()))
        .await;
    let mut exchange = hand.take().await;
    // What a response makes must be read on its way, in a coding that can be undone.
    let offered = if path == "/v1/responses" {
        "\r\naccept-encoding: gzip\r\n"
    } else {
        "\r\naccept-encoding: gzip, br\r\n"
    };
    assert!(exchange.head.contains(offered), "{}", exchange.head);
    exchange.begin(content_type).await;
    for piece in pieces {
        exchange.say(piece).await;
        caller.until(piece).await;
    }
    exchange.finish().await;
    caller.until("0\r\n\r\n").await;
    let row = world.last_row().await;
    assert_eq!(row.outcome, Outcome::Ok, "{row:?}");
    assert_eq!((row.input_tokens, row.output_tokens), USAGE);
    world.end().await;
}

#[tokio::test]
async fn each_event_is_there_before_the_next_is_sent() {
    for tongue in TONGUES {
        let events = tongue.events();
        let short = "data: {\"n\":1}\n\n";
        let pieces = [&events[0], short, ": ping\n\n", short, &events[2]];
        check_at_once(tongue.path, &(tongue.ask)(), "text/event-stream", &pieces).await;
    }
}

#[tokio::test]
async fn half_an_event_is_passed_on_as_well() {
    let whole = CHAT.events().concat().replace('\n', "\r\n");
    let pieces: Vec<&str> = whole.split_inclusive('\r').collect();
    check_at_once(CHAT.path, &(CHAT.ask)(), "text/event-stream", &pieces).await;
}

#[tokio::test]
async fn each_part_of_a_growing_array_is_there_before_the_next_is_sent() {
    let path = "/v1beta/models/gemini-2.5-flash:streamGenerateContent";
    let last = json!({"candidates": [{"finishReason": "STOP", "index": 0}],
                      "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3}});
    let (first, last) = (format!("[{}", candidate("a")), format!(",{last}"));
    let pieces = [&*first, ",", &candidate("b").to_string(), &last, "]"];
    check_at_once(path, &(GEMINI.ask)(), "application/json", &pieces).await;
}

/// A world whose limits on headers and silence are a second each.
async fn impatient() -> World {
    let setup = Setup::default().env("FAIRLANE_HEADER_TIMEOUT_SECONDS", "1");
    setup
        .env("FAIRLANE_IDLE_TIMEOUT_SECONDS", "1")
        .start()
        .await
}

#[tokio::test]
async fn a_long_stream_outlives_every_limit_while_it_flows() {
    let world = impatient().await;
    for tongue in [CHAT, MESSAGES] {
        let mut pieces = vec![(tongue.first)("a")];
        pieces.extend((0..6).map(|n| (tongue.more)(&n.to_string())));
        pieces.push((tongue.last)("z"));
        let act = Act {
            chunk_delay_ms: Some(350),
            ..streaming(pieces.clone())
        };
        let (got, row) = tongue.relayed(&world, act).await;
        assert_eq!(got.unwrap(), pieces.concat());
        assert_eq!(row.outcome, Outcome::Ok);
        let (total, limit) = (row.total_ms.unwrap(), 1000);
        assert!(total > 2 * limit, "took {total} ms, which proves nothing");
    }
    world.end().await;
}

#[tokio::test]
async fn silence_beyond_the_limit_cuts_the_stream() {
    let world = impatient().await;
    for stall_after in [0, 2] {
        let act = Act {
            stall_after: Some(stall_after),
            ..streaming(CHAT.events())
        };
        let (got, row) = CHAT.relayed(&world, act).await;
        assert_eq!(got, None, "ended cleanly");
        assert_eq!(row.outcome, Outcome::Broken);
        assert!(row.error.unwrap().contains("idle limit"));
    }
    let all_closed = |log: &[fairlane::sim::Record]| log.iter().all(|r| r.closed.is_some());
    world.sim.wait_for(all_closed).await.unwrap();
    world.end().await;
}

#[tokio::test]
async fn an_answer_that_is_not_streamed_has_its_own_limit() {
    let world = impatient().await;
    world.sim.script([Rule::new(Act::delayed_ms(600_000))]);
    let answer = world.post(CHAT.path, &crate::harness::chat(false)).await;
    assert_eq!(answer.status, 504);
    assert_eq!(answer.header("x-fairlane-reason"), "upstream_timeout");
    let row = world.last_row().await;
    assert_eq!(row.reason, Some(Reason::UpstreamTimeout));
    assert_eq!(world.sim.log().len(), 1, "asked again");
    world.end().await;
}
