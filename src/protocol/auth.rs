//! How a credential is presented to upstream.
use crate::domain::{protocol::Protocol, secret::Secret};
use http::{HeaderName, HeaderValue};

/// The header that carries `secret` for `protocol` at `host`. `None` if the secret cannot stand
/// in a header, which [`Secret`] rules out.
pub fn credential_header(
    protocol: Protocol,
    host: &str,
    secret: &Secret,
) -> Option<(HeaderName, HeaderValue)> {
    let plain = |name: &'static str, value: &str| {
        let mut value = HeaderValue::from_str(value).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::from_static(name), value))
    };
    let authorization = |scheme: &str| {
        let text = format!("{scheme} {}", secret.expose());
        plain("authorization", &text)
    };
    match protocol {
        // Azure takes bearer tokens of its directory only; its keys have a header of their own.
        Protocol::OpenAi | Protocol::OpenAiVideos if host.ends_with(".azure.com") => {
            plain("api-key", secret.expose())
        }
        Protocol::OpenAi | Protocol::OpenAiVideos => authorization("Bearer"),
        Protocol::Anthropic => plain("x-api-key", secret.expose()),
        Protocol::Gemini => plain("x-goog-api-key", secret.expose()),
        Protocol::FalQueue => authorization("Key"),
    }
}
