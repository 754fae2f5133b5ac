//! An answer that is held back until it has been read, and then given as it came.
//!
//! Invariant: what is kept is bounded; whatever is read is handed on unchanged, an ending that is no
//! proper one included.
use crate::{
    clock::Instant,
    ports::{AnswerBody, BrokenOff},
    protocol::peek::{Decoder, PeekError},
};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::timeout_at;

/// How long to wait for what is to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// For each part of it.
    Between(Duration),
    /// For all of it.
    InAll(Duration),
}

/// An answer's body that was read, whole or as far as it may be held back.
pub(crate) struct Held {
    frames: VecDeque<Frame<Bytes>>,
    /// What was not read.
    rest: Option<AnswerBody>,
    failure: Option<BrokenOff>,
    /// Whether upstream has said how long the body is.
    has_length: bool,
    most_bytes: usize,
}

impl Held {
    /// Reads `body` until its end, `most_bytes`, or the end of `patience`.
    pub(crate) async fn read(mut body: AnswerBody, patience: Patience, most_bytes: usize) -> Self {
        let mut held = Self {
            frames: VecDeque::new(),
            rest: None,
            failure: None,
            has_length: body.size_hint().exact().is_some(),
            most_bytes,
        };
        let mut bytes = 0;
        let began = Instant::now();
        while bytes < most_bytes {
            let by = match patience {
                Patience::Between(idle) => Instant::now() + idle,
                Patience::InAll(time) => began + time,
            };
            match timeout_at(by, body.frame()).await {
                Ok(None) => return held,
                Ok(Some(Ok(frame))) => {
                    bytes += frame.data_ref().map_or(0, Bytes::len);
                    held.frames.push_back(frame);
                }
                Ok(Some(Err(failure))) => {
                    held.failure = Some(failure);
                    return held;
                }
                // Whoever relays it knows what to do with a silent body.
                Err(_) => break,
            }
        }
        held.rest = Some(body);
        held
    }

    /// A body that is `bytes`.
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self {
            most_bytes: bytes.len(),
            frames: VecDeque::from([Frame::data(bytes)]),
            rest: None,
            failure: None,
            has_length: true,
        }
    }

    /// Whether all of it was read.
    pub(crate) fn is_whole(&self) -> bool {
        self.rest.is_none() && self.failure.is_none()
    }

    /// What was read, or the first `most_bytes` of it, without those content encodings;
    /// `None` if they cannot be undone.
    pub(crate) fn document<'a>(&self, codings: impl Iterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
        let mut decoder = Decoder::new(codings).ok()?;
        let mut document = Vec::new();
        for piece in self.frames.iter().filter_map(Frame::data_ref) {
            let most = self.most_bytes;
            let pushed = decoder.push(piece, &mut |bytes| take(&mut document, bytes, most));
            match pushed {
                Ok(()) => {}
                Err(PeekError::TooLarge { .. }) => break,
                Err(_) => return None,
            }
        }
        Some(document)
    }
}

fn take(document: &mut Vec<u8>, bytes: &[u8], most: usize) -> Result<(), PeekError> {
    let room = most.saturating_sub(document.len());
    document.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    if bytes.len() > room {
        let limit = most as u64;
        return Err(PeekError::TooLarge { limit });
    }
    Ok(())
}

impl Body for Held {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        if let Some(frame) = self.frames.pop_front() {
            return Poll::Ready(Some(Ok(frame)));
        }
        if let Some(rest) = &mut self.rest {
            return rest.as_mut().poll_frame(cx);
        }
        Poll::Ready(self.failure.take().map(Err))
    }

    fn is_end_stream(&self) -> bool {
        let is_at_end = |rest: &AnswerBody| rest.is_end_stream();
        self.frames.is_empty() && self.failure.is_none() && self.rest.as_ref().is_none_or(is_at_end)
    }

    fn size_hint(&self) -> SizeHint {
        if !self.has_length || self.failure.is_some() {
            return SizeHint::default();
        }
        let held = self.frames.iter().filter_map(Frame::data_ref);
        let held: u64 = held.map(|data| data.len() as u64).sum();
        match self.rest.as_ref().map(|rest| rest.size_hint().exact()) {
            None => SizeHint::with_exact(held),
            Some(Some(rest)) => SizeHint::with_exact(held + rest),
            Some(None) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{Full, StreamBody};

    const SECOND: Patience = Patience::Between(Duration::from_secs(1));
    const MOST_BYTES: usize = 100;

    fn body(pieces: Vec<Result<Frame<Bytes>, BrokenOff>>) -> AnswerBody {
        Box::pin(StreamBody::new(futures_util::stream::iter(pieces)))
    }

    async fn rest_of(mut held: Held) -> (Vec<u8>, Option<String>) {
        let mut got = Vec::new();
        while let Some(frame) = held.frame().await {
            match frame {
                Ok(frame) => got.extend(frame.into_data().unwrap()),
                Err(error) => return (got, Some(error.0)),
            }
        }
        (got, None)
    }

    #[tokio::test]
    async fn what_was_read_is_given_as_it_came() {
        let whole = Full::new(Bytes::from("{\"id\":1}")).map_err(|_| BrokenOff(String::new()));
        let held = Held::read(Box::pin(whole), SECOND, MOST_BYTES).await;
        assert!(held.is_whole());
        assert_eq!(held.size_hint().exact(), Some(8));
        assert_eq!(held.document(std::iter::empty()).unwrap(), b"{\"id\":1}");
        assert_eq!(rest_of(held).await, (b"{\"id\":1}".to_vec(), None));
    }

    #[tokio::test]
    async fn an_answer_that_breaks_off_does_so_after_what_came() {
        let pieces = vec![
            Ok(Frame::data(Bytes::from("{\"id\""))),
            Err(BrokenOff("cut".to_owned())),
        ];
        let held = Held::read(body(pieces), SECOND, MOST_BYTES).await;
        assert!(!held.is_whole() && !held.is_end_stream());
        let expect = (b"{\"id\"".to_vec(), Some("cut".to_owned()));
        assert_eq!(rest_of(held).await, expect);
    }

    #[tokio::test]
    async fn a_long_answer_is_held_back_in_part() {
        let piece = || Ok(Frame::data(Bytes::from(vec![b' '; MOST_BYTES])));
        let held = Held::read(body(vec![piece(), piece()]), SECOND, MOST_BYTES).await;
        assert!(!held.is_whole());
        assert_eq!(held.document(std::iter::empty()).unwrap().len(), MOST_BYTES);
        assert_eq!(rest_of(held).await.0.len(), 2 * MOST_BYTES);
    }

    #[tokio::test]
    async fn what_cannot_be_decoded_is_not_looked_into() {
        let held = Held::whole("[]");
        assert_eq!(held.document([&b"br"[..]].into_iter()), None);
        assert_eq!(held.document([&b"gzip"[..]].into_iter()), None);
    }
}
