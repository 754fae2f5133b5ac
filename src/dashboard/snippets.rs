//! What to paste into a client so that it uses this very instance.
use super::{State, session::From, setup::models};
use crate::domain::{
    pool::{BaseUrl, Pool},
    protocol::Protocol,
};
use axum::extract::FromRequestParts;
use http::{header, request::Parts};
use std::{convert::Infallible, net::SocketAddr, sync::Arc};

/// Where clients connect, as far as the process knows.
#[derive(Clone, Copy, Debug)]
pub struct Clients {
    /// Where it listens for them.
    pub address: SocketAddr,
    /// Whether it speaks TLS there.
    pub is_tls: bool,
    /// Whether the dashboard is on the same listener.
    pub is_shared: bool,
}

impl Clients {
    /// The base URL for clients, as somebody who reached the dashboard by `host` would reach it.
    fn base_url(&self, public: Option<&BaseUrl>, host: &str, is_tls: bool) -> String {
        if let Some(url) = public {
            return url.to_string();
        }
        let scheme = |is_tls| if is_tls { "https" } else { "http" };
        let host: Option<http::uri::Authority> = host.parse().ok();
        match host {
            Some(host) if self.is_shared => format!("{}://{host}", scheme(is_tls)),
            Some(host) => {
                let port = self.address.port();
                format!("{}://{}:{port}", scheme(self.is_tls), host.host())
            }
            None => format!("{}://{}", scheme(self.is_tls), self.address),
        }
    }
}

/// One client with what to paste; names of products are the same in every language.
pub(super) struct Snippet {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) text: String,
}

/// What stands in every snippet.
pub(super) struct Filling<'a> {
    pub(super) base_url: &'a str,
    pub(super) secret: &'a str,
}

/// The base URL for clients, as whoever sent this request would reach it.
pub(super) struct Reached(pub(super) String);

impl FromRequestParts<State> for Reached {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, Infallible> {
        let from = From::from_request_parts(parts, state).await?;
        let host = parts.headers.get(header::HOST);
        let host = host.and_then(|v| v.to_str().ok()).unwrap_or_default();
        let public = state.access().public_url();
        let clients = state.clients();
        Ok(Self(clients.base_url(public, host, from.sender.is_tls)))
    }
}

/// What to paste for everything that the pool serves. `only` are the models that the key may ask
/// for; `None` means all.
pub(super) async fn filled(
    state: &State,
    filling: &Filling<'_>,
    only: Option<&[Arc<str>]>,
) -> Vec<Snippet> {
    let pool = Arc::clone(&state.reload().configuration().pool());
    let mut all = Vec::new();
    for protocol in served(&pool) {
        let mut listed = models(state, &pool, protocol).await;
        if let Some(only) = only {
            listed.retain(|name| only.iter().any(|allowed| **allowed == **name));
        }
        let fallback = only.and_then(|only| only.iter().find(|name| is_plain(name)));
        let model = match fallback {
            Some(allowed) if listed.is_empty() => allowed.to_string(),
            _ => example_model(protocol, &listed),
        };
        all.extend(snippets(protocol, &model, filling));
    }
    all
}

/// The protocols that the pool can serve.
fn served(pool: &Pool) -> Vec<Protocol> {
    let all = [Protocol::OpenAi, Protocol::Anthropic, Protocol::Gemini];
    let is_served = |p: &Protocol| pool.candidates(*p, None).next().is_some();
    all.into_iter().filter(is_served).collect()
}

/// A model for the example: a small one that providers are known to have, else any that they list.
fn example_model(protocol: Protocol, listed: &[Box<str>]) -> String {
    let small: &[&str] = match protocol {
        Protocol::Anthropic => &["claude-haiku-4-5", "claude-3-5-haiku-latest"],
        Protocol::Gemini => &["gemini-2.5-flash", "gemini-2.0-flash"],
        _ => &["gpt-5-mini", "gpt-4.1-mini", "gpt-4o-mini"],
    };
    let is_listed = |name: &&&str| listed.iter().any(|l| &**l == **name);
    let found = small.iter().find(is_listed).map(|name| (*name).to_owned());
    let any = || {
        let found = listed.iter().find(|name| is_plain(name));
        found.map(ToString::to_string)
    };
    found
        .or_else(any)
        .or_else(|| small.first().map(|name| (*name).to_owned()))
        .unwrap_or_default()
}

/// Whether a name means nothing to a shell: that is where words of providers end up.
fn is_plain(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._:/@".contains(&b);
    !name.is_empty() && name.bytes().all(is_plain)
}

/// The snippets of one protocol.
pub(super) fn snippets(protocol: Protocol, model: &str, filling: &Filling<'_>) -> Vec<Snippet> {
    let snippet = |id, title, text| Snippet { id, title, text };
    match protocol {
        Protocol::OpenAi => vec![
            snippet("curl-openai", "curl", openai_curl(model, filling)),
            snippet(
                "openai-python",
                "OpenAI SDK (Python)",
                openai_python(model, filling),
            ),
            snippet("codex", "Codex CLI", codex(model, filling)),
        ],
        Protocol::Anthropic => vec![
            snippet(
                "curl-anthropic",
                "curl (Anthropic)",
                anthropic_curl(model, filling),
            ),
            snippet(
                "anthropic-python",
                "Anthropic SDK (Python)",
                anthropic_python(model, filling),
            ),
            snippet("claude-code", "Claude Code", claude_code(filling)),
        ],
        Protocol::Gemini => vec![snippet(
            "curl-gemini",
            "curl (Gemini)",
            gemini_curl(model, filling),
        )],
        Protocol::OpenAiVideos | Protocol::FalQueue => Vec::new(),
    }
}

