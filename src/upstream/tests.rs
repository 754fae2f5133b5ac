//! What is proven of failures, on real sockets; and that connections rest and are used again.
use super::*;
use crate::{
    domain::{
        dispatch::{Cause, Provenance},
        pool::BaseUrl,
    },
    engine::payload::Payload,
    ports::{Answer, Attempt, SendFailure, Timeouts, Upstream as _},
};
use bytes::Bytes;
use http::{HeaderMap, Method};
use http_body_util::BodyExt as _;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A provider that does `act` to every connection; counts connections and requests read.
struct Provider {
    url: BaseUrl,
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
}

async fn provider<F, R>(act: F) -> Provider
where
    F: Fn(usize, Peer) -> R + Send + Sync + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let connections = Arc::new(AtomicUsize::new(0));
    let requests = Arc::new(AtomicUsize::new(0));
    let (accepted, read) = (Arc::clone(&connections), Arc::clone(&requests));
    crate::tasks::spawn("provider", async move {
        while let Ok((stream, _)) = listener.accept().await {
            let n = accepted.fetch_add(1, Ordering::SeqCst);
            let requests = Arc::clone(&read);
            crate::tasks::spawn("peer", act(n, Peer { stream, requests }));
        }
    });
    Provider {
        url: BaseUrl::parse(&url).unwrap(),
        connections,
        requests,
    }
}

struct Peer {
    stream: TcpStream,
    requests: Arc<AtomicUsize>,
}

impl Peer {
    /// Reads one whole request with a body of two bytes, or until the client leaves.
    async fn read(&mut self) -> bool {
        let mut seen = Vec::new();
        let mut piece = [0; 1024];
        while !seen.windows(6).any(|w| w == b"\r\n\r\nhi") {
            match self.stream.read(&mut piece).await {
                Ok(0) | Err(_) => return false,
                Ok(n) => seen.extend_from_slice(&piece[..n]),
            }
        }
        self.requests.fetch_add(1, Ordering::SeqCst);
        true
    }

    async fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    fn reset(self) {
        socket2::SockRef::from(&self.stream)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
    }
}

async fn post(client: &Client, url: &BaseUrl, timeouts: Timeouts) -> Result<Answer, SendFailure> {
    let headers = HeaderMap::new();
    let attempt = Attempt {
        base_url: url,
        method: Method::POST,
        target: "/v1/x".to_owned(),
        headers: &headers,
        edge_headers: Vec::new(),
        payload: Some(Payload::from_bytes(Bytes::from_static(b"hi"))),
        timeouts,
    };
    client.send(attempt, &mut || ()).await
}

const PATIENT: Timeouts = Timeouts {
    connect: Duration::from_secs(20),
    header: Duration::from_secs(20),
};

async fn check(url: &BaseUrl, timeouts: Timeouts, expect: (Provenance, Cause)) {
    let failure = post(&Client::default(), url, timeouts).await.err().unwrap();
    assert_eq!((failure.provenance, failure.cause), expect, "{failure}");
}

#[tokio::test]
async fn what_the_dialer_refuses_never_left() {
    let never = (Provenance::NotDispatched, Cause::Connection);
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    check(&BaseUrl::parse(&url).unwrap(), PATIENT, never).await;
    let unknown = BaseUrl::parse("http://no-such-host.invalid").unwrap();
    check(&unknown, PATIENT, never).await;
    let garbage = provider(|_, mut peer| async move { peer.write(b"not TLS at all").await }).await;
    let tls = garbage.url.to_string().replace("http:", "https:");
    check(&BaseUrl::parse(&tls).unwrap(), PATIENT, never).await;
}

