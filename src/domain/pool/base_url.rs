//! Base URLs as people write them, and what will be called for a client's path.
//!
//! Rule: a trailing `/v1` or `/v1beta` is taken as the way SDKs write base URLs and left to the
//! client's path. Any other trailing version (`/v4`) is the provider's own and stands in for the
//! client's. Everything before it is a prefix, kept as it is.
use std::fmt;

/// A parsed `http` or `https` base URL. Its `Display` is the canonical text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BaseUrl {
    is_tls: bool,
    host: Box<str>,
    port: u16,
    /// As sent in `Host`: the port only where it is not the scheme's own.
    authority: Box<str>,
    /// Empty, or `/…` without a slash at its end.
    prefix: Box<str>,
    /// A version that replaces the client's, without slashes.
    version: Option<Box<str>>,
}

/// Why a text is no base URL; the texts say what is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BaseUrlError {
    /// Neither `http://` nor `https://`.
    #[error("must begin with https:// or http://")]
    Scheme,
    /// No host, or one with characters that no host has.
    #[error("needs a host name or address after the scheme, such as https://api.example.com")]
    Host,
    /// The port is no number from 1 to 65535.
    #[error("has a port that is not a number from 1 to 65535")]
    Port,
    /// `user:password@`.
    #[error("must not hold a user name or password; put the secret into a credential")]
    UserInfo,
    /// `?…` or `#…`, or characters that no path has.
    #[error("must not hold a query, a fragment, spaces or control characters")]
    Path,
}

impl BaseUrl {
    /// Parses what a person wrote; white space around it and slashes at its end do not matter.
    pub fn parse(text: &str) -> Result<Self, BaseUrlError> {
        let text = text.trim();
        let (is_tls, rest) = scheme(text)?;
        let split = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(split);
        let (host, port) = host_and_port(authority, if is_tls { 443 } else { 80 })?;
        if path
            .bytes()
            .any(|b| !b.is_ascii_graphic() || b"?#\\".contains(&b))
        {
            return Err(BaseUrlError::Path);
        }
        let (prefix, version) = split_version(path.trim_end_matches('/'));
        let default_port = if is_tls { 443 } else { 80 };
        let host = host.to_ascii_lowercase();
        let authority = if port == default_port {
            host.clone()
        } else {
            format!("{host}:{port}")
        };
        Ok(Self {
            is_tls,
            host: host.trim_matches(['[', ']']).into(),
            port,
            authority: authority.into(),
            prefix: prefix.into(),
            version: version.map(Into::into),
        })
    }

    /// Whether it is `https`.
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// The host to connect to; an IPv6 address without its brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What goes into the header `Host`.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The request target for a client's path (and query), byte for byte apart from the version
    /// rule above. `path` begins with a slash.
    pub fn target(&self, path: &str) -> String {
        let rest = match &self.version {
            Some(_) => path
                .strip_prefix("/v1beta/")
                .or_else(|| path.strip_prefix("/v1/")),
            None => None,
        };
        match (&self.version, rest) {
            (Some(version), Some(rest)) => format!("{}/{version}/{rest}", self.prefix),
            _ => format!("{}{path}", self.prefix),
        }
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.prefix)?;
        match &self.version {
            Some(version) => write!(f, "/{version}"),
            None => Ok(()),
        }
    }
}

fn scheme(text: &str) -> Result<(bool, &str), BaseUrlError> {
    let strip = |wanted: &str| {
        text.get(..wanted.len())
            .filter(|head| head.eq_ignore_ascii_case(wanted))
            .and_then(|_| text.get(wanted.len()..))
    };
    match (strip("https://"), strip("http://")) {
        (Some(rest), _) => Ok((true, rest)),
        (None, Some(rest)) => Ok((false, rest)),
        (None, None) => Err(BaseUrlError::Scheme),
    }
}

