//! Reads a request's body: once, whole, bounded, looked into as it comes.
//!
//! Invariant: what is over the limit is read on but not kept, so that the client can finish
//! sending and read its refusal; nothing waits longer than the idle limit for the next piece.
use crate::{
    engine::payload::{Budget, Collector, Payload},
    protocol::peek::{BodyPeek, PeekError, Peeked},
};
use http::{HeaderMap, header};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, timeout, timeout_at};

/// How much of an oversized body is read and thrown away, in multiples of the limit.
const DISCARD_TIMES: u64 = 16;

/// How long an oversized body is read on.
const DISCARD_FOR: Duration = Duration::from_secs(20);

/// What there is to know before a body is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds<'a> {
    /// Largest body, in bytes, as sent and as decoded.
    pub(super) limit: u64,
    /// Longest silence.
    pub(super) idle: Duration,
    /// The memory shared by all bodies.
    pub(super) budget: &'a Arc<Budget>,
}

/// Why there is no body.
#[derive(Debug)]
pub(super) enum IntakeError {
    /// It is over this limit in bytes, as sent or as decoded.
    TooLarge(u64),
    /// It cannot be looked into.
    Unreadable(PeekError),
    /// The client left.
    Gone,
    /// The client fell silent, or sent what is no body.
    Incomplete,
    /// It could not be kept.
    Disk(std::io::Error),
}

/// A body, and what it says of itself.
pub(super) struct Intake {
    pub(super) payload: Payload,
    pub(super) peeked: Peeked,
}

/// Reads `body` whole.
pub(super) async fn read(
    mut body: Incoming,
    headers: &HeaderMap,
    bounds: Bounds<'_>,
) -> Result<Intake, IntakeError> {
    let expected = body.size_hint().exact();
    let mut peek = match BodyPeek::for_headers(headers, bounds.limit) {
        Ok(peek) => peek,
        Err(error) => {
            discard(body, headers, bounds.limit.saturating_mul(DISCARD_TIMES)).await;
            return Err(IntakeError::Unreadable(error));
        }
    };
    if expected.is_some_and(|length| length > bounds.limit) {
        discard(body, headers, bounds.limit.saturating_mul(DISCARD_TIMES)).await;
        return Err(IntakeError::TooLarge(bounds.limit));
    }
    let mut kept = Collector::new(bounds.budget);
    loop {
        let piece = match timeout(bounds.idle, body.frame()).await {
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            Ok(None) => break,
            Ok(Some(Err(error))) if !is_malformed(&error) => return Err(IntakeError::Gone),
            Ok(Some(Err(_))) | Err(_) => return Err(IntakeError::Incomplete),
        };
        let fault = if kept.length() + piece.len() as u64 > bounds.limit {
            Some(IntakeError::TooLarge(bounds.limit))
        } else {
            peek.feed(&piece).err().map(unreadable)
        };
        let fault = match fault {
            Some(fault) => Some(fault),
            None => kept
                .push(piece, expected)
                .await
                .err()
                .map(IntakeError::Disk),
        };
        if let Some(fault) = fault {
            drop(kept);
            discard(body, headers, bounds.limit.saturating_mul(DISCARD_TIMES)).await;
            return Err(fault);
        }
    }
    Ok(Intake {
        payload: kept.finish(),
        peeked: peek.finish().map_err(unreadable)?,
    })
}

/// Whether the framing of the body is wrong, rather than the connection gone.
fn is_malformed(error: &hyper::Error) -> bool {
    use std::{error::Error as _, io};
    let cause = error.source().and_then(|e| e.downcast_ref::<io::Error>());
    cause.is_some_and(|e| {
        matches!(
            e.kind(),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData
        )
    })
}

fn unreadable(error: PeekError) -> IntakeError {
    match error {
        PeekError::TooLarge { limit } => IntakeError::TooLarge(limit),
        other => IntakeError::Unreadable(other),
    }
}

/// Reads on without keeping anything: a connection closed over unread data resets, and the client
/// would never see why. A client that waits for leave to send needs none of that.
pub(super) async fn discard(mut body: Incoming, headers: &HeaderMap, most: u64) {
    if headers.contains_key(header::EXPECT) || body.is_end_stream() {
        return;
    }
    let deadline = Instant::now() + DISCARD_FOR;
    let mut left = most;
    while let Ok(Some(Ok(frame))) = timeout_at(deadline, body.frame()).await {
        let length = frame.data_ref().map_or(0, |d| d.len() as u64);
        left = left.saturating_sub(length);
        if left == 0 {
            return;
        }
    }
}
