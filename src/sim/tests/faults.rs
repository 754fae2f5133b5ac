//! Each fault as it reaches a peer: exact bytes, and how the connection ends.
use super::*;

/// Scripts `act` for everything, asks once, and expects these bytes and this end.
async fn check(act: Act, expect: &str, is_reset: bool) {
    let sim = Sim::start(Config::recording()).await.unwrap();
    sim.script([Rule::new(act)]);
    let (got, end) = converse(&sim, &chat("a")).await;
    let got = without_changing_headers(&got);
    assert_eq!(got.replace("\r\n", "~"), expect);
    match end {
        Ok(()) => assert!(!is_reset),
        Err(error) => {
            assert!(is_reset, "{error}");
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        }
    }
}

fn without_changing_headers(text: &str) -> String {
    let is_kept = |l: &&str| !l.starts_with("x-request-id:") && !l.starts_with("openai-version:");
    text.split_inclusive("\r\n").filter(is_kept).collect()
}

fn two_chunks() -> Act {
    Act::chunks(["data: 1\n\n", "data: 2\n\n"]).header("content-type", "t/e")
}

const HEAD: &str = "HTTP/1.1 200 OK~content-type: t/e~transfer-encoding: chunked~~";

#[tokio::test]
async fn a_close_before_the_head_leaves_nothing() {
    check(Act::close(Close::BeforeHeaders), "", false).await;
    check(Act::close(Close::BeforeHeaders).reset(), "", true).await;
}

#[tokio::test]
async fn a_cut_stream_ends_within_or_between_its_chunks() {
    let cut = |close| Act {
        close: Some(close),
        ..two_chunks()
    };
    let first = format!("{HEAD}9~data: 1\n\n~");
    check(cut(Close::AfterHeaders), HEAD, false).await;
    check(cut(Close::MidBody), &first, false).await;
    check(cut(Close::MidBody).reset(), &first, true).await;
    check(cut(Close::MidChunk), &format!("{first}9~data"), false).await;
    let all = format!("{first}9~data: 2\n\n~");
    check(cut(Close::NoTerminator), &all, false).await;
    check(cut(Close::AfterBody), &format!("{all}0~~"), false).await;
}

#[tokio::test]
async fn a_head_can_be_cut_or_garbage() {
    let act = Act {
        status: Some(200),
        close: Some(Close::MidHeaders),
        ..Act::default()
    };
    let sim = Sim::start(Config::default()).await.unwrap();
    sim.script([Rule::new(act)]);
    let (got, end) = converse(&sim, &chat("a")).await;
    assert!(end.is_ok() && got.starts_with("HTTP/1.1 200 OK\r\n") && !got.contains("\r\n\r\n"));
    check(Act::raw("\0\x01 none\r\n\r\n"), "\0\x01 none~~", false).await;
}

#[tokio::test]
async fn an_error_status_speaks_the_shape_of_its_path() {
    let sim = Sim::start(Config::default()).await.unwrap();
    sim.script([Rule::new(Act::status(503).header("retry-after", "7"))]);
    let paths = [
        ("POST /v1/chat/completions", "/error/type", "server_error"),
        ("POST /v1/messages", "/error/type", "overloaded_error"),
        (
            "POST /v1beta/models/m:generateContent",
            "/error/status",
            "UNAVAILABLE",
        ),
    ];
    for (line, pointer, word) in paths {
        let (status, error) = ask_json(&sim, line, "a", "{}").await;
        assert_eq!(status, 503);
        assert_eq!(error.pointer(pointer).unwrap(), word);
    }
    let (got, _) = converse(
        &sim,
        &chat("a").replacen("Host", "Connection: close\r\nHost", 1),
    )
    .await;
    assert!(got.contains("\r\nretry-after: 7\r\n"), "{got}");
}

