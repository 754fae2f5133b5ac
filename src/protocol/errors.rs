//! Answers of fairlane's own, in the shape in which each protocol's clients expect their errors.
//!
//! Invariant: a refusal looks to an SDK like one of its provider's, so that it raises its typed
//! error; which type follows from the status alone. What a message may say is its author's duty.
use super::operation::Operation;
use crate::domain::{protocol::Protocol, reason::Reason};
use serde_json::{Map, Value, json};

/// The content type of every body made here.
pub const CONTENT_TYPE: &str = "application/json";

/// `OpenAI`'s code for a response that cannot be continued. Clients that meet it send their whole
/// input again.
pub const PREVIOUS_RESPONSE_NOT_FOUND: &str = "previous_response_not_found";

/// One refusal, before it takes a shape.
#[derive(Clone, Copy, Debug)]
pub struct Refusal<'a> {
    /// Why.
    pub reason: Reason,
    /// What the client reads.
    pub message: &'a str,
    /// The field at fault, such as `model`.
    pub param: Option<&'a str>,
    /// A provider's own code in place of the reason's, where clients act on that.
    pub code: Option<&'a str>,
    /// What the header `Retry-After` says.
    pub retry_after_secs: Option<u32>,
    /// When the limit ends, in seconds since 1970, where that is known.
    pub resets_at: Option<i64>,
}

impl<'a> Refusal<'a> {
    /// A refusal with nothing but reason and message.
    pub const fn new(reason: Reason, message: &'a str) -> Self {
        Self {
            reason,
            message,
            param: None,
            code: None,
            retry_after_secs: None,
            resets_at: None,
        }
    }

    /// A refusal because the response that is to be continued is unknown, or gone for good.
    pub const fn not_continuable(reason: Reason, message: &'a str) -> Self {
        Self {
            param: Some("previous_response_id"),
            code: Some(PREVIOUS_RESPONSE_NOT_FOUND),
            ..Self::new(reason, message)
        }
    }
}

/// The body of an error answer.
pub fn body(protocol: Protocol, refusal: &Refusal<'_>) -> Vec<u8> {
    shaped(protocol, refusal).to_string().into_bytes()
}

/// The event that ends an event stream whose status is spent already.
pub fn sse_event(protocol: Protocol, operation: Operation, refusal: &Refusal<'_>) -> Vec<u8> {
    let (name, data) = match (protocol, operation) {
        (
            Protocol::OpenAi,
            Operation::Responses | Operation::ResponsesCompact | Operation::ResponseRetrieve,
        ) => ("event: error\n", responses_event(refusal)),
        (Protocol::Anthropic, _) => ("event: error\n", shaped(protocol, refusal)),
        // Chat, completions, images, audio, Gemini and FAL know errors by their key alone, and
        // an event name would make some of their parsers skip the data.
        _ => ("", shaped(protocol, refusal)),
    };
    format!("{name}data: {data}\n\n").into_bytes()
}

/// The message that tells of `refusal` on an open WebSocket. A client waits and comes again only for
/// a wait that stands in `headers`; one whose response cannot be continued sends everything again
/// only for status 400.
pub fn socket_message(refusal: &Refusal<'_>) -> String {
    let is_lost = refusal.code == Some(PREVIOUS_RESPONSE_NOT_FOUND);
    let mut headers = Map::new();
    if let Some(seconds) = refusal.retry_after_secs.filter(|_| !is_lost) {
        headers.insert("retry-after".to_owned(), seconds.to_string().into());
    }
    json!({
        "type": "error",
        "status": if is_lost { 400 } else { refusal.reason.status() },
        "error": openai(refusal),
        "headers": headers,
    })
    .to_string()
}

fn shaped(protocol: Protocol, refusal: &Refusal<'_>) -> Value {
    match protocol {
        Protocol::OpenAi | Protocol::OpenAiVideos => json!({ "error": openai(refusal) }),
        Protocol::Anthropic => json!({
            "type": "error",
            "error": {
                "type": anthropic_type(refusal.reason.status()),
                "message": refusal.message,
            },
        }),
        Protocol::Gemini => json!({ "error": gemini(refusal) }),
        Protocol::FalQueue => json!({ "detail": refusal.message }),
    }
}

