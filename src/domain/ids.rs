//! Identifiers: a `UUIDv7` behind a short prefix, one type per kind of thing.
//!
//! Invariant: an id is minted once (see [`crate::entropy`]) and never re-used; no list position
//! ever identifies anything.
use std::{fmt, str::FromStr};

/// Why a text is not an id of the wanted kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an id of this kind: expected `{prefix}` followed by a UUID")]
pub struct IdError {
    /// The prefix that the kind has, underscore included.
    pub prefix: &'static str,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u128);

        impl $name {
            /// What stands before the UUID, underscore included.
            pub const PREFIX: &'static str = $prefix;

            /// From the 128 bits of a `UUIDv7`.
            pub const fn from_u128(bits: u128) -> Self {
                Self(bits)
            }

            /// The 128 bits of the `UUIDv7`.
            pub const fn as_u128(self) -> u128 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($prefix)?;
                write_uuid(self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                text.strip_prefix($prefix)
                    .and_then(parse_uuid)
                    .map(Self)
                    .ok_or(IdError { prefix: $prefix })
            }
        }
    };
}

id!(
    /// An account: whoever the upstream bills and rate-limits.
    AccountId,
    "acc_"
);
id!(
    /// A credential: a secret that authenticates to upstream.
    CredentialId,
    "cred_"
);
id!(
    /// An endpoint: a base URL and the protocols it speaks.
    EndpointId,
    "ep_"
);
id!(
    /// A client key.
    KeyId,
    "key_"
);
id!(
    /// One request of a client.
    RequestId,
    "req_"
);
id!(
    /// A session of the operator.
    SessionId,
    "ses_"
);
id!(
    /// An admin token.
    TokenId,
    "tok_"
);
id!(
    /// A line of the audit log.
    AuditId,
    "aud_"
);

impl RequestId {
    /// The last six characters of the written id: enough to follow one request through a log.
    pub fn tail(self) -> String {
        format!("{:06x}", self.0 & 0x00ff_ffff)
    }
}

const GROUPS: [(u32, usize); 5] = [(96, 8), (80, 4), (64, 4), (48, 4), (0, 12)];

/// Written for every request, hence without the formatting machinery.
fn write_uuid(bits: u128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [b'-'; 36];
    let mut at = 0;
    for (n, byte) in bits.to_be_bytes().into_iter().enumerate() {
        // A dash stands before bytes 4, 6, 8 and 10.
        at += usize::from(matches!(n, 4 | 6 | 8 | 10));
        text[at] = DIGITS[usize::from(byte >> 4)];
        text[at + 1] = DIGITS[usize::from(byte & 15)];
        at += 2;
    }
    f.write_str(str::from_utf8(&text).unwrap_or_default())
}

fn parse_uuid(text: &str) -> Option<u128> {
    let mut parts = text.split('-');
    let mut bits = 0u128;
    for (shift, digits) in GROUPS {
        let part = parts.next().filter(|p| p.len() == digits)?;
        if !part.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        bits |= u128::from_str_radix(part, 16).ok()? << shift;
    }
    parts.next().is_none().then_some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_can_be_read_back(bits: u128) {
            let id = AccountId::from_u128(bits);
            prop_assert_eq!(id.to_string().parse::<AccountId>(), Ok(id));
        }
    }

    #[test]
    fn another_kinds_id_is_refused() {
        let text = KeyId::from_u128(7).to_string();
        assert!(text.parse::<AccountId>().is_err());
        assert!("acc_0".parse::<AccountId>().is_err());
    }
}
