//! The dashboard driven through its router, as a browser without script would.
mod concurrency;
mod keys;
mod overview;
mod pages;
mod pool;
mod pool_import;
mod requests;
mod settings;
mod standing;
mod walk;

pub(super) use self::pages::shell;

use super::*;
use crate::{
    domain::{pool::BaseUrl, settings::Layer},
    peer::{Peer, TrustedProxies},
    ports::{Attempt, SendFailure, Sending, Started},
};
use axum::body::{Body, to_bytes};
use http::{HeaderMap, Method, Request, StatusCode, header};
use std::sync::Mutex;
use tower::ServiceExt as _;

const PASSWORD: &str = "correct horse battery";

/// A provider that answers every call alike, and remembers what it was sent.
#[derive(Default)]
struct Provider {
    answer: Mutex<Option<(u16, &'static str)>>,
    seen: Mutex<Vec<(String, HeaderMap)>>,
}

impl Upstream for Provider {
    fn open_socket<'a>(&'a self, _: crate::ports::Attempt<'a>) -> crate::ports::OpeningSocket<'a> {
        unreachable!("nothing here asks for a WebSocket")
    }

    fn send<'a>(&'a self, attempt: Attempt<'a>, _: &'a mut Started<'_>) -> Sending<'a> {
        let called = format!("{}{}", attempt.base_url.authority(), attempt.target);
        let headers = attempt.edge_headers.into_iter().collect();
        self.seen.lock().unwrap().push((called, headers));
        let answer = *self.answer.lock().unwrap();
        Box::pin(async move {
            let Some((status, body)) = answer else {
                return Err(SendFailure {
                    provenance: crate::domain::dispatch::Provenance::NotDispatched,
                    cause: crate::domain::dispatch::Cause::Connection,
                    detail: "the name could not be resolved".to_owned(),
                });
            };
            let response = http::Response::builder().status(status).body(()).unwrap();
            let body = http_body_util::Full::from(body);
            let body = http_body_util::BodyExt::map_err(body, |never| match never {});
            Ok(crate::ports::Answer {
                head: response.into_parts().0,
                body: Box::pin(body),
            })
        })
    }
}

/// A dashboard with a browser in front of it.
struct Bench {
    state: State,
    provider: Arc<Provider>,
    token: String,
    cookie: Mutex<String>,
    peer: &'static str,
    dir: tempfile::TempDir,
}

/// What came back.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }

    /// Where it leads.
    fn location(&self) -> &str {
        assert_eq!(self.status, StatusCode::SEE_OTHER, "{}", self.text);
        self.header("location")
    }

    #[track_caller]
    fn says(&self, what: &str) {
        assert!(self.text.contains(what), "{what:?} is not in {}", self.text);
    }
}

async fn bench() -> Bench {
    bench_with(Layer::default()).await
}

/// The same where the environment states something.
async fn bench_with(environment: Layer) -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("f.db")).unwrap();
    let reload = Reload::first(&store, environment).unwrap();
    let proxies = TrustedProxies::default();
    let public = BaseUrl::parse("https://lane.example.com").ok();
    let access = Access::new(store.clone(), reload.clone(), proxies, public);
    let token = access.offer_set_up().await.unwrap().unwrap();
    let provider = Arc::new(Provider::default());
    let parts = Parts {
        store,
        reload,
        live: Registry::default(),
        access,
        upstream: Arc::clone(&provider) as Arc<dyn Upstream>,
        clients: Clients {
            address: ([127, 0, 0, 1], 8080).into(),
            is_tls: false,
            is_shared: true,
        },
    };
    Bench {
        state: State::new(parts).unwrap(),
        provider,
        token,
        cookie: Mutex::default(),
        peer: "127.0.0.1:4711",
        dir,
    }
}

impl Bench {
    async fn send(&self, method: Method, path: &str, form: &str, extra: &[(&str, &str)]) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "localhost:8080")
            .header(header::ORIGIN, "http://localhost:8080")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(header::COOKIE, &*self.cookie.lock().unwrap())
            .extension(Peer {
                address: self.peer.parse().unwrap(),
                is_tls: false,
            });
        for (name, value) in extra {
            request.headers_mut().unwrap().insert(
                http::HeaderName::try_from(*name).unwrap(),
                value.parse().unwrap(),
            );
        }
        let request = request.body(Body::from(form.to_owned())).unwrap();
        let response = router(self.state.clone()).oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        for value in parts.headers.get_all(header::SET_COOKIE) {
            let pair = value.to_str().unwrap().split(';').next().unwrap();
            *self.cookie.lock().unwrap() = pair.to_owned();
        }
        Answer {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, "", &[]).await
    }

    async fn post(&self, path: &str, form: &str) -> Answer {
        self.send(Method::POST, path, form, &[]).await
    }

    async fn fragment(&self, path: &str) -> Answer {
        self.send(Method::GET, path, "", &[("hx-request", "true")])
            .await
    }

    /// With the password set and a session open.
    async fn set_up(&self) {
        let form = format!("password={PASSWORD}&repeated={PASSWORD}").replace(' ', "+");
        let answer = self.post("/setup/password", &form).await;
        assert_eq!(answer.location(), "/setup");
    }
}
