//! Whether another site may have made a browser send a request.
//!
//! Rule: a request that may change something is taken if the browser says that its own page sent
//! it (`Sec-Fetch-Site`), or if the page's origin is the address that was asked or the instance's
//! public one. What says neither is no browser of these years, and is taken only if it bears no
//! session that it could have been lent.
use crate::domain::pool::BaseUrl;
use http::{HeaderMap, Method, header};

pub(super) fn is_forged(
    method: &Method,
    headers: &HeaderMap,
    public_url: Option<&BaseUrl>,
    has_session: bool,
) -> bool {
    if method.is_safe() {
        return false;
    }
    let text = |name: &str| headers.get(name).and_then(|v| v.to_str().ok());
    match (text("sec-fetch-site"), text("origin")) {
        (Some("same-origin" | "none"), _) => false,
        (_, Some(origin)) => !is_ours(origin, headers, public_url),
        (Some(_), None) => true,
        (None, None) => has_session,
    }
}

fn is_ours(origin: &str, headers: &HeaderMap, public_url: Option<&BaseUrl>) -> bool {
    let Some((scheme, authority)) = origin.split_once("://") else {
        return false;
    };
    let host = headers.get(header::HOST).and_then(|v| v.to_str().ok());
    // Over which scheme the browser came is not always known here, so that the host decides.
    if host.is_some_and(|host| host.eq_ignore_ascii_case(authority)) {
        return true;
    }
    public_url.is_some_and(|url| {
        let ours = if url.is_tls() { "https" } else { "http" };
        scheme == ours && authority.eq_ignore_ascii_case(url.authority())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(said: &[(&'static str, &str)], has_session: bool, expect: bool) {
        let pairs = said
            .iter()
            .map(|(n, v)| (n.parse().unwrap(), v.parse().unwrap()));
        let headers: HeaderMap = pairs.collect();
        let public = BaseUrl::parse("https://lane.example.com").unwrap();
        let got = is_forged(&Method::POST, &headers, Some(&public), has_session);
        assert_eq!(got, expect, "{said:?}");
        assert!(!is_forged(&Method::GET, &headers, None, has_session));
    }

    #[test]
    fn pages_of_this_instance_may_post() {
        check(&[("sec-fetch-site", "same-origin")], true, false);
        check(&[("sec-fetch-site", "none")], true, false);
        check(
            &[
                ("host", "10.0.0.5:8080"),
                ("origin", "http://10.0.0.5:8080"),
            ],
            true,
            false,
        );
        // Behind a proxy that asks for another host.
        check(
            &[("host", "inner:80"), ("origin", "https://lane.example.com")],
            true,
            false,
        );
    }

    #[test]
    fn pages_of_others_may_not() {
        check(&[("sec-fetch-site", "cross-site")], false, true);
        check(&[("sec-fetch-site", "same-site")], false, true);
        check(
            &[("host", "a:1"), ("origin", "http://evil.example")],
            false,
            true,
        );
        check(&[("host", "a:1"), ("origin", "null")], false, true);
        check(
            &[("host", "a"), ("origin", "http://lane.example.com")],
            true,
            true,
        );
    }

    #[test]
    fn what_tells_nothing_is_taken_without_a_session_alone() {
        check(&[("host", "a")], false, false);
        check(&[("host", "a")], true, true);
    }
}
