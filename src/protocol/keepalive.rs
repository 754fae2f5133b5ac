//! What a client is told while it waits for an answer whose status is spent already, and how long
//! its client says it will wait.
//!
//! Invariant: no one form suits every client, so each protocol has the one that all of its own
//! clients were seen to tolerate before the first event, and none of them as an event of the answer.
use super::{operation::Operation, route::Route};
use crate::domain::protocol::Protocol;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::time::Duration;

/// Who made the request, as Codex says it.
const ORIGINATOR: HeaderName = HeaderName::from_static("originator");

/// Where clients built on the generated SDKs state how long they wait: for everything, or for the
/// next byte.
const STATED: [HeaderName; 2] = [
    HeaderName::from_static("x-stainless-timeout"),
    HeaderName::from_static("x-stainless-read-timeout"),
];

/// An answer takes some time to be made and to travel: no more than this is kept for that.
const MARGIN: Duration = Duration::from_secs(1);

/// The form of a word that says nothing but "still here".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keepalive {
    /// A comment, which parsers of event streams pass over.
    Comment,
    /// An event of that name, for clients whose timer nothing less resets.
    Event,
    /// The protocol's own ping.
    Ping,
    /// Blank lines, for clients that take a comment for broken JSON.
    Blank,
}

impl Keepalive {
    /// The form for whoever made that request; `None` unless it asks for a stream of events.
    /// `is_streamed` is what its body says.
    pub fn of(
        route: &Route<'_>,
        is_streamed: bool,
        headers: &HeaderMap,
        query: Option<&str>,
    ) -> Option<Self> {
        let is_stream = match route.operation {
            Operation::StreamGenerateContent => asks_for_events(query),
            Operation::ResponseRetrieve => route.reattach,
            operation => is_streamed && may_be_events(operation),
        };
        is_stream.then(|| match route.protocol {
            Protocol::Anthropic => Self::Ping,
            Protocol::Gemini => Self::Blank,
            Protocol::OpenAi if is_responses(route.operation) && is_codex(headers) => Self::Event,
            Protocol::OpenAi | Protocol::OpenAiVideos | Protocol::FalQueue => Self::Comment,
        })
    }

    /// The bytes to be sent, which stand between events.
    pub const fn bytes(self) -> &'static [u8] {
        match self {
            Self::Comment => b": waiting_for_account_capacity\n\n",
            Self::Event => b"event: keepalive\ndata: {\"type\":\"keepalive\"}\n\n",
            Self::Ping => b"event: ping\ndata: {\"type\":\"ping\"}\n\n",
            Self::Blank => b"\n\n",
        }
    }
}

/// Operations that answer with a stream of events if their body asks for a stream. Others, such as
/// speech, may stream something else.
const fn may_be_events(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::ChatCompletions
            | Operation::Completions
            | Operation::Responses
            | Operation::ImageGenerations
            | Operation::ImageEdits
            | Operation::Transcriptions
            | Operation::Messages
    )
}

const fn is_responses(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::Responses | Operation::ResponseRetrieve
    )
}

/// Gemini streams a JSON array unless it is asked for events.
fn asks_for_events(query: Option<&str>) -> bool {
    query.is_some_and(|q| q.split('&').any(|pair| pair == "alt=sse"))
}

fn is_codex(headers: &HeaderMap) -> bool {
    let originator = headers.get(ORIGINATOR).map(HeaderValue::as_bytes);
    originator.is_some_and(|o| {
        o.get(..5)
            .is_some_and(|start| start.eq_ignore_ascii_case(b"codex"))
    })
}

/// Within what time of its arrival a request is to be answered, whatever the answer is, so that its
/// client is still there to read it; `None` where the client does not say how long it waits.
pub fn answered_within(headers: &HeaderMap) -> Option<Duration> {
    let values = STATED.into_iter().flat_map(|name| headers.get_all(name));
    let stated = values.filter_map(seconds).min()?;
    Some(stated.saturating_sub(MARGIN.min(stated / 10)))
}

