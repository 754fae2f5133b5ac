//! Whether a secret works at an endpoint, found out by a call that costs nothing: the list of its
//! models.
//!
//! Invariant: what is reported never holds the secret, whatever upstream wrote back.
use crate::{
    clock::Instant,
    domain::{dispatch::Cause, pool::BaseUrl, protocol::Protocol, secret::Secret},
    ports::{Answer, Attempt, Timeouts, Upstream},
    protocol::{auth::credential_header, models},
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use std::time::Duration;
use tokio::time::timeout;

/// How long the whole call may take: somebody sits and waits.
pub const WITHIN: Duration = Duration::from_secs(10);

/// The longest list that is read.
const LIST_BYTES: usize = 8 << 20;

/// What is shown of upstream's message.
const MESSAGE_CHARACTERS: usize = 200;

/// What is tried.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// Where.
    pub base_url: &'a BaseUrl,
    /// Which list of models.
    pub protocol: Protocol,
    /// With what.
    pub secret: &'a Secret,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probed {
    /// The address that was called.
    pub called: String,
    /// How long it took.
    pub took: Duration,
    /// The status, if there was an answer.
    pub status: Option<u16>,
    /// The first line of upstream's message, or what went wrong on the way.
    pub message: Option<String>,
    /// The models that it lists; empty unless the verdict is [`Verdict::Works`].
    pub models: Vec<Box<str>>,
    /// What it means.
    pub verdict: Verdict,
}

/// What a test means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It lists its models.
    Works,
    /// Upstream does not take the secret.
    SecretRefused,
    /// The address is not that of such an API.
    WrongAddress,
    /// The account is over a limit; the secret works.
    Limited,
    /// Upstream is in trouble of its own.
    UpstreamTrouble,
    /// Upstream refused for a reason of its own.
    Refused,
    /// No connection could be made.
    Unreachable,
    /// It took too long.
    TooSlow,
}

/// The path whose answer is the list of models, as a client would ask for it.
fn path(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Anthropic => "/v1/models?limit=1000",
        Protocol::Gemini => "/v1beta/models?pageSize=1000",
        Protocol::OpenAi | Protocol::OpenAiVideos | Protocol::FalQueue => "/v1/models",
    }
}

/// The address that a test of `base_url` calls.
pub fn address(base_url: &BaseUrl, protocol: Protocol) -> String {
    let scheme = if base_url.is_tls() { "https" } else { "http" };
    let target = base_url.target(path(protocol));
    let target = target.split('?').next().unwrap_or_default();
    format!("{scheme}://{}{target}", base_url.authority())
}

/// Calls upstream once.
pub async fn probe(upstream: &dyn Upstream, target: Target<'_>) -> Probed {
    let begun = Instant::now();
    let found = timeout(WITHIN, call(upstream, target)).await;
    let found = found.unwrap_or_else(|_| Found::silent(Verdict::TooSlow, None));
    let message = found.message.map(|text| masked(&text, target.secret));
    Probed {
        called: address(target.base_url, target.protocol),
        took: begun.elapsed(),
        status: found.status,
        message: message.filter(|text| !text.is_empty()),
        models: found.models,
        verdict: found.verdict,
    }
}

struct Found {
    status: Option<u16>,
    message: Option<String>,
    models: Vec<Box<str>>,
    verdict: Verdict,
}

impl Found {
    fn silent(verdict: Verdict, message: Option<String>) -> Self {
        Self {
            status: None,
            message,
            models: Vec::new(),
            verdict,
        }
    }
}

async fn call(upstream: &dyn Upstream, target: Target<'_>) -> Found {
    let Target {
        base_url,
        protocol,
        secret,
    } = target;
    let mut edge_headers = Vec::from_iter(credential_header(protocol, base_url.host(), secret));
    if protocol == Protocol::Anthropic {
        let version = HeaderName::from_static("anthropic-version");
        edge_headers.push((version, HeaderValue::from_static("2023-06-01")));
    }
    let headers = HeaderMap::new();
    let attempt = Attempt {
        base_url,
        method: Method::GET,
        target: base_url.target(path(protocol)),
        headers: &headers,
        edge_headers,
        payload: None,
        timeouts: Timeouts {
            connect: WITHIN,
            header: WITHIN,
        },
    };
    match upstream.send(attempt, &mut || ()).await {
        Ok(answer) => read(answer, protocol).await,
        Err(failure) => {
            let verdict = match failure.cause {
                Cause::Connection | Cause::NotSpoken => Verdict::Unreachable,
                Cause::HeaderTimeout => Verdict::TooSlow,
            };
            Found::silent(verdict, Some(failure.detail))
        }
    }
}

