//! Following an answer on its way to the client: did it end as it should, what did it use, and what
//! has it made that a later request may name?
//!
//! Invariant: watching changes no byte and delays none; what it keeps is bounded. It is for answers
//! with a success status and a body; whatever else upstream says, its status tells already.
//!
//! Answers compressed with gzip, deflate or zstd are decoded for watching. Of those compressed with
//! anything else (`br`), and of those that turn out not to be what their header says, usage is
//! unknown and completeness is what the transport says.
mod event;
mod json;
#[cfg(test)]
mod tests;

use super::{
    operation::Operation,
    owned::{self, Making},
    peek::Decoder,
    sse::{EventScanner, Payload},
    usage::{Counts, Usage},
};
use crate::domain::{owners::Object, protocol::Protocol};
use event::{Dialect, Sign};
use json::JsonWatch;

/// The longest excerpt of an error, in bytes.
const MAX_EXCERPT_BYTES: usize = 512;

/// How many events of a stream are looked into for what it makes: the first one says it, unless
/// some other proxy has put events of its own before it.
const MAKING_EVENTS: u8 = 8;

/// What became of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it ended as it should.
    pub completeness: Completeness,
    /// What it says it has used.
    pub usage: Usage,
    /// Whether the protocol's last event, or the end of the document, was seen.
    pub terminal_seen: bool,
    /// What it has made, as far as [`Watcher::take_made`] did not tell before.
    pub made: Vec<Object>,
}

/// Whether an answer ended as it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// It did.
    Complete,
    /// It broke off.
    Broken(Break),
    /// It says, or is, an error, although its status says success.
    Failed {
        /// How it says so: the beginning of it, as text.
        excerpt: String,
    },
}

/// How an answer broke off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Break {
    /// The transport ended before the body did.
    CutOff,
    /// The body ended cleanly, but without the event that ends such a stream.
    NoTerminalEvent,
    /// The body ended cleanly in the middle of its document.
    UnfinishedDocument,
}

impl Break {
    /// The word in ledger and log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CutOff => "cut_off",
            Self::NoTerminalEvent => "no_terminal_event",
            Self::UnfinishedDocument => "unfinished_document",
        }
    }
}

/// Follows one answer.
pub struct Watcher {
    /// Absent where there is nothing to undo.
    decoder: Option<Box<Decoder>>,
    body: Body,
}

enum Body {
    Events(Box<EventWatch>),
    Json(Box<JsonWatch>),
    /// Nothing to be told from it.
    Opaque,
}

struct EventWatch {
    scanner: EventScanner,
    dialect: Dialect,
    counts: Counts,
    has_ended: bool,
    /// Whether the latest event was too long to tell if it was the last.
    may_have_ended: bool,
    failure: Option<String>,
    /// How many more events are looked into for what the stream makes.
    making_events: u8,
    made: Vec<Object>,
}

impl Watcher {
    /// For the answer to `operation` with those values of `Content-Type` and `Content-Encoding`.
    pub fn new(
        protocol: Protocol,
        operation: Operation,
        content_type: Option<&[u8]>,
        content_encoding: Option<&[u8]>,
    ) -> Self {
        let Ok(decoder) = Decoder::new(content_encoding.into_iter()) else {
            return Self {
                decoder: None,
                body: Body::Opaque,
            };
        };
        Self {
            decoder: (!decoder.is_identity()).then(|| Box::new(decoder)),
            body: Body::new(protocol, operation, media_type(content_type)),
        }
    }

    /// For an answer that has no body by its nature.
    pub const fn bodiless() -> Self {
        Self {
            decoder: None,
            body: Body::Opaque,
        }
    }

    /// Takes the next piece of the body, as it came.
    pub fn feed(&mut self, piece: &[u8]) {
        let body = &mut self.body;
        let Some(decoder) = &mut self.decoder else {
            return body.feed(piece);
        };
        if matches!(body, Body::Opaque) {
            return;
        }
        let result = decoder.push(piece, &mut |bytes| {
            body.feed(bytes);
            Ok(())
        });
        if result.is_err() {
            self.body = Body::Opaque;
        }
    }

    /// Whether the protocol's last event has come by already: a client that leaves now has all.
    pub fn terminal_seen(&self) -> bool {
        match &self.body {
            Body::Events(watch) => watch.has_ended,
            Body::Json(_) | Body::Opaque => false,
        }
    }

