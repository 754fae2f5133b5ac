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
    let data = if is_responses(protocol, operation) {
        let sent = (Some(code(refusal)), refusal.message, param(refusal));
        responses_event(sent)
    } else {
        shaped(protocol, refusal)
    };
    event(protocol, operation, &data)
}

/// The same for what a provider answered instead of a stream: its own error where it gave one, or
/// else what can be said of it.
pub fn sse_event_of_answer(
    protocol: Protocol,
    operation: Operation,
    status: u16,
    body: &[u8],
) -> Vec<u8> {
    let given = serde_json::from_slice(body).ok();
    let given = given.filter(|value: &Value| {
        let error = value.get("error").or_else(|| value.get("detail"));
        error.is_some_and(|e| !e.is_null())
    });
    let Some(mut given) = given else {
        return sse_event(protocol, operation, &no_stream(status, &stateless(status)));
    };
    if !is_responses(protocol, operation) {
        // Anthropic's clients go by the type; not everything that speaks the protocol states it.
        if let (Protocol::Anthropic, Some(fields)) = (protocol, given.as_object_mut()) {
            fields.insert("type".to_owned(), "error".into());
        }
        return event(protocol, operation, &given);
    }
    let text = |name| given.pointer(name).and_then(Value::as_str);
    let message = text("/error/message")
        .or(text("/error"))
        .or(text("/detail"));
    let stated = stateless(status);
    let sent = (
        text("/error/code").or(text("/error/type")),
        message.unwrap_or(&stated),
        text("/error/param"),
    );
    event(protocol, operation, &responses_event(sent))
}

fn stateless(status: u16) -> String {
    if (200..300).contains(&status) {
        "The provider answered with something else than a stream of events.".to_owned()
    } else {
        format!("The provider answered with status {status}.")
    }
}

/// A provider's refusal for which it has no words.
const fn no_stream(status: u16, message: &str) -> Refusal<'_> {
    // Only its kind is taken from the reason: clients go by that.
    let reason = match status {
        429 => Reason::AccountCooling,
        503 | 529 => Reason::NoServiceableAccount,
        _ => Reason::UpstreamAmbiguous,
    };
    Refusal {
        code: Some("upstream_error"),
        ..Refusal::new(reason, message)
    }
}

const fn is_responses(protocol: Protocol, operation: Operation) -> bool {
    matches!(protocol, Protocol::OpenAi)
        && matches!(
            operation,
            Operation::Responses | Operation::ResponsesCompact | Operation::ResponseRetrieve
        )
}

fn event(protocol: Protocol, operation: Operation, data: &Value) -> Vec<u8> {
    // Chat, completions, images, audio, Gemini and FAL know errors by their key alone, and an event
    // name would make some of their parsers skip the data.
    let has_name = protocol == Protocol::Anthropic || is_responses(protocol, operation);
    let name = if has_name { "event: error\n" } else { "" };
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
fn responses_event((code, message, param): (Option<&str>, &str, Option<&str>)) -> Value {
    json!({
        "type": "error",
        "code": code,
        "message": message,
        "param": param,
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
    fn what_a_provider_answers_instead_of_a_stream_is_told_in_its_own_words() {
        use Operation as O;
        let told: Vec<String> = [
            (Protocol::OpenAi, O::ChatCompletions),
            (Protocol::OpenAi, O::Responses),
            (Protocol::Anthropic, O::Messages),
            (Protocol::Gemini, O::StreamGenerateContent),
        ]
        .into_iter()
        .flat_map(|(protocol, operation)| {
            let own = "{\"error\": {\"message\": \"M\",\n \"code\": \"c\", \"type\": \"t\"}}";
            [
                (429, own),
                (500, "<html>"),
                (429, "{}"),
                (200, "{\"choices\":[]}"),
            ]
            .map(|(status, body)| {
                let event = sse_event_of_answer(protocol, operation, status, body.as_bytes());
                format!("{protocol} {status} {body:?}:\n{}", text(event))
            })
        })
        .collect();
        insta::assert_snapshot!(told.concat());
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
