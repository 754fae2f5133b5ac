//! What the log says, and when.
use super::*;

#[tokio::test]
async fn a_request_is_recorded_as_it_came() {
    let sim = Sim::start(Config::recording()).await.unwrap();
    let sent = "POST /p/v1/chat/completions?a=1&a=%20 HTTP/1.1\r\nX-Dup: 1\r\nhOST: h\r\n\
        x-dup: 2\r\nX-Empty:\r\nX-API-Key: sk-1\r\nConnection: close\r\n\
        Transfer-Encoding: chunked\r\n\r\n3\r\n{\"m\r\n3\r\n\":1\r\n1\r\n}\r\n0\r\nX-T: 1\r\n\r\n";
    converse(&sim, sent).await.1.unwrap();
    let log = sim
        .wait_for(|log| log.iter().all(|r| r.outcome.is_some()))
        .await
        .unwrap();
    let record = &log[0];
    assert_eq!(record.target, "/p/v1/chat/completions?a=1&a=%20");
    assert_eq!(
        (record.credential.as_deref(), record.scheme),
        (Some("sk-1"), Some("x-api-key"))
    );
    let names: Vec<_> = record.headers.iter().map(|(n, _)| &**n).collect();
    let expect = [
        "X-Dup",
        "hOST",
        "x-dup",
        "X-Empty",
        "X-API-Key",
        "Connection",
        "Transfer-Encoding",
    ];
    assert_eq!(names, expect);
    assert_eq!(record.header_values("X-DUP"), ["1", "2"]);
    assert_eq!(record.header("x-empty"), Some(""));
    assert_eq!(record.body, Some("{\"m\":1}".into()));
    assert_eq!(record.body_bytes, 7);
    assert_eq!(
        record.body_sha256,
        trace::hex(crate::digest::sha256(b"{\"m\":1}"))
    );
    assert_eq!(record.trailers, [("X-T".to_owned(), "1".to_owned())]);
    assert_eq!(
        (record.status, record.outcome),
        (Some(400), Some(Outcome::Answered))
    );
    assert!(record.is_complete && record.sent_bytes > 0);
}

#[tokio::test]
async fn a_body_too_long_to_hold_is_hashed_all_the_same() {
    let sim = Sim::start(Config {
        hold_bytes: 1000,
        ..Config::recording()
    })
    .await
    .unwrap();
    let body = format!(
        "{{\"model\":\"m\",\"stream\":true,\"input\":\"{}\"}}",
        "x".repeat(500_000)
    );
    let (status, got) = ask(&sim, "POST /v1/responses", "a", &body).await;
    assert_eq!(status, 200);
    assert!(got.contains("event: response.completed\n"));
    let record = &sim.log()[0];
    assert_eq!(record.body_bytes, body.len() as u64);
    assert_eq!(
        record.body_sha256,
        trace::hex(crate::digest::sha256(body.as_bytes()))
    );
    assert_eq!(record.body.as_ref().unwrap().0.len(), 1000);
}

#[tokio::test]
async fn nothing_is_recorded_unless_asked_for() {
    let sim = Sim::start(Config::default()).await.unwrap();
    ask(&sim, "GET /v1/models", "a", "").await;
    assert_eq!(sim.log().len(), 0);
    sim.record(Recording::Hashes);
    ask(&sim, "POST /v1/chat/completions", "a", CHAT).await;
    let log = sim.log();
    assert_eq!((log.len(), &log[0].body), (1, &None));
    assert_eq!(log[0].body_sha256.len(), 64);
}

/// Sends `sent`, waits for the record that it makes, leaves, and expects to be seen leaving.
async fn check_departure(act: Act, sent: &str, resets: bool, expect: (Closing, Phase)) {
    let sim = Sim::start(Config::recording()).await.unwrap();
    sim.script([Rule::new(act)]);
    let mut stream = TcpStream::connect(sim.addr).await.unwrap();
    stream.write_all(sent.as_bytes()).await.unwrap();
    let is_there = |r: &Record| match expect.1 {
        Phase::Request => true,
        Phase::Waiting => r.is_complete,
        Phase::Answer => r.answered_ms.is_some(),
        Phase::Idle => r.outcome == Some(Outcome::Answered),
    };
    sim.wait_for(|log| log.iter().any(is_there)).await.unwrap();
    if resets {
        stream.set_zero_linger().unwrap();
    }
    drop(stream);
    let log = sim.wait_for(|log| log[0].closed.is_some()).await.unwrap();
    let closed = log[0].closed.unwrap();
    assert_eq!((closed.how, closed.during), expect);
    let left = sim.wait_for(|log| log[0].outcome.is_some()).await.unwrap()[0].outcome;
    let is_idle = expect.1 == Phase::Idle;
    assert_eq!(left == Some(Outcome::PeerLeft), !is_idle);
}

#[tokio::test]
async fn a_peer_is_seen_leaving_at_every_point() {
    let chat = chat("a");
    let stall = Act {
        stall_after: Some(1),
        ..Act::chunks(["1", "2"])
    };
    let hour = Act::delayed_ms(3_600_000);
    let partial = &chat[..chat.len() - 1];
    for (resets, how) in [(false, Closing::Fin), (true, Closing::Reset)] {
        check_departure(Act::default(), partial, resets, (how, Phase::Request)).await;
        check_departure(hour.clone(), &chat, resets, (how, Phase::Waiting)).await;
    }
    // Unread bytes of the answer turn a close into a reset.
    check_departure(stall, &chat, true, (Closing::Reset, Phase::Answer)).await;
    check_departure(Act::default(), &chat, true, (Closing::Reset, Phase::Idle)).await;
}

#[tokio::test]
async fn an_orderly_end_after_the_answer_is_seen_as_one() {
    let sim = Sim::start(Config::recording()).await.unwrap();
    let mut stream = TcpStream::connect(sim.addr).await.unwrap();
    stream.write_all(chat("a").as_bytes()).await.unwrap();
    next_answer(&mut stream).await;
    drop(stream);
    let log = sim.wait_for(|log| log[0].closed.is_some()).await.unwrap();
    let closed = log[0].closed.unwrap();
    assert_eq!((closed.how, closed.during), (Closing::Fin, Phase::Idle));
    assert_eq!(log[0].outcome, Some(Outcome::Answered));
}
