//! A world for one test: a simulated provider, an instance in front of it, and a client that can
//! write and read any byte.
//!
//! Invariant: [`World::end`] fails the test if a lease, a waiter or a live request is left behind.
use bytes::Bytes;
use fairlane::{
    app::App,
    config::Boot,
    domain::ledger::Entry,
    sim::{Config, Record, Sim, SimHandle},
    store::{Store, ledger::LedgerFilter},
};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::{net::SocketAddr, path::PathBuf};
use tokio::net::TcpStream;

/// The client key of every world.
pub(crate) const KEY: &str = "fl-integration-key-0123456789";

/// The upstream secret of the first account.
pub(crate) const SECRET: &str = "sk-upstream-number-one-0001";

/// A simulated provider and an instance in front of it.
pub(crate) struct World {
    pub(crate) sim: SimHandle,
    pub(crate) app: App,
    pub(crate) dir: tempfile::TempDir,
}

/// What a world is made of; change what the test is about.
pub(crate) struct Setup {
    /// How the provider behaves.
    pub(crate) sim: Config,
    /// The pool document; `{base}` stands for the provider's base URL.
    pub(crate) pool: Value,
    /// Variables of the environment.
    pub(crate) env: Vec<(String, String)>,
}

impl Default for Setup {
    /// One account that is not limited, one credential, one key, every protocol.
    fn default() -> Self {
        Self {
            sim: Config::recording(),
            pool: json!({
                "endpoints": [{"name": "sim", "base_url": "{base}",
                               "protocols": ["openai", "anthropic", "gemini"]}],
                "accounts": [{"name": "one", "stream_limit": 0, "create_limit": 0}],
                "credentials": [{"name": "one", "secret": SECRET, "accounts": ["one"],
                                 "endpoints": ["sim"]}],
                "keys": [{"name": "test", "secret": KEY}],
            }),
            env: Vec::new(),
        }
    }
}

impl Setup {
    /// With that variable in the environment.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With another account, credential and secret of that name, at the same endpoint.
    pub(crate) fn account(mut self, name: &str) -> Self {
        let secret = secret_of(name);
        let push = |list: &mut Value, row: Value| list.as_array_mut().unwrap().push(row);
        push(
            &mut self.pool["accounts"],
            json!({"name": name, "stream_limit": 0, "create_limit": 0}),
        );
        push(
            &mut self.pool["credentials"],
            json!({"name": name, "secret": secret, "accounts": [name], "endpoints": ["sim"]}),
        );
        self
    }

    /// With something else in the pool document, at a JSON pointer whose parent exists.
    pub(crate) fn with(mut self, pointer: &str, value: Value) -> Self {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        self.pool.pointer_mut(parent).unwrap()[name] = value;
        self
    }

    /// Starts it.
    pub(crate) async fn start(self) -> World {
        let sim = Sim::start(self.sim).await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        let db = dir.path().join("fairlane.db");
        let document = self.pool.to_string().replace("{base}", &sim.base_url());
        fill(db.clone(), document).await;
        let mut env = self.env;
        env.push(("FAIRLANE_DB".to_owned(), db.display().to_string()));
        env.push(("FAIRLANE_LISTEN".to_owned(), "127.0.0.1:0".to_owned()));
        let env = env.into_iter().map(|(n, v)| (n.into(), v.into()));
        let boot = Boot::from_vars(env).unwrap();
        let app = App::start(&boot).await.unwrap();
        World { sim, app, dir }
    }
}

async fn fill(db: PathBuf, document: String) {
    let filled = fairlane::blocking::run(move || {
        let store = Store::open(&db).unwrap();
        let document = fairlane::document::read_json(document.as_bytes()).unwrap();
        let mode = fairlane::domain::pool::document::Mode::Merge;
        store.import_blocking(document, mode).unwrap();
        store.close();
    });
    filled.await.unwrap();
}

