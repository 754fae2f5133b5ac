//! Where requests carry their credential.
use super::request::Head;

/// A credential as it was presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Credential<'a> {
    pub(super) secret: &'a str,
    pub(super) scheme: &'static str,
}

/// The first credential that is not empty, in the order in which providers look for one.
pub(super) fn presented(head: &Head) -> Option<Credential<'_>> {
    let authorization = head.header("authorization").and_then(|value| {
        let (word, secret) = value.split_once(' ')?;
        let scheme = match word {
            w if w.eq_ignore_ascii_case("bearer") => "bearer",
            w if w.eq_ignore_ascii_case("key") => "key",
            _ => return None,
        };
        Some((secret.trim(), scheme))
    });
    let header = |name: &'static str| Some((head.header(name)?, name));
    [
        authorization,
        header("x-api-key"),
        header("x-goog-api-key"),
        head.query("key").map(|secret| (secret, "query")),
    ]
    .into_iter()
    .flatten()
    .find(|(secret, _)| !secret.is_empty())
    .map(|(secret, scheme)| Credential { secret, scheme })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::request::take_head;
    use bytes::BytesMut;

    fn check(target: &str, header: &str, expect: Option<(&str, &str)>) {
        let raw = format!("GET {target} HTTP/1.1\r\n{header}\r\n\r\n");
        let head = take_head(&mut BytesMut::from(&*raw)).unwrap().unwrap();
        let got = presented(&head).map(|c| (c.secret, c.scheme));
        assert_eq!(got, expect, "{header}");
    }

    #[test]
    fn a_credential_is_found_wherever_protocols_put_it() {
        check("/", "Authorization: Bearer a", Some(("a", "bearer")));
        check(
            "/",
            "authorization: Key id:secret",
            Some(("id:secret", "key")),
        );
        check("/", "X-Api-Key: a", Some(("a", "x-api-key")));
        check("/", "x-goog-api-key: a", Some(("a", "x-goog-api-key")));
        check("/?alt=sse&key=a", "Host: h", Some(("a", "query")));
    }

    #[test]
    fn an_empty_credential_is_none() {
        check("/", "Authorization: Bearer ", None);
        check("/?key=", "x-api-key:", None);
        check("/", "Authorization: Basic a", None);
    }
}
