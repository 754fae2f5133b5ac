//! Messages of the Responses API over WebSocket: what a client asks for, what upstream tells.
//!
//! Invariant: a message is looked into and never changed; one that is not understood passes, since
//! its meaning is between client and upstream. Only what is no JSON object at all goes nowhere.
mod turns;

pub use turns::Turns;

use super::usage::{Counts, Usage};
use crate::domain::unspoken::SocketKind;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use std::borrow::Cow;

/// The message that keeps the timer of clients running which ping frames do not reset.
pub const KEEPALIVE: &str = r#"{"type":"keepalive"}"#;

/// The subprotocol in which browsers send their key, up to the key itself.
pub const KEY_SUBPROTOCOL: &str = "openai-insecure-api-key.";

/// What a client's message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It asks for a response, in a conversation of that name where the socket carries several.
    Create {
        /// The conversation's name on this socket.
        stream: Option<String>,
    },
    /// Something else, for upstream to understand.
    Other,
    /// No JSON object.
    Malformed,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    stream_id: Option<Cow<'a, str>>,
}

/// What a client's message is.
pub fn asked(text: &str) -> Asked {
    match serde_json::from_str::<Message<'_>>(text) {
        Err(_) => Asked::Malformed,
        Ok(message) if message.kind.as_deref() == Some("response.create") => Asked::Create {
            stream: message.stream_id.map(Cow::into_owned),
        },
        Ok(_) => Asked::Other,
    }
}

/// What upstream's message means for a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The turn has begun.
    Begun,
    /// The turn goes on.
    Going,
    /// The turn has ended as it should, or as its client wished.
    Ended,
    /// The response has failed.
    Failed,
    /// The turn was refused, or broken off, with that status.
    Refused(u16),
    /// Nothing about a turn.
    Aside,
}

/// Upstream's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// What it means.
    pub meaning: Meaning,
    /// The response that it is about, where it says so.
    pub response: Option<String>,
    /// The conversation that it is about, where it says so.
    pub stream: Option<String>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    stream_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    response_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    response: Option<Named<'a>>,
    status: Option<u16>,
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
}

/// The status of an error that states none.
const UNSTATED: u16 = 500;

/// What upstream's message says.
pub fn told(text: &str) -> Told {
    let Ok(event) = serde_json::from_str::<Event<'_>>(text) else {
        return Told {
            meaning: Meaning::Aside,
            response: None,
            stream: None,
        };
    };
    let meaning = match event.kind.as_deref().unwrap_or_default() {
        "response.created" => Meaning::Begun,
        "response.completed" | "response.incomplete" | "response.cancelled" | "response.done" => {
            Meaning::Ended
        }
        "response.failed" => Meaning::Failed,
        "error" => Meaning::Refused(event.status.unwrap_or(UNSTATED)),
        kind if kind.starts_with("response.") => Meaning::Going,
        _ => Meaning::Aside,
    };
    let named = event.response.and_then(|r| r.id).or(event.response_id);
    Told {
        meaning,
        response: named.map(Cow::into_owned),
        stream: event.stream_id.map(Cow::into_owned),
    }
}

/// What the message says was used.
pub fn usage(text: &str) -> Option<Usage> {
    Counts::last_in(text.as_bytes()).map(|counts| counts.usage())
}

/// Whether an endpoint that answers an upgrade with that status lacks WebSocket, rather than refusing
/// who asks, or when.
///
/// An upgrade for turns names no model and asks for nothing, so that even 400 and 404 are about the
/// endpoint: a proxy that strips the upgrade, or a server without the path. A session's names its
/// model, which may be what is not found.
pub fn is_unspoken(kind: SocketKind, status: u16) -> bool {
    match status {
        405 | 426 | 501 => true,
        400 | 404 => kind == SocketKind::Turns,
        // A success or a redirection that is no upgrade.
        _ => status < 400,
    }
}

/// The headers that stand in an error message, as those of an answer would.
pub fn error_headers(text: &str) -> HeaderMap {
    #[derive(Deserialize)]
    struct Headed {
        #[serde(default)]
        headers: serde_json::Map<String, serde_json::Value>,
    }
    let mut found = HeaderMap::new();
    let headed = serde_json::from_str::<Headed>(text);
    for (name, value) in headed.map(|h| h.headers).unwrap_or_default() {
        let text = match value {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        };
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(text)) {
            found.insert(name, value);
        }
    }
    found
}

/// An error answer of HTTP's as the message that tells of it on an open socket.
pub fn refusal_message(status: u16, retry_after: Option<&str>, body: &[u8]) -> String {
    let document = serde_json::from_slice::<serde_json::Value>(body).unwrap_or_default();
    let said = document.get("error").filter(|e| e.is_object()).cloned();
    let error = said.unwrap_or_else(|| {
        serde_json::json!({
            "message": "The provider refused this.",
            "type": "server_error", "param": null, "code": null,
        })
    });
    let mut headers = serde_json::Map::new();
    if let Some(wait) = retry_after {
        headers.insert("retry-after".to_owned(), wait.into());
    }
    serde_json::json!({"type": "error", "status": status, "error": error, "headers": headers})
        .to_string()
}

/// The key among the subprotocols that a client offers, and the others.
pub fn split_subprotocols(offered: &str) -> (Option<&str>, Vec<&str>) {
    let all = offered.split(',').map(str::trim).filter(|p| !p.is_empty());
    let (keys, others): (Vec<_>, Vec<_>) = all.partition(|p| p.starts_with(KEY_SUBPROTOCOL));
    let key = keys.first().and_then(|p| p.strip_prefix(KEY_SUBPROTOCOL));
    (key.filter(|k| !k.is_empty()), others)
}

#[cfg(test)]
mod tests;
