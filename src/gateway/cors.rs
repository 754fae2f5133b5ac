//! Browsers may call the data plane: preflights are answered here, without a key and without
//! touching upstream. No credentials are ever allowed, so an allowed origin gains nothing but what
//! a client key gives anyway.
use super::{Gateway, Reply, refuse::REQUEST_ID};
use crate::domain::{ids::RequestId, settings::Name};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header, request::Parts};

/// How long browsers may remember a preflight, in seconds: two hours is the most they accept.
const MAX_AGE_SECONDS: &str = "7200";

/// What scripts may read besides the body: everything that tells a client when to come again.
const EXPOSED: &str = "x-request-id, x-upstream-request-id, x-fairlane-reason, retry-after, x-should-retry, request-id, openai-processing-ms";

/// The answer to a preflight, if this is one.
pub(super) fn preflight(gateway: &Gateway, parts: &Parts) -> Option<Response<Reply>> {
    if parts.method != Method::OPTIONS {
        return None;
    }
    let mut response = Response::new(Reply::whole(""));
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    let id = RequestId::from_u128(crate::entropy::uuid7());
    if let Ok(id) = HeaderValue::from_str(&id.to_string()) {
        headers.insert(REQUEST_ID, id);
    }
    headers.insert(
        header::ALLOW,
        HeaderValue::from_static("GET, POST, DELETE, OPTIONS"),
    );
    allow(gateway, &parts.headers, headers);
    if headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN) {
        headers.insert(
            header::ACCESS_CONTROL_ALLOW_METHODS,
            HeaderValue::from_static("GET, POST, DELETE"),
        );
        headers.insert(
            header::ACCESS_CONTROL_MAX_AGE,
            HeaderValue::from_static(MAX_AGE_SECONDS),
        );
        // What a script wants to send it may send: the key decides, not the header.
        if let Some(wanted) = parts.headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
        }
    }
    Some(response)
}

/// Adds what a browser needs in order to hand the answer to the script that asked.
pub(super) fn allow(gateway: &Gateway, asked: &HeaderMap, headers: &mut HeaderMap) {
    let Some(origin) = asked.get(header::ORIGIN) else {
        return;
    };
    let settings = gateway.configuration.settings();
    let allowed = settings.text(Name::CorsAllowedOrigins);
    let value = if allowed == "*" {
        HeaderValue::from_static("*")
    } else {
        headers.append(header::VARY, HeaderValue::from_static("origin"));
        let is_listed = allowed
            .split(',')
            .any(|o| o.trim().as_bytes().eq_ignore_ascii_case(origin.as_bytes()));
        if !is_listed {
            return;
        }
        origin.clone()
    };
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, value);
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static(EXPOSED),
    );
}