fn openai_curl(model: &str, Filling { base_url, secret }: &Filling<'_>) -> String {
    format!(
        "curl {base_url}/v1/chat/completions \\
  -H 'Authorization: Bearer {secret}' \\
  -H 'Content-Type: application/json' \\
  -d '{{\"model\": \"{model}\", \"messages\": [{{\"role\": \"user\", \"content\": \"Hello\"}}]}}'"
    )
}

fn openai_python(model: &str, Filling { base_url, secret }: &Filling<'_>) -> String {
    format!(
        "from openai import OpenAI

client = OpenAI(
    base_url=\"{base_url}/v1\",
    api_key=\"{secret}\",
)
answer = client.chat.completions.create(
    model=\"{model}\",
    messages=[{{\"role\": \"user\", \"content\": \"Hello\"}}],
)
print(answer.choices[0].message.content)"
    )
}

fn codex(model: &str, Filling { base_url, secret }: &Filling<'_>) -> String {
    format!(
        "# ~/.codex/config.toml
model = \"{model}\"
model_provider = \"fairlane\"

[model_providers.fairlane]
name = \"fairlane\"
base_url = \"{base_url}/v1\"
env_key = \"FAIRLANE_KEY\"
wire_api = \"responses\"

# in the shell
export FAIRLANE_KEY={secret}
codex"
    )
}

fn anthropic_curl(model: &str, Filling { base_url, secret }: &Filling<'_>) -> String {
    format!(
        "curl {base_url}/v1/messages \\
  -H 'x-api-key: {secret}' \\
  -H 'anthropic-version: 2023-06-01' \\
  -H 'Content-Type: application/json' \\
  -d '{{\"model\": \"{model}\", \"max_tokens\": 100, \"messages\": [{{\"role\": \"user\", \"content\": \"Hello\"}}]}}'"
    )
}

fn anthropic_python(model: &str, Filling { base_url, secret }: &Filling<'_>) -> String {
    format!(
        "from anthropic import Anthropic

client = Anthropic(base_url=\"{base_url}\", api_key=\"{secret}\")
answer = client.messages.create(
    model=\"{model}\",
    max_tokens=100,
    messages=[{{\"role\": \"user\", \"content\": \"Hello\"}}],
)
print(answer.content[0].text)"
    )
}

fn claude_code(Filling { base_url, secret }: &Filling<'_>) -> String {
    format!(
        "export ANTHROPIC_BASE_URL={base_url}
export ANTHROPIC_AUTH_TOKEN={secret}
claude"
    )
}

fn gemini_curl(model: &str, Filling { base_url, secret }: &Filling<'_>) -> String {
    format!(
        "curl {base_url}/v1beta/models/{model}:generateContent \\
  -H 'x-goog-api-key: {secret}' \\
  -H 'Content-Type: application/json' \\
  -d '{{\"contents\": [{{\"parts\": [{{\"text\": \"Hello\"}}]}}]}}'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(is_shared: bool, public: Option<&str>, host: &str, is_tls: bool, expect: &str) {
        let clients = Clients {
            address: "0.0.0.0:9000".parse().unwrap(),
            is_tls: false,
            is_shared,
        };
        let public = public.map(|url| BaseUrl::parse(url).unwrap());
        assert_eq!(clients.base_url(public.as_ref(), host, is_tls), expect);
    }

    #[test]
    fn clients_are_sent_where_the_person_came_in() {
        check(true, None, "lane.lan:8080", false, "http://lane.lan:8080");
        check(
            true,
            None,
            "lane.example.com",
            true,
            "https://lane.example.com",
        );
        check(false, None, "10.0.0.5:8081", true, "http://10.0.0.5:9000");
        check(false, None, "[::1]:8081", false, "http://[::1]:9000");
        let public = Some("https://lane.example.com/");
        check(true, public, "inner:80", false, "https://lane.example.com");
        check(true, None, "", false, "http://0.0.0.0:9000");
    }

    #[test]
    fn the_example_asks_for_a_model_that_there_is() {
        let listed: Vec<Box<str>> = vec!["llama".into(), "gpt-4o-mini".into()];
        assert_eq!(example_model(Protocol::OpenAi, &listed), "gpt-4o-mini");
        assert_eq!(example_model(Protocol::OpenAi, &listed[..1]), "llama");
        assert_eq!(example_model(Protocol::Gemini, &[]), "gemini-2.5-flash");
        let hostile: Vec<Box<str>> = vec!["x'; rm -rf ~; '".into()];
        assert_eq!(example_model(Protocol::OpenAi, &hostile), "gpt-5-mini");
    }
}
