//! A scanner for JSON that may end and go on at any byte.
//!
//! Invariant: every byte is looked at once; texts are skipped as fast as memory allows, and only the
//! keys and the few values that matter are ever copied. Brackets, strings, words and separators are
//! checked; numbers, escapes and UTF-8 are checked only in what is captured, since upstream judges
//! the body anyway.
use super::{MAX_FIELD_BYTES, MAX_FILE_IDS, Peeked, nest::Nest};
use memchr::memchr2;

/// The longest raw text looked at: a field of greatest length, every character of it escaped.
const MAX_RAW_BYTES: usize = MAX_FIELD_BYTES * 6;

/// What is expected next.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    #[default]
    Value,
    FirstItem,
    FirstKey,
    Key,
    Colon,
    Next,
    Text,
    /// The character after a backslash.
    Escape,
    /// The rest of `true`, `false` or `null`.
    Word(&'static [u8]),
    Number,
    End,
    Broken,
}

/// What a key means to us.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Key {
    #[default]
    Other,
    Model,
    Stream,
    PreviousResponse,
    Conversation,
    Cache,
    Id,
    File,
    Type,
    Media,
}

/// Looks into one JSON text.
#[derive(Debug, Default)]
pub(super) struct JsonPeek {
    state: State,
    nest: Nest,
    /// The last key met, at whatever depth; forgotten when a bracket closes.
    key: Key,
    /// The last key met in the outermost object.
    top: Key,
    /// Bytes of the body before the piece at hand.
    offset: usize,
    text: Text,
    found: Peeked,
    has_bad_field: bool,
}

/// The string under way.
#[derive(Debug, Default)]
struct Text {
    is_key: bool,
    is_wanted: bool,
    is_escaped: bool,
    /// Where its opening quote stands in the body.
    quote_at: usize,
    /// Where it begins, or goes on, in the piece at hand.
    from: usize,
    /// What earlier pieces had of it, up to one byte more than is looked at.
    held: Vec<u8>,
}

impl JsonPeek {
    pub(super) fn feed(&mut self, piece: &[u8]) {
        let mut at = 0;
        self.text.from = 0;
        while let Some(&byte) = piece.get(at) {
            at = match self.state {
                State::Text => self.skip_text(piece, at),
                State::Escape => {
                    self.state = State::Text;
                    at + 1
                }
                State::Word(rest) => {
                    self.word(rest, byte);
                    at + 1
                }
                State::Number if is_of_number(byte) => at + 1,
                State::Number => {
                    self.after_value();
                    at
                }
                State::Broken => break,
                _ => {
                    self.structure(byte, at);
                    at + 1
                }
            };
        }
        if matches!(self.state, State::Text | State::Escape) && self.text.is_wanted {
            self.text.hold(piece.get(self.text.from..));
        }
        self.offset += piece.len();
    }

    pub(super) fn finish(mut self) -> Peeked {
        if self.state == State::Number {
            self.after_value();
        }
        Peeked {
            is_well_formed: self.state == State::End && !self.has_bad_field,
            ..self.found
        }
    }

    /// One byte outside of strings, words and numbers.
    fn structure(&mut self, byte: u8, at: usize) {
        let takes_value = matches!(self.state, State::Value | State::FirstItem);
        match byte {
            b'"' if takes_value => self.open_text(false, at),
            b'"' if matches!(self.state, State::Key | State::FirstKey) => self.open_text(true, at),
            b':' if self.state == State::Colon => self.state = State::Value,
            b',' if self.state == State::Next && self.nest.in_object() => self.state = State::Key,
            b',' if self.state == State::Next => self.state = State::Value,
            b' ' | b'\n' | b'\r' | b'\t' => {}
            b'{' if takes_value => self.open(State::FirstKey),
            b'[' if takes_value => self.open(State::FirstItem),
            b'}' if self.closes(State::FirstKey, true) => self.close(),
            b']' if self.closes(State::FirstItem, false) => self.close(),
            b't' if takes_value => self.open_word(b"rue", Some(true)),
            b'f' if takes_value => self.open_word(b"alse", Some(false)),
            b'n' if takes_value => self.open_word(b"ull", None),
            b'-' | b'0'..=b'9' if takes_value => self.state = State::Number,
            // A byte-order mark before everything else harms nobody.
            0xef | 0xbb | 0xbf if self.is_within_mark(byte, at) => {}
            _ => self.state = State::Broken,
        }
    }

