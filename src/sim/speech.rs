//! What the simulated model says: the words it was asked with, counted as tokens.
use serde_json::Value;

/// An answer in the pieces in which it is streamed: one word each, with the white space before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Speech {
    text: String,
    /// Where in the text each piece ends.
    ends: Vec<usize>,
    /// Whether a limit of tokens cut it short.
    pub(super) is_cut: bool,
}

/// What is said when there was nothing to repeat.
const GREETING: &str = "Hello from the simulated model.";

impl Speech {
    /// The words of `text`: as many as there are or, with `tokens`, exactly so many, over and over
    /// again; in any case no more than `cap`.
    pub(super) fn repeating(text: &str, tokens: Option<usize>, cap: Option<u64>) -> Self {
        let text = if text.trim().is_empty() {
            GREETING
        } else {
            text
        };
        let words = words(text);
        let wanted = tokens.unwrap_or(words.len());
        let cap = cap.map_or(usize::MAX, |c| usize::try_from(c).unwrap_or(usize::MAX));
        let said = wanted.min(cap);
        let mut speech = Self {
            text: String::with_capacity(text.len()),
            ends: Vec::with_capacity(said),
            is_cut: said < wanted,
        };
        for word in words.iter().cycle().take(said) {
            if !speech.text.is_empty() && !word.starts_with(char::is_whitespace) {
                speech.text.push(' ');
            }
            speech.text.push_str(word);
            speech.ends.push(speech.text.len());
        }
        speech
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn pieces(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .filter_map(|(start, end)| self.text.get(start..*end))
    }

    pub(super) fn tokens(&self) -> u64 {
        self.ends.len() as u64
    }
}

/// Cuts before each word, so that the pieces together are the text.
fn words(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut in_word = false;
    for (at, c) in text.char_indices() {
        if c.is_whitespace() && in_word {
            out.extend(text.get(start..at));
            start = at;
        }
        in_word = !c.is_whitespace();
    }
    out.extend(text.get(start..));
    out
}

/// The text of a content field: a string, or parts with a `text` each.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str()))
            .collect(),
        _ => String::new(),
    }
}

/// The text of the last of `messages` that a user wrote; `field` is where its content is.
pub(super) fn last_user_text(messages: Option<&Value>, field: &str) -> String {
    let messages = messages.and_then(Value::as_array).map(Vec::as_slice);
    messages
        .unwrap_or_default()
        .iter()
        .rev()
        .find(|m| m.get("role").and_then(Value::as_str).unwrap_or("user") == "user")
        .and_then(|m| m.get(field))
        .map_or_else(String::new, text_of)
}

/// About how many tokens a document is: four characters of its texts each.
pub(super) fn tokens_in(document: &Value) -> u64 {
    fn characters(value: &Value) -> u64 {
        match value {
            Value::String(text) => text.len() as u64,
            Value::Array(items) => items.iter().map(characters).sum(),
            Value::Object(fields) => fields.values().map(characters).sum(),
            _ => 0,
        }
    }
    characters(document).div_ceil(4).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(text: &str, tokens: Option<usize>, cap: Option<u64>, expect: (&[&str], bool)) {
        let got = Speech::repeating(text, tokens, cap);
        let pieces: Vec<_> = got.pieces().collect();
        assert_eq!((&pieces[..], got.is_cut), expect);
    }

    #[test]
    fn an_answer_repeats_its_question() {
        check("a  bc\nd", None, None, (&["a", "  bc", "\nd"], false));
        check("漢字 🌍", None, None, (&["漢字", " 🌍"], false));
        check(" x ", None, None, (&[" x", " "], false));
    }

    #[test]
    fn an_answer_is_as_long_as_wished_and_never_longer_than_allowed() {
        check("a b", Some(3), None, (&["a", " b", " a"], false));
        check("a b", Some(1), None, (&["a"], false));
        check("a b", None, Some(1), (&["a"], true));
        check("a b", None, Some(2), (&["a", " b"], false));
    }

    #[test]
    fn nothing_is_answered_with_a_greeting() {
        assert_eq!(Speech::repeating("", None, None).text(), GREETING);
    }

    #[test]
    fn the_last_words_of_the_user_count() {
        let messages = json!([
            {"role": "user", "content": "first"},
            {"role": "user", "content": [{"type": "text", "text": "la"}, {"type": "text", "text": "st"}]},
            {"role": "assistant", "content": "no"},
        ]);
        assert_eq!(last_user_text(Some(&messages), "content"), "last");
        assert_eq!(last_user_text(None, "content"), "");
    }
}
