//! From method and path to the operation asked for.
//!
//! Invariant: paths are matched as the raw bytes that came, segment by segment; only a model's name
//! may carry escapes, and it travels on as it came. A path that could mean something else to anybody
//! who decodes or normalises it (dot segments, empty segments, a trailing slash, escapes elsewhere)
//! is no path of ours: 404, whatever it would resolve to.
mod credential;
mod path;
mod table;
#[cfg(test)]
mod tests;

use super::operation::{Leases, ModelPlace, Operation};
use crate::domain::protocol::Protocol;
use http::{HeaderMap, HeaderName, Method, header};
use std::borrow::Cow;
use table::Methods;

pub use credential::{client_credential, strip_key};

/// The header by which Anthropic's clients are told apart.
const ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");
/// The header in which Gemini's clients carry their key.
const X_GOOG_API_KEY: HeaderName = HeaderName::from_static("x-goog-api-key");

/// What a request of the data plane asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routed<'p> {
    /// Something that goes upstream.
    Call(Route<'p>),
    /// The list of models, or one of them: fairlane answers that itself.
    Models {
        /// Whose shape the answer takes.
        shape: Protocol,
        /// The raw name asked for; see [`model_name`].
        id: Option<&'p str>,
    },
    /// No such path, in that protocol's error shape.
    NotFound(Protocol),
    /// The path exists, the method does not.
    MethodNotAllowed {
        /// Whose error shape the answer takes.
        protocol: Protocol,
        /// The value for the header `Allow`.
        allow: &'static str,
    },
    /// A path that speaks WebSocket, asked to do so.
    Socket(Route<'p>),
    /// A path that speaks WebSocket alone, asked without an upgrade.
    UpgradeRequired,
    /// Not under a data-plane prefix at all.
    NotDataPlane,
}

/// One request to be sent upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route<'p> {
    /// The protocol that the path speaks.
    pub protocol: Protocol,
    /// What is asked for.
    pub operation: Operation,
    /// The leases to take.
    pub leases: Leases,
    /// Whether it joins a generation that is already running, so that the reserve may serve it.
    pub reattach: bool,
    /// Where the model is named.
    pub model: ModelSource<'p>,
    /// The id in the path whose hard owner alone can answer.
    pub owner_id: Option<&'p str>,
    /// Whether the method brings a body.
    pub takes_body: bool,
}

/// Where the model of a request is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelSource<'p> {
    /// In the body; without one the request is refused.
    Body,
    /// In the body, where it may be left out.
    OptionalBody,
    /// In the path, raw; see [`model_name`].
    Path(&'p str),
    /// Nowhere.
    None,
}

/// What the rules look at besides the path.
struct Asked<'a> {
    method: &'a Method,
    headers: &'a HeaderMap,
    query: Option<&'a str>,
}

/// Whether a path is the data plane's, so that [`route`] has an answer for it.
pub fn is_data_plane(raw_path: &str) -> bool {
    path::prefix(raw_path).is_some()
}

/// Tells what a request asks for. `raw_path` and `query` are the bytes of the request line.
pub fn route<'p>(
    method: &Method,
    raw_path: &'p str,
    headers: &HeaderMap,
    query: Option<&str>,
) -> Routed<'p> {
    let asked = Asked {
        method,
        headers,
        query,
    };
    let Some((prefix, rest)) = path::prefix(raw_path) else {
        return Routed::NotDataPlane;
    };
    if !path::is_unambiguous(raw_path) {
        return Routed::NotFound(asked.speaker(prefix, rest));
    }
    match prefix {
        path::Prefix::V1 => asked.v1(rest),
        path::Prefix::V1Beta => asked.v1beta(rest),
        path::Prefix::Fal => Routed::NotFound(Protocol::FalQueue),
    }
}

/// The name that a raw path segment stands for, for look-ups.
pub fn model_name(raw: &str) -> Cow<'_, str> {
    // `route` lets no other text through than one that decodes to UTF-8.
    match super::percent::decode(raw.as_bytes()) {
        None | Some(Cow::Borrowed(_)) => Cow::Borrowed(raw),
        Some(Cow::Owned(bytes)) => match String::from_utf8(bytes) {
            Ok(text) => Cow::Owned(text),
            Err(_) => Cow::Borrowed(raw),
        },
    }
}

/// A name as it stands in a path or a query.
pub fn escape_name(name: &str) -> Cow<'_, str> {
    path::escape_segment(name).into()
}

/// `raw_path` with the model's raw name in it (as [`ModelSource::Path`] gave it) replaced by
/// `new_name`, escaped so that it stays one segment.
pub fn replace_model_in_path(raw_path: &str, raw_model: &str, new_name: &str) -> String {
    let place = raw_path
        .rfind(':')
        .and_then(|colon| raw_path.get(..colon))
        .and_then(|before| before.strip_suffix(raw_model));
    let (Some(before), escaped) = (place, path::escape_segment(new_name)) else {
        return raw_path.to_owned();
    };
    let after = raw_path
        .get(before.len() + raw_model.len()..)
        .unwrap_or_default();
    [before, &escaped, after].concat()
}

