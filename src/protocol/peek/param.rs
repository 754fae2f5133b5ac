//! Parameters behind a header's value: `form-data; name="model"`.
use std::borrow::Cow;

/// The longest boundary accepted. RFC 2046 allows 70 characters; some programs write more.
const MAX_BOUNDARY_BYTES: usize = 200;

/// What a content type makes of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A form whose parts that boundary separates.
    Form { boundary: Vec<u8> },
    /// A form without a usable boundary.
    BrokenForm,
    /// Something else.
    NoForm,
}

/// What that value of `Content-Type` makes of its body.
pub(super) fn shape(content_type: &[u8]) -> Shape {
    let semicolon = memchr::memchr(b';', content_type).unwrap_or(content_type.len());
    let (media_type, params) = content_type
        .split_at_checked(semicolon)
        .unwrap_or((content_type, &[]));
    if !media_type
        .trim_ascii()
        .eq_ignore_ascii_case(b"multipart/form-data")
    {
        return Shape::NoForm;
    }
    let boundary = Params(params)
        .find(|(name, _)| name.eq_ignore_ascii_case(b"boundary"))
        .map(|(_, value)| value.into_owned());
    match boundary {
        Some(boundary)
            if (1..=MAX_BOUNDARY_BYTES).contains(&boundary.len())
                && !boundary.iter().any(u8::is_ascii_control) =>
        {
            Shape::Form { boundary }
        }
        _ => Shape::BrokenForm,
    }
}

/// Iterates over `; name=value` pairs; quoted values lose their quotes and escapes.
pub(super) struct Params<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Params<'a> {
    type Item = (&'a [u8], Cow<'a, [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let start = memchr::memchr(b';', self.0)?;
            self.0 = self.0.get(start + 1..)?;
            let stop = memchr::memchr2(b'=', b';', self.0)?;
            let (name, rest) = self.0.split_at_checked(stop)?;
            let Some(value) = rest.strip_prefix(b"=") else {
                self.0 = rest;
                continue;
            };
            let value = value.trim_ascii_start();
            let (value, rest) = match value.strip_prefix(b"\"") {
                Some(quoted) => unquoted(quoted),
                None => bare(value),
            };
            self.0 = rest;
            return Some((name.trim_ascii(), value));
        }
    }
}

fn bare(text: &[u8]) -> (Cow<'_, [u8]>, &[u8]) {
    let end = memchr::memchr(b';', text).unwrap_or(text.len());
    let (value, rest) = text.split_at_checked(end).unwrap_or((text, &[]));
    (Cow::Borrowed(value.trim_ascii()), rest)
}

fn unquoted(mut text: &[u8]) -> (Cow<'_, [u8]>, &[u8]) {
    let mut value = Vec::new();
    loop {
        match text {
            [] => return (Cow::Owned(value), text),
            [b'"', rest @ ..] => return (Cow::Owned(value), rest),
            // Browsers leave backslashes in file names as they are, so only these two are escapes.
            [b'\\', byte @ (b'"' | b'\\'), rest @ ..] | [byte, rest @ ..] => {
                value.push(*byte);
                text = rest;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(content_type: &str, expect: &str) {
        let boundary = expect.as_bytes().to_vec();
        let got = shape(content_type.as_bytes());
        assert_eq!(got, Shape::Form { boundary }, "{content_type}");
    }

    #[test]
    fn a_boundary_is_found_however_it_is_written() {
        check("multipart/form-data; boundary=abc", "abc");
        check("Multipart/Form-Data;BOUNDARY=\"a b;c\"", "a b;c");
        check(
            "multipart/form-data; charset=utf-8; boundary=\"q\\\"x\" ; z=1",
            "q\"x",
        );
        let long = "x".repeat(70);
        check(&format!("multipart/form-data; boundary={long}"), &long);
    }

    #[test]
    fn a_form_without_a_usable_boundary_is_told_from_what_is_no_form() {
        let check = |content_type: &str, expect| {
            assert_eq!(shape(content_type.as_bytes()), expect, "{content_type}");
        };
        check("multipart/form-data", Shape::BrokenForm);
        check("multipart/form-data; boundary=", Shape::BrokenForm);
        check("multipart/form-data; boundary=\"\"", Shape::BrokenForm);
        check("application/json", Shape::NoForm);
        check("multipart/form-data-not", Shape::NoForm);
        check("", Shape::NoForm);
    }
}
