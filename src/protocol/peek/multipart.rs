//! A scanner for `multipart/form-data` that may end and go on at any byte.
//!
//! Invariant: of a part nothing is kept but the value of the few small fields that matter; files are
//! passed over. A boundary is one only as a whole line, so that bytes of a file that merely look
//! like the beginning of one are file.
use super::{BodyKind, MAX_FIELD_BYTES, Peeked, param::Params};

/// The longest header of a part, all lines together. File names are the only long thing in it.
const MAX_HEAD_BYTES: usize = 8 * 1024;

/// The bytes of the line end with which a delimiter begins.
const LINE_END: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Before the first boundary, or in a part's value; so many bytes of a boundary line matched.
    Value(usize),
    /// Behind a boundary, which only white space and a line end may follow.
    Tail(Tail),
    Head,
    End,
    Broken,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Tail {
    Blank,
    Dash,
    Return,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Field {
    Model,
    Stream,
    PreviousResponse,
    CacheKey,
}

/// Looks into one form.
#[derive(Debug)]
pub(super) struct MultipartPeek {
    state: State,
    /// How many bytes of the delimiter count as matched without having been received as part of the
    /// value at hand.
    implied: usize,
    /// Line end, two dashes, boundary.
    delimiter: Vec<u8>,
    head: Vec<u8>,
    /// The field that the part at hand gives a value to, and where the value begins.
    field: Option<(Field, usize)>,
    value: Vec<u8>,
    offset: usize,
    found: Peeked,
    has_bad_field: bool,
}

impl MultipartPeek {
    pub(super) fn new(boundary: &[u8]) -> Self {
        Self {
            // The first boundary may stand at the very beginning, without a line end before it.
            state: State::Value(LINE_END),
            implied: LINE_END,
            delimiter: [b"\r\n--", boundary].concat(),
            head: Vec::new(),
            field: None,
            value: Vec::new(),
            offset: 0,
            found: Peeked {
                kind: BodyKind::Multipart,
                ..Peeked::default()
            },
            has_bad_field: false,
        }
    }

    pub(super) fn feed(&mut self, piece: &[u8]) {
        let mut at = 0;
        while let Some(&byte) = piece.get(at) {
            at = match self.state {
                State::Value(0) => self.skip_value(piece, at),
                State::Value(matched) => self.match_delimiter(matched, byte, at),
                State::Tail(tail) => self.tail(tail, byte, at),
                State::Head => {
                    self.head(byte, at);
                    at + 1
                }
                State::End | State::Broken => break,
            };
        }
        self.offset += piece.len();
    }

    pub(super) fn finish(self) -> Peeked {
        Peeked {
            is_well_formed: self.state == State::End && !self.has_bad_field,
            ..self.found
        }
    }

    fn skip_value(&mut self, piece: &[u8], at: usize) -> usize {
        let rest = piece.get(at..).unwrap_or_default();
        let end = memchr::memchr(b'\r', rest);
        self.keep(rest.get(..end.unwrap_or(rest.len())).unwrap_or_default());
        match end {
            Some(n) => {
                self.implied = 0;
                self.state = State::Value(1);
                at + n + 1
            }
            None => piece.len(),
        }
    }

    /// Compares one byte more. A carriage return stands only at the delimiter's beginning, so that
    /// after a mismatch there is nothing to go back to but the byte at hand.
    fn match_delimiter(&mut self, matched: usize, byte: u8, at: usize) -> usize {
        if self.delimiter.get(matched) != Some(&byte) {
            self.give_back(matched);
            self.state = State::Value(0);
            return at;
        }
        self.state = if matched + 1 == self.delimiter.len() {
            State::Tail(Tail::Blank)
        } else {
            State::Value(matched + 1)
        };
        at + 1
    }

    fn tail(&mut self, tail: Tail, byte: u8, at: usize) -> usize {
        self.state = match (tail, byte) {
            (Tail::Blank, b' ' | b'\t') => State::Tail(Tail::Blank),
            (Tail::Blank, b'-') => State::Tail(Tail::Dash),
            (Tail::Blank, b'\r') => State::Tail(Tail::Return),
            (Tail::Dash, b'-') => {
                self.end_part();
                State::End
            }
            (Tail::Return, b'\n') => {
                self.end_part();
                State::Head
            }
            _ => {
                // Part of the value after all. What stood between is not known any more, so a
                // field with such a line in it is not taken for a value.
                self.has_bad_field |= self.field.take().is_some();
                self.state = State::Value(0);
                return at;
            }
        };
        at + 1
    }

    fn head(&mut self, byte: u8, at: usize) {
        self.head.push(byte);
        if self.head == b"\r\n" || self.head.ends_with(b"\r\n\r\n") {
            self.begin_part(self.offset + at + 1);
        } else if self.head.len() > MAX_HEAD_BYTES {
            self.state = State::Broken;
        }
    }

    fn begin_part(&mut self, value_at: usize) {
        // A part without a value has its boundary where the value would begin.
        self.state = State::Value(LINE_END);
        self.implied = LINE_END;
        let (field, is_file) = self
            .head
            .split(|b| *b == b'\n')
            .find_map(disposition)
            .unwrap_or_default();
        self.found.bears_media |= is_file;
        self.field = field.map(|field| (field, value_at));
        self.value.clear();
        self.head.clear();
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.field.is_some() && self.value.len() <= MAX_FIELD_BYTES {
            let room = MAX_FIELD_BYTES + 1 - self.value.len();
            self.value
                .extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        }
    }

    /// Counts `matched` bytes of the delimiter as value after all, less those never received.
    fn give_back(&mut self, matched: usize) {
        let delimiter = std::mem::take(&mut self.delimiter);
        self.keep(delimiter.get(self.implied..matched).unwrap_or_default());
        self.delimiter = delimiter;
        self.implied = 0;
    }

    fn end_part(&mut self) {
        let Some((field, start)) = self.field.take() else {
            return;
        };
        let text = std::str::from_utf8(&self.value).ok();
        let Some(text) = text.filter(|t| t.len() <= MAX_FIELD_BYTES) else {
            self.has_bad_field = true;
            return;
        };
        match field {
            Field::Model => {
                self.found.model_span = Some(start..start + text.len());
                self.found.model = Some(text.to_owned());
            }
            Field::Stream => self.found.stream = truth(text),
            Field::PreviousResponse => self.found.previous_response_id = Some(text.to_owned()),
            Field::CacheKey => self.found.prompt_cache_key = Some(text.to_owned()),
        }
    }
}

/// The field that a header line of a part names, and whether the part is a file; `None` of any other
/// line than the one that says so.
fn disposition(line: &[u8]) -> Option<(Option<Field>, bool)> {
    let colon = memchr::memchr(b':', line)?;
    let (name, value) = line.split_at_checked(colon)?;
    if !name
        .trim_ascii()
        .eq_ignore_ascii_case(b"content-disposition")
    {
        return None;
    }
    let (mut field, mut is_file) = (None, false);
    for (name, value) in Params(value) {
        if name.eq_ignore_ascii_case(b"filename") || name.eq_ignore_ascii_case(b"filename*") {
            is_file = true;
        } else if name.eq_ignore_ascii_case(b"name") {
            field = field_named(&value);
        }
    }
    Some((field.filter(|_| !is_file), is_file))
}

fn field_named(name: &[u8]) -> Option<Field> {
    match name {
        b"model" => Some(Field::Model),
        b"stream" => Some(Field::Stream),
        b"previous_response_id" => Some(Field::PreviousResponse),
        b"prompt_cache_key" => Some(Field::CacheKey),
        _ => None,
    }
}

fn truth(text: &str) -> Option<bool> {
    match text.trim() {
        "true" | "True" | "1" => Some(true),
        "false" | "False" | "0" => Some(false),
        _ => None,
    }
}
