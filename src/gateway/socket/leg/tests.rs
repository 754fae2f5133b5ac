//! Silence and its end, on a side whose peer is moved by hand.
use super::*;
use futures_util::StreamExt as _;
use tokio::{
    io::DuplexStream,
    net::{TcpListener, TcpStream},
};

const LIMIT: u64 = 1 << 20;

/// The side towards clients and the side towards upstream.
const BOTH: [Role; 2] = [Role::Server, Role::Client];

/// A side, and the bytes that its peer sees.
async fn pair_of(role: Role) -> (Leg, DuplexStream) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    (Leg::new(Box::new(ours), role, LIMIT).await, theirs)
}

async fn pair() -> (Leg, DuplexStream) {
    pair_of(Role::Server).await
}

/// A frame as the peer of a side with that role writes it. Clients mask theirs, here by what changes
/// nothing.
fn frame_to(role: Role, first: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    let mut bytes = match role {
        Role::Server => vec![first, 0x80 | length, 0, 0, 0, 0],
        Role::Client => vec![first, length],
    };
    bytes.extend_from_slice(payload);
    bytes
}

fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    frame_to(Role::Server, first, payload)
}

/// The first byte of the next frame that the side with that role writes, and what is in it.
async fn written(role: Role, peer: &mut DuplexStream) -> (u8, Vec<u8>) {
    let first = peer.read_u8().await.unwrap();
    let length = usize::from(peer.read_u8().await.unwrap() & 0x7f);
    let mut mask = [0; 4];
    if role == Role::Client {
        peer.read_exact(&mut mask).await.unwrap();
    }
    let mut payload = vec![0; length];
    peer.read_exact(&mut payload).await.unwrap();
    let unmasked = payload.iter().zip(mask.iter().cycle()).map(|(b, m)| b ^ m);
    (first, unmasked.collect())
}

#[tokio::test(start_paused = true)]
async fn a_silent_side_is_pinged_and_its_pong_keeps_it() {
    for role in BOTH {
        let (mut leg, mut peer) = pair_of(role).await;
        let listening = tokio::time::timeout(PING_EVERY * 4, leg.next(true));
        let answering = async {
            for _ in 0..3 {
                assert_eq!(written(role, &mut peer).await, (0x89, Vec::new()));
                peer.write_all(&frame_to(role, 0x8a, b"")).await.unwrap();
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            heard = listening => assert!(heard.is_err(), "{role:?}: the side is still there"),
            () = answering => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_side_that_answers_no_ping_is_gone_in_time() {
    for role in BOTH {
        let (mut leg, _peer) = pair_of(role).await;
        let since = Instant::now();
        let heard = leg.next(true).await;
        assert!(
            matches!(heard, Heard::Lost(Lost::Gone(_))),
            "{role:?}: {heard:?}"
        );
        assert_eq!(
            since.elapsed().as_secs(),
            (PING_EVERY + PONG_WITHIN).as_secs()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_is_blamed_for_a_silence_that_was_not_listened_to() {
    let (mut leg, _peer) = pair().await;
    let waited = tokio::time::timeout(PING_EVERY * 10, leg.next(false)).await;
    assert!(waited.is_err());
}

/// Cuts `whole` into fragments of at most `size` bytes, with an empty one and a ping after each.
fn fragments(role: Role, whole: &[u8], size: usize) -> Vec<Vec<u8>> {
    let mut frames: Vec<_> = whole
        .chunks(size)
        .zip([0x01].into_iter().chain(std::iter::repeat(0x00)))
        .flat_map(|(piece, first)| {
            let empty = frame_to(role, 0x00, b"");
            [
                frame_to(role, first, piece),
                empty,
                frame_to(role, 0x89, b"p"),
            ]
        })
        .collect();
    frames.push(frame_to(role, 0x80, b""));
    frames
}

#[tokio::test]
async fn a_message_in_a_thousand_fragments_is_whole_and_pings_between_them_are_answered() {
    for role in BOTH {
        let (mut leg, mut peer) = pair_of(role).await;
        // Cut within characters, and longer than what either side keeps unread.
        let whole = "é漢🌍".repeat(10_000);
        let frames = fragments(role, whole.as_bytes(), 89);
        let pings = frames.iter().filter(|f| f.first() == Some(&0x89)).count();
        assert!(pings > 1000, "{pings}");
        let (mut reads, mut writes) = tokio::io::split(&mut peer);
        let sending = async {
            for frame in &frames {
                writes.write_all(frame).await.unwrap();
            }
        };
        let hearing = async {
            let Heard::Message(message) = leg.next(true).await else {
                panic!("{role:?}: no message");
            };
            assert!(message == Message::text(whole.as_str()), "{role:?}");
        };
        // Of pings that come faster than they are answered, only the last needs an answer.
        let ((), first, ()) = tokio::join!(sending, reads.read_u8(), hearing);
        assert_eq!(first.unwrap(), 0x8a, "{role:?}: no pong came back");
    }
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
