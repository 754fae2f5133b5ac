//! Reads the fields of a JSON text that may be cut at any byte.
//!
//! Invariant: every byte is looked at once, nothing is kept but the way to where it stands, and no
//! text makes it fail: what is not JSON yields fewer fields.
use memchr::memchr2;
use std::borrow::Cow;

/// The name of an array's item in a path.
pub(super) const ITEM: &str = "[]";

/// Deeper than any error of a provider's; deeper texts are not read on.
const MAX_DEPTH: usize = 32;

/// A value that is neither an object nor an array.
#[derive(Debug)]
pub(super) enum Scalar<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// The beginning of a text that was cut.
    Cut(Cow<'a, str>),
    /// A number, as written.
    Number(&'a str),
}

impl Scalar<'_> {
    /// What is written, whichever it is.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Cut(text) => text,
            Self::Number(text) => text,
        }
    }
}

/// Shows every field: the names that lead to its object, its own name, its value.
pub(super) fn fields<'a>(text: &'a [u8], mut see: impl FnMut(&[&'a str], &'a str, &Scalar<'a>)) {
    let mut scan = Scan {
        text,
        at: 0,
        path: Vec::new(),
        is_array: Vec::new(),
        name: "",
        has_name: false,
    };
    while let Some(value) = scan.next_value() {
        see(scan.path.get(1..).unwrap_or_default(), scan.name, &value);
    }
}

struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    /// The names of the brackets that are open; the outermost has none.
    path: Vec<&'a str>,
    is_array: Vec<bool>,
    /// The name of the value at hand.
    name: &'a str,
    /// Whether an object's name was read and its value is next.
    has_name: bool,
}

impl<'a> Scan<'a> {
    fn next_value(&mut self) -> Option<Scalar<'a>> {
        while let Some(&byte) = self.text.get(self.at) {
            self.at += 1;
            match byte {
                b'{' | b'[' if self.path.len() == MAX_DEPTH => return None,
                b'{' | b'[' => self.open(byte == b'['),
                b'}' | b']' => self.close(),
                b',' => self.has_name = false,
                b'"' => {
                    let Some(raw) = self.string() else {
                        return self.cut_string();
                    };
                    if self.is_name() {
                        self.name = std::str::from_utf8(raw).unwrap_or("");
                        self.has_name = true;
                    } else {
                        return Some(Scalar::Text(unescaped(raw)));
                    }
                }
                b'-' | b'0'..=b'9' => return self.number(),
                _ => {}
            }
        }
        None
    }

    fn open(&mut self, is_array: bool) {
        self.path.push(self.name);
        self.is_array.push(is_array);
        self.enter();
    }

    fn close(&mut self) {
        self.path.pop();
        self.is_array.pop();
        self.enter();
    }

    fn enter(&mut self) {
        let in_array = self.is_array.last() == Some(&true);
        self.name = if in_array { ITEM } else { "" };
        self.has_name = false;
    }

    fn is_name(&self) -> bool {
        self.is_array.last() == Some(&false) && !self.has_name
    }

    /// The inside of the string whose opening quote was just passed; none, if it does not end.
    fn string(&mut self) -> Option<&'a [u8]> {
        let mut end = self.at;
        loop {
            let rest = self.text.get(end..)?;
            let found = memchr2(b'"', b'\\', rest)?;
            if rest.get(found) == Some(&b'"') {
                break end += found;
            }
            end += found + 2;
        }
        let inside = self.text.get(self.at..end);
        self.at = end + 1;
        inside
    }

    /// The string whose opening quote was just passed and that has no end, unless it is a name.
    fn cut_string(&mut self) -> Option<Scalar<'a>> {
        let inside = self.text.get(self.at..).unwrap_or_default();
        self.at = self.text.len();
        (!self.is_name()).then(|| Scalar::Cut(unescaped(inside)))
    }

    /// The number whose first character was just passed; none, if more of it may have followed.
    fn number(&mut self) -> Option<Scalar<'a>> {
        let rest = self.text.get(self.at - 1..)?;
        let is_of_number =
            |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
        let length = rest.iter().position(|byte| !is_of_number(byte))?;
        self.at += length - 1;
        let digits = std::str::from_utf8(rest.get(..length)?).ok()?;
        Some(Scalar::Number(digits))
    }
}

/// The text that the inside of a string stands for; as it is, where it is broken.
fn unescaped(raw: &[u8]) -> Cow<'_, str> {
    if !raw.contains(&b'\\') {
        return String::from_utf8_lossy(raw);
    }
    let quoted = [b"\"", raw, b"\""].concat();
    serde_json::from_slice(&quoted).map_or_else(|_| String::from_utf8_lossy(raw), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &[&str]) {
        let mut found = Vec::new();
        fields(text.as_bytes(), |path, name, value| {
            found.push(format!("{}.{name}={}", path.join("."), value.text()));
        });
        assert_eq!(found, expect, "{text}");
    }

    #[test]
    fn every_field_is_seen_with_the_way_to_it() {
        check(
            r#"{"a":"x","b":{"c":-1.5e3,"d":[{"e":"\"q\" \u00e9"},7],"f":true},"g":""}"#,
            &[".a=x", "b.c=-1.5e3", "b.d.[].e=\"q\" é", "b.d.[]=7", ".g="],
        );
        check(r#"[{"a":1},{"b":"2"}]"#, &["[].a=1", "[].b=2"]);
    }

    #[test]
    fn a_cut_text_yields_what_stands_before_the_cut() {
        check(
            r#"{"a":{"b":"try again in 20s. Vis"#,
            &["a.b=try again in 20s. Vis"],
        );
        check(r#"{"a":"x\"#, &[r".a=x\"]);
        check(r#"{"a":1,"b"#, &[".a=1"]);
        check(r#"{"a":12"#, &[]);
    }

    #[test]
    fn what_is_no_json_does_no_harm() {
        check("", &[]);
        check("}}]]:,,", &[]);
        check(r#"{"a" 1 "b":}{"#, &[".a=1", ".a=b"]);
        check(&"[".repeat(100_000), &[]);
    }
}