fn host_and_port(authority: &str, default: u16) -> Result<(&str, u16), BaseUrlError> {
    if authority.contains('@') {
        return Err(BaseUrlError::UserInfo);
    }
    let (host, port) = match authority.rfind(']') {
        Some(end) => authority.split_at(end + 1),
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let is_v6 = host.starts_with('[') && host.ends_with(']');
    let is_valid = if is_v6 {
        host.trim_matches(['[', ']'])
            .parse::<std::net::Ipv6Addr>()
            .is_ok()
    } else {
        !host.is_empty()
            && host
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b))
    };
    if !is_valid {
        return Err(BaseUrlError::Host);
    }
    let port = match port.strip_prefix(':') {
        None => default,
        Some(digits) => digits
            .parse()
            .ok()
            .filter(|p| *p > 0)
            .ok_or(BaseUrlError::Port)?,
    };
    Ok((host, port))
}

/// Splits a trailing version off; the SDKs' own (`v1`, `v1beta`) vanish.
fn split_version(path: &str) -> (&str, Option<&str>) {
    let (prefix, last) = path.rsplit_once('/').unwrap_or((path, ""));
    match last {
        "v1" | "v1beta" => (prefix.trim_end_matches('/'), None),
        _ if is_version(last) => (prefix.trim_end_matches('/'), Some(last)),
        _ => (path, None),
    }
}

/// `v` and digits, then perhaps `alpha` or `beta` and digits.
fn is_version(segment: &str) -> bool {
    let Some(rest) = segment.strip_prefix('v') else {
        return false;
    };
    let tail = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let stage = tail
        .strip_prefix("alpha")
        .or_else(|| tail.strip_prefix("beta"))
        .unwrap_or(tail);
    tail.len() < rest.len() && stage.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(base: &str, path: &str, expect: &str) {
        let url = BaseUrl::parse(base).unwrap();
        let scheme = if url.is_tls() { "https" } else { "http" };
        let called = format!("{scheme}://{}{}", url.authority(), url.target(path));
        assert_eq!(called, expect, "{base}");
        assert_eq!(BaseUrl::parse(&url.to_string()), Ok(url), "{base}");
    }

    #[test]
    fn what_is_called_has_one_slash_at_the_joint() {
        let chat = "/v1/chat/completions?a=1";
        let plain = "https://api.openai.com/v1/chat/completions?a=1";
        check("https://api.openai.com", chat, plain);
        check("https://API.openai.com/", chat, plain);
        check("https://api.openai.com/v1", chat, plain);
        check(" https://api.openai.com:443/v1// ", chat, plain);
        check(
            "https://api.groq.com/openai/v1/",
            chat,
            "https://api.groq.com/openai/v1/chat/completions?a=1",
        );
        check(
            "http://s:8080/prefix",
            chat,
            "http://s:8080/prefix/v1/chat/completions?a=1",
        );
        check(
            "http://[::1]:9/p/",
            chat,
            "http://[::1]:9/p/v1/chat/completions?a=1",
        );
    }

    #[test]
    fn a_providers_own_version_stands_in_for_the_clients() {
        check(
            "https://open.example.cn/api/paas/v4",
            "/v1/chat/completions",
            "https://open.example.cn/api/paas/v4/chat/completions",
        );
        check(
            "https://g.example.com/v1beta",
            "/v1/models/m:generateContent",
            "https://g.example.com/v1/models/m:generateContent",
        );
        check(
            "https://g.example.com/video",
            "/v1/models",
            "https://g.example.com/video/v1/models",
        );
    }

    #[test]
    fn what_is_no_base_url_is_refused_with_its_fault() {
        for (text, expect) in [
            ("api.openai.com", BaseUrlError::Scheme),
            ("ftp://x", BaseUrlError::Scheme),
            ("https://", BaseUrlError::Host),
            ("https://a b", BaseUrlError::Host),
            ("https://[::g]", BaseUrlError::Host),
            ("https://x:0", BaseUrlError::Port),
            ("https://x:70000", BaseUrlError::Port),
            ("https://me:pw@x", BaseUrlError::UserInfo),
            ("https://x/?a=1", BaseUrlError::Path),
            ("https://x/a b", BaseUrlError::Path),
        ] {
            assert_eq!(BaseUrl::parse(text), Err(expect), "{text}");
        }
    }
}