async fn read(answer: Answer, protocol: Protocol) -> Found {
    let status = answer.head.status;
    let body = Limited::new(answer.body, LIST_BYTES).collect().await;
    let body = body
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    let models = (status == StatusCode::OK).then(|| models::names_in(protocol, &body));
    let models = models.flatten();
    Found {
        status: Some(status.as_u16()),
        message: (models.is_none()).then(|| message(&body)),
        verdict: verdict(status, models.is_some()),
        models: models.unwrap_or_default(),
    }
}

fn verdict(status: StatusCode, is_list: bool) -> Verdict {
    match status.as_u16() {
        200 if is_list => Verdict::Works,
        401 | 403 => Verdict::SecretRefused,
        429 => Verdict::Limited,
        500.. => Verdict::UpstreamTrouble,
        200..=399 | 404 | 405 => Verdict::WrongAddress,
        _ => Verdict::Refused,
    }
}

/// The first line of what upstream says, wherever its protocol puts that.
fn message(body: &[u8]) -> String {
    let parsed: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let said = parsed.as_ref().and_then(|json| {
        let places = ["/error/message", "/message", "/detail", "/error"];
        places
            .iter()
            .find_map(|place| json.pointer(place)?.as_str())
    });
    let text = String::from_utf8_lossy(body);
    let line = said.unwrap_or(&text).trim().lines().next();
    line.unwrap_or_default().to_owned()
}

/// Shortened, and without the secret, whole or as far as it was quoted.
fn masked(text: &str, secret: &Secret) -> String {
    let text = text.replace(secret.expose(), "…");
    text.chars().take(MESSAGE_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_means_follows_from_the_status_and_whether_there_is_a_list() {
        let check = |status: u16, is_list: bool, expect: Verdict| {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(verdict(status, is_list), expect, "{status}");
        };
        check(200, true, Verdict::Works);
        check(200, false, Verdict::WrongAddress);
        check(301, false, Verdict::WrongAddress);
        check(401, false, Verdict::SecretRefused);
        check(403, false, Verdict::SecretRefused);
        check(404, false, Verdict::WrongAddress);
        check(422, false, Verdict::Refused);
        check(429, false, Verdict::Limited);
        check(503, false, Verdict::UpstreamTrouble);
    }

    #[test]
    fn the_first_line_of_the_message_is_found_in_every_shape() {
        let check = |body: &str, expect: &str| assert_eq!(message(body.as_bytes()), expect);
        check(
            r#"{"error":{"message":"Wrong key.\nSee docs."}}"#,
            "Wrong key.",
        );
        check(r#"{"detail":"Not found"}"#, "Not found");
        check(r#"{"error":"nope"}"#, "nope");
        check("<html>\n<body>", "<html>");
        check("", "");
    }

    #[test]
    fn the_secret_is_never_repeated() {
        let (secret, _) = Secret::clean("sk-0123456789abcdef").unwrap();
        let said = masked("Incorrect key: sk-0123456789abcdef.", &secret);
        assert_eq!(said, "Incorrect key: ….");
    }

    #[test]
    fn the_address_is_what_will_be_called_without_its_query() {
        let check = |base: &str, protocol, expect: &str| {
            assert_eq!(address(&BaseUrl::parse(base).unwrap(), protocol), expect);
        };
        check(
            "https://api.openai.com/v1/",
            Protocol::OpenAi,
            "https://api.openai.com/v1/models",
        );
        check(
            "https://api.anthropic.com",
            Protocol::Anthropic,
            "https://api.anthropic.com/v1/models",
        );
    }
}