#[tokio::test]
async fn an_early_answer_leaves_the_body_unread() {
    let sim = Sim::start(Config::recording()).await.unwrap();
    let act = Act {
        early: true,
        ..Act::status(413)
    };
    sim.script([Rule::new(act)]);
    let sent = "POST /v1/files HTTP/1.1\r\nHost: h\r\nx-api-key: a\r\nContent-Length: 100\r\n\r\n";
    let (got, end) = converse(&sim, sent).await;
    assert!(
        got.starts_with("HTTP/1.1 413 ") && got.contains("connection: close"),
        "{got}"
    );
    assert!(end.is_ok());
    assert!(!sim.log()[0].is_complete);
}

#[tokio::test]
async fn an_answer_may_come_after_a_part_of_the_body() {
    let sim = Sim::start(Config::recording()).await.unwrap();
    let act = Act {
        early_after_bytes: Some(10),
        ..Act::status(429)
    };
    sim.script([Rule::new(act)]);
    let head = "POST /v1/files HTTP/1.1\r\nHost: h\r\nx-api-key: a\r\nContent-Length: 100\r\n\r\n";
    let (got, end) = converse(&sim, &format!("{head}0123456789")).await;
    assert!(
        got.starts_with("HTTP/1.1 429 ") && got.contains("connection: close"),
        "{got}"
    );
    assert!(end.is_ok());
    let record = &sim.log()[0];
    assert_eq!((record.is_complete, record.body_bytes), (false, 10));
}

#[tokio::test]
async fn a_client_that_expects_it_is_told_to_go_on() {
    let sim = Sim::start(Config::recording()).await.unwrap();
    let mut stream = TcpStream::connect(sim.addr).await.unwrap();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nx-api-key: a\r\n\
        Expect: 100-continue\r\nConnection: close\r\n";
    let head = format!("{head}Content-Length: {}\r\n\r\n", CHAT.len());
    stream.write_all(head.as_bytes()).await.unwrap();
    let (interim, _) = next_answer(&mut stream).await;
    assert_eq!(interim, "HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(CHAT.as_bytes()).await.unwrap();
    let (answer, _) = next_answer(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 200 "));
    let act = Act {
        expect: Expect::Refuse,
        ..Act::status(417)
    };
    sim.script([Rule::new(act)]);
    let (got, end) = converse(&sim, &head).await;
    assert!(got.starts_with("HTTP/1.1 417 ") && end.is_ok(), "{got}");
}

#[tokio::test]
async fn a_head_request_gets_the_head_of_the_answer() {
    let sim = Sim::start(Config::default()).await.unwrap();
    let (_, list) = ask(&sim, "GET /v1/models", "a", "").await;
    let sent = request("HEAD /v1/models", "a", "").replacen("Host", "Connection: close\r\nHost", 1);
    let (got, _) = converse(&sim, &sent).await;
    assert!(
        got.contains(&format!("content-length: {}\r\n", list.len())),
        "{got}"
    );
    assert!(got.ends_with("\r\n\r\n"));
}

#[tokio::test]
async fn what_is_no_http_is_refused_and_recorded() {
    let sim = Sim::start(Config::recording()).await.unwrap();
    let (got, _) = converse(&sim, "\u{16}\u{3}\u{1}\r\n\r\n").await;
    assert!(got.starts_with("HTTP/1.1 400 "), "{got}");
    assert_eq!(sim.log()[0].outcome, Some(Outcome::Malformed));
}

#[tokio::test]
async fn filling_arrives_in_full() {
    let sim = Sim::start(Config::default()).await.unwrap();
    let act = Act {
        fill_bytes: Some(1_000_000),
        close: Some(Close::AfterBody),
        ..Act::default()
    };
    sim.script([Rule::new(act)]);
    let (got, _) = converse(&sim, &chat("a")).await;
    let (_, body) = got.split_once("\r\n\r\n").unwrap();
    assert_eq!(body.len(), 1_000_000);
    assert!(body.bytes().all(|b| b == b'x'));
}
