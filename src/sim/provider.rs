//! Which provider's shape a request speaks, and what it gets from there.
//!
//! Invariant: shapes know nothing of sockets, rules or limits: a [`Call`] goes in, a [`Reply`]
//! comes out.
use serde_json::Value;

use super::{
    Shared,
    act::Act,
    reply::Reply,
    request::{Head, Received},
    speech::Speech,
    tally::Gate,
};

mod anthropic;
mod body;
mod chat;
mod embeddings;
mod errors;
mod files;
mod gemini;
mod groups;
mod images;
mod models;
mod multipart;
mod responses;
mod voice;

pub(super) use errors::Fault;

/// Whose shapes a request speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flavour {
    OpenAi,
    Anthropic,
    Gemini,
}

/// A request and all that shapes need to answer it.
pub(super) struct Call<'a> {
    shared: &'a Shared,
    head: &'a Head,
    /// The credential, which owns what the call stores.
    owner: &'a str,
    body: &'a Received,
    flavour: Flavour,
    /// The path's segments after the version.
    path: Vec<&'a str>,
}

/// What shapes return: an answer, or a refusal that is put into the flavour's shape.
type Shape = Result<Reply, Fault>;

impl<'a> Call<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        head: &'a Head,
        owner: &'a str,
        body: &'a Received,
    ) -> Self {
        let segments: Vec<_> = head.path().split('/').filter(|s| !s.is_empty()).collect();
        let version = segments.iter().position(|s| is_version(s));
        let path = segments
            .get(version.map_or(0, |n| n + 1)..)
            .unwrap_or_default()
            .to_vec();
        let is_beta = version.and_then(|n| segments.get(n)) == Some(&"v1beta");
        let is_verb = path.first() == Some(&"models") && path.iter().any(|s| s.contains(':'));
        let has = |name: &str| head.header(name).is_some();
        // Only where protocols share a path do headers tell them apart.
        let flavour = match path.first() {
            _ if is_beta || is_verb => Flavour::Gemini,
            Some(&"messages") => Flavour::Anthropic,
            Some(&("models" | "files")) if has("anthropic-version") => Flavour::Anthropic,
            Some(&"models") if has("x-goog-api-key") => Flavour::Gemini,
            _ => Flavour::OpenAi,
        };
        Self {
            shared,
            head,
            owner,
            body,
            flavour,
            path,
        }
    }

    fn id(&self, prefix: &str) -> String {
        self.shared.id(prefix)
    }

    fn now(&self) -> i64 {
        self.shared.now_seconds()
    }

    /// What the model says to `text`, with at most `cap` tokens.
    fn speech(&self, text: &str, cap: Option<u64>) -> Speech {
        Speech::repeating(text, self.shared.config.tokens, cap)
    }

    /// Gives a streamed answer the configured pace.
    fn paced_stream(&self, mut reply: Reply) -> Reply {
        reply.pace.before_first = self.shared.config.first_delay;
        reply.pace.between = self.shared.config.chunk_delay;
        reply
    }

    /// Gives an answer that is made whole before it is sent the time that takes.
    fn paced_whole(&self, mut reply: Reply, tokens: u64) -> Reply {
        let config = &self.shared.config;
        let tokens = u32::try_from(tokens).unwrap_or(u32::MAX);
        let words = config.chunk_delay.saturating_mul(tokens);
        reply.pace.before_head = config.first_delay.saturating_add(words);
        reply
    }
}

/// `v1`, `v2`, `v1beta`, `v1beta2` and the like.
fn is_version(segment: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit();
    let Some(number) = segment.strip_prefix('v') else {
        return false;
    };
    let word = number.trim_start_matches(is_digit);
    let rest = word.trim_start_matches(|c: char| c.is_ascii_lowercase());
    word.len() < number.len() && rest.chars().all(is_digit)
}

/// The answer to a call, under the script for it if there is one.
pub(super) fn answer(call: &Call<'_>, headroom: Option<(u64, u64)>, act: Option<&Act>) -> Reply {
    let reply = match act {
        Some(act) if act.replaces_answer() || act.raw.is_some() => scripted_base(call, act),
        _ => dispatch(call),
    };
    let mut reply = with_provider_headers(call, reply);
    if let Some((max, left)) = headroom {
        reply = with_rate_limit(call.flavour, reply, max, left);
    }
    match act {
        Some(act) => reply.scripted(act),
        None => reply,
    }
}

