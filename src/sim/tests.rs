//! The simulator from outside, over raw sockets.
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::*;

mod faults;
mod ownership;
mod recording;
mod scripting;

/// A request with a credential and, if `body` is not empty, a JSON body.
fn request(line: &str, credential: &str, body: &str) -> String {
    let length = match body.len() {
        0 => String::new(),
        n => format!("Content-Type: application/json\r\nContent-Length: {n}\r\n"),
    };
    format!(
        "{line} HTTP/1.1\r\nHost: sim\r\nAuthorization: Bearer {credential}\r\n{length}\r\n{body}"
    )
}

const CHAT: &str = r#"{"model":"m","messages":[{"role":"user","content":"a b"}]}"#;

fn chat(credential: &str) -> String {
    request("POST /v1/chat/completions", credential, CHAT)
}

/// What comes back until the simulator closes, and how it closed.
async fn converse(sim: &SimHandle, sent: &str) -> (String, io::Result<()>) {
    let mut stream = TcpStream::connect(sim.addr).await.unwrap();
    stream.write_all(sent.as_bytes()).await.unwrap();
    let mut got = Vec::new();
    let mut buffer = [0; 4096];
    let end = loop {
        match stream.read(&mut buffer).await {
            Ok(0) => break Ok(()),
            Ok(n) => got.extend_from_slice(&buffer[..n]),
            Err(error) => break Err(error),
        }
    };
    (String::from_utf8_lossy(&got).into_owned(), end)
}

/// A request whose connection ends with it: the status and the body.
async fn ask(sim: &SimHandle, line: &str, credential: &str, body: &str) -> (u16, String) {
    let sent = request(line, credential, body).replacen("Host", "Connection: close\r\nHost", 1);
    let (got, end) = converse(sim, &sent).await;
    end.unwrap();
    let (head, body) = got.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), body.to_owned())
}

async fn ask_json(
    sim: &SimHandle,
    line: &str,
    credential: &str,
    body: &str,
) -> (u16, serde_json::Value) {
    let (status, body) = ask(sim, line, credential, body).await;
    (status, serde_json::from_str(&body).unwrap())
}

/// Reads one answer with a `Content-Length` off a connection that goes on.
async fn next_answer(stream: &mut TcpStream) -> (String, String) {
    let mut got = Vec::new();
    let end = loop {
        if let Some(end) = memchr::memmem::find(&got, b"\r\n\r\n") {
            break end + 4;
        }
        assert!(stream.read_buf(&mut got).await.unwrap() > 0);
    };
    let head = String::from_utf8(got[..end].to_vec()).unwrap();
    let length = head
        .lines()
        .find_map(|l| l.strip_prefix("content-length: "))
        .map_or(0, |n| n.parse().unwrap());
    while got.len() < end + length {
        assert!(stream.read_buf(&mut got).await.unwrap() > 0);
    }
    (head, String::from_utf8(got[end..].to_vec()).unwrap())
}

#[tokio::test]
async fn a_person_who_visits_is_told_what_it_offers() {
    let sim = Sim::start(Config::default()).await.unwrap();
    let (status, text) = ask(&sim, "GET /", "", "").await;
    assert_eq!((status, text), (200, Help.to_string()));
}

#[tokio::test]
async fn a_connection_serves_one_request_after_the_other() {
    let sim = Sim::start(Config::recording()).await.unwrap();
    let last = chat("a").replacen("Host", "Connection: close\r\nHost", 1);
    let (got, _) = converse(&sim, &(chat("a") + &last)).await;
    assert_eq!(got.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{got}");
    assert_eq!(got.matches("\"content\":\"a b\"").count(), 2, "{got}");
    let log = sim.wait_for(|log| log.len() == 2).await.unwrap();
    assert_eq!(log[0].connection, log[1].connection);
}

#[tokio::test]
async fn a_stopped_simulator_ends_its_connections() {
    let sim = Sim::start(Config::default()).await.unwrap();
    let addr = sim.addr;
    let mut stream = TcpStream::connect(addr).await.unwrap();
    stream.write_all(chat("a").as_bytes()).await.unwrap();
    next_answer(&mut stream).await;
    sim.stop().await;
    assert!(matches!(stream.read(&mut [0; 1]).await, Ok(0) | Err(_)));
    assert!(TcpStream::connect(addr).await.is_err());
}
