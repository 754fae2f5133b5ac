//! The admin API driven through its router, on a database of its own. Every answer is held against
//! the schema that the table declares for it.
mod calls;
mod concurrency;
mod keys;
mod nouns;
mod pool;
mod schemas;
mod settings;
mod standing;

use super::*;
use crate::{
    access::{Login, SetUp},
    digest,
    domain::{
        ids::TokenId,
        pool::Pool,
        settings::{Layer, Name, Value as Setting},
    },
    peer::{Sender, TrustedProxies},
    store::tokens::AdminToken,
};
use axum::body::{Body, to_bytes};
use http::{HeaderMap, Method, Request, StatusCode, header};
use serde_json::{Value, json};
use tower::ServiceExt as _;

const TOKEN: &str = "fla-the-token-of-these-tests";

/// A running API.
struct Bench {
    state: State,
    readiness: Readiness,
    live: Registry,
    _dir: tempfile::TempDir,
}

/// What came back.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }

    /// The code of the error and the field that it is about.
    fn error(&self) -> (String, String) {
        let body = self.json();
        let text = |key: &str| body["error"][key].as_str().unwrap_or("").to_owned();
        (text("code"), text("field"))
    }
}

/// With one endpoint and one account.
async fn bench() -> Bench {
    let bench = empty(Layer::default()).await;
    let document = json!({
        "endpoints": [{"name": "openai", "preset": "openai"}],
        "accounts": [{"name": "team"}],
    });
    bench.ok("PUT", "/pool", &document).await;
    bench
}

async fn empty(environment: Layer) -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("f.db")).unwrap();
    let token = AdminToken {
        id: TokenId::from_u128(1),
        name: "tests".into(),
        hash: digest::sha256(TOKEN.as_bytes()),
        secret_hint: "ests".into(),
        created_at: 0,
    };
    store.add_token(token).await.unwrap();
    let reload = Reload::first(&store, environment).unwrap();
    let (readiness, live) = (Readiness::default(), Registry::default());
    let metrics = (Metrics::default(), live.clone());
    let access = Access::new(
        store.clone(),
        reload.clone(),
        TrustedProxies::default(),
        None,
    );
    Bench {
        state: State::new(store, reload, metrics, readiness.clone(), access),
        readiness,
        live,
        _dir: dir,
    }
}

impl Bench {
    /// One call through a router; `token` as it stands in the header.
    async fn through(&self, router: Router, request: Request<Body>) -> Answer {
        let response = router.oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        Answer {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    /// One call on the main listener.
    async fn raw(&self, method: &str, path: &str, token: Option<&str>, body: Vec<u8>) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(token) = token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(Body::from(body)).unwrap();
        self.through(router(self.state.clone()), request).await
    }

    /// A call with the token, below the prefix, held against the description.
    async fn call(&self, method: &str, path: &str, body: &Value) -> Answer {
        let body = match body {
            Value::Null => Vec::new(),
            body => body.to_string().into_bytes(),
        };
        let full = format!("{PREFIX}{path}");
        let answer = self.raw(method, &full, Some(TOKEN), body).await;
        schemas::check_answer(method, path, &answer);
        answer
    }

    /// A call that is expected to succeed.
    async fn ok(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = self.call(method, path, body).await;
        let text = &answer.text;
        assert!(answer.status.is_success(), "{method} {path}: {text}");
        answer.json()
    }

    async fn get(&self, path: &str) -> Value {
        self.ok("GET", path, &Value::Null).await
    }

    /// A call that is expected to be refused with that status, code and field.
    async fn refused(
        &self,
        (method, path): (&str, &str),
        body: &Value,
        expect: (u16, &str, &str),
    ) -> Value {
        let answer = self.call(method, path, body).await;
        let (code, field) = answer.error();
        let got = (answer.status.as_u16(), &*code, &*field);
        assert_eq!(got, expect, "{method} {path}: {}", answer.text);
        answer.json()["error"].clone()
    }

    /// The pool that requests are admitted by now.
    fn pool(&self) -> Arc<Pool> {
        Arc::clone(&self.state.reload().configuration().pool())
    }
}

/// The `id` of a thing.
fn id(thing: &Value) -> String {
    thing["id"].as_str().unwrap().to_owned()
}