impl World {
    /// The usual world.
    pub(crate) async fn start() -> Self {
        Setup::default().start().await
    }

    /// Where clients connect.
    pub(crate) fn address(&self) -> SocketAddr {
        self.app.address
    }

    /// The database file.
    pub(crate) fn db(&self) -> PathBuf {
        self.dir.path().join("fairlane.db")
    }

    /// A connection on which any byte can be written.
    pub(crate) async fn raw(&self) -> TcpStream {
        TcpStream::connect(self.address()).await.unwrap()
    }

    /// Sends a request on a connection of its own.
    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        Self::send_at(self.address(), request).await
    }

    async fn send_at(address: SocketAddr, request: Request<Full<Bytes>>) -> Response<Incoming> {
        let io = TokioIo::new(TcpStream::connect(address).await.unwrap());
        let (mut sender, connection) = http1::handshake(io).await.unwrap();
        fairlane::tasks::spawn("client", async move {
            // How it ended shows in the answer.
            drop(connection.await);
        });
        sender.send_request(request).await.unwrap()
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn answer(&self, request: Request<Full<Bytes>>) -> Answer {
        self.answer_at(self.address(), request).await
    }

    /// The same at another of its listeners.
    pub(crate) async fn answer_at(
        &self,
        address: SocketAddr,
        request: Request<Full<Bytes>>,
    ) -> Answer {
        let (head, body) = Self::send_at(address, request).await.into_parts();
        Answer {
            status: head.status,
            headers: head.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    /// The records of what the provider got for that path; others, such as lists of models that
    /// the instance asks for by itself, are left out.
    pub(crate) fn seen(&self, path: &str) -> Vec<Record> {
        let mut log = self.sim.log();
        log.retain(|r| r.target.contains(path));
        log
    }

    /// The request log, newest first.
    pub(crate) async fn ledger(&self) -> Vec<Entry> {
        let store = self.app.store();
        store.flush().await.unwrap();
        let mut rows: Vec<Entry> = Vec::new();
        loop {
            let filter = LedgerFilter {
                before: rows.last().map(|row| row.id),
                limit: fairlane::store::ledger::PAGE,
                ..LedgerFilter::default()
            };
            let page = store.requests(filter).await.unwrap();
            if page.is_empty() {
                return rows;
            }
            rows.extend(page);
        }
    }

    /// Posts JSON with the key, and reads the whole answer.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.answer(post(path, body.to_string())).await
    }

    /// Ends it, and makes sure that nothing was left behind.
    pub(crate) async fn end(self) {
        self.quiet().await;
        self.app.stop().await.unwrap();
        self.sim.stop().await;
    }
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// Its body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The reason that fairlane gives; empty where the answer is upstream's.
    pub(crate) fn reason(&self) -> &str {
        self.header("x-fairlane-reason")
    }

    /// A header as text; empty where it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }
}

/// The upstream secret of the account that [`Setup::account`] adds under that name.
pub(crate) fn secret_of(name: &str) -> String {
    format!("sk-upstream-number-{name}")
}

/// The SHA-256 of `bytes` as the provider's records have it.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    fairlane::digest::sha256(bytes)
        .iter()
        .fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").unwrap();
            hex
        })
}

/// A request with the key and a JSON content type.
pub(crate) fn post(path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    request(Method::POST, path)
        .header("content-type", "application/json")
        .body(Full::new(body.into()))
        .unwrap()
}

/// A request with the key and without a body.
pub(crate) fn get(path: &str) -> Request<Full<Bytes>> {
    request(Method::GET, path).body(Full::default()).unwrap()
}

/// The beginning of a request with the key.
pub(crate) fn request(method: Method, path: &str) -> http::request::Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost")
        .header("authorization", format!("Bearer {KEY}"))
}

/// A chat request.
pub(crate) fn chat(stream: bool) -> Value {
    json!({"model": "gpt-4o-mini", "stream": stream,
           "messages": [{"role": "user", "content": "say a few words"}]})
}
