//! Which paths can only mean one thing, and how a name becomes one segment.
use crate::protocol::percent;
use std::borrow::Cow;

/// How often an escape is resolved when looking for hidden dot segments: once by whoever decodes,
/// once more by a server behind that decodes again, and one to spare.
const DECODINGS: usize = 3;

/// What the data plane's paths begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prefix {
    V1,
    V1Beta,
    Fal,
}

/// The data-plane prefix of a path and what follows it, without the slash between them. Leading
/// slashes are looked through, so that a path with too many of them gets the answer of an API.
pub(super) fn prefix(raw_path: &str) -> Option<(Prefix, &str)> {
    let bare = raw_path.trim_start_matches('/');
    let (first, rest) = bare.split_once('/').unwrap_or((bare, ""));
    let prefix = match first {
        "v1" => Prefix::V1,
        "v1beta" => Prefix::V1Beta,
        "fal" | "fal-run" => Prefix::Fal,
        _ => return None,
    };
    Some((prefix, rest))
}

/// Whether nobody on the way can read the path as another one.
pub(super) fn is_unambiguous(raw_path: &str) -> bool {
    raw_path.strip_prefix('/').is_some_and(is_name)
}

/// Whether all of `raw`, which may have slashes in it, is free of segments with a double meaning.
pub(super) fn is_name(raw: &str) -> bool {
    raw.split('/').all(is_segment)
}

fn is_segment(raw: &str) -> bool {
    if raw.is_empty() || !is_harmless(raw) {
        return false;
    }
    if !raw.contains('%') {
        return true;
    }
    let mut text = Cow::Borrowed(raw.as_bytes());
    for round in 0..DECODINGS {
        let next = match percent::decode(&text) {
            Some(Cow::Owned(next)) => next,
            // An escape that appears only after decoding need not be one.
            Some(Cow::Borrowed(_)) => return true,
            None => return round > 0,
        };
        match std::str::from_utf8(&next) {
            Ok(decoded) if is_harmless(decoded) => {}
            Ok(_) => return false,
            Err(_) => return round > 0,
        }
        text = Cow::Owned(next);
    }
    true
}

/// No control characters, and no dot segment however it is delimited.
fn is_harmless(text: &str) -> bool {
    !text.bytes().any(|b| b.is_ascii_control())
        && !text
            .split(['/', '\\'])
            // What follows a semicolon is a path parameter to some servers.
            .any(|part| matches!(part.split(';').next(), Some("." | "..")))
}

/// `name` as one path segment: everything escaped but unreserved characters and those that names of
/// models are written with in practice.
pub(super) fn escape_segment(name: &str) -> String {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b':' | b'@') {
            out.push(char::from(byte));
        } else {
            out.push('%');
            for digit in [byte >> 4, byte & 0x0f] {
                out.push(HEX.get(usize::from(digit)).map_or('0', |d| char::from(*d)));
            }
        }
    }
    out
}
