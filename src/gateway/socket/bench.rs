//! A gateway between peers that tests move by hand, for time that is not real.
//!
//! Invariant: every wire is memory and every wait is on the clock that tests hold, so that minutes
//! pass at once and in the same way each time.
use super::{
    Tether,
    leg::Leg,
    session::{Context, Session},
};
use crate::{
    domain::{
        ledger::Entry,
        pool::{ClientKey, KeyLimits, Pool, edges::sample},
        settings::{Layer, Name, Value as Setting},
    },
    engine::{allowance::Used, configuration::Configuration, owners::Owners},
    gateway::{Door, Elsewhere, Gateway, Reply, nothing::Nothing},
    ports::{Attempt, Ledger, Opened, OpeningSocket, Sending, Started, Upstream},
    tasks,
    telemetry::metrics::Metrics,
};
use futures_util::{SinkExt as _, StreamExt as _};
use http::{HeaderName, HeaderValue, Request, Response};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::DuplexStream,
    sync::{mpsc, watch},
    task::JoinHandle,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, protocol::Role},
};

/// The largest message, in bytes.
pub(super) const LIMIT: u64 = 1 << 20;

/// Longer than anything here lasts. What never comes is found out at once, since no time is real.
const NEVER: Duration = Duration::from_hours(1);

/// More turns of the scheduler than anything takes that no time has to pass for.
const TURNS: usize = 10_000;

/// The events of a turn.
pub(super) const CREATED: &str = r#"{"type":"response.created","response":{"id":"resp_1"}}"#;
pub(super) const DELTA: &str = r#"{"type":"response.output_text.delta","delta":"a"}"#;
pub(super) const COMPLETED: &str = r#"{"type":"response.completed","response":{"id":"resp_1"}}"#;

const SECRET: &str = "fl-key-of-the-bench";

/// Hands the far end of every socket that is asked for to the test.
struct Wires(mpsc::Sender<DuplexStream>);

impl Upstream for Wires {
    fn open_socket<'a>(&'a self, _: Attempt<'a>) -> OpeningSocket<'a> {
        Box::pin(async {
            let (near, far) = tokio::io::duplex(1 << 16);
            self.0.send(far).await.unwrap();
            let agreed = Response::builder().status(101).body(()).unwrap();
            Ok(Opened::Socket(agreed.into_parts().0, Box::new(near)))
        })
    }

    fn send<'a>(&'a self, _: Attempt<'a>, _: &'a mut Started<'_>) -> Sending<'a> {
        unreachable!("sockets alone are asked for")
    }
}

#[derive(Default)]
struct Rows(Mutex<Vec<Entry>>);

impl Ledger for Rows {
    fn keep(&self, entry: Box<Entry>) {
        self.0.lock().unwrap().push(*entry);
    }
}

/// A gateway with one account.
pub(super) struct Bench {
    door: Arc<Door>,
    wires: mpsc::Receiver<DuplexStream>,
    rows: Arc<Rows>,
    stop: watch::Sender<bool>,
}

impl Bench {
    /// With that many ordinary slots; settings are in whole numbers.
    pub(super) fn new(slots: u32, limits: KeyLimits, settings: &[(Name, i64)]) -> Self {
        let mut contents = sample::contents(1);
        contents.accounts[0].stream_limit = Some(slots + 1);
        contents.keys[0] = Arc::new(ClientKey {
            hash: crate::digest::sha256(SECRET.as_bytes()),
            limits,
            ..(*contents.keys[0]).clone()
        });
        let mut overrides = Layer::default();
        for (name, value) in settings {
            overrides.put(*name, Some(Setting::Integer(*value)));
        }
        let pool = Pool::new(contents);
        let configuration = Configuration::new(Layer::default(), &overrides, pool);
        tasks::spawn("time", configuration.admission().clone().keep_time());
        let rows: Arc<Rows> = Arc::default();
        let gateway = Gateway::new(
            configuration,
            Metrics::default(),
            (Arc::clone(&rows) as Arc<dyn Ledger>, Arc::new(Nothing)),
            Owners::new(Arc::new(Nothing)),
        );
        let elsewhere: Elsewhere =
            Arc::new(|_| Box::pin(async { Response::new(Reply::whole("elsewhere")) }));
        let (dialled, wires) = mpsc::channel(16);
        Self {
            door: Arc::new(Door::new(gateway, Arc::new(Wires(dialled)), elsewhere)),
            wires,
            rows,
            stop: watch::Sender::new(false),
        }
    }