/// The refusal of a call that found its limit reached.
pub(super) fn limited(call: &Call<'_>, gate: &Gate) -> Reply {
    let fault = Fault::new(429, "Too many requests are in flight for this account.");
    let reply = with_provider_headers(call, fault.reply(call));
    with_rate_limit(call.flavour, reply, gate.max, 0)
        .header("retry-after", gate.retry_after.to_string())
}

/// The answer that a script fills in: an error shape for an error status, else an empty document.
fn scripted_base(call: &Call<'_>, act: &Act) -> Reply {
    match act.status.unwrap_or(200) {
        status @ 400.. => Fault {
            status,
            message: act
                .message
                .clone()
                .unwrap_or_else(|| errors::usual_message(status).to_owned()),
            code: act.code.clone(),
            param: None,
        }
        .reply(call),
        status => Reply::json(status, &Value::Object(serde_json::Map::new())),
    }
}

fn dispatch(call: &Call<'_>) -> Reply {
    let done = if call.path.is_empty() && call.head.path() == "/" {
        Ok(help())
    } else if !call.shared.is_allowed(call.owner) {
        Err(Fault::new(401, errors::usual_message(401)))
    } else {
        match call.flavour {
            Flavour::OpenAi => openai(call),
            Flavour::Anthropic => anthropic::answer(call),
            Flavour::Gemini => gemini::answer(call),
        }
    };
    done.unwrap_or_else(|fault| fault.reply(call))
}

fn help() -> Reply {
    let text = super::Help.to_string();
    Reply::new(
        200,
        "text/plain; charset=utf-8",
        super::reply::Body::Whole(text.into()),
    )
}

fn openai(call: &Call<'_>) -> Shape {
    match (call.head.method.as_str(), call.path.as_slice()) {
        ("POST", ["chat", "completions"]) => chat::chat(call),
        ("POST", ["completions"]) => chat::completion(call),
        (_, ["responses", rest @ ..]) => responses::answer(call, rest),
        ("POST", ["embeddings"]) => embeddings::embeddings(call),
        ("POST", ["moderations"]) => embeddings::moderations(call),
        ("POST", ["images", kind @ ("generations" | "edits" | "variations")]) => {
            images::answer(call, kind)
        }
        ("POST", ["audio", "speech"]) => voice::speech(call),
        ("POST", ["audio", "transcriptions" | "translations"]) => voice::transcription(call),
        (_, ["files", rest @ ..]) => files::answer(call, rest),
        (_, ["uploads", rest @ ..]) => groups::uploads(call, rest),
        (_, ["batches", rest @ ..]) => groups::batches(call, rest),
        (_, ["conversations", rest @ ..]) => groups::conversations(call, rest),
        (_, ["models", name @ ..]) => models::answer(call, name),
        _ => Err(Fault::unknown_path(call)),
    }
}

/// What every answer of a provider bears.
fn with_provider_headers(call: &Call<'_>, reply: Reply) -> Reply {
    match call.flavour {
        Flavour::OpenAi => reply
            .header("x-request-id", call.id("req_"))
            .header("openai-version", "2020-10-01"),
        Flavour::Anthropic => reply.header("request-id", call.id("req_")),
        Flavour::Gemini => reply.header("x-gemini-service-tier", "standard"),
    }
}

fn with_rate_limit(flavour: Flavour, reply: Reply, max: u64, left: u64) -> Reply {
    let (limit, remaining) = (max.to_string(), left.to_string());
    match flavour {
        Flavour::OpenAi => reply
            .header("x-ratelimit-limit-requests", limit)
            .header("x-ratelimit-remaining-requests", remaining)
            .header("x-ratelimit-reset-requests", "1s"),
        Flavour::Anthropic => reply
            .header("anthropic-ratelimit-requests-limit", limit)
            .header("anthropic-ratelimit-requests-remaining", remaining),
        Flavour::Gemini => reply,
    }
}

#[cfg(test)]
mod tests;
