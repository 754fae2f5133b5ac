//! Connections whose clients do not go on.
use super::*;
use crate::{
    clock::Instant,
    domain::{
        dispatch::{Cause, Provenance},
        pool::Pool,
        settings::Layer,
    },
    engine::{configuration::Configuration, owners::Owners},
    gateway::{Reply, nothing::Nothing},
    ports::{Attempt, SendFailure, Sending, Started},
    telemetry::metrics::Metrics,
};
use http::Response;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

impl Upstream for Nothing {
    fn open_socket<'a>(&'a self, _: crate::ports::Attempt<'a>) -> crate::ports::OpeningSocket<'a> {
        unreachable!("nothing here asks for a WebSocket")
    }

    fn send<'a>(&'a self, _: Attempt<'a>, _: &'a mut Started<'_>) -> Sending<'a> {
        Box::pin(async {
            Err(SendFailure {
                provenance: Provenance::NotDispatched,
                cause: Cause::Connection,
                detail: String::new(),
            })
        })
    }
}

/// Answers whatever is not for the data plane after `takes`.
fn door(takes: Duration) -> Arc<Door> {
    let layer = Layer::default();
    let configuration = Configuration::new(Layer::default(), &layer, Pool::default());
    let gateway = Gateway::new(
        configuration,
        Metrics::default(),
        (Arc::new(Nothing), Arc::new(Nothing)),
        Owners::new(Arc::new(Nothing)),
    );
    let elsewhere: Elsewhere = Arc::new(move |_| {
        Box::pin(async move {
            tokio::time::sleep(takes).await;
            Response::new(Reply::whole("late"))
        })
    });
    Arc::new(Door::new(gateway, Arc::new(Nothing), elsewhere))
}

/// Says `words` and nothing more; gives what came back until the end, and when that was.
async fn check(words: &str, takes: Duration) -> (String, Duration) {
    let (mut client, stream) = tokio::io::duplex(4096);
    let (_stop, stopped) = watch::channel(false);
    let peer = Peer {
        address: ([127, 0, 0, 1], 1).into(),
        is_tls: false,
    };
    let tether = Tether::new(mpsc::channel(1).0, stopped);
    tasks::spawn("connection", speak(door(takes), stream, peer, tether));
    let begun = Instant::now();
    client.write_all(words.as_bytes()).await.unwrap();
    let mut got = String::new();
    client.read_to_string(&mut got).await.unwrap();
    (got, begun.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_finishes_a_head_is_let_go() {
    for words in ["", "P", "PRI * HTTP/2.0\r\n", "GET / HTT"] {
        let (got, after) = check(words, Duration::ZERO).await;
        assert_eq!(got, "", "{words}");
        assert!(after < HEAD_WITHIN * 2, "{words}: {after:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_request_may_wait_long_for_its_answer() {
    let takes = HEAD_WITHIN * 3;
    let (got, after) = check("GET / HTTP/1.0\r\n\r\n", takes).await;
    assert!(got.ends_with("late"), "{got}");
    assert!(after >= takes, "{after:?}");
}
