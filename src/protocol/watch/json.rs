//! Answers that are one JSON document.
//!
//! Invariant: no tree is built of it. Its first and last bytes tell whether it is whole; the counts
//! are looked for from its end; only what looks like an error is parsed, to be sure.
use super::{
    super::{
        operation::Operation,
        owned::{self, Making},
        sse::{Bounded, Payload},
        usage::{Counts, Usage},
    },
    Break, Completeness, Verdict, by_transport,
    event::begins_with_key,
    excerpt,
};
use memchr::memmem;
use serde::{Deserialize, de::IgnoredAny};

/// How much of an object's beginning is searched for an error. Errors stand early, where they are.
const ERROR_WITHIN_BYTES: usize = 4 * 1024;

/// Follows one document.
pub(super) struct JsonWatch {
    kept: Bounded,
    operation: Operation,
}

impl JsonWatch {
    pub(super) fn new(operation: Operation) -> Self {
        Self {
            kept: Bounded::default(),
            operation,
        }
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.kept.push(bytes);
    }

    pub(super) fn end(self, clean: bool) -> Verdict {
        let body = self.kept.payload();
        let completeness = match by_transport(clean) {
            Completeness::Complete => self.completeness(body),
            other => other,
        };
        let counts = Counts::last_in(body.tail()).or_else(|| Counts::last_in(body.head()));
        Verdict {
            usage: counts.map_or_else(Usage::default, |counts| counts.usage()),
            terminal_seen: completeness == Completeness::Complete,
            completeness,
            made: match owned::making(self.operation) {
                Making::InPassing => owned::made(self.operation, body.head()),
                Making::Nothing | Making::BeforeAnswer => Vec::new(),
            },
        }
    }

    fn completeness(&self, body: Payload<'_>) -> Completeness {
        let head = body.head().trim_ascii_start();
        let failed = || Completeness::Failed {
            excerpt: excerpt(head),
        };
        match head.first() {
            Some(b'{' | b'[') if is_error(body) => failed(),
            Some(b'{' | b'[') if !is_closed(head, body.tail()) => {
                Completeness::Broken(Break::UnfinishedDocument)
            }
            Some(b'[') if self.lacks_end(body) => Completeness::Broken(Break::NoTerminalEvent),
            Some(b'{' | b'[') => Completeness::Complete,
            // An event stream under another name is for its client to understand.
            _ if [&b"data:"[..], b"event:", b":"]
                .iter()
                .any(|start| head.starts_with(start)) =>
            {
                Completeness::Complete
            }
            Some(b'<') => failed(),
            _ if self.operation.answers_json() => failed(),
            _ => Completeness::Complete,
        }
    }

    /// Whether it is a stream of Gemini's in the form of an array that no candidate finishes.
    fn lacks_end(&self, body: Payload<'_>) -> bool {
        self.operation == Operation::StreamGenerateContent
            && [&b"\"finishReason\""[..], b"\"blockReason\""]
                .iter()
                .all(|key| memmem::find(body.tail(), key).is_none())
    }
}

fn is_closed(head: &[u8], tail: &[u8]) -> bool {
    let close = match head.first() {
        Some(b'[') => b']',
        _ => b'}',
    };
    tail.trim_ascii_end().last() == Some(&close)
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Outcome {
    error: Option<IgnoredAny>,
}

/// Whether a document is an error, or an array with one in it, as Gemini streams have.
fn is_error(body: Payload<'_>) -> bool {
    let head = body.head();
    let early = match head.first() {
        Some(b'[') => head,
        _ => head.get(..ERROR_WITHIN_BYTES).unwrap_or(head),
    };
    let mentions_error = memmem::find(early, b"\"error\"").is_some();
    match body {
        Payload::Whole(text) if mentions_error => {
            let has_error = |outcome: &Outcome| outcome.error.is_some();
            serde_json::from_slice::<Outcome>(text).is_ok_and(|one| has_error(&one))
                || serde_json::from_slice::<Vec<Outcome>>(text)
                    .is_ok_and(|all| all.iter().any(has_error))
        }
        Payload::Whole(_) => false,
        Payload::Ends { head, .. } => begins_with_key(head, b"\"error\""),
    }
}
