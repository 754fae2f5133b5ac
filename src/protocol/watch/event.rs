//! What an event of a stream means: the end, a failure, or a count.
//!
//! Invariant: most events mean nothing to us, and are known by that without being parsed: by their
//! type, which stands first, or by the one field that all of them have.
use super::super::{
    operation::Operation,
    sse::Payload,
    usage::{Counts, after_colon},
};
use crate::domain::protocol::Protocol;
use memchr::memmem::{self, Finder};
use serde::{Deserialize, de::IgnoredAny};
use std::sync::LazyLock;

static FINISH_REASON: LazyLock<Finder<'static>> =
    LazyLock::new(|| Finder::new(b"\"finish_reason\""));
static USAGE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"usage\""));

/// How a stream says what we want to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Chunks with choices, of which the last has a finish reason.
    Chunks,
    /// Events whose type tells, as the Responses API, images and audio have them.
    Typed,
    /// Anthropic's messages.
    Messages,
    /// Gemini's candidates.
    Candidates,
    /// None that we know.
    Unknown,
}

/// What one event means.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sign {
    /// It is the one after which nothing needs to come.
    pub(super) ends: bool,
    /// It is too long to tell: its end may stand in the part that was not kept.
    pub(super) may_end: bool,
    /// It says that the request has failed.
    pub(super) fails: bool,
    /// It brings counts.
    pub(super) counts: Option<Counts>,
}

impl Dialect {
    pub(super) fn of(protocol: Protocol, operation: Operation) -> Self {
        use Operation as O;
        match (protocol, operation) {
            (Protocol::OpenAi, O::ChatCompletions | O::Completions) => Self::Chunks,
            (
                Protocol::OpenAi,
                O::Responses
                | O::ResponsesCompact
                | O::ResponseRetrieve
                | O::ImageGenerations
                | O::ImageEdits
                | O::Images
                | O::Speech
                | O::Transcriptions
                | O::Audio,
            ) => Self::Typed,
            (Protocol::Anthropic, O::Messages) => Self::Messages,
            (Protocol::Gemini, _) => Self::Candidates,
            _ => Self::Unknown,
        }
    }

    /// Whether a stream without a last event is a broken one.
    pub(super) fn has_terminal_event(self) -> bool {
        self != Self::Unknown
    }

    /// What the event of that `name` (often none) with that `data` means.
    pub(super) fn sign(self, name: &[u8], data: Payload<'_>) -> Sign {
        match self {
            Self::Chunks => chunk(name, data),
            Self::Typed => typed(name, data),
            Self::Messages => message(name, data),
            Self::Candidates => candidate(data),
            Self::Unknown => Sign::default(),
        }
    }
}

