//! What an error's body says: its grounds, its waits, and whether its shape is the provider's own.
//!
//! Invariant: fields count only where providers put them, never where they echo a request.
use super::{
    codes::{self, Grounds},
    scan::{ITEM, Scalar, fields},
    time,
};
use crate::domain::protocol::Protocol;

/// A body, read.
#[derive(Debug)]
pub(super) struct Said {
    protocol: Protocol,
    status: u16,
    now_ms: i64,
    grounds: Option<Grounds>,
    wait_ms: Option<u64>,
    /// The two halves of a limit that an aggregator quotes from another provider's headers.
    quoted: Quoted,
    has_provider_shape: bool,
    /// Whether it is a problem document of RFC 9457, as networks in between write them.
    is_problem: bool,
}

#[derive(Debug, Default)]
struct Quoted {
    nothing_remains: bool,
    reset_ms: Option<u64>,
}

impl Said {
    /// Reads the beginning of a body, whatever it is.
    pub(super) fn read(protocol: Protocol, status: u16, body: &[u8], now_ms: i64) -> Self {
        let mut said = Self {
            protocol,
            status,
            now_ms,
            grounds: None,
            wait_ms: None,
            quoted: Quoted::default(),
            has_provider_shape: false,
            is_problem: false,
        };
        let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        if matches!(body.trim_ascii_start().first(), Some(b'{' | b'[')) {
            fields(body, |path, name, value| said.see(path, name, value));
        } else {
            said.waits(time::in_sentence(&String::from_utf8_lossy(body), now_ms));
        }
        said
    }

    /// The weightiest of the grounds given.
    pub(super) fn grounds(&self) -> Option<Grounds> {
        self.grounds
    }

    /// The longest of the waits stated.
    pub(super) fn wait_ms(&self) -> Option<u64> {
        let quoted = self.quoted.reset_ms.filter(|_| self.quoted.nothing_remains);
        self.wait_ms.max(quoted)
    }

    /// Whether it is an error as this provider's own programs write it.
    pub(super) fn has_provider_shape(&self) -> bool {
        self.has_provider_shape && !self.is_problem
    }

    fn see(&mut self, path: &[&str], name: &str, value: &Scalar<'_>) {
        // Gemini, asked for a stream, answers with an array that has one error in it.
        let path = path.strip_prefix(&[ITEM]).unwrap_or(path);
        self.see_shape(path, name, value);
        match (path, name) {
            (["error", "metadata", "headers"], _) => self.see_quoted(name, value),
            (["error", "details", ITEM, "violations", ITEM], "quotaId") => {
                self.grounds = self.grounds.max(codes::of_quota_id(value.text()));
            }
            _ if is_of_error(path) => {
                self.see_grounds(path, name, value);
                self.see_wait(name, value);
            }
            _ => {}
        }
    }

    fn see_shape(&mut self, path: &[&str], name: &str, value: &Scalar<'_>) {
        let Scalar::Text(text) = value else { return };
        self.is_problem |= path.is_empty() && name == "title";
        self.has_provider_shape |= match (self.protocol, path, name) {
            (Protocol::OpenAi, [], "object") | (Protocol::Anthropic, [], "type") => text == "error",
            (Protocol::OpenAi | Protocol::OpenAiVideos, ["error"], "message" | "code" | "type")
            | (Protocol::Gemini, ["error"], "status")
            | (Protocol::FalQueue, [], "detail")
            | (Protocol::FalQueue, ["detail", ITEM], "msg" | "type") => true,
            _ => false,
        };
    }

    fn see_grounds(&mut self, path: &[&str], name: &str, value: &Scalar<'_>) {
        let Scalar::Text(text) = value else { return };
        let found = match (path, name) {
            (_, "code" | "type" | "error_code" | "reason" | "limit_source") => codes::of_code(text),
            (["error"], "message") | ([], "error" | "detail") => {
                codes::of_sentence(self.protocol, self.status, name, text)
            }
            _ => None,
        };
        self.grounds = self.grounds.max(found);
    }

    fn see_wait(&mut self, name: &str, value: &Scalar<'_>) {
        let (text, now_ms) = (value.text(), self.now_ms);
        self.waits(match (name, value) {
            ("message" | "msg" | "error" | "detail" | "raw", _) => time::in_sentence(text, now_ms),
            // What is left of a span or a time that was cut says something else.
            (_, Scalar::Cut(_)) => None,
            ("resets_at" | "reset_at" | "quotaResetTimeStamp", _) => time::at(text, now_ms),
            (
                "resets_in_seconds"
                | "retry_after_seconds"
                | "retry_after"
                | "retryDelay"
                | "quotaResetDelay",
                _,
            ) => time::reset(text, now_ms),
            ("retry_after_ms", _) => time::millis(text),
            _ => None,
        });
    }

    /// `OpenRouter` puts the headers of a limit into the body too.
    fn see_quoted(&mut self, name: &str, value: &Scalar<'_>) {
        let text = match value {
            Scalar::Cut(_) => return,
            Scalar::Text(text) => text,
            Scalar::Number(text) => *text,
        };
        if name.eq_ignore_ascii_case("x-ratelimit-remaining") {
            self.quoted.nothing_remains |= time::is_used_up(text);
        } else if name.eq_ignore_ascii_case("x-ratelimit-reset") {
            let reset_ms = time::reset(text, self.now_ms);
            self.quoted.reset_ms = self.quoted.reset_ms.max(reset_ms);
        } else if name.eq_ignore_ascii_case("retry-after") {
            self.waits(time::reset(text, self.now_ms));
        }
    }

    fn waits(&mut self, wait_ms: Option<u64>) {
        self.wait_ms = self.wait_ms.max(wait_ms);
    }
}

/// Whether an object is the error itself, or one of those in which providers tell more about it.
///
/// FAL and others that validate with the same library list a request's mistakes in `detail`, and
/// quote the request there: an array of that name is not read.
fn is_of_error(path: &[&str]) -> bool {
    matches!(
        path,
        [] | ["error" | "detail"]
            | ["error", "details" | "metadata"]
            | ["error", "details", ITEM]
            | ["error", "details", ITEM, "metadata"]
    )
}
