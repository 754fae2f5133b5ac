//! The message that asks for a turn, as each edge gets it.
//!
//! Invariant: it goes out as it came, but for the name of its model where an edge has another one.
use crate::{
    domain::pool::EdgeRef,
    engine::{dispatch, payload::Payload},
    gateway::{intake::IntakeError, outgoing::Outgoing, refuse::Refused},
    ports::Attempt,
    protocol::peek::{BodyPeek, Peeked, model_literal},
};
use bytes::Bytes;
use tokio_tungstenite::tungstenite::Utf8Bytes;

/// What a message says, as far as fairlane must know.
pub(super) fn peek(text: &Utf8Bytes, limit: u64) -> Result<Peeked, Refused> {
    let unreadable = |error| Refused::from(IntakeError::Unreadable(error));
    let mut peek = BodyPeek::new(None, None, limit).map_err(unreadable)?;
    peek.feed(text.as_bytes()).map_err(unreadable)?;
    peek.finish().map_err(unreadable)
}

/// The message as each edge gets it.
pub(super) struct Framed<'a> {
    pub(super) outgoing: Outgoing<'a>,
    pub(super) text: &'a Utf8Bytes,
    pub(super) peeked: &'a Peeked,
}

impl Framed<'_> {
    pub(super) fn text_for(&self, edge: &EdgeRef) -> Utf8Bytes {
        let renamed = || {
            let model = self.peeked.model.as_deref()?;
            let asked = edge.upstream_model(model);
            let span = self.peeked.model_span.clone().filter(|_| asked != model)?;
            let (before, after) = (self.text.get(..span.start)?, self.text.get(span.end..)?);
            let literal = model_literal(self.peeked.kind, asked);
            Some([before, &literal, after].concat().into())
        };
        renamed().unwrap_or_else(|| self.text.clone())
    }
}

impl dispatch::Outgoing for Framed<'_> {
    fn attempt<'e>(&'e self, edge: &'e EdgeRef) -> Attempt<'e> {
        Attempt {
            payload: Some(Payload::from_bytes(Bytes::from(self.text_for(edge)))),
            ..self.outgoing.attempt(edge)
        }
    }
}