/// Whole or decimal seconds; anything else, and no time at all, is no statement.
fn seconds(value: &HeaderValue) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    if !text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    let stated = Duration::try_from_secs_f64(text.parse().ok()?).ok()?;
    Some(stated).filter(|s| !s.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::route::{Routed, route};
    use http::Method;

    fn headers(rows: &[(&'static str, &'static str)]) -> HeaderMap {
        let row = |(name, value): &(&'static str, &'static str)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        };
        rows.iter().map(row).collect()
    }

    fn form(
        target: &str,
        is_streamed: bool,
        rows: &[(&'static str, &'static str)],
    ) -> Option<Keepalive> {
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let method = if path.contains("/resp_") {
            Method::GET
        } else {
            Method::POST
        };
        let headers = headers(rows);
        let Routed::Call(route) = route(&method, path, &headers, query) else {
            panic!("{target} is no call")
        };
        Keepalive::of(&route, is_streamed, &headers, query)
    }

    #[test]
    fn each_protocol_has_the_form_that_its_clients_tolerate() {
        let codex = [("originator", "codex_exec")];
        let rows: [(&str, &[(&str, &str)]); 10] = [
            ("/v1/chat/completions", &[]),
            ("/v1/chat/completions", &codex),
            ("/v1/completions", &[]),
            ("/v1/images/generations", &[]),
            ("/v1/responses", &[("originator", "somebody")]),
            ("/v1/responses", &codex),
            ("/v1/responses/resp_1?stream=true", &[]),
            ("/v1/messages?beta=true", &[]),
            ("/v1beta/models/m:streamGenerateContent?alt=sse", &[]),
            ("/v1/models/m:streamGenerateContent?x=1&alt=sse", &[]),
        ];
        let told: Vec<String> = rows
            .iter()
            .map(|(target, headers)| {
                let form = form(target, true, headers).unwrap();
                let bytes = form.bytes().escape_ascii();
                format!("{target} {headers:?}\n  {form:?} {bytes}")
            })
            .collect();
        insta::assert_snapshot!(told.join("\n"));
    }

    #[test]
    fn nothing_is_said_to_who_does_not_ask_for_events() {
        for (target, is_streamed) in [
            ("/v1/chat/completions", false),
            ("/v1/responses", false),
            ("/v1/messages", false),
            ("/v1/responses/compact", true),
            ("/v1/audio/speech", true),
            ("/v1/embeddings", true),
            ("/v1/responses/resp_1", false),
            ("/v1beta/models/m:streamGenerateContent", true),
            ("/v1beta/models/m:streamGenerateContent?alt=json", true),
            ("/v1beta/models/m:generateContent?alt=sse", true),
        ] {
            assert_eq!(form(target, is_streamed, &[]), None, "{target}");
        }
    }

    fn check_within(rows: &[(&'static str, &'static str)], expect: Option<u64>) {
        let within = answered_within(&headers(rows))
            .map(|d| d.as_secs() * 1000 + u64::from(d.subsec_millis()));
        assert_eq!(within, expect, "{rows:?}");
    }

    #[test]
    fn the_least_patience_that_is_stated_counts_less_a_margin() {
        let (all, read) = ("x-stainless-timeout", "x-stainless-read-timeout");
        check_within(&[], None);
        check_within(&[(all, "600")], Some(599_000));
        check_within(&[(read, "5")], Some(4500));
        check_within(&[(all, "600"), (read, "2.5")], Some(2250));
        check_within(&[(all, " 4 "), (read, "20")], Some(3600));
        check_within(&[(all, "nonsense"), (read, "20")], Some(19_000));
        for nonsense in [
            "", "-3", "0", "0.0", "NaN", "inf", "1e3", "1.2.3", ".", "5s",
        ] {
            check_within(&[(all, nonsense)], None);
        }
    }
}
