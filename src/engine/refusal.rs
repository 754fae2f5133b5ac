//! An answer of upstream's that is looked at before it is passed on: its beginning is read to learn
//! what it means, and goes out again in front of the rest.
//!
//! Invariant: whoever gets such an answer gets every byte of it, in order.
use crate::{
    clock::unix_millis,
    domain::{dispatch::meaning::Meaning, protocol::Protocol},
    ports::{Answer, AnswerBody, BrokenOff},
    protocol::{
        peek::decode_body,
        verdict::{self, MAX_BODY_BYTES},
    },
};
use bytes::Bytes;
use http::{HeaderValue, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use std::{
    borrow::Cow,
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, timeout_at};

/// How long the beginning of an error may take: the request waits meanwhile.
const BEGINNING_WITHIN: Duration = Duration::from_secs(2);

/// What the answer means, and the answer itself.
pub(super) async fn judged(protocol: Protocol, mut answer: Answer) -> (Meaning, Answer) {
    let status = answer.head.status.as_u16();
    if status < 400 {
        return (Meaning::Accepted, answer);
    }
    let (frames, rest) = beginning(answer.body).await;
    let data: Vec<&[u8]> = frames
        .iter()
        .filter_map(|f| f.as_ref().ok()?.data_ref().map(|b| &**b))
        .collect();
    let bytes = data.concat();
    let plain = decoded(&answer.head.headers, &bytes);
    let headers = &answer.head.headers;
    let meaning = verdict::judge(protocol, status, headers, &plain, unix_millis());
    answer.body = Box::pin(Resumed { frames, rest });
    (meaning, answer)
}

/// The error in plain bytes; as it is where it cannot be unpacked.
fn decoded<'b>(headers: &http::HeaderMap, bytes: &'b [u8]) -> Cow<'b, [u8]> {
    let encodings = headers.get_all(header::CONTENT_ENCODING);
    if encodings.iter().next().is_none() {
        return Cow::Borrowed(bytes);
    }
    let encodings = encodings.iter().map(HeaderValue::as_bytes);
    decode_body(encodings, bytes, MAX_BODY_BYTES as u64).map_or(Cow::Borrowed(bytes), Cow::Owned)
}

type Frames = VecDeque<Result<Frame<Bytes>, BrokenOff>>;

/// As much of a body as tells what it is, and the rest of it.
async fn beginning(mut body: AnswerBody) -> (Frames, AnswerBody) {
    let mut frames = Frames::new();
    let mut bytes = 0;
    let deadline = Instant::now() + BEGINNING_WITHIN;
    while bytes < MAX_BODY_BYTES && !body.is_end_stream() {
        match timeout_at(deadline, body.frame()).await {
            Ok(Some(frame)) => {
                let data = frame.as_ref().ok().and_then(Frame::data_ref);
                bytes += data.map_or(0, Bytes::len);
                let is_broken = frame.is_err();
                frames.push_back(frame);
                if is_broken {
                    break;
                }
            }
            Ok(None) | Err(_) => break,
        }
    }
    (frames, body)
}

/// A body whose beginning was read already.
struct Resumed {
    frames: Frames,
    rest: AnswerBody,
}

impl Body for Resumed {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match self.frames.pop_front() {
            Some(frame) => Poll::Ready(Some(frame)),
            None => self.rest.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.frames.is_empty() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let data = self
            .frames
            .iter()
            .filter_map(|f| f.as_ref().ok()?.data_ref());
        let read: u64 = data.map(|b| b.len() as u64).sum();
        let rest = self.rest.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + read);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + read);
        }
        hint
    }
}

#[cfg(test)]
mod tests;