    /// What has come by of the ids that the answer makes, and was not taken before. Asked after each
    /// piece and before that is passed on, it tells of every id before the client can know it; those
    /// of an answer that is no stream are told at its end.
    pub fn take_made(&mut self) -> Vec<Object> {
        match &mut self.body {
            Body::Events(watch) => std::mem::take(&mut watch.made),
            Body::Json(_) | Body::Opaque => Vec::new(),
        }
    }

    /// What became of the answer, now that it has ended; `clean` tells that the transport ended it
    /// as its framing demands.
    pub fn end(self, clean: bool) -> Verdict {
        match self.body {
            Body::Events(watch) => watch.end(clean),
            Body::Json(watch) => watch.end(clean),
            Body::Opaque => Verdict {
                completeness: by_transport(clean),
                usage: Usage::default(),
                terminal_seen: clean,
                made: Vec::new(),
            },
        }
    }
}

impl Body {
    fn new(protocol: Protocol, operation: Operation, media_type: &[u8]) -> Self {
        let is = |other: &str| media_type.eq_ignore_ascii_case(other.as_bytes());
        if is("text/event-stream") {
            return Self::Events(Box::new(EventWatch {
                scanner: EventScanner::default(),
                dialect: Dialect::of(protocol, operation),
                counts: Counts::default(),
                has_ended: false,
                may_have_ended: false,
                failure: None,
                making_events: match owned::making(operation) {
                    Making::InPassing => MAKING_EVENTS,
                    Making::Nothing | Making::BeforeAnswer => 0,
                },
                made: Vec::new(),
            }));
        }
        let is_json = is("application/json") || media_type.ends_with(b"+json");
        if is_json || is("text/html") || operation.answers_json() {
            return Self::Json(Box::new(JsonWatch::new(operation)));
        }
        Self::Opaque
    }

    fn feed(&mut self, bytes: &[u8]) {
        match self {
            Self::Events(watch) => watch.feed(bytes),
            Self::Json(watch) => watch.feed(bytes),
            Self::Opaque => {}
        }
    }
}

impl EventWatch {
    fn feed(&mut self, bytes: &[u8]) {
        let mut scanner = std::mem::take(&mut self.scanner);
        scanner.feed(bytes, &mut |name, data| self.event(name, data));
        self.scanner = scanner;
    }

    fn event(&mut self, name: &[u8], data: Payload<'_>) {
        let Sign {
            ends,
            may_end,
            fails,
            counts,
        } = self.dialect.sign(name, data);
        self.has_ended |= ends;
        self.may_have_ended = may_end;
        if fails && self.failure.is_none() {
            self.failure = Some(excerpt(data.head()));
        }
        if let Some(counts) = counts {
            self.counts = counts.or(self.counts);
        }
        if self.making_events > 0 {
            self.making_events -= 1;
            self.learn(data);
        }
    }

    fn learn(&mut self, data: Payload<'_>) {
        let made = owned::made_in_event(data.head());
        if !made.is_empty() {
            self.making_events = 0;
            self.made = made;
        }
    }

    fn end(mut self, clean: bool) -> Verdict {
        let mut scanner = std::mem::take(&mut self.scanner);
        scanner.finish(&mut |name, data| self.event(name, data));
        let completeness = match self.failure {
            Some(excerpt) => Completeness::Failed { excerpt },
            None if self.has_ended => Completeness::Complete,
            // Half an answer is better taken for a whole one than a whole one cut off.
            None if clean && self.dialect.has_terminal_event() && !self.may_have_ended => {
                Completeness::Broken(Break::NoTerminalEvent)
            }
            None => by_transport(clean),
        };
        Verdict {
            completeness,
            usage: self.counts.usage(),
            terminal_seen: self.has_ended,
            made: self.made,
        }
    }
}

fn by_transport(clean: bool) -> Completeness {
    if clean {
        Completeness::Complete
    } else {
        Completeness::Broken(Break::CutOff)
    }
}

/// The media type of a content type, without parameters.
fn media_type(content_type: Option<&[u8]>) -> &[u8] {
    let value = content_type.unwrap_or_default();
    value
        .split(|b| *b == b';')
        .next()
        .unwrap_or_default()
        .trim_ascii()
}

/// The beginning of `bytes` as text that ends between two characters.
fn excerpt(bytes: &[u8]) -> String {
    let bytes = bytes.trim_ascii();
    let Some(mut part) = bytes.get(..MAX_EXCERPT_BYTES) else {
        return String::from_utf8_lossy(bytes).into_owned();
    };
    if let Err(error) = std::str::from_utf8(part)
        && error.error_len().is_none()
    {
        part = part.get(..error.valid_up_to()).unwrap_or_default();
    }
    String::from_utf8_lossy(part).into_owned()
}
