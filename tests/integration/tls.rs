//! The listener with a certificate of its own, over both versions of HTTP.
use crate::harness::{KEY, Setup, World, chat};
use bytes::Bytes;
use fairlane::sim::{Act, Rule};
use http::{HeaderMap, Method, Request, StatusCode, Version};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::{CertificateDer, ServerName};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

const CHAT: &str = "/v1/chat/completions";

/// A world behind TLS, and what its clients trust.
async fn sealed() -> (World, CertificateDer<'static>, tempfile::TempDir) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (chain, key) = (dir.path().join("chain.pem"), dir.path().join("key.pem"));
    tokio::fs::write(&chain, made.cert.pem()).await.unwrap();
    tokio::fs::write(&key, made.signing_key.serialize_pem())
        .await
        .unwrap();
    let world = Setup::default()
        .env("FAIRLANE_TLS_CERT", chain.to_str().unwrap())
        .env("FAIRLANE_TLS_KEY", key.to_str().unwrap())
        .start()
        .await;
    (world, made.cert.der().clone(), dir)
}

async fn connect(
    world: &World,
    certificate: &CertificateDer<'static>,
    alpn: &[&str],
) -> TlsStream<TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let mut config = rustls::ClientConfig::builder_with_provider(fairlane::crypto::provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let name = ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, world.raw().await).await.unwrap()
}

fn ask(uri: &str) -> Request<Full<Bytes>> {
    Request::builder()
        .method(Method::POST)
        .uri(uri)
        .header("host", "localhost")
        .header("authorization", format!("Bearer {KEY}"))
        .header("content-type", "application/json")
        .body(Full::new(chat(true).to_string().into()))
        .unwrap()
}

async fn call_1(io: TlsStream<TcpStream>) -> (StatusCode, Version, HeaderMap, Bytes) {
    let (mut sender, connection) = http1::handshake(TokioIo::new(io)).await.unwrap();
    fairlane::tasks::spawn("client", async move { drop(connection.await) });
    let (head, body) = sender.send_request(ask(CHAT)).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (head.status, head.version, head.headers, body)
}

async fn call_2(io: TlsStream<TcpStream>) -> (StatusCode, Version, HeaderMap, Bytes) {
    let io = TokioIo::new(io);
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    fairlane::tasks::spawn("client", async move { drop(connection.await) });
    let request = ask(&format!("https://localhost{CHAT}"));
    let (head, body) = sender.send_request(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (head.status, head.version, head.headers, body)
}

#[tokio::test]
async fn both_versions_of_http_are_served_behind_a_certificate() {
    let (world, certificate, _dir) = sealed().await;
    let golden = include_str!("golden/chat.sse");
    // What describes one connection must not reach the other.
    let act = Act::chunks(golden.split_inclusive("\n\n"))
        .header("keep-alive", "timeout=5")
        .header("x-request-id", "up-1");
    world.sim.script([Rule::new(act)]);
    let io = connect(&world, &certificate, &["h2", "http/1.1"]).await;
    assert_eq!(io.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let second = call_2(io).await;
    let first = call_1(connect(&world, &certificate, &["http/1.1"]).await).await;
    let without = call_1(connect(&world, &certificate, &[]).await).await;
    for (answer, version) in [
        (&second, Version::HTTP_2),
        (&first, Version::HTTP_11),
        (&without, Version::HTTP_11),
    ] {
        assert_eq!((answer.0, answer.1), (StatusCode::OK, version));
        assert_eq!(answer.3, golden.as_bytes(), "{version:?}");
        assert_eq!(answer.2["x-upstream-request-id"], "up-1");
        assert!(!answer.2.contains_key("keep-alive"), "{version:?}");
    }
    for record in world.seen(CHAT) {
        assert_eq!(record.header("host"), Some(&*world.sim.addr.to_string()));
        assert_eq!(
            record.body_sha256,
            crate::harness::sha256(chat(true).to_string().as_bytes())
        );
    }
    world.end().await;
}

#[tokio::test]
async fn heads_and_lengths_survive_the_second_version() {
    let (world, certificate, _dir) = sealed().await;
    let act = Act {
        framing: Some(fairlane::sim::Framing::ContentLength),
        ..Act::default().body("{\"a\":1}")
    };
    world.sim.script([Rule::new(act)]);
    let io = TokioIo::new(connect(&world, &certificate, &["h2"]).await);
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    fairlane::tasks::spawn("client", async move { drop(connection.await) });
    for (method, length) in [(Method::HEAD, 0), (Method::GET, 7)] {
        let request = Request::builder()
            .method(method)
            .uri("https://localhost/v1/files/file-1")
            .header("authorization", format!("Bearer {KEY}"))
            .body(Full::<Bytes>::default())
            .unwrap();
        let (head, body) = sender.send_request(request).await.unwrap().into_parts();
        assert_eq!(
            (head.status, &head.headers["content-length"]),
            (StatusCode::OK, &"7".parse().unwrap())
        );
        assert_eq!(body.collect().await.unwrap().to_bytes().len(), length);
    }
    world.end().await;
}

#[tokio::test]
async fn words_in_the_clear_get_no_answer_and_disturb_nobody() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let (world, certificate, _dir) = sealed().await;
    let mut plain = world.raw().await;
    plain
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .unwrap();
    let mut got = Vec::new();
    drop(plain.read_to_end(&mut got).await);
    assert!(!got.starts_with(b"HTTP"), "{got:?}");
    let answer = call_1(connect(&world, &certificate, &["http/1.1"]).await).await;
    assert_eq!(answer.0, StatusCode::OK);
    world.end().await;
}