    /// A client's socket, opened with these headers besides the key; and the session's end.
    pub(super) async fn client(&self, headers: &[(&str, &str)]) -> (Peer, JoinHandle<()>) {
        let request = Request::get("/v1/responses")
            .header("authorization", format!("Bearer {SECRET}"))
            .body(())
            .unwrap();
        let mut parts = request.into_parts().0;
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            parts
                .headers
                .insert(name, HeaderValue::from_str(value).unwrap());
        }
        let (near, far) = tokio::io::duplex(1 << 16);
        let leg = Leg::new(Box::new(near), Role::Server, LIMIT).await;
        let context = Context {
            door: Arc::clone(&self.door),
            parts,
            limit: LIMIT,
        };
        let tether = Tether::new(mpsc::channel(1).0, self.stop.subscribe());
        let session = Session::new(context, leg).run(tether);
        let ended = tasks::spawn("session", session);
        (Peer::on(far, Role::Client).await, ended)
    }

    /// Upstream's end of the next socket that is asked for.
    pub(super) async fn dialled(&mut self) -> Peer {
        let asked = tokio::time::timeout(NEVER, self.wires.recv()).await;
        let wire = asked.expect("no socket was asked for").unwrap();
        Peer::on(wire, Role::Server).await
    }

    /// Whether a socket was asked for that nobody has looked at.
    pub(super) fn was_dialled(&self) -> bool {
        !self.wires.is_empty()
    }

    /// Leases held, and requests that wait.
    pub(super) fn counts(&self) -> (usize, usize) {
        self.door.gateway.configuration.admission().counts()
    }

    /// Waits, without time passing, until the counts are these.
    pub(super) async fn until(&self, counts: (usize, usize)) {
        for _ in 0..TURNS {
            if self.counts() == counts {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("the counts are {:?}", self.counts());
    }

    /// What the client key has used.
    pub(super) async fn used(&self) -> Used {
        let configuration = &self.door.gateway.configuration;
        let key = configuration.pool().keys()[0].id;
        let used = configuration.allowance().used(&[key]).await;
        used.into_iter().next().unwrap()
    }

    /// The records so far.
    pub(super) fn rows(&self) -> Vec<Entry> {
        self.rows.0.lock().unwrap().clone()
    }
}

/// One end of a socket in a test's hand. It answers pings while it is listened to, and only then.
pub(super) struct Peer {
    pub(super) socket: WebSocketStream<DuplexStream>,
    /// The pings that it has met.
    pub(super) pings: u32,
}

impl Peer {
    async fn on(wire: DuplexStream, role: Role) -> Self {
        Self {
            socket: WebSocketStream::from_raw_socket(wire, role, None).await,
            pings: 0,
        }
    }

    /// The next message that is no ping or pong; nothing at the end.
    pub(super) async fn hear(&mut self) -> Option<Message> {
        loop {
            match self.socket.next().await?.ok()? {
                Message::Ping(_) => self.pings += 1,
                Message::Pong(_) => {}
                message => return Some(message),
            }
        }
    }

    /// The next message as JSON.
    pub(super) async fn event(&mut self) -> Value {
        let heard = tokio::time::timeout(NEVER, self.hear()).await;
        let message = heard
            .expect("nothing was said")
            .expect("the socket has ended");
        serde_json::from_str(message.to_text().unwrap()).unwrap()
    }

    pub(super) async fn say(&mut self, text: impl Into<String>) {
        self.socket.send(Message::text(text.into())).await.unwrap();
    }

    /// Asks for a response.
    pub(super) async fn create(&mut self) {
        let asked = json!({"type": "response.create", "model": "m", "input": "say a word"});
        self.say(asked.to_string()).await;
    }

    /// Listens for so long, in which nothing may be said.
    pub(super) async fn silence(&mut self, time: Duration) {
        if let Ok(heard) = tokio::time::timeout(time, self.hear()).await {
            panic!("{heard:?}");
        }
    }

    /// As upstream: takes a turn, and says each of these after so many seconds.
    pub(super) async fn play(&mut self, events: &[(u64, &str)]) {
        assert_eq!(self.event().await["type"], "response.create");
        for (seconds, event) in events {
            self.silence(Duration::from_secs(*seconds)).await;
            self.say(*event).await;
        }
    }

    /// Listens on in a task of its own until the socket ends. Gives the pings that it has met.
    pub(super) fn listening(mut self) -> (JoinHandle<()>, watch::Receiver<u32>) {
        let (met, pings) = watch::channel(self.pings);
        let task = tasks::spawn("peer", async move {
            while let Some(Ok(message)) = self.socket.next().await {
                met.send_modify(|n| *n += u32::from(message.is_ping()));
            }
        });
        (task, pings)
    }
}
