//! What an answer says it has used, in the words of each protocol, brought to one form.
//!
//! Invariant: nothing is estimated. A count that upstream does not state, or states as anything but
//! a whole number, is unknown.
use memchr::memmem;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use std::fmt;

/// Tokens used by one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens read, those from a cache included.
    pub input: Option<u64>,
    /// Tokens written, those of thinking included.
    pub output: Option<u64>,
    /// Tokens read from a cache.
    pub cached: Option<u64>,
}

/// Counts as they stand in a body, of whichever protocol.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Counts {
    input_tokens: Count,
    output_tokens: Count,
    prompt_tokens: Count,
    completion_tokens: Count,
    input_tokens_details: Option<Details>,
    prompt_tokens_details: Option<Details>,
    cache_read_input_tokens: Count,
    cache_creation_input_tokens: Count,
    #[serde(rename = "promptTokenCount")]
    prompt_token_count: Count,
    #[serde(rename = "toolUsePromptTokenCount")]
    tool_use_prompt_token_count: Count,
    #[serde(rename = "candidatesTokenCount")]
    candidates_token_count: Count,
    #[serde(rename = "thoughtsTokenCount")]
    thoughts_token_count: Count,
    #[serde(rename = "cachedContentTokenCount")]
    cached_content_token_count: Count,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Details {
    cached_tokens: Count,
}

impl Counts {
    /// These counts, completed by `earlier` ones of the same answer where they are silent.
    pub(super) fn or(self, earlier: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.or(earlier.input_tokens),
            output_tokens: self.output_tokens.or(earlier.output_tokens),
            prompt_tokens: self.prompt_tokens.or(earlier.prompt_tokens),
            completion_tokens: self.completion_tokens.or(earlier.completion_tokens),
            input_tokens_details: self.input_tokens_details.or(earlier.input_tokens_details),
            prompt_tokens_details: self.prompt_tokens_details.or(earlier.prompt_tokens_details),
            cache_read_input_tokens: self
                .cache_read_input_tokens
                .or(earlier.cache_read_input_tokens),
            cache_creation_input_tokens: self
                .cache_creation_input_tokens
                .or(earlier.cache_creation_input_tokens),
            prompt_token_count: self.prompt_token_count.or(earlier.prompt_token_count),
            tool_use_prompt_token_count: self
                .tool_use_prompt_token_count
                .or(earlier.tool_use_prompt_token_count),
            candidates_token_count: self
                .candidates_token_count
                .or(earlier.candidates_token_count),
            thoughts_token_count: self.thoughts_token_count.or(earlier.thoughts_token_count),
            cached_content_token_count: self
                .cached_content_token_count
                .or(earlier.cached_content_token_count),
        }
    }

    /// The counts in one form. Anthropic counts what it reads from and writes to its cache apart from
    /// the other input, Gemini thoughts apart from the other output; the rest include them.
    pub(super) fn usage(&self) -> Usage {
        let input = self
            .input_tokens
            .plus(self.cache_read_input_tokens)
            .plus(self.cache_creation_input_tokens)
            .or(self.prompt_tokens)
            .or(self
                .prompt_token_count
                .plus(self.tool_use_prompt_token_count));
        let output = self
            .output_tokens
            .or(self.completion_tokens)
            .or(self.candidates_token_count.plus(self.thoughts_token_count));
        let detail = |details: Option<Details>| details.unwrap_or_default().cached_tokens;
        let cached = self
            .cache_read_input_tokens
            .or(detail(self.input_tokens_details))
            .or(detail(self.prompt_tokens_details))
            .or(self.cached_content_token_count);
        Usage {
            input: input.0,
            output: output.0,
            cached: cached.0,
        }
    }

    /// The counts that stand last in `text`, a part of a JSON document. Only a real key can match: a
    /// quote inside of a string has a backslash before it.
    pub(super) fn last_in(text: &[u8]) -> Option<Self> {
        let keys: [&[u8]; 2] = [b"\"usage\"", b"\"usageMetadata\""];
        keys.into_iter().find_map(|key| {
            memmem::rfind_iter(text, key).find_map(|at| {
                let value = after_colon(text.get(at + key.len()..)?)?;
                let mut values = serde_json::Deserializer::from_slice(value).into_iter::<Self>();
                let counts = values.next()?.ok()?;
                (counts.usage() != Usage::default()).then_some(counts)
            })
        })
    }
}

/// What follows the colon after a key, spaces aside; `None` if it was no key.
pub(super) fn after_colon(text: &[u8]) -> Option<&[u8]> {
    Some(
        text.trim_ascii_start()
            .strip_prefix(b":")?
            .trim_ascii_start(),
    )
}

/// A count, or nothing: whatever else stands there is no reason to lose the other counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Count(Option<u64>);

impl Count {
    fn or(self, other: Self) -> Self {
        Self(self.0.or(other.0))
    }

    fn plus(self, other: Self) -> Self {
        match (self.0, other.0) {
            (Some(a), Some(b)) => Self(Some(a.saturating_add(b))),
            (a, b) => Self(a.or(b)),
        }
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountVisitor)
    }
}

struct CountVisitor;

impl<'de> Visitor<'de> for CountVisitor {
    type Value = Count;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_u64<E>(self, count: u64) -> Result<Count, E> {
        Ok(Count(Some(count)))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_str<E>(self, _: &str) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_unit<E>(self) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Count, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Count(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Count, A::Error> {
        while items.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Count(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Option<[Option<u64>; 3]>) {
        let found = Counts::last_in(text.as_bytes()).map(|counts| {
            let usage = counts.usage();
            [usage.input, usage.output, usage.cached]
        });
        assert_eq!(found, expect, "{text}");
    }

    #[test]
    fn counts_of_every_protocol_take_one_form() {
        check(
            r#"{"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4}}}"#,
            Some([Some(10), Some(5), Some(4)]),
        );
        check(
            r#"{"usage" : {"input_tokens":10,"input_tokens_details":{"cached_tokens":0},"output_tokens":5}}"#,
            Some([Some(10), Some(5), Some(0)]),
        );
        check(
            r#"{"usage":{"input_tokens":1,"cache_creation_input_tokens":20,"cache_read_input_tokens":300,"output_tokens":5}}"#,
            Some([Some(321), Some(5), Some(300)]),
        );
        check(
            r#"{"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":2,"thoughtsTokenCount":3,"cachedContentTokenCount":1,"promptTokensDetails":[{}]}}"#,
            Some([Some(7), Some(5), Some(1)]),
        );
        check(
            r#"{"usage":{"prompt_tokens":3,"total_tokens":3}}"#,
            Some([Some(3), None, None]),
        );
    }

    #[test]
    fn only_counts_under_a_real_key_count() {
        check(r#"{"text":"\"usage\":{\"input_tokens\":1}"}"#, None);
        check(r#"{"usage":null}"#, None);
        check(r#"{"usage":{"type":"string"},"x":["usage"]}"#, None);
        check(
            r#"…":{"usage":{"input_tokens":3}},"tool":{"usage":{"type":"string"}}}"#,
            Some([Some(3), None, None]),
        );
    }

    #[test]
    fn odd_counts_are_unknown_and_spoil_no_others() {
        check(
            r#"{"usage":{"input_tokens":"many","output_tokens":4,"prompt_tokens":[1],"completion_tokens":{"a":1},"input_tokens_details":null}}"#,
            Some([None, Some(4), None]),
        );
        check(r#"{"usage":{"input_tokens":-1,"output_tokens":1.5}}"#, None);
        check(r#"{"usage":{"input_tokens":1"#, None);
    }
}
