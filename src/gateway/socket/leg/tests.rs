//! Silence and its end, on a side whose peer is moved by hand.
use super::*;
use futures_util::StreamExt as _;
use tokio::{
    io::DuplexStream,
    net::{TcpListener, TcpStream},
};

const LIMIT: u64 = 1 << 20;

/// A side, and the bytes that its peer sees.
async fn pair() -> (Leg, DuplexStream) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    (Leg::new(Box::new(ours), Role::Server, LIMIT).await, theirs)
}

/// A masked frame whose mask changes nothing.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    let mut bytes = vec![first, 0x80 | length, 0, 0, 0, 0];
    bytes.extend_from_slice(payload);
    bytes
}

#[tokio::test(start_paused = true)]
async fn a_silent_side_is_pinged_and_its_pong_keeps_it() {
    let (mut leg, mut peer) = pair().await;
    let listening = tokio::time::timeout(PING_EVERY * 4, leg.next(true));
    let answering = async {
        for _ in 0..3 {
            let mut ping = [0; 2];
            peer.read_exact(&mut ping).await.unwrap();
            assert_eq!(ping, [0x89, 0]);
            peer.write_all(&frame(0x8a, b"")).await.unwrap();
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        heard = listening => assert!(heard.is_err(), "the side is still there"),
        () = answering => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_side_that_answers_no_ping_is_gone_in_time() {
    let (mut leg, _peer) = pair().await;
    let since = Instant::now();
    let heard = leg.next(true).await;
    assert!(matches!(heard, Heard::Lost(Lost::Gone(_))), "{heard:?}");
    assert_eq!(
        since.elapsed().as_secs(),
        (PING_EVERY + PONG_WITHIN).as_secs()
    );
}

#[tokio::test(start_paused = true)]
async fn nobody_is_blamed_for_a_silence_that_was_not_listened_to() {
    let (mut leg, _peer) = pair().await;
    let waited = tokio::time::timeout(PING_EVERY * 10, leg.next(false)).await;
    assert!(waited.is_err());
}

#[tokio::test]
async fn a_ping_between_fragments_is_answered_and_the_message_is_whole() {
    let (mut leg, mut peer) = pair().await;
    for part in [
        frame(0x01, "a".as_bytes()),
        frame(0x89, b"p"),
        frame(0x00, &"é".as_bytes()[..1]),
        frame(0x00, b""),
        frame(0x80, &"é".as_bytes()[1..]),
    ] {
        peer.write_all(&part).await.unwrap();
    }
    let Heard::Message(message) = leg.next(true).await else {
        panic!("no message");
    };
    assert_eq!(message, Message::text("aé"));
    let mut pong = [0; 3];
    let (_, read) = tokio::join!(
        async {
            tokio::time::timeout(Duration::from_millis(50), leg.next(true))
                .await
                .err()
        },
        peer.read_exact(&mut pong),
    );
    read.unwrap();
    assert_eq!(&pong, b"\x8a\x01p");
}

#[tokio::test]
async fn what_is_over_the_limit_is_told_from_what_is_wrong() {
    let (ours, mut peer) = tokio::io::duplex(1 << 16);
    let mut leg = Leg::new(Box::new(ours), Role::Server, 3).await;
    peer.write_all(&frame(0x81, b"four")).await.unwrap();
    let heard = leg.next(true).await;
    assert!(matches!(heard, Heard::Lost(Lost::TooLarge)), "{heard:?}");
    let (mut leg, mut peer) = pair().await;
    peer.write_all(&frame(0x81, &[0xff])).await.unwrap();
    let heard = leg.next(true).await;
    assert!(
        matches!(heard, Heard::Lost(Lost::Wrong(CloseCode::Invalid, _))),
        "{heard:?}"
    );
}

#[tokio::test]
async fn a_side_without_room_is_known_by_what_waits_for_it() {
    let (ours, mut peer) = tokio::io::duplex(1 << 10);
    let mut leg = Leg::new(Box::new(ours), Role::Server, LIMIT).await;
    leg.push(Message::binary(vec![0; ROOM_BYTES]));
    leg.push(Message::binary(vec![0; ROOM_BYTES]));
    assert!(!leg.has_room());
    // What follows is written when it is next waited for.
    let mut taken = vec![0; ROOM_BYTES];
    let (heard, read) = tokio::join!(leg.next(true), peer.read_exact(&mut taken));
    assert!(matches!(heard, Heard::Room), "{heard:?}");
    read.unwrap();
    assert!(leg.has_room());
}

#[tokio::test]
async fn a_peer_that_sends_too_much_is_read_on_until_it_has_seen_why() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let peer = TcpStream::connect(listener.local_addr().unwrap())
        .await
        .unwrap();
    let (ours, _) = listener.accept().await.unwrap();
    let mut peer = WebSocketStream::from_raw_socket(peer, Role::Client, None).await;
    let mut leg = Leg::new(Box::new(ours), Role::Server, LIMIT).await;
    let far_over = usize::try_from(LIMIT).unwrap() * 32;
    let sending = async move {
        peer.send(Message::binary(vec![0; far_over])).await.unwrap();
        peer.next().await.unwrap().unwrap()
    };
    let refusing = async {
        let Heard::Lost(lost) = leg.next(true).await else {
            panic!("it is over the limit");
        };
        leg.close(fault(&lost, LIMIT), Duration::from_secs(10))
            .await;
    };
    let (seen, ()) = tokio::join!(sending, refusing);
    let Message::Close(Some(frame)) = seen else {
        panic!("{seen:?}");
    };
    assert_eq!(frame.code, CloseCode::Size);
}