impl Asked<'_> {
    fn v1<'p>(&self, rest: &'p str) -> Routed<'p> {
        if rest == "models" || rest.starts_with("models/") {
            return self.models(self.models_shape(), rest);
        }
        let protocol = self.speaker(path::Prefix::V1, rest);
        if rest.contains('%') {
            return Routed::NotFound(protocol);
        }
        match rest {
            "realtime" if self.wants_websocket() => {
                return Routed::Socket(self.plain(protocol, Operation::Realtime));
            }
            "realtime" => return Routed::UpgradeRequired,
            "responses" if self.wants_websocket() => {
                return Routed::Socket(self.plain(protocol, Operation::Responses));
            }
            _ => {}
        }
        match table::find(rest, protocol) {
            Some((methods, owner_id)) => self.call(protocol, methods, owner_id),
            None => Routed::NotFound(protocol),
        }
    }

    fn v1beta<'p>(&self, rest: &'p str) -> Routed<'p> {
        match rest {
            "models" => self.models(Protocol::Gemini, rest),
            _ if rest.starts_with("models/") => self.models(Protocol::Gemini, rest),
            _ => Routed::NotFound(Protocol::Gemini),
        }
    }

    /// `models`, `models/{name}` and `models/{name}:{verb}`; the verb follows the last colon.
    fn models<'p>(&self, shape: Protocol, rest: &'p str) -> Routed<'p> {
        let id = rest.strip_prefix("models/");
        let split = id.and_then(|id| id.rsplit_once(':'));
        let verb = split.and_then(|(model, verb)| Some((model, Operation::from_verb(verb)?)));
        if let Some((model, operation)) = verb {
            return match *self.method {
                _ if !path::is_name(model) => Routed::NotFound(Protocol::Gemini),
                Method::POST => Routed::Call(Route {
                    model: ModelSource::Path(model),
                    ..self.plain(Protocol::Gemini, operation)
                }),
                _ => Routed::MethodNotAllowed {
                    protocol: Protocol::Gemini,
                    allow: "POST",
                },
            };
        }
        match *self.method {
            Method::GET | Method::HEAD => Routed::Models { shape, id },
            // An unknown verb of Gemini's, rather than a wrong method on a model's name.
            Method::POST if split.is_some() => Routed::NotFound(Protocol::Gemini),
            _ => Routed::MethodNotAllowed {
                protocol: shape,
                allow: "GET, HEAD",
            },
        }
    }

    fn call<'p>(
        &self,
        protocol: Protocol,
        methods: &'static Methods,
        owner_id: Option<&'p str>,
    ) -> Routed<'p> {
        let Some(operation) = methods.operation(self.method) else {
            return Routed::MethodNotAllowed {
                protocol,
                allow: methods.allow,
            };
        };
        let mut route = Route {
            owner_id,
            ..self.plain(protocol, operation)
        };
        if operation == Operation::ResponseRetrieve && self.asks_for_stream() {
            route.reattach = true;
            route.leases = Leases::STREAM;
        }
        Routed::Call(route)
    }

    fn plain<'p>(&self, protocol: Protocol, operation: Operation) -> Route<'p> {
        Route {
            protocol,
            operation,
            leases: operation.leases(),
            reattach: false,
            model: match operation.model_place() {
                ModelPlace::Body => ModelSource::Body,
                ModelPlace::OptionalBody => ModelSource::OptionalBody,
                ModelPlace::Path | ModelPlace::Query | ModelPlace::Nowhere => ModelSource::None,
            },
            owner_id: None,
            takes_body: *self.method == Method::POST,
        }
    }

    /// Whose clients ask, as far as prefix, first segment and headers tell.
    fn speaker(&self, prefix: path::Prefix, rest: &str) -> Protocol {
        match prefix {
            path::Prefix::V1Beta => return Protocol::Gemini,
            path::Prefix::Fal => return Protocol::FalQueue,
            path::Prefix::V1 => {}
        }
        match rest.split('/').next() {
            Some("messages") => Protocol::Anthropic,
            Some("videos") => Protocol::OpenAiVideos,
            Some("models") => self.models_shape(),
            Some("files") if self.headers.contains_key(ANTHROPIC_VERSION) => Protocol::Anthropic,
            _ => Protocol::OpenAi,
        }
    }

    fn models_shape(&self) -> Protocol {
        if self.headers.contains_key(ANTHROPIC_VERSION) {
            Protocol::Anthropic
        } else if self.headers.contains_key(X_GOOG_API_KEY)
            || self.query.is_some_and(credential::has_key)
        {
            Protocol::Gemini
        } else {
            Protocol::OpenAi
        }
    }

    fn asks_for_stream(&self) -> bool {
        self.query
            .is_some_and(|q| q.split('&').any(|pair| pair == "stream=true"))
    }

    fn wants_websocket(&self) -> bool {
        self.method == Method::GET
            && self.headers.get_all(header::UPGRADE).iter().any(|value| {
                value
                    .as_bytes()
                    .split(|b| *b == b',')
                    .any(|token| token.trim_ascii().eq_ignore_ascii_case(b"websocket"))
            })
    }
}
