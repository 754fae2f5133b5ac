//! Where clients put their key, and how a query loses the one in it.
use super::X_GOOG_API_KEY;
use crate::{domain::protocol::Protocol, protocol::percent};
use http::{HeaderMap, HeaderName, header};
use std::borrow::Cow;

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// The client key that a request presents: `Authorization: Bearer` (`Key` for FAL), else
/// `x-api-key`, else `x-goog-api-key`, else the query's `key` on Gemini's paths.
pub fn client_credential<'a>(
    headers: &'a HeaderMap,
    query: Option<&'a str>,
    protocol: Protocol,
) -> Option<Cow<'a, [u8]>> {
    let own = |name: HeaderName| {
        let value = headers.get(name)?.as_bytes().trim_ascii();
        (!value.is_empty()).then_some(value)
    };
    let header = authorization(headers, protocol)
        .or_else(|| own(X_API_KEY))
        .or_else(|| own(X_GOOG_API_KEY));
    match header {
        Some(value) => Some(Cow::Borrowed(value)),
        None if protocol == Protocol::Gemini => key_in(query?),
        None => None,
    }
}

fn authorization(headers: &HeaderMap, protocol: Protocol) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes().trim_ascii();
    let space = value.iter().position(|b| *b == b' ')?;
    let (scheme, secret) = value.split_at_checked(space)?;
    let secret = secret.trim_ascii();
    let known = scheme.eq_ignore_ascii_case(b"bearer")
        || (protocol == Protocol::FalQueue && scheme.eq_ignore_ascii_case(b"key"));
    (known && !secret.is_empty()).then_some(secret)
}

/// Whether the query carries a key.
pub(super) fn has_key(query: &str) -> bool {
    query.split('&').any(is_key)
}

fn key_in(query: &str) -> Option<Cow<'_, [u8]>> {
    let pair = query.split('&').find(|pair| is_key(pair))?;
    let (_, value) = pair.split_once('=')?;
    percent::decode(value.as_bytes()).filter(|v| !v.is_empty())
}

fn is_key(pair: &str) -> bool {
    let name = pair.split_once('=').map_or(pair, |(name, _)| name);
    // A name written in escapes is the same name to upstream, so it must not slip through.
    name == "key"
        || (name.contains('%') && percent::decode(name.as_bytes()).is_some_and(|n| *n == *b"key"))
}

/// The query without its `key` parameters; every other byte stays, in its order.
pub fn strip_key(query: &str) -> Cow<'_, str> {
    if !has_key(query) {
        return Cow::Borrowed(query);
    }
    let mut out = String::with_capacity(query.len());
    for (n, pair) in query.split('&').filter(|pair| !is_key(pair)).enumerate() {
        if n > 0 {
            out.push('&');
        }
        out.push_str(pair);
    }
    Cow::Owned(out)
}