    fn is_within_mark(&self, byte: u8, at: usize) -> bool {
        let mark = "\u{feff}".as_bytes();
        self.nest.depth() == 0
            && self.state == State::Value
            && mark.get(self.offset + at) == Some(&byte)
    }

    fn open(&mut self, then: State) {
        self.found.bears_media |= self.key == Key::Media;
        self.nest.open(then == State::FirstKey);
        self.state = then;
    }

    fn closes(&self, when_empty: State, is_object: bool) -> bool {
        (self.state == State::Next || self.state == when_empty)
            && self.nest.depth() > 0
            && self.nest.in_object() == is_object
    }

    fn close(&mut self) {
        self.nest.close();
        self.key = Key::Other;
        self.after_value();
    }

    fn after_value(&mut self) {
        self.state = match self.nest.depth() {
            0 => State::End,
            _ => State::Next,
        };
    }

    fn open_word(&mut self, rest: &'static [u8], truth: Option<bool>) {
        if self.nest.depth() == 1 && self.key == Key::Stream {
            self.found.stream = truth;
        }
        self.state = State::Word(rest);
    }

    fn word(&mut self, rest: &'static [u8], byte: u8) {
        match rest.split_first() {
            Some((expected, [])) if *expected == byte => self.after_value(),
            Some((expected, rest)) if *expected == byte => self.state = State::Word(rest),
            _ => self.state = State::Broken,
        }
    }

    fn open_text(&mut self, is_key: bool, at: usize) {
        self.found.bears_media |= !is_key && self.key == Key::Media;
        self.text.is_key = is_key;
        self.text.is_wanted = is_key || self.wants_value();
        self.text.is_escaped = false;
        self.text.quote_at = self.offset + at;
        self.text.from = at + 1;
        self.text.held.clear();
        self.state = State::Text;
    }

    fn wants_value(&self) -> bool {
        match self.key {
            Key::Other | Key::Stream | Key::Media => false,
            Key::File | Key::Type => true,
            Key::Id => self.nest.depth() == 2 && self.top == Key::Conversation,
            Key::Model | Key::PreviousResponse | Key::Conversation | Key::Cache => {
                self.nest.depth() == 1
            }
        }
    }

    /// Goes on from `at` to where the text ends, or the piece does.
    fn skip_text(&mut self, piece: &[u8], mut at: usize) -> usize {
        while let Some(n) = end_or_escape(piece.get(at..).unwrap_or_default()) {
            at += n;
            if piece.get(at) == Some(&b'"') {
                self.end_text(piece, at);
                return at + 1;
            }
            self.text.is_escaped = true;
            at += 2;
            if at > piece.len() {
                self.state = State::Escape;
                return piece.len();
            }
        }
        piece.len()
    }

    fn end_text(&mut self, piece: &[u8], end: usize) {
        self.state = if self.text.is_key {
            State::Colon
        } else {
            State::Next
        };
        if self.text.is_wanted {
            let last = piece.get(self.text.from..end).unwrap_or_default();
            if self.text.held.is_empty() {
                self.take_text(last, self.offset + end + 1);
            } else {
                self.text.hold(Some(last));
                let held = std::mem::take(&mut self.text.held);
                self.take_text(&held, self.offset + end + 1);
                self.text.held = held;
            }
        }
        if !self.text.is_key && self.nest.depth() == 0 {
            self.state = State::End;
        }
    }

    /// Takes a wanted key or value; `end` is where it ends in the body, closing quote included.
    fn take_text(&mut self, raw: &[u8], end: usize) {
        if self.text.is_key {
            self.take_key(raw);
        } else {
            self.take_value(raw, end);
        }
    }

    fn take_key(&mut self, raw: &[u8]) {
        self.key = if self.text.is_escaped {
            unescaped(raw).map_or(Key::Other, |key| classify(key.as_bytes()))
        } else {
            classify(raw)
        };
        if self.nest.depth() > 1 {
            if self.nest.depth() == 2 && self.key == Key::Id && self.top == Key::Conversation {
                self.found.conversation = None;
            }
            return;
        }
        self.top = self.key;
        match self.key {
            Key::Model => {
                self.found.model = None;
                self.found.model_span = None;
            }
            Key::Stream => self.found.stream = None,
            Key::PreviousResponse => self.found.previous_response_id = None,
            Key::Conversation => self.found.conversation = None,
            Key::Cache => self.found.prompt_cache_key = None,
            Key::Other | Key::Id | Key::File | Key::Type | Key::Media => {}
        }
    }

