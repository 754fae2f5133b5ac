//! Walking over the parts of a JSON object or array without building a tree of it.
//!
//! Invariant: every part is a piece of the text as it stands there. Keys are compared as they are
//! written; upstream has no reason to escape the few that matter here, and one that is escaped is
//! simply another key.
use serde::de::IgnoredAny;
use std::ops::Range;

/// A member of an object or an item of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part<'a> {
    /// The key with its quotes; nothing in an array.
    pub(super) key: &'a [u8],
    /// Where the value stands in the text.
    pub(super) range: Range<usize>,
    /// The value; where the text is cut, what there is of it.
    pub(super) value: &'a [u8],
}

/// The parts of one object or array, in their order.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    text: &'a [u8],
    at: usize,
    close: u8,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    First,
    Next,
    /// The closing bracket has come.
    Whole,
    /// The text is cut, or no JSON.
    Broken,
}

impl<'a> Parts<'a> {
    /// The members of the object that `text` is.
    pub(super) fn of_object(text: &'a [u8]) -> Self {
        Self::new(text, (b'{', b'}'))
    }

    /// The items of the array that `text` is.
    pub(super) fn of_array(text: &'a [u8]) -> Self {
        Self::new(text, (b'[', b']'))
    }

    fn new(text: &'a [u8], (open, close): (u8, u8)) -> Self {
        let at = after_spaces(text, 0);
        let opens = text.get(at) == Some(&open);
        Self {
            text,
            at: at + 1,
            close,
            state: if opens { State::First } else { State::Broken },
        }
    }

    /// Whether everything has been walked over, up to the closing bracket.
    pub(super) fn is_whole(&self) -> bool {
        self.state == State::Whole
    }

    /// Goes to where the next part begins; `None` if there is none.
    fn next_begin(&mut self) -> Option<usize> {
        let at = after_spaces(self.text, self.at);
        match (self.state, *self.text.get(at)?) {
            (State::First | State::Next, byte) if byte == self.close => {
                self.state = State::Whole;
                None
            }
            (State::First, _) => Some(at),
            (State::Next, b',') => Some(after_spaces(self.text, at + 1)),
            _ => None,
        }
    }

    /// The key at `at`, and where its value begins.
    fn key(&self, at: usize) -> Option<(&'a [u8], usize)> {
        if self.close == b']' {
            return Some((&[], at));
        }
        self.text.get(at).filter(|byte| **byte == b'"')?;
        let end = value_end(self.text, at)?;
        let colon = after_spaces(self.text, end);
        self.text.get(colon).filter(|byte| **byte == b':')?;
        let key = self.text.get(at..end)?;
        Some((key, after_spaces(self.text, colon + 1)))
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Part<'a>> {
        if matches!(self.state, State::Whole | State::Broken) {
            return None;
        }
        let begin = self.next_begin();
        if self.state == State::Whole {
            return None;
        }
        self.state = State::Broken;
        let (key, from) = self.key(begin?)?;
        let to = match value_end(self.text, from) {
            Some(to) => {
                self.state = State::Next;
                self.at = to;
                to
            }
            None => self.text.len(),
        };
        let range = from..to;
        let value = self.text.get(range.clone())?;
        Some(Part { key, range, value })
    }
}

fn after_spaces(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.len() - rest.trim_ascii_start().len()
}

/// Where the value that begins at `at` ends.
fn value_end(text: &[u8], at: usize) -> Option<usize> {
    let mut values =
        serde_json::Deserializer::from_slice(text.get(at..)?).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    Some(at + values.byte_offset())
}

/// The text that a value is, if it is one.
pub(super) fn string(value: &[u8]) -> Option<String> {
    serde_json::from_slice(value).ok()
}