const END: Sign = Sign {
    ends: true,
    may_end: false,
    fails: false,
    counts: None,
};
const FAILURE: Sign = Sign {
    ends: false,
    may_end: false,
    fails: true,
    counts: None,
};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Chunk {
    error: Option<IgnoredAny>,
    object: Option<String>,
    choices: Option<Vec<Choice>>,
    usage: Option<Counts>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Choice {
    finish_reason: Option<IgnoredAny>,
}

fn chunk(name: &[u8], data: Payload<'_>) -> Sign {
    if data.head() == b"[DONE]" {
        return END;
    }
    let text = match data {
        Payload::Whole(text) if name != b"error" && !may_matter(text) => return Sign::default(),
        Payload::Whole(text) => text,
        Payload::Ends { tail, .. } => return by_ends(data, &FINISH_REASON, tail),
    };
    let Ok(chunk) = serde_json::from_slice::<Chunk>(text) else {
        return by_ends(data, &FINISH_REASON, text);
    };
    Sign {
        ends: chunk
            .choices
            .is_some_and(|choices| choices.iter().any(|c| c.finish_reason.is_some())),
        may_end: false,
        fails: chunk.error.is_some()
            || name == b"error"
            || chunk.object.as_deref() == Some("error"),
        counts: chunk.usage,
    }
}

/// Whether a chunk is other than most: those have a finish reason of null and no usage.
fn may_matter(text: &[u8]) -> bool {
    let mut reasons = FINISH_REASON.find_iter(text).peekable();
    reasons.peek().is_none()
        || reasons.any(|at| has_value(text, at + FINISH_REASON.needle().len()))
        || USAGE
            .find_iter(text)
            .any(|at| has_value(text, at + USAGE.needle().len()))
}

/// Whether what ends before `at` is a key with a value other than null.
fn has_value(text: &[u8], at: usize) -> bool {
    text.get(at..)
        .and_then(after_colon)
        .is_some_and(|value| !value.starts_with(b"null"))
}

/// What can be told from the ends of an event that is too long, or not to be parsed.
fn by_ends(data: Payload<'_>, reason: &Finder<'_>, tail: &[u8]) -> Sign {
    let mut reasons = reason.find_iter(tail).peekable();
    Sign {
        may_end: matches!(data, Payload::Ends { .. }) && reasons.peek().is_none(),
        ends: reasons.any(|at| has_value(tail, at + reason.needle().len())),
        fails: begins_with_key(data.head(), b"\"error\""),
        counts: Counts::last_in(tail),
    }
}

/// Whether `key` (with its quotes) is the first of the object that `text` begins with.
pub(super) fn begins_with_key(text: &[u8], key: &[u8]) -> bool {
    text.trim_ascii_start()
        .strip_prefix(b"{")
        .is_some_and(|rest| {
            let rest = rest.trim_ascii_start().strip_prefix(key);
            rest.and_then(after_colon)
                .is_some_and(|value| !value.starts_with(b"null"))
        })
}

/// The type of an event: what stands in its data, where that is first; else its name.
fn kind<'a>(name: &'a [u8], data: Payload<'a>) -> Option<&'a [u8]> {
    let first = data
        .head()
        .strip_prefix(b"{\"type\":")
        .and_then(|rest| rest.trim_ascii_start().strip_prefix(b"\""))
        .and_then(|rest| rest.split(|b| *b == b'"').next());
    first.or((!name.is_empty()).then_some(name))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Typed {
    #[serde(rename = "type")]
    kind: Option<String>,
    error: Option<IgnoredAny>,
    usage: Option<Counts>,
    response: Option<Holder>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Holder {
    usage: Option<Counts>,
}

fn typed(name: &[u8], data: Payload<'_>) -> Sign {
    if data.head() == b"[DONE]" {
        return END;
    }
    let parse = || match data {
        Payload::Whole(text) => serde_json::from_slice::<Typed>(text).ok(),
        Payload::Ends { .. } => None,
    };
    let Some(kind) = kind(name, data) else {
        let event = parse().unwrap_or_default();
        let has_kind = event.kind.is_some();
        let mut sign = typed_sign(event.kind.unwrap_or_default().as_bytes());
        sign.fails |= event.error.is_some() && !has_kind;
        if sign.ends {
            sign.counts = event.usage.or(event.response.and_then(|r| r.usage));
        }
        return sign;
    };
    let mut sign = typed_sign(kind);
    if sign.ends {
        sign.counts = match parse() {
            Some(event) => event.usage.or(event.response.and_then(|r| r.usage)),
            None => Counts::last_in(data.tail()),
        };
    }
    sign
}

fn typed_sign(kind: &[u8]) -> Sign {
    match kind {
        b"response.completed"
        | b"response.incomplete"
        | b"response.cancelled"
        | b"image_generation.completed"
        | b"image_edit.completed"
        | b"transcript.text.done"
        | b"speech.audio.done" => END,
        b"response.failed" => Sign { fails: true, ..END },
        b"error" => FAILURE,
        _ => Sign::default(),
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message {
    usage: Option<Counts>,
    message: Option<Holder>,
}

fn message(name: &[u8], data: Payload<'_>) -> Sign {
    match kind(name, data) {
        Some(b"message_stop") => END,
        Some(b"error") => FAILURE,
        Some(b"message_start" | b"message_delta") => {
            let parsed = match data {
                Payload::Whole(text) => serde_json::from_slice::<Message>(text).ok(),
                Payload::Ends { .. } => None,
            };
            Sign {
                counts: match parsed {
                    Some(event) => event.usage.or(event.message.and_then(|m| m.usage)),
                    None => Counts::last_in(data.tail()),
                },
                ..Sign::default()
            }
        }
        Some(_) => Sign::default(),
        None => nameless_message(data),
    }
}

/// An event of Anthropic's without a name, whose type does not stand first.
fn nameless_message(data: Payload<'_>) -> Sign {
    let Payload::Whole(text) = data else {
        return Sign::default();
    };
    match serde_json::from_slice::<Typed>(text) {
        Ok(Typed {
            kind: Some(kind), ..
        }) if !kind.is_empty() => message(kind.as_bytes(), data),
        Ok(event) => Sign {
            fails: event.error.is_some(),
            ..Sign::default()
        },
        Err(_) => Sign::default(),
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Candidates {
    error: Option<IgnoredAny>,
    #[serde(rename = "candidates")]
    list: Option<Vec<Candidate>>,
    prompt_feedback: Option<Feedback>,
    usage_metadata: Option<Counts>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Candidate {
    finish_reason: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<IgnoredAny>,
}

fn candidate(data: Payload<'_>) -> Sign {
    let parsed = match data {
        Payload::Whole(text) => serde_json::from_slice::<Candidates>(text).ok(),
        Payload::Ends { .. } => None,
    };
    let Some(event) = parsed else {
        return by_ends(data, &memmem::Finder::new(b"\"finishReason\""), data.tail());
    };
    let has_reason = |list: &Vec<Candidate>| list.iter().any(|c| c.finish_reason.is_some());
    Sign {
        // A prompt that is refused gets no candidate at all.
        ends: event.list.as_ref().is_some_and(has_reason)
            || event
                .prompt_feedback
                .is_some_and(|f| f.block_reason.is_some()),
        may_end: false,
        fails: event.error.is_some(),
        counts: event.usage_metadata,
    }
}
