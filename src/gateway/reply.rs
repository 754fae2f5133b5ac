//! The body of an answer: one of fairlane's own, one that is relayed, or one that is still to come.
use super::{relay::Relay, waiting::Committed};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

type Foreign = Pin<Box<dyn Body<Data = Bytes, Error = io::Error> + Send>>;

/// The body of an answer.
pub struct Reply(Kind);

enum Kind {
    Whole(Option<Bytes>),
    Relay(Box<Relay>),
    Committed(Box<Committed>),
    Foreign(Foreign),
}

impl Reply {
    /// A body that is there already.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(Kind::Whole(Some(bytes.into()).filter(|b| !b.is_empty())))
    }

    /// A body that another adapter makes.
    pub fn foreign<B>(body: B) -> Self
    where
        B: Body<Data = Bytes, Error = io::Error> + Send + 'static,
    {
        Self(Kind::Foreign(Box::pin(body)))
    }

    pub(super) fn relay(relay: Relay) -> Self {
        Self(Kind::Relay(Box::new(relay)))
    }

    pub(super) fn committed(body: Committed) -> Self {
        Self(Kind::Committed(Box::new(body)))
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match &mut self.0 {
            Kind::Whole(bytes) => Poll::Ready(bytes.take().map(|b| Ok(Frame::data(b)))),
            Kind::Relay(relay) => relay.poll_frame(cx),
            Kind::Committed(body) => body.poll_frame(cx),
            Kind::Foreign(body) => body.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(bytes) => bytes.is_none(),
            Kind::Relay(relay) => relay.is_end_stream(),
            Kind::Committed(body) => body.is_end_stream(),
            Kind::Foreign(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64))
            }
            Kind::Relay(relay) => relay.size_hint(),
            // What is said ahead is not known yet.
            Kind::Committed(_) => SizeHint::default(),
            Kind::Foreign(body) => body.size_hint(),
        }
    }
}