    fn take_value(&mut self, raw: &[u8], end: usize) {
        match self.key {
            Key::Type => self.found.bears_media |= is_media_type(raw),
            _ => match self.field(raw) {
                Some(value) => self.take_field(value, end),
                None => self.has_bad_field = true,
            },
        }
    }

    fn field(&self, raw: &[u8]) -> Option<String> {
        let value = if self.text.is_escaped {
            unescaped(raw)?
        } else {
            std::str::from_utf8(raw.get(..=MAX_FIELD_BYTES).unwrap_or(raw))
                .ok()?
                .to_owned()
        };
        (value.len() <= MAX_FIELD_BYTES).then_some(value)
    }

    fn take_field(&mut self, value: String, end: usize) {
        let found = &mut self.found;
        match self.key {
            Key::Model => {
                found.model = Some(value);
                found.model_span = Some(self.text.quote_at..end);
            }
            Key::PreviousResponse => found.previous_response_id = Some(value),
            Key::Conversation | Key::Id => found.conversation = Some(value),
            Key::Cache => found.prompt_cache_key = Some(value),
            Key::File if found.file_ids.len() < MAX_FILE_IDS => found.file_ids.push(value),
            _ => {}
        }
    }
}

impl Text {
    fn hold(&mut self, bytes: Option<&[u8]>) {
        let room = (MAX_RAW_BYTES + 1).saturating_sub(self.held.len());
        let bytes = bytes.unwrap_or_default();
        self.held
            .extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }
}

/// Where the first quote or backslash of `text` is.
fn end_or_escape(text: &[u8]) -> Option<usize> {
    // Most texts are short, and escapes stand close together in code: for those, a call that sets
    // up vector registers costs more than looking at a few words here.
    const NEAR_BYTES: usize = 32;
    const EACH: u64 = 0x0101_0101_0101_0101;
    // The lowest bit set is exact: a borrow can only mark bytes above a byte that is zero.
    let zeros = |word: u64| word.wrapping_sub(EACH) & !word & (EACH << 7);
    let (near, _) = text.get(..NEAR_BYTES).unwrap_or(text).as_chunks::<8>();
    for (n, word) in near.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let hits = zeros(word ^ (EACH * u64::from(b'"'))) | zeros(word ^ (EACH * u64::from(b'\\')));
        if hits != 0 {
            return Some(n * 8 + hits.trailing_zeros() as usize / 8);
        }
    }
    let passed = near.len() * 8;
    memchr2(b'"', b'\\', text.get(passed..)?).map(|n| passed + n)
}

fn is_of_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')
}

fn classify(key: &[u8]) -> Key {
    match key {
        b"model" => Key::Model,
        b"stream" => Key::Stream,
        b"previous_response_id" => Key::PreviousResponse,
        b"conversation" => Key::Conversation,
        b"prompt_cache_key" => Key::Cache,
        b"id" => Key::Id,
        b"file_id" | b"file_ids" | b"input_file_id" => Key::File,
        b"type" => Key::Type,
        b"image_url" | b"video_url" | b"audio_url" | b"input_audio" | b"inlineData"
        | b"inline_data" | b"fileData" | b"file_data" => Key::Media,
        _ => Key::Other,
    }
}

fn is_media_type(value: &[u8]) -> bool {
    matches!(
        value,
        b"image"
            | b"image_url"
            | b"input_image"
            | b"input_audio"
            | b"input_file"
            | b"video_url"
            | b"document"
    )
}

/// The text that the inside of a JSON string stands for.
fn unescaped(raw: &[u8]) -> Option<String> {
    if raw.len() > MAX_RAW_BYTES {
        return None;
    }
    let mut quoted = Vec::with_capacity(raw.len() + 2);
    quoted.push(b'"');
    quoted.extend_from_slice(raw);
    quoted.push(b'"');
    serde_json::from_slice(&quoted).ok()
}