#[tokio::test]
async fn what_was_written_may_have_arrived() {
    let unknown = (Provenance::Unknown, Cause::Connection);
    let closing = provider(|_, mut peer| async move {
        peer.read().await;
    });
    let resetting = provider(|_, mut peer| async move {
        peer.read().await;
        peer.reset();
    });
    let babbling = provider(|_, mut peer| async move {
        peer.read().await;
        peer.write(b"this is not HTTP\r\n\r\n").await;
    });
    let unread = provider(|_, peer| async move { drop(peer) });
    check(&closing.await.url, PATIENT, unknown).await;
    check(&resetting.await.url, PATIENT, unknown).await;
    check(&babbling.await.url, PATIENT, unknown).await;
    check(&unread.await.url, PATIENT, unknown).await;
}

#[tokio::test]
async fn silence_after_the_request_is_a_time_out_of_unknown_outcome() {
    let silent = provider(|_, mut peer| async move {
        peer.read().await;
        peer.read().await;
    });
    let hasty = Timeouts {
        header: Duration::from_millis(50),
        ..PATIENT
    };
    let expect = (Provenance::Unknown, Cause::HeaderTimeout);
    check(&silent.await.url, hasty, expect).await;
}

#[tokio::test]
async fn a_connection_rests_after_a_whole_answer_and_is_used_again() {
    let provider = provider(|_, mut peer| async move {
        while peer.read().await {
            peer.write(OK).await;
        }
    })
    .await;
    let client = Client::default();
    for _ in 0..3 {
        let answer = post(&client, &provider.url, PATIENT).await.unwrap();
        assert_eq!(answer.body.collect().await.unwrap().to_bytes(), "ok");
        assert_eq!(client.resting(), 1);
    }
    assert_eq!(provider.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_answer_that_is_left_early_takes_its_connection_along() {
    let (gone, left) = tokio::sync::mpsc::channel(1);
    let provider = provider(move |_, mut peer| {
        let gone = gone.clone();
        async move {
            peer.read().await;
            peer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n")
                .await;
            // Returns when the client has left.
            peer.read().await;
            gone.send(()).await.unwrap();
        }
    })
    .await;
    let mut left = left;
    let client = Client::default();
    let mut answer = post(&client, &provider.url, PATIENT).await.unwrap();
    answer.body.frame().await.unwrap().unwrap();
    drop(answer);
    left.recv().await.unwrap();
    assert_eq!(client.resting(), 0);
}

#[tokio::test]
async fn a_connection_closed_while_it_rested_is_replaced_and_nothing_is_sent_twice() {
    let provider = provider(|n, mut peer| async move {
        // The first connection is closed after its answer, as an idle limit would.
        while peer.read().await {
            peer.write(OK).await;
            if n == 0 {
                return;
            }
        }
    })
    .await;
    let client = Client::default();
    for sent in 1..=20 {
        let answer = post(&client, &provider.url, PATIENT).await;
        // Closed in the very moment of sending, the outcome is unknown, and said to be.
        match answer {
            Ok(answer) => drop(answer.body.collect().await.unwrap()),
            Err(failure) => assert_eq!(failure.provenance, Provenance::Unknown),
        }
        assert!(provider.requests.load(Ordering::SeqCst) <= sent);
    }
    assert!(provider.connections.load(Ordering::SeqCst) >= 2);
}

#[tokio::test]
async fn what_was_ready_together_comes_as_one_piece() {
    let provider = provider(|_, mut peer| async move {
        peer.read().await;
        let chunks = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        let chunks = (0..50).fold(chunks, |mut all, _| {
            all.extend_from_slice(b"3\r\nabc\r\n");
            all
        });
        peer.write(&chunks).await;
        peer.write(b"0\r\n\r\n").await;
    })
    .await;
    let mut answer = post(&Client::default(), &provider.url, PATIENT)
        .await
        .unwrap();
    let mut pieces = Vec::new();
    while let Some(frame) = answer.body.frame().await {
        pieces.extend(frame.unwrap().into_data().ok());
    }
    assert_eq!(pieces.concat(), b"abc".repeat(50));
    assert!(pieces.len() < 10, "{} pieces", pieces.len());
}
