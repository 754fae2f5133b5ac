//! Secrets as people paste them: cleaned where that is safe, refused where it is not.
//!
//! Invariant: a [`Secret`] is never empty, is sendable as a header value as it is, and shows no
//! more than its last four characters in any formatted output.
use std::fmt;

/// The longest secret accepted, in bytes: beyond any provider's, well below header limits.
pub const MAX_SECRET_BYTES: usize = 4096;

/// What stands in place of a secret.
const MASK: &str = "[secret]";

/// The beginnings of secrets are alike up to about here, and give nothing away.
const SHORTEST_START: usize = 4;

/// A secret that can stand in an HTTP header. Its `Debug` is a hint, never the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

/// What was taken off a pasted secret, so that the person who pasted it is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// White space, line ends, a byte-order mark or zero-width characters around it.
    pub surroundings: bool,
    /// A pair of quotes around it.
    pub quotes: bool,
}

/// Why a pasted secret cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// Nothing is left after cleaning.
    #[error("is empty; paste the secret itself")]
    Empty,
    /// A character that no HTTP header may carry.
    #[error(
        "holds {found:?} at character {position}, which cannot be sent in a header; accepted are printable ASCII characters without spaces"
    )]
    Unsendable {
        /// The offending character.
        found: char,
        /// Its position, counted from 1, after cleaning.
        position: usize,
    },
    /// Longer than [`MAX_SECRET_BYTES`].
    #[error("is {bytes} bytes long; at most {MAX_SECRET_BYTES} are accepted")]
    TooLong {
        /// Its length after cleaning.
        bytes: usize,
    },
}

impl Secret {
    /// Takes a pasted text, removes what surrounds the secret, and checks the rest.
    pub fn clean(pasted: &str) -> Result<(Self, Cleaned), SecretError> {
        let trimmed = pasted.trim_matches(is_surrounding);
        let bare = unquoted(trimmed);
        let inner = bare.unwrap_or(trimmed).trim_matches(is_surrounding);
        let cleaned = Cleaned {
            surroundings: trimmed.len() != pasted.len()
                || bare.is_some_and(|b| b.len() != inner.len()),
            quotes: bare.is_some(),
        };
        if inner.is_empty() {
            return Err(SecretError::Empty);
        }
        if inner.len() > MAX_SECRET_BYTES {
            return Err(SecretError::TooLong { bytes: inner.len() });
        }
        match inner
            .chars()
            .enumerate()
            .find(|(_, c)| !c.is_ascii_graphic())
        {
            Some((n, found)) => Err(SecretError::Unsendable {
                found,
                position: n + 1,
            }),
            None => Ok((Self(inner.into()), cleaned)),
        }
    }

    /// The secret itself: for the header, the store and the fingerprint, nothing else.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// `text` with this secret made unreadable wherever it stands, and where the beginning of it
    /// stands at the end, because the text was cut there.
    pub fn masked_in(&self, text: &str) -> String {
        let mut masked = text.replace(self.expose(), MASK);
        let starts = (SHORTEST_START..self.0.len()).rev();
        let cut = starts
            .filter_map(|n| self.0.get(..n))
            .find(|start| masked.ends_with(start));
        if let Some(start) = cut {
            masked.truncate(masked.len() - start.len());
            masked.push_str(MASK);
        }
        masked
    }

    /// The last four characters, or none of a secret so short that they would give it away.
    pub fn hint(&self) -> &str {
        // Below 12 characters four of them are too much of it.
        match self.0.len() {
            0..12 => "",
            n => self.0.get(n - 4..).unwrap_or_default(),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret(…{})", self.hint())
    }
}

/// White space, and what copying from web pages and editors brings along.
fn is_surrounding(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '\u{feff}' | '\u{200b}'..='\u{200f}' | '\u{2060}')
}

fn unquoted(text: &str) -> Option<&str> {
    [('"', '"'), ('\'', '\''), ('`', '`'), ('“', '”'), ('‘', '’')]
        .into_iter()
        .find_map(|(open, close)| text.strip_prefix(open)?.strip_suffix(close))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pasted: &str, expect: Result<(&str, bool, bool), SecretError>) {
        let got = Secret::clean(pasted);
        let got = got
            .as_ref()
            .map(|(s, c)| (s.expose(), c.surroundings, c.quotes))
            .map_err(|e| *e);
        assert_eq!(got, expect, "{pasted:?}");
    }

    #[test]
    fn what_surrounds_a_pasted_secret_is_removed_and_reported() {
        check("sk-abc", Ok(("sk-abc", false, false)));
        check("sk-abc\n", Ok(("sk-abc", true, false)));
        check("\r\n\tsk-abc ", Ok(("sk-abc", true, false)));
        check("\u{feff}sk-abc\u{200b}", Ok(("sk-abc", true, false)));
        check("\"sk-abc\"", Ok(("sk-abc", false, true)));
        check(" ' sk-abc ' ", Ok(("sk-abc", true, true)));
    }

    #[test]
    fn what_no_header_can_carry_is_refused() {
        check("", Err(SecretError::Empty));
        check(" \"\" ", Err(SecretError::Empty));
        check(
            "sk-a b",
            Err(SecretError::Unsendable {
                found: ' ',
                position: 5,
            }),
        );
        check(
            "ｓk",
            Err(SecretError::Unsendable {
                found: 'ｓ',
                position: 1,
            }),
        );
        check(&"x".repeat(8192), Err(SecretError::TooLong { bytes: 8192 }));
    }

    #[test]
    fn formatting_shows_the_hint_alone() {
        let (secret, _) = Secret::clean("sk-0123456789abcdef").unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(…cdef)");
        let (short, _) = Secret::clean("abcdefgh").unwrap();
        assert_eq!(format!("{short:?}"), "Secret(…)");
    }

    #[test]
    fn a_secret_is_masked_wherever_it_stands_and_where_it_is_cut() {
        let (secret, _) = Secret::clean("sk-one-two-three").unwrap();
        let check = |text: &str, expect: &str| assert_eq!(secret.masked_in(text), expect);
        check("no sk- here", "no sk- here");
        check(
            "a sk-one-two-three b sk-one-two-three",
            "a [secret] b [secret]",
        );
        check("a sk-one-two-thre", "a [secret]");
        check("a sk-o", "a [secret]");
        check("a sk-", "a sk-");
        check("a sk-o b", "a sk-o b");
    }
}
