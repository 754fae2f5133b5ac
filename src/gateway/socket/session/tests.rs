//! Silence, waiting and loss on the sockets of one session, in time that is not real.
use super::*;
use crate::{
    domain::{
        ledger::Outcome,
        pool::KeyLimits,
        settings::Name::{CapacityWaitSeconds, IdleTimeoutSeconds},
    },
    gateway::socket::{
        bench::{Bench, COMPLETED, CREATED, DELTA, Peer},
        leg::PONG_WITHIN,
    },
};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::protocol::frame::{
    Frame,
    coding::{Data, OpCode},
};

/// The longest that a peer which answers no pings goes unnoticed.
const FOUND_WITHIN: Duration =
    Duration::from_secs(PING_EVERY.as_secs() + PONG_WITHIN.as_secs() + 1);

fn bench() -> Bench {
    Bench::new(1, KeyLimits::default(), &[(IdleTimeoutSeconds, 100)])
}

fn text(message: Option<Message>) -> Value {
    serde_json::from_str(message.unwrap().to_text().unwrap()).unwrap()
}

/// A turn that upstream plays as `events` and then falls silent on. Gives how the client learns of
/// its end, after how many seconds.
async fn silenced(bench: &mut Bench, events: &[(u64, &str)]) -> (Peer, Value, u64) {
    let (mut client, _) = bench.client(&[]).await;
    client.create().await;
    let since = Instant::now();
    let mut upstream = bench.dialled().await;
    let playing = async {
        upstream.play(events).await;
        while upstream.hear().await.is_some() {}
    };
    let hearing = async {
        for (_, event) in events {
            assert_eq!(client.hear().await, Some(Message::text(*event)));
        }
        client.event().await
    };
    let ((), told) = tokio::join!(playing, hearing);
    (client, told, since.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_ended_at_the_idle_limit_and_pings_are_no_word_from_upstream() {
    let mut bench = bench();
    let (mut client, told, after) =
        silenced(&mut bench, &[(0, CREATED), (90, DELTA), (95, DELTA)]).await;
    assert_eq!(told["error"]["code"], "upstream_timeout", "{told}");
    assert!((285..=286).contains(&after), "{after}");
    assert_eq!(bench.counts(), (0, 0));
    assert_eq!(bench.rows()[0].outcome, Outcome::Broken);
    // What upstream would have said is about nothing any more: another turn has a socket of its own.
    client.create().await;
    bench
        .dialled()
        .await
        .play(&[(0, CREATED), (0, COMPLETED)])
        .await;
    assert_eq!(client.event().await["type"], "response.created");
}

#[tokio::test(start_paused = true)]
async fn a_turn_without_a_first_event_is_ended_at_the_idle_limit() {
    let mut bench = bench();
    let (_client, told, after) = silenced(&mut bench, &[]).await;
    assert_eq!(told["error"]["code"], "upstream_timeout", "{told}");
    assert_eq!(after, 100);
    assert_eq!(bench.counts(), (0, 0));
}

/// A turn that waits for a slot that is never freed. Gives what its client hears until it is refused,
/// and how many pings.
async fn parked(headers: &[(&str, &str)]) -> (Vec<(u64, String)>, u32) {
    let settings = [(CapacityWaitSeconds, 200), (IdleTimeoutSeconds, 1000)];
    let mut bench = Bench::new(1, KeyLimits::default(), &settings);
    let (mut holder, _) = bench.client(&[]).await;
    holder.create().await;
    let mut upstream = bench.dialled().await;
    upstream.play(&[(0, CREATED)]).await;
    assert_eq!(holder.event().await["type"], "response.created");
    let (_holding, _) = holder.listening();
    let (_carrying, _) = upstream.listening();
    let (mut client, _) = bench.client(headers).await;
    client.create().await;
    let since = Instant::now();
    let mut heard = Vec::new();
    loop {
        let event = client.event().await;
        let kind = event["type"].as_str().unwrap().to_owned();
        heard.push((since.elapsed().as_secs(), kind));
        if event["type"] == "error" {
            assert_eq!(event["error"]["code"], "account_stream_cap", "{event}");
            return (heard, client.pings);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn codex_gets_a_message_every_minute_while_its_turn_is_parked() {
    let (heard, pings) = parked(&[("originator", "codex_cli_rs")]).await;
    let kept = |n: &u64| (*n, "keepalive".to_owned());
    let expect: Vec<_> = [60, 120, 180].iter().map(kept).collect();
    assert_eq!(heard[..3], expect);
    assert_eq!(heard[3..], [(200, "error".to_owned())]);
    assert!(pings >= 9, "{pings}");
}

#[tokio::test(start_paused = true)]
async fn everybody_else_is_pinged_alone_while_a_turn_is_parked() {
    let (heard, pings) = parked(&[]).await;
    assert_eq!(heard, [(200, "error".to_owned())]);
    assert!(pings >= 9, "{pings}");
}

#[tokio::test(start_paused = true)]
async fn both_sides_are_pinged_through_a_long_silence_and_between_turns() {
    let settings = [(IdleTimeoutSeconds, 300)];
    let mut bench = Bench::new(1, KeyLimits::default(), &settings);
    let (mut client, _) = bench.client(&[]).await;
    client.create().await;
    let mut upstream = bench.dialled().await;
    let thinking = upstream.play(&[(0, CREATED), (150, COMPLETED)]);
    let hearing = async {
        assert_eq!(client.event().await["type"], "response.created");
        assert_eq!(bench.counts(), (1, 0));
        assert_eq!(client.event().await["type"], "response.completed");
    };
    tokio::join!(thinking, hearing);
    assert!(client.pings >= 5 && upstream.pings >= 5);
    assert_eq!(bench.counts(), (0, 0));
    let ten_minutes = Duration::from_mins(10);
    tokio::join!(client.silence(ten_minutes), upstream.silence(ten_minutes));
    assert!(client.pings >= 25 && upstream.pings >= 25);
    client.create().await;
    upstream.play(&[(0, CREATED), (0, COMPLETED)]).await;
    assert_eq!(client.event().await["type"], "response.created");
    assert_eq!(client.event().await["type"], "response.completed");
    assert!(!bench.was_dialled(), "the socket to upstream was there");
    assert_eq!(bench.rows().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_upstream_answers_no_ping_is_told_so_in_time() {
    let mut bench = bench();
    let (mut client, _) = bench.client(&[]).await;
    client.create().await;
    let mut deaf = bench.dialled().await;
    deaf.play(&[(0, CREATED)]).await;
    let since = Instant::now();
    assert_eq!(client.event().await["type"], "response.created");
    let told = client.event().await;
    assert_eq!(told["error"]["code"], "upstream_ambiguous", "{told}");
    assert!(since.elapsed() <= FOUND_WITHIN, "{:?}", since.elapsed());
    assert_eq!(bench.counts(), (0, 0));
    let rows = bench.rows();
    assert!(
        rows[0].error.as_deref().unwrap().contains("no pong"),
        "{rows:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_goes_deaf_between_turns_is_replaced_for_the_next() {
    let mut bench = bench();
    let (mut client, _) = bench.client(&[]).await;
    client.create().await;
    let mut deaf = bench.dialled().await;
    deaf.play(&[(0, CREATED), (0, COMPLETED)]).await;
    assert_eq!(client.event().await["type"], "response.created");
    assert_eq!(client.event().await["type"], "response.completed");
    client.silence(FOUND_WITHIN).await;
    client.create().await;
    bench
        .dialled()
        .await
        .play(&[(0, CREATED), (0, COMPLETED)])
        .await;
    assert_eq!(client.event().await["type"], "response.created");
    assert_eq!(client.event().await["type"], "response.completed");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_answers_no_ping_is_let_go_with_its_slot_and_its_upstream() {
    let mut bench = bench();
    let (mut deaf, ended) = bench.client(&[]).await;
    deaf.create().await;
    let mut upstream = bench.dialled().await;
    let since = Instant::now();
    upstream.play(&[(0, CREATED)]).await;
    bench.until((1, 0)).await;
    while upstream.hear().await.is_some_and(|m| !m.is_close()) {}
    assert!(since.elapsed() <= FOUND_WITHIN, "{:?}", since.elapsed());
    bench.until((0, 0)).await;
    ended.await.unwrap();
    assert_eq!(bench.rows()[0].outcome, Outcome::ClientGone);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_asked_again_is_the_one_request_that_it_was() {
    let limits = KeyLimits {
        requests_per_minute: Some(2),
        ..KeyLimits::default()
    };
    let mut bench = Bench::new(1, limits, &[]);
    let (mut client, _) = bench.client(&[]).await;
    client.create().await;
    let mut lost = bench.dialled().await;
    lost.play(&[(0, CREATED)]).await;
    assert_eq!(client.event().await["type"], "response.created");
    client.create().await;
    bench.until((1, 1)).await;
    drop(lost);
    let told = client.event().await;
    assert_eq!(told["error"]["code"], "upstream_ambiguous", "{told}");
    bench
        .dialled()
        .await
        .play(&[(0, CREATED), (0, COMPLETED)])
        .await;
    assert_eq!(client.event().await["type"], "response.created");
    assert_eq!(client.event().await["type"], "response.completed");
    let used = bench.used().await;
    assert_eq!((used.requests, used.in_flight), (Some(2), 0));
    let rows = bench.rows();
    let ends: Vec<_> = rows.iter().map(|row| (row.outcome, row.attempts)).collect();
    assert_eq!(ends, [(Outcome::Broken, 1), (Outcome::Ok, 1)]);
    // The key has used up its minute, for the next turn only.
    client.create().await;
    assert_eq!(client.event().await["error"]["code"], "key_rate_limited");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_asked_again_has_no_more_patience_than_it_had() {
    let settings = [(CapacityWaitSeconds, 100), (IdleTimeoutSeconds, 1000)];
    let mut bench = Bench::new(1, KeyLimits::default(), &settings);
    let (mut client, _) = bench.client(&[]).await;
    client.create().await;
    let mut lost = bench.dialled().await;
    lost.play(&[(0, CREATED)]).await;
    assert_eq!(client.event().await["type"], "response.created");
    client.create().await;
    let since = Instant::now();
    bench.until((1, 1)).await;
    // Another client waits too, and whoever is asked for again stands behind it.
    tokio::join!(
        client.silence(Duration::from_mins(1)),
        lost.silence(Duration::from_mins(1)),
    );
    let (mut other, _) = bench.client(&[]).await;
    other.create().await;
    bench.until((1, 2)).await;
    drop(lost);
    assert_eq!(client.event().await["error"]["code"], "upstream_ambiguous");
    let mut upstream = bench.dialled().await;
    upstream.play(&[(0, CREATED)]).await;
    let (_carrying, _) = upstream.listening();
    let (_waiting, _) = other.listening();
    let told = client.event().await;
    assert_eq!(told["error"]["code"], "owner_saturated", "{told}");
    assert_eq!(since.elapsed().as_secs(), 100);
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_small_messages_pass_complete_and_in_order_both_ways_at_once() {
    const COUNT: u64 = 10_000;
    let mut bench = bench();
    let (mut client, _) = bench.client(&[]).await;
    client.create().await;
    let upstream = bench.dialled().await;
    let numbered = |n: u64| json!({"type": "response.steer", "n": n}).to_string();
    let echoing = async move {
        let mut upstream = upstream;
        upstream.play(&[(0, CREATED)]).await;
        for n in 0..COUNT {
            let message = upstream.hear().await;
            assert_eq!(text(message)["n"], n, "towards upstream");
            let delta = json!({"type": "response.output_text.delta", "n": n});
            upstream.say(delta.to_string()).await;
        }
        upstream.say(COMPLETED).await;
        upstream
    };
    let Peer { socket, .. } = client;
    let (mut out, mut back) = socket.split();
    let asking = async {
        for n in 0..COUNT {
            out.send(Message::text(numbered(n))).await.unwrap();
        }
    };
    let hearing = async {
        let mut next = async || back.next().await.map(Result::unwrap);
        assert_eq!(next().await, Some(Message::text(CREATED)));
        for n in 0..COUNT {
            assert_eq!(text(next().await)["n"], n, "towards the client");
        }
        assert_eq!(next().await, Some(Message::text(COMPLETED)));
    };
    tokio::join!(echoing, asking, hearing);
    assert_eq!(bench.counts(), (0, 0));
}

/// A message in fragments of one byte, an empty one among them, and pings between them.
fn in_fragments(text: &str) -> Vec<Message> {
    let last = text.len() - 1;
    let mut frames = Vec::new();
    for (n, byte) in text.bytes().enumerate() {
        let code = if n == 0 { Data::Text } else { Data::Continue };
        let piece = |bytes: Vec<u8>, code, is_final| {
            Message::Frame(Frame::message(bytes, OpCode::Data(code), is_final))
        };
        frames.push(piece(vec![byte], code, n == last));
        if n < last {
            frames.push(Message::Ping(vec![7].into()));
            frames.push(piece(Vec::new(), Data::Continue, false));
        }
    }
    frames
}

#[tokio::test(start_paused = true)]
async fn messages_in_fragments_with_pings_between_arrive_whole_on_both_sides() {
    let mut bench = bench();
    let (mut client, _) = bench.client(&[]).await;
    let asked = json!({"type": "response.create", "model": "m", "input": "é漢🌍"}).to_string();
    let asking = async {
        for frame in in_fragments(&asked) {
            client.socket.send(frame).await.unwrap();
        }
        client.hear().await
    };
    let said = json!({"type": "response.created", "response": {"id": "é漢🌍"}}).to_string();
    let saying = async {
        let mut upstream = bench.dialled().await;
        assert_eq!(upstream.hear().await, Some(Message::text(asked.clone())));
        for frame in in_fragments(&said) {
            upstream.socket.send(frame).await.unwrap();
        }
        upstream
    };
    let (heard, _upstream) = tokio::join!(asking, saying);
    assert_eq!(heard, Some(Message::text(said)));
}
