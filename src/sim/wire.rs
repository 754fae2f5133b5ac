//! Sockets: plays planned steps, and sees how peers leave.
//!
//! Invariant: while an answer is under way the socket is read too, so that a peer's end is noticed
//! at once, and the answer stops with it.
use std::{io, time::Duration};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
    time::{sleep, timeout},
};

use super::{log::Closing, plan::Step};

/// Room made before each read: a request in one read, mostly.
const READ_BYTES: usize = 16 * 1024;

/// While an answer is under way, no more than this is read ahead of it.
const READ_AHEAD_BYTES: usize = 64 * 1024;

/// How long an early answer's connection lingers for the peer to take it.
const LINGER: Duration = Duration::from_secs(2);

/// Filling is written in blocks of this size.
static FILLING: [u8; 64 * 1024] = [b'x'; 64 * 1024];

/// Reads once; `Err` is how the peer closed instead.
pub(super) async fn fill(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut BytesMut,
) -> Result<(), Closing> {
    buffer.reserve(READ_BYTES);
    match stream.read_buf(buffer).await {
        Ok(0) => Err(Closing::Fin),
        Ok(_) => Ok(()),
        Err(_) => Err(Closing::Reset),
    }
}

/// Takes the steps in turn, and tells `sent` of every byte that went out. Stops when the peer
/// leaves, and says how it did.
pub(super) async fn play(
    stream: &mut TcpStream,
    buffer: &mut BytesMut,
    steps: Vec<Step>,
    sent: impl FnMut(usize),
) -> Result<(), Closing> {
    let (mut read, mut write) = stream.split();
    tokio::select! {
        biased;
        done = take(&mut write, steps, sent) => done.map_err(|_| Closing::Reset),
        how = departure(&mut read, buffer) => Err(how),
    }
}

async fn take(
    write: &mut (impl AsyncWrite + Unpin),
    steps: Vec<Step>,
    mut sent: impl FnMut(usize),
) -> io::Result<()> {
    for step in steps {
        match step {
            Step::Write(bytes) => put(write, &bytes, &mut sent).await?,
            Step::Wait(time) => sleep(time).await,
            Step::Stall => std::future::pending::<()>().await,
            Step::Fill(mut left) => {
                while left > 0 {
                    let size = usize::try_from(left).unwrap_or(usize::MAX);
                    let block = FILLING.get(..size).unwrap_or(&FILLING);
                    put(write, block, &mut sent).await?;
                    left -= block.len() as u64;
                }
            }
        }
    }
    Ok(())
}

async fn put(
    write: &mut (impl AsyncWrite + Unpin),
    mut bytes: &[u8],
    sent: &mut impl FnMut(usize),
) -> io::Result<()> {
    while !bytes.is_empty() {
        let n = write.write(bytes).await?;
        sent(n);
        bytes = bytes.get(n..).unwrap_or_default();
    }
    Ok(())
}

/// Ends when the peer leaves. What it sends meanwhile is its next request.
async fn departure(read: &mut (impl AsyncRead + Unpin), buffer: &mut BytesMut) -> Closing {
    loop {
        if buffer.len() >= READ_AHEAD_BYTES {
            std::future::pending::<()>().await;
        }
        if let Err(how) = fill(read, buffer).await {
            return how;
        }
    }
}

/// Ends the answer, and takes in what the peer still sends for a while: closing on unread bytes
/// would be a reset that can destroy the answer on its way.
pub(super) async fn linger(stream: &mut TcpStream) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let drain = async {
        let mut rest = vec![0; READ_BYTES];
        while stream.read(&mut rest).await.is_ok_and(|n| n > 0) {}
    };
    // Either way there is nothing left to do but close.
    let _in_time = timeout(LINGER, drain).await;
}

/// Tells a client that awaits it to go on with its body.
pub(super) async fn say_continue(stream: &mut TcpStream) -> Result<(), Closing> {
    let interim = Bytes::from_static(b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(&interim).await.map_err(|_| Closing::Reset)
}
