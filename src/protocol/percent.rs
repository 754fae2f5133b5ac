//! Percent-decoding of path segments and query parameters.
//!
//! Invariant: nothing here encodes; what travels upstream are always the client's own bytes.
use std::borrow::Cow;

/// `text` with its escapes resolved, or `None` where a `%` is not followed by two hex digits.
pub(super) fn decode(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    let Some(first) = memchr::memchr(b'%', text) else {
        return Some(Cow::Borrowed(text));
    };
    let (plain, mut rest) = text.split_at_checked(first)?;
    let mut out = Vec::with_capacity(text.len());
    out.extend_from_slice(plain);
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte == b'%' {
            let (digits, after) = rest.split_first_chunk::<2>()?;
            let [high, low] = digits.map(|d| char::from(d).to_digit(16));
            out.push(u8::try_from(high? * 16 + low?).ok()?);
            rest = after;
        } else {
            out.push(byte);
        }
    }
    Some(Cow::Owned(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Option<&str>) {
        let got = decode(text.as_bytes());
        assert_eq!(got.as_deref(), expect.map(str::as_bytes), "{text}");
    }

    #[test]
    fn escapes_are_resolved_once_and_broken_ones_refused() {
        check("plain", Some("plain"));
        check("a%2Fb%2fc", Some("a/b/c"));
        check("a%252Fb", Some("a%2Fb"));
        check("%ED%95%9C", Some("한"));
        check("%", None);
        check("a%2", None);
        check("a%zz", None);
        check("a%+1", None);
    }
}
