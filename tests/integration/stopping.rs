//! Stopping ends, whatever clients do, and takes nothing from them that was theirs.
use crate::{
    hand::within,
    harness::{KEY, Setup, World},
    wire::Reader,
};
use fairlane::sim::{Act, Rule};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

#[tokio::test]
async fn a_half_written_request_on_the_admin_listener_does_not_hold_up_the_stop() {
    let world = Setup::default()
        .env("FAIRLANE_ADMIN_LISTEN", "127.0.0.1:0")
        .env("FAIRLANE_SHUTDOWN_GRACE_SECONDS", "0")
        .start()
        .await;
    let address = world.app.admin_address.unwrap();
    let mut half = TcpStream::connect(address).await.unwrap();
    half.write_all(b"GET /healthz HT").await.unwrap();
    // Whoever came first is served first.
    for _ in 0..3 {
        let mut whole = TcpStream::connect(address).await.unwrap();
        whole
            .write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            .await
            .unwrap();
        assert_eq!(Reader::new(&mut whole).reply(false).await.status, 200);
    }
    within("the stop", world.end()).await;
    drop(half);
}

fn path_of(length: usize) -> String {
    format!("/v1/files/file-{length}/content")
}

/// Asks for `length` bytes and reads nothing yet.
async fn ask(world: &World, length: usize) -> TcpStream {
    let path = path_of(length);
    let act = Act {
        fill_bytes: Some(length as u64),
        ..Act::default().header("content-type", "application/octet-stream")
    };
    world.sim.script([Rule::new(act).path(&path)]);
    let mut stream = world.raw().await;
    let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn what_was_recorded_as_answered_reaches_clients_that_are_slow_to_read() {
    let world = World::start().await;
    let mut streams = Vec::new();
    for n in 1..48 {
        streams.push((path_of(n << 17), ask(&world, n << 17).await));
    }
    // Until nothing moves any more: the larger ones wait for their clients.
    let (mut rows, mut looks) = (Vec::new(), 0);
    while looks < 100 {
        let now = world.ledger().await;
        looks = if now.len() == rows.len() {
            looks + 1
        } else {
            0
        };
        rows = now;
    }
    streams.retain(|(path, _)| rows.iter().any(|row| *row.path == **path));
    assert!((1..47).contains(&streams.len()), "{}", streams.len());
    world.quiet().await;
    let World { sim, app, dir } = world;
    let stopping = fairlane::tasks::spawn("stop", async move {
        app.stop().await.unwrap();
    });
    for (path, stream) in &mut streams {
        assert!(Reader::new(stream).reply(false).await.is_whole, "{path}");
    }
    within("the stop", stopping).await.unwrap();
    drop((sim, dir));
}
