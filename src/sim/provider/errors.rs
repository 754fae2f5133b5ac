//! Refusals in each provider's own shape.
use serde_json::json;

use super::{Call, Flavour};
use crate::sim::reply::Reply;

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sim) struct Fault {
    pub(in crate::sim) status: u16,
    pub(in crate::sim) message: String,
    /// The word that programs go by; `None` for the usual one of the status.
    pub(in crate::sim) code: Option<String>,
    /// The field at fault.
    pub(in crate::sim) param: Option<&'static str>,
}

impl Fault {
    pub(in crate::sim) fn new(status: u16, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            code: None,
            param: None,
        }
    }

    /// A field that must be there.
    pub(super) fn missing(param: &'static str) -> Self {
        Self {
            param: Some(param),
            ..Self::new(400, format!("Missing required parameter: '{param}'."))
        }
    }

    /// An object that this credential does not have, whoever else may.
    pub(super) fn unknown(what: &str, id: &str) -> Self {
        Self::new(404, format!("No such {what}: '{id}'."))
    }

    pub(super) fn unknown_path(call: &Call<'_>) -> Self {
        let (method, path) = (&call.head.method, call.head.path());
        Self::new(404, format!("Invalid URL ({method} {path})"))
    }

    #[must_use]
    pub(super) fn code(mut self, code: &str, param: &'static str) -> Self {
        self.code = Some(code.to_owned());
        self.param = Some(param);
        self
    }

    pub(in crate::sim) fn reply(&self, call: &Call<'_>) -> Reply {
        let (status, message, code) = (self.status, &self.message, self.code.as_deref());
        let document = match call.flavour {
            Flavour::OpenAi => {
                let (kind, usual) = openai_words(status);
                json!({"error": {"message": message, "type": kind, "param": self.param, "code": code.or(usual)}})
            }
            Flavour::Anthropic => json!({
                "type": "error",
                "error": {"type": code.unwrap_or(anthropic_word(status)), "message": message},
                "request_id": call.id("req_"),
            }),
            Flavour::Gemini => json!({
                "error": {"code": status, "message": message, "status": code.unwrap_or(gemini_word(status))},
            }),
        };
        Reply::json(status, &document)
    }
}

/// What a provider says to such a status when a script does not.
pub(super) const fn usual_message(status: u16) -> &'static str {
    match status {
        401 => "Incorrect API key provided.",
        402 => "The account has no credit left.",
        403 => "The credential may not do this.",
        404 => "Not found.",
        408 | 504 => "The request timed out.",
        413 => "The request is too large.",
        429 => "Rate limit reached. Please try again later.",
        503 | 529 => "The service is overloaded. Please try again later.",
        500.. => "The server had an error while processing the request.",
        _ => "The request is invalid.",
    }
}

const fn openai_words(status: u16) -> (&'static str, Option<&'static str>) {
    match status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        403 => ("permission_error", None),
        429 => ("requests", Some("rate_limit_exceeded")),
        503 => ("server_error", Some("server_is_overloaded")),
        500.. => ("server_error", None),
        _ => ("invalid_request_error", None),
    }
}

const fn anthropic_word(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        503 | 529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

const fn gemini_word(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    }
}
