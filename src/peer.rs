//! Who is at the other end of a connection, and who is behind it where a proxy of the operator's
//! stands in between.
//!
//! Invariant: a forwarding header counts only if it comes from a trusted proxy; from anybody else
//! it is a claim that anyone can make. Whoever forwards is never taken for a person at the
//! machine itself.
use http::{HeaderMap, header};
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its address.
    pub address: SocketAddr,
    /// Whether it speaks TLS with this process.
    pub is_tls: bool,
}

/// Whoever sent a request, as far as can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    /// Its address; that of a proxy that is not trusted is all there is to know.
    pub address: IpAddr,
    /// Whether the request came over TLS, at least up to a trusted proxy.
    pub is_tls: bool,
    /// Whether it sits at this very machine: the connection comes from loopback, nothing says that
    /// it was forwarded, and the address in the browser names this machine. The last keeps out web
    /// pages of others whose name was made to resolve to 127.0.0.1.
    pub is_local: bool,
}

/// The proxies whose word on addresses and TLS is taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

/// Headers by which a proxy gives itself away.
const FORWARDING: [&str; 6] = [
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
];

impl TrustedProxies {
    /// Reads networks and addresses separated by commas. The error is the part that is neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts = text.split(',').map(str::trim).filter(|p| !p.is_empty());
        let network = |part: &str| {
            let network = part.parse::<IpNet>().ok();
            let address = || part.parse::<IpAddr>().ok().map(IpNet::from);
            network.or_else(address).ok_or_else(|| part.to_owned())
        };
        parts.map(network).collect::<Result<_, _>>().map(Self)
    }

    fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// Who sent a request with these headers over the connection to `peer`.
    pub fn sender(&self, peer: Peer, headers: &HeaderMap) -> Sender {
        let near = peer.address.ip().to_canonical();
        let was_forwarded = FORWARDING.iter().any(|name| headers.contains_key(*name));
        if !self.trusts(near) {
            return Sender {
                address: near,
                is_tls: peer.is_tls,
                is_local: near.is_loopback() && !was_forwarded && names_this_machine(headers),
            };
        }
        let proto = last(headers, "x-forwarded-proto").next();
        Sender {
            address: self.first_untrusted(headers).unwrap_or(near),
            is_tls: peer.is_tls || proto.is_some_and(|p| p.eq_ignore_ascii_case("https")),
            is_local: false,
        }
    }

    /// The nearest hop that is no trusted proxy: what stands before it, anyone can have written.
    fn first_untrusted(&self, headers: &HeaderMap) -> Option<IpAddr> {
        let mut nearest = None;
        for hop in last(headers, "x-forwarded-for") {
            let address = hop_address(hop)?;
            nearest = Some(address);
            if !self.trusts(address) {
                break;
            }
        }
        nearest
    }
}

/// The elements of a header that is a list, last one first.
fn last<'a>(headers: &'a HeaderMap, name: &'static str) -> impl Iterator<Item = &'a str> {
    let values: Vec<&str> = headers
        .get_all(name)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .collect();
    let elements = values.into_iter().rev().flat_map(|v| v.rsplit(','));
    elements.map(str::trim)
}

/// An address, with or without a port.
fn hop_address(hop: &str) -> Option<IpAddr> {
    let bare = hop.trim_matches(['[', ']']).parse::<IpAddr>().ok();
    let with_port = || hop.parse::<SocketAddr>().ok().map(|a| a.ip());
    bare.or_else(with_port).map(|a| a.to_canonical())
}

fn names_this_machine(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST).and_then(|v| v.to_str().ok()) else {
        return false;
    };
    let Ok(authority) = host.parse::<http::uri::Authority>() else {
        return false;
    };
    let name = authority.host().trim_matches(['[', ']']);
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|a| a.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs
            .iter()
            .map(|(n, v)| (n.parse().unwrap(), v.parse().unwrap()));
        pairs.collect()
    }

    /// `expect` is the address, whether it is TLS, whether it is local.
    fn check(trusted: &str, peer: &str, said: &[(&'static str, &str)], expect: (&str, bool, bool)) {
        let peer = Peer {
            address: peer.parse().unwrap(),
            is_tls: false,
        };
        let proxies = TrustedProxies::parse(trusted).unwrap();
        let got = proxies.sender(peer, &headers(said));
        let got = (got.address.to_string(), got.is_tls, got.is_local);
        assert_eq!(got, (expect.0.to_owned(), expect.1, expect.2), "{said:?}");
    }

    #[test]
    fn a_person_at_the_machine_is_local() {
        for host in ["localhost:8080", "127.0.0.1", "[::1]:8080"] {
            check(
                "",
                "127.0.0.1:5",
                &[("host", host)],
                ("127.0.0.1", false, true),
            );
        }
        check(
            "",
            "[::ffff:127.0.0.1]:5",
            &[("host", "localhost")],
            ("127.0.0.1", false, true),
        );
        check(
            "",
            "192.0.2.1:5",
            &[("host", "localhost")],
            ("192.0.2.1", false, false),
        );
    }

    #[test]
    fn a_name_that_was_made_to_resolve_here_is_not_local() {
        check(
            "",
            "127.0.0.1:5",
            &[("host", "evil.example")],
            ("127.0.0.1", false, false),
        );
        check("", "127.0.0.1:5", &[], ("127.0.0.1", false, false));
    }

    #[test]
    fn what_was_forwarded_is_not_local_and_a_strangers_word_does_not_count() {
        let said = [("host", "localhost"), ("x-forwarded-for", "127.0.0.1")];
        check("", "127.0.0.1:5", &said, ("127.0.0.1", false, false));
        let said = [
            ("x-forwarded-for", "198.51.100.9"),
            ("x-forwarded-proto", "https"),
        ];
        check("", "192.0.2.1:5", &said, ("192.0.2.1", false, false));
    }

    #[test]
    fn behind_trusted_proxies_the_nearest_other_address_counts() {
        let chain = "203.0.113.7, 198.51.100.9, 10.0.0.2";
        let said = [
            ("x-forwarded-for", chain),
            ("x-forwarded-proto", "http, https"),
        ];
        check(
            "10.0.0.0/8",
            "10.0.0.1:5",
            &said,
            ("198.51.100.9", true, false),
        );
        let said = [("x-forwarded-for", "198.51.100.9:4711")];
        check(
            "10.0.0.1",
            "10.0.0.1:5",
            &said,
            ("198.51.100.9", false, false),
        );
        check(
            "10.0.0.1",
            "10.0.0.1:5",
            &[("x-forwarded-for", "unknown")],
            ("10.0.0.1", false, false),
        );
    }

    #[test]
    fn what_is_no_network_is_named() {
        assert_eq!(
            TrustedProxies::parse("10.0.0.0/8, nginx"),
            Err("nginx".to_owned())
        );
    }
}
