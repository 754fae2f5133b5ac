//! Which headers travel between client and upstream, and which end here.
//!
//! Invariant: what describes one connection, names the client or carries its secrets goes no
//! further; everything else passes with its bytes, duplicates and empty values. Values of one name
//! keep their order; the order among names, which HTTP gives no meaning, may change.
use http::{HeaderMap, HeaderName, HeaderValue, header};

/// The header that carries fairlane's own id of a request.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The header that carries upstream's id of a request.
pub const X_UPSTREAM_REQUEST_ID: HeaderName = HeaderName::from_static("x-upstream-request-id");
/// The header that names the [`Reason`](crate::domain::reason::Reason) of an answer of our own.
pub const X_FAIRLANE_REASON: HeaderName = HeaderName::from_static("x-fairlane-reason");
/// The header by which SDKs are told not to repeat what cannot be cured.
pub const X_SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// Takes off a request what must not reach upstream: hop-by-hop headers, those that `Connection`
/// names, the client's credential, cookies, `Host`, and where the request came from.
/// `Content-Length` stays, whoever names it; the body decides about that one.
pub fn strip_request(headers: &mut HeaderMap) {
    strip_nominated(headers);
    remove_where(headers, |name| is_hop_by_hop(name) || ends_at_request(name));
}

/// Takes off an upstream's response what must not reach the client, and moves the upstream's request
/// id out of the way of fairlane's own.
pub fn strip_response(headers: &mut HeaderMap) {
    strip_nominated(headers);
    remove_where(headers, |name| {
        is_hop_by_hop(name) || ends_at_response(name)
    });
    if let Some(id) = headers.remove(X_REQUEST_ID) {
        headers.insert(X_UPSTREAM_REQUEST_ID, id);
    }
}

/// Takes a coding off what the client accepts, for answers that must be read on their way: nobody
/// here can undo it.
pub fn offer_without(headers: &mut HeaderMap, coding: &str) {
    let is_it = |offer: &[u8]| {
        let name = offer.split(|b| *b == b';').next().unwrap_or_default();
        name.trim_ascii().eq_ignore_ascii_case(coding.as_bytes())
    };
    let lines = headers.get_all(header::ACCEPT_ENCODING).iter();
    let offers: Vec<&[u8]> = lines
        .flat_map(|line| line.as_bytes().split(|b| *b == b','))
        .map(<[u8]>::trim_ascii)
        .collect();
    if !offers.iter().any(|offer| is_it(offer)) {
        return;
    }
    let mut kept: Vec<u8> = Vec::new();
    for offer in offers.into_iter().filter(|offer| !is_it(offer)) {
        if !kept.is_empty() {
            kept.extend_from_slice(b", ");
        }
        kept.extend_from_slice(offer);
    }
    if kept.is_empty() {
        // To offer nothing would mean to accept anything.
        kept = b"identity".to_vec();
    }
    if let Ok(value) = HeaderValue::from_bytes(&kept) {
        headers.insert(header::ACCEPT_ENCODING, value);
    }
}

fn is_hop_by_hop(name: &str) -> bool {
    matches!(
        name,
        "connection" | "keep-alive" | "te" | "transfer-encoding" | "upgrade"
    ) || name.starts_with("proxy-")
}

/// A request's trailers are not kept for replay, so nothing may announce them; a response's pass, and
/// only those that `Trailer` names.
fn ends_at_request(name: &str) -> bool {
    matches!(
        name,
        "authorization"
            | "x-api-key"
            | "x-goog-api-key"
            | "cookie"
            | "host"
            | "expect"
            | "trailer"
            | "forwarded"
            | "x-real-ip"
    ) || name.starts_with("x-forwarded-")
}

/// `Alt-Svc` names other servers for the client's origin, which is fairlane; which origins may read
/// its answers the operator says, not upstream; its own headers nobody else may set.
fn ends_at_response(name: &str) -> bool {
    matches!(name, "set-cookie" | "alt-svc")
        || name.starts_with("access-control-")
        || name.starts_with("x-fairlane-")
}