fn code<'a>(refusal: &Refusal<'a>) -> &'a str {
    refusal.code.unwrap_or(refusal.reason.code())
}

fn param<'a>(refusal: &Refusal<'a>) -> Option<&'a str> {
    match refusal.reason {
        Reason::ModelNotFound | Reason::ModelNotAllowed => refusal.param.or(Some("model")),
        _ => refusal.param,
    }
}

fn openai(refusal: &Refusal<'_>) -> Value {
    let mut error = json!({
        "message": refusal.message,
        "type": openai_type(refusal.reason.status()),
        "param": param(refusal),
        "code": code(refusal),
    });
    if let (Some(at), Some(error)) = (refusal.resets_at, error.as_object_mut()) {
        error.insert("resets_at".to_owned(), at.into());
    }
    error
}

/// The Responses API has its fields at the top of the event.
fn responses_event(refusal: &Refusal<'_>) -> Value {
    json!({
        "type": "error",
        "code": code(refusal),
        "message": refusal.message,
        "param": param(refusal),
        "sequence_number": 0,
    })
}

fn gemini(refusal: &Refusal<'_>) -> Value {
    let status = refusal.reason.status();
    let mut error = Map::from_iter([
        ("code".to_owned(), status.into()),
        ("message".to_owned(), refusal.message.into()),
        ("status".to_owned(), gemini_status(status).into()),
    ]);
    // Gemini's clients read the wait from here and not from the header.
    if let (429 | 503, Some(secs)) = (status, refusal.retry_after_secs) {
        let detail = json!({
            "@type": "type.googleapis.com/google.rpc.RetryInfo",
            "retryDelay": format!("{secs}s"),
        });
        error.insert("details".to_owned(), json!([detail]));
    }
    Value::Object(error)
}

const fn openai_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    }
}

const fn anthropic_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 => "overloaded_error",
        504 => "timeout_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

/// The canonical status word that Google's services give with that HTTP status.
const fn gemini_status(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        405 => "UNIMPLEMENTED",
        409 => "ABORTED",
        426 => "FAILED_PRECONDITION",
        429 => "RESOURCE_EXHAUSTED",
        502 | 503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn every_reason_has_the_shape_of_every_protocol() {
        let mut lines = Vec::new();
        for reason in Reason::ALL {
            lines.push(format!("{} {}", reason.status(), reason.code()));
            for protocol in Protocol::ALL {
                let mut refusal = Refusal::new(*reason, "M");
                refusal.retry_after_secs = matches!(reason.status(), 429 | 503).then_some(7);
                lines.push(format!("  {protocol}: {}", text(body(protocol, &refusal))));
            }
        }
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn details_of_a_refusal_reach_those_who_read_them() {
        let refusal = Refusal {
            resets_at: Some(1_800_000_000),
            ..Refusal::not_continuable(Reason::OwnerUnknown, "say \"again\"\n한")
        };
        insta::assert_snapshot!(text(body(Protocol::OpenAi, &refusal)));
    }

    #[test]
    fn a_failure_after_the_status_ends_the_stream_as_the_protocol_does() {
        use Operation as O;
        let refusal = Refusal {
            retry_after_secs: Some(7),
            ..Refusal::new(Reason::AccountStreamCap, "M")
        };
        let events: Vec<String> = [
            (Protocol::OpenAi, O::ChatCompletions),
            (Protocol::OpenAi, O::Responses),
            (Protocol::OpenAi, O::ImageGenerations),
            (Protocol::Anthropic, O::Messages),
            (Protocol::Gemini, O::StreamGenerateContent),
            (Protocol::FalQueue, O::Images),
        ]
        .into_iter()
        .map(|(protocol, operation)| {
            let event = text(sse_event(protocol, operation, &refusal));
            assert!(event.ends_with("\n\n"));
            format!("{protocol} {}:\n{event}", operation.name())
        })
        .collect();
        insta::assert_snapshot!(events.concat());
    }
}
