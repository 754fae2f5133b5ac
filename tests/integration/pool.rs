//! What becomes of the pool while requests run: accounts in an order of preference, who was asked,
//! what cools and what is disabled, and the admin API that changes it.
//!
//! Invariant: whatever is read here is read from the running instance's own file or its admin API,
//! so that it is what an operator would see.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot look at its world has failed"
)]

use crate::{
    hand::within,
    harness::{Answer, SECRET, Setup, World, post, secret_of},
};
use fairlane::{
    app::App,
    clock::unix_millis,
    config::Boot,
    digest,
    domain::{
        admission::Subject,
        cooldown::Kept,
        ids::TokenId,
        pool::{Account, Credential, State},
    },
    sim::{Act, Record},
    store::tokens::AdminToken,
};
use http::{Method, Request};
use http_body_util::Full;
use serde_json::{Value, json};

pub(crate) const CHAT: &str = "/v1/chat/completions";

/// The admin token of every world that asks for one.
const TOKEN: &str = "fla-integration-token-0123456789";

/// The secret of the account of that name; [`SECRET`] for the first.
pub(crate) fn secret(name: &str) -> String {
    if name == "one" {
        SECRET.to_owned()
    } else {
        secret_of(name)
    }
}

/// Account "one" and one for each name, each preferred to those after it.
pub(crate) fn ranked(names: &[&str]) -> Setup {
    let ranked = names.iter().zip(1..);
    ranked.fold(Setup::default(), |setup, (name, n)| {
        let pointer = format!("/accounts/{n}/priority");
        setup.account(name).with(&pointer, json!(n))
    })
}

/// A world of `rows` accounts that are preferred to the account "last", and for each a client key
/// that may use just these two.
pub(crate) fn rows_and_last(rows: usize) -> Setup {
    let names: Vec<String> = (0..rows).map(|n| format!("row{n}")).collect();
    let setup = names.iter().fold(Setup::default(), |s, n| s.account(n));
    let keys = names.iter().enumerate().map(|(n, name)| {
        json!({"name": format!("key{n}"), "secret": key_of(n), "accounts": [name, "last"]})
    });
    setup
        .account("last")
        .with(&format!("/accounts/{}/priority", rows + 1), json!(1))
        .with("/keys", keys.collect())
}

/// A client key's secret for the row `n` of a table.
pub(crate) fn key_of(n: usize) -> String {
    format!("fl-key-of-the-row-number-{n}")
}

/// A chat request with another client key.
pub(crate) fn chat_with(key: &str) -> Request<Full<bytes::Bytes>> {
    let mut request = post(CHAT, crate::harness::chat(false).to_string());
    let value = format!("Bearer {key}").parse().unwrap();
    request.headers_mut().insert("authorization", value);
    request
}

/// A 429, after which one is to wait so many seconds.
pub(crate) fn limited(seconds: &str) -> Act {
    Act::status(429).header("retry-after", seconds)
}

/// The account whose secret a request bore.
pub(crate) fn who(record: &Record) -> String {
    let secret = record.credential.as_deref().unwrap_or_default();
    let name = secret.trim_start_matches("sk-upstream-number-");
    name.trim_end_matches("-0001").to_owned()
}

impl World {
    /// Whom requests for that path went to, in their order.
    pub(crate) fn asked(&self, path: &str) -> Vec<String> {
        self.seen(path).iter().map(who).collect()
    }

    /// Waits until `wish` is true; it is asked again after each answer of the store's writer.
    pub(crate) async fn eventually(&self, what: &str, wish: impl AsyncFn() -> bool) {
        let waiting = async {
            while !wish().await {
                self.app.store().flush().await.unwrap();
            }
        };
        within(what, waiting).await;
    }

    /// The account of that name.
    pub(crate) async fn account(&self, name: &str) -> Account {
        let all = self.app.store().accounts().await.unwrap();
        all.into_iter().find(|a| &*a.name == name).unwrap()
    }

    /// The credential of that name.
    pub(crate) async fn credential(&self, name: &str) -> Credential {
        let all = self.app.store().credentials().await.unwrap();
        all.into_iter().find(|c| &*c.name == name).unwrap()
    }

    /// Every cooldown that is kept.
    pub(crate) async fn cooldowns(&self) -> Vec<(Subject, Kept)> {
        let store = self.app.store().clone();
        let read = fairlane::blocking::run(move || store.cooldowns_blocking(unix_millis()));
        let all = read.await.unwrap().unwrap();
        let kept = |(subject, _, kept): (_, _, Option<Kept>)| Some((subject, kept?));
        all.into_iter().filter_map(kept).collect()
    }