/// Removes the headers that `Connection` lists.
fn strip_nominated(headers: &mut HeaderMap) {
    if !headers.contains_key(header::CONNECTION) {
        return;
    }
    let lists: Vec<_> = headers
        .get_all(header::CONNECTION)
        .iter()
        .cloned()
        .collect();
    let names = lists
        .iter()
        .flat_map(|list| list.as_bytes().split(|b| *b == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok());
    for name in names.filter(|name| name != header::CONTENT_LENGTH) {
        headers.remove(name);
    }
}

fn remove_where(headers: &mut HeaderMap, is_doomed: impl Fn(&str) -> bool) {
    while let Some(name) = headers.keys().find(|name| is_doomed(name.as_str())) {
        let name = name.clone();
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(lines: &[&str]) -> HeaderMap {
        lines
            .iter()
            .map(|line| {
                let (name, value) = line.split_once(':').unwrap();
                (
                    HeaderName::from_bytes(name.as_bytes()).unwrap(),
                    HeaderValue::from_str(value.trim()).unwrap(),
                )
            })
            .collect()
    }

    fn check(strip: fn(&mut HeaderMap), lines: &[&str], expect: &[&str]) {
        let mut headers = map(lines);
        strip(&mut headers);
        assert_eq!(headers, map(expect));
    }

    #[test]
    fn a_coding_that_nobody_can_undo_is_not_offered() {
        let strip = |headers: &mut HeaderMap| offer_without(headers, "br");
        check(
            strip,
            &["accept-encoding: gzip, BR;q=0.9, zstd"],
            &["accept-encoding: gzip, zstd"],
        );
        check(
            strip,
            &["accept-encoding: br"],
            &["accept-encoding: identity"],
        );
        check(
            strip,
            &["accept-encoding: gzip ,x-br"],
            &["accept-encoding: gzip ,x-br"],
        );
        check(strip, &["accept: br"], &["accept: br"]);
    }

    #[test]
    fn end_to_end_headers_of_a_request_pass_with_duplicates_and_empty_values() {
        let lines = [
            "Anthropic-Version: 2023-06-01",
            "anthropic-beta: a,b",
            "anthropic-beta: c",
            "openai-beta: x",
            "x-stainless-retry-count: 0",
            "user-agent: me",
            "idempotency-key: i",
            "x-request-id: r",
            "traceparent: 00-1",
            "accept-encoding: gzip, br",
            "content-encoding: zstd",
            "content-length: 5",
            "X-Dup: 2",
            "X-Dup: 1",
            "x-empty:",
            "content-type: multipart/form-data; boundary=\"q\"",
        ];
        check(strip_request, &lines, &lines);
    }

    #[test]
    fn what_is_hop_by_hop_or_the_clients_own_ends_here() {
        check(
            strip_request,
            &[
                "connection: close, X-Secret-Hop , content-length",
                "connection: ,x-other-hop,bad name,",
                "x-secret-hop: 1",
                "x-other-hop: 1",
                "keep-alive: timeout=5",
                "te: trailers",
                "trailer: x",
                "transfer-encoding: chunked",
                "upgrade: h2c",
                "proxy-authorization: Basic x",
                "proxy-connection: close",
                "authorization: Bearer fl-1",
                "x-api-key: fl-1",
                "x-goog-api-key: fl-1",
                "cookie: a=b",
                "cookie: c=d",
                "host: fairlane",
                "expect: 100-continue",
                "forwarded: for=x",
                "x-forwarded-for: x",
                "x-forwarded-anything: x",
                "x-real-ip: x",
                "content-length: 5",
                "x-kept: 1",
            ],
            &["content-length: 5", "x-kept: 1"],
        );
    }

    #[test]
    fn a_response_keeps_what_sdks_read_and_gives_way_with_its_id() {
        check(
            strip_response,
            &[
                "connection: keep-alive, x-hop",
                "keep-alive: timeout=5",
                "proxy-authenticate: Basic",
                "transfer-encoding: chunked",
                "trailer: x-checksum",
                "x-hop: 1",
                "set-cookie: a=b",
                "set-cookie: c=d",
                "alt-svc: h3",
                "access-control-allow-origin: *",
                "access-control-allow-credentials: true",
                "x-fairlane-reason: queue_full",
                "x-request-id: up-1",
                "request-id: up-2",
                "retry-after: 3",
                "x-ratelimit-remaining-requests: 3",
                "x-dup: 1",
                "x-dup: 2",
            ],
            &[
                "trailer: x-checksum",
                "request-id: up-2",
                "retry-after: 3",
                "x-ratelimit-remaining-requests: 3",
                "x-dup: 1",
                "x-dup: 2",
                "x-upstream-request-id: up-1",
            ],
        );
    }
}
