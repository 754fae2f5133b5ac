//! What every answer of the dashboard carries, and what every request is held to.
//!
//! Rule: no inline script or style, nothing from another host, never inside a frame; pages and
//! fragments are kept by nobody, since they may hold what is shown once.
use super::{State, error::Trouble, shell::Shell, wants::Wants};
use axum::{
    extract::{self, Request},
    middleware::Next,
    response::Response,
};
use http::{HeaderName, HeaderValue, header};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

#[rustfmt::skip]
const ALWAYS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
];

/// Puts the headers on.
pub(super) async fn secure(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in ALWAYS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !headers.contains_key(header::CACHE_CONTROL) {
        let no_store = HeaderValue::from_static("no-store");
        headers.insert(header::CACHE_CONTROL, no_store);
        let vary = HeaderValue::from_static("hx-request, accept-language, cookie");
        headers.append(header::VARY, vary);
    }
    response
}

/// Refuses what another site may have made the browser send.
pub(super) async fn refuse_forged(
    extract::State(state): extract::State<State>,
    shell: Shell,
    wants: Wants,
    request: Request,
    next: Next,
) -> Response {
    if state
        .access()
        .is_forged(request.method(), request.headers())
    {
        return Trouble::CrossSite.respond(&shell, wants);
    }
    next.run(request).await
}