    /// The cooldown of the account of that name, once it is kept.
    pub(crate) async fn cooldown(&self, name: &str) -> Kept {
        let id = self.account(name).await.id;
        let of_it = async || {
            let all = self.cooldowns().await;
            all.into_iter()
                .find(|(subject, _)| *subject == Subject::Account(id))
        };
        self.eventually("a cooldown", async || of_it().await.is_some())
            .await;
        of_it().await.unwrap().1
    }

    /// Waits until the credential of that name is in that state.
    pub(crate) async fn credential_becomes(&self, name: &str, state: State) {
        let is_so = async || self.credential(name).await.state == state;
        self.eventually(&format!("{name} to become {state:?}"), is_so)
            .await;
        self.in_force().await;
    }

    /// Waits until the account of that name is in that state.
    pub(crate) async fn account_becomes(&self, name: &str, state: State) {
        let is_so = async || self.account(name).await.state == state;
        self.eventually(&format!("{name} to become {state:?}"), is_so)
            .await;
        self.in_force().await;
    }

    /// Waits until what is in the file is what requests go by: an import, if only of nothing, is
    /// answered once it is in force.
    pub(crate) async fn in_force(&self) {
        self.admin(Method::PUT, "/pool", &json!({})).await;
    }

    /// Makes sure that nothing cools and nothing is out of service.
    pub(crate) async fn check_unharmed(&self) {
        self.quiet().await;
        assert_eq!(self.cooldowns().await, []);
        let store = self.app.store();
        let accounts = store.accounts().await.unwrap();
        let credentials = store.credentials().await.unwrap();
        let states = accounts.iter().map(|a| a.state);
        for state in states.chain(credentials.iter().map(|c| c.state)) {
            assert_eq!(state, State::Active);
        }
    }

    /// What upstream's answers changed, oldest first: what was done, and to what.
    pub(crate) async fn done_by_upstream(&self) -> Vec<(String, String)> {
        let store = self.app.store();
        store.flush().await.unwrap();
        let lines = store.audit_lines(None, 1000).await.unwrap();
        let mut lines: Vec<_> = lines
            .into_iter()
            .filter(|line| line.actor == "upstream")
            .map(|line| (line.action, line.subject))
            .collect();
        lines.reverse();
        lines
    }

    /// A call to the admin API, which must succeed; what it changed is in force.
    pub(crate) async fn admin(&self, method: Method, path: &str, body: &Value) -> Answer {
        let store = self.app.store();
        if store.tokens().await.unwrap().is_empty() {
            let token = AdminToken {
                id: TokenId::from_u128(1),
                name: "tests".into(),
                hash: digest::sha256(TOKEN.as_bytes()),
                secret_hint: "6789".into(),
                created_at: 0,
            };
            store.add_token(token).await.unwrap();
        }
        let call = async || {
            let request = Request::builder()
                .method(method.clone())
                .uri(format!("/api/admin{path}"))
                .header("host", "localhost")
                .header("authorization", format!("Bearer {TOKEN}"))
                .header("content-type", "application/json");
            let body = if body.is_null() {
                String::new()
            } else {
                body.to_string()
            };
            self.answer(request.body(Full::from(body)).unwrap()).await
        };
        // A token that was just made is known a moment later.
        let asking = async {
            loop {
                let answer = call().await;
                if answer.status != 401 {
                    return answer;
                }
            }
        };
        let answer = within("the token to be known", asking).await;
        assert!(answer.status.is_success(), "{method} {path}: {answer:?}");
        answer
    }

    /// Stops the instance and starts it again on the same file.
    pub(crate) async fn restart(self, env: &[(&str, &str)]) -> Self {
        self.quiet().await;
        let Self { sim, app, dir } = self;
        app.stop().await.unwrap();
        let db = dir.path().join("fairlane.db").display().to_string();
        let always = [("FAIRLANE_DB", &*db), ("FAIRLANE_LISTEN", "127.0.0.1:0")];
        let all = always.iter().chain(env);
        let boot = Boot::from_vars(all.map(|(n, v)| ((*n).into(), (*v).into()))).unwrap();
        let app = App::start(&boot).await.unwrap();
        Self { sim, app, dir }
    }
}
