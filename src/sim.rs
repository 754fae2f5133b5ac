//! The simulated provider: the wire shapes of OpenAI, Anthropic and Gemini, scriptable to the byte.
//!
//! The demo, the integration tests and the benchmarks talk to it over TCP as they would to a real
//! provider. Invariant: it lives beside the product. Nothing but the command line and tests may
//! name it, and it names none of the product's code paths.
//!
//! A request goes `connection` -> `request` -> [`rules`] and `tally` -> `provider` -> `plan` ->
//! `wire`, and leaves a [`log`] record. Requests under `/_sim/` go to `control`.
use std::{
    collections::{BTreeMap, HashSet},
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
};

mod act;
mod bell;
mod connection;
mod control;
mod credential;
pub mod log;
mod octets;
mod plan;
mod provider;
mod reply;
mod request;
pub mod rules;
mod shelf;
mod socket;
mod speech;
mod tally;
mod trace;
pub mod traffic;
mod wire;

pub use bell::WaitedInVain;
pub use log::{Closed, Closing, Outcome, Phase, Record, Recording};
pub use rules::{
    Act, Close, Encoding, Expect, Framing, Informational, Match, Octets, PathMatch, Rule,
};
pub use tally::{Limit, Stats};

/// How a simulated provider behaves before anything is scripted.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// How long a model thinks before its first word.
    pub first_delay: Duration,
    /// How long it takes from word to word.
    pub chunk_delay: Duration,
    /// How many words an answer has; `None` for as many as it was asked with.
    pub tokens: Option<usize>,
    /// The only credentials that are accepted; `None` for any that is not empty.
    pub allowed: Option<Vec<String>>,
    /// How much is recorded of each request.
    pub recording: Recording,
    /// The models in its lists. It answers for any other name too.
    pub models: Vec<String>,
    /// How much of a request's body is held; what is beyond is only counted and hashed.
    pub hold_bytes: usize,
    /// Makes ids and timestamps the same on every run, for snapshots.
    pub seed: Option<u64>,
}

/// A model of each protocol that the demo and its traffic use.
pub const CHAT_MODEL: &str = "gpt-4o-mini";
/// Likewise for Anthropic's messages.
pub const MESSAGES_MODEL: &str = "claude-sonnet-4-5";
/// Likewise for Gemini.
pub const GEMINI_MODEL: &str = "gemini-2.5-flash";

impl Default for Config {
    /// A free port on loopback, no waits, nothing recorded: for benchmarks.
    fn default() -> Self {
        let models = [
            CHAT_MODEL,
            "gpt-4o",
            "text-embedding-3-small",
            MESSAGES_MODEL,
            "claude-haiku-4-5",
            GEMINI_MODEL,
            "gemini-2.5-pro",
        ];
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            first_delay: Duration::ZERO,
            chunk_delay: Duration::ZERO,
            tokens: None,
            allowed: None,
            recording: Recording::Off,
            models: models.map(str::to_owned).into(),
            hold_bytes: 16 * 1024 * 1024,
            seed: None,
        }
    }
}

impl Config {
    /// Records everything, bodies included: for tests.
    pub fn recording() -> Self {
        Self {
            recording: Recording::Bodies,
            ..Self::default()
        }
    }

    /// Answers at the pace of a real model: for the demo and for people.
    pub fn lifelike() -> Self {
        Self {
            first_delay: Duration::from_millis(400),
            chunk_delay: Duration::from_millis(35),
            tokens: Some(80),
            ..Self::default()
        }
    }
}

/// What the simulator offers, as text for people: its `Display` is what `GET /` answers.
#[derive(Clone, Copy, Debug)]
pub struct Help;

impl fmt::Display for Help {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(include_str!("sim/help.txt"))
    }
}

/// The simulator. See [`Sim::start`].
#[derive(Clone, Copy, Debug)]
pub struct Sim;

impl Sim {
    /// Starts a simulated provider on the current runtime.
    ///
    /// # Errors
    /// When its address cannot be listened on.
    pub async fn start(config: Config) -> io::Result<SimHandle> {
        let listener = TcpListener::bind(config.listen).await?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared::new(config));
        let (stop, stopping) = watch::channel(false);
        let (alive, ended) = mpsc::channel(1);
        let served = Arc::clone(&shared);
        crate::tasks::spawn("sim", connection::accept(listener, served, stopping, alive));
        Ok(SimHandle {
            addr,
            shared,
            stop,
            ended,
        })
    }
}

/// A running simulator. It stops when this is dropped.
pub struct SimHandle {
    /// Where it listens.
    pub addr: SocketAddr,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    ended: mpsc::Receiver<()>,
}

impl fmt::Debug for SimHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimHandle({})", self.addr)
    }
}

impl SimHandle {
    /// Its base URL, without a slash at the end.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Adds rules behind those that there are.
    pub fn script(&self, rules: impl IntoIterator<Item = Rule>) {
        self.shared.rules.add(rules);
    }

    /// Drops all rules.
    pub fn clear_rules(&self) {
        self.shared.rules.clear();
    }

    /// Sets or lifts an in-flight limit.
    pub fn limit(&self, limit: &Limit) {
        self.shared.tallies.limit(limit);
    }

    /// Sets which credentials are accepted; `None` for any.
    pub fn allow(&self, allowed: Option<Vec<String>>) {
        self.shared.allow(allowed);
    }

    /// Sets how much is recorded from now on.
    pub fn record(&self, level: Recording) {
        self.shared.log.set_level(level);
    }

    /// What was recorded, in the order of arrival.
    pub fn log(&self) -> Vec<Record> {
        self.shared.log.records(0)
    }

    /// The counts of every credential that was seen. Requests without one are under `""`.
    pub fn stats(&self) -> BTreeMap<String, Stats> {
        self.shared.tallies.stats()
    }

    /// Waits until what was recorded is as wished, and returns it.
    ///
    /// # Errors
    /// When half a minute does not bring it about.
    pub async fn wait_for(
        &self,
        wish: impl Fn(&[Record]) -> bool,
    ) -> Result<Vec<Record>, WaitedInVain> {
        let log = &self.shared.log;
        let look = || log.look(|records| wish(records).then(|| records.to_vec()));
        let describe = || format!("{:#?}", log.records(0));
        self.shared.bell.wait(look, describe).await
    }

    /// Waits until the counts of that credential are as wished, and returns them.
    ///
    /// # Errors
    /// When half a minute does not bring it about.
    pub async fn wait_for_stats(
        &self,
        credential: &str,
        wish: impl Fn(&Stats) -> bool,
    ) -> Result<Stats, WaitedInVain> {
        let now = || self.stats().get(credential).copied().unwrap_or_default();
        let look = || Some(now()).filter(&wish);
        let describe = || format!("{:?}", now());
        self.shared.bell.wait(look, describe).await
    }

    /// Drops rules, limits, records, counts and everything that credentials have stored.
    pub fn reset(&self) {
        self.shared.reset();
    }

    /// Ends every connection and stops listening; returns when that is done.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        while self.ended.recv().await.is_some() {}
    }
}

impl Drop for SimHandle {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

/// What every connection reaches.
struct Shared {
    config: Config,
    started: crate::clock::Instant,
    rules: rules::RuleSet,
    log: log::Log,
    tallies: tally::Tallies,
    bell: Arc<bell::Bell>,
    shelves: shelf::Shelves,
    allowed: ArcSwapOption<HashSet<String>>,
    connections: AtomicU64,
    /// Sets this simulator's ids apart from those of any other.
    instance: u64,
    ids: AtomicU64,
}

impl Shared {
    fn new(config: Config) -> Self {
        // Two simulators of one test must never mint the same id; a seed asks for just that.
        let instance = config.seed.unwrap_or_else(|| {
            let random = crate::entropy::bytes();
            random.first_chunk().map_or(0, |n| u64::from_le_bytes(*n))
        });
        let shared = Self {
            started: crate::clock::Instant::now(),
            rules: rules::RuleSet::default(),
            log: log::Log::new(config.recording),
            tallies: tally::Tallies::default(),
            bell: Arc::default(),
            shelves: shelf::Shelves::default(),
            allowed: ArcSwapOption::empty(),
            connections: AtomicU64::new(0),
            instance,
            ids: AtomicU64::new(0),
            config,
        };
        shared.allow(shared.config.allowed.clone());
        shared
    }

    fn allow(&self, allowed: Option<Vec<String>>) {
        let set = allowed.map(|a| Arc::new(a.into_iter().collect()));
        self.allowed.store(set);
    }

    fn is_allowed(&self, credential: &str) -> bool {
        match &*self.allowed.load() {
            Some(allowed) => allowed.contains(credential),
            None => !credential.is_empty(),
        }
    }

    /// A fresh id: the prefix and 24 hexadecimal digits.
    fn id(&self, prefix: &str) -> String {
        let count = self.ids.fetch_add(1, Ordering::Relaxed);
        format!("{prefix}{:016x}{count:08x}", self.instance)
    }

    /// Seconds since 1970, or a fixed moment if there is a seed.
    fn now_seconds(&self) -> i64 {
        match self.config.seed {
            Some(_) => 1_760_000_000,
            None => crate::clock::unix_millis() / 1000,
        }
    }

    /// Milliseconds since the start.
    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn reset(&self) {
        self.rules.clear();
        self.tallies.reset();
        self.log.clear();
        self.shelves.clear();
        self.allow(self.config.allowed.clone());
    }
}

#[cfg(test)]
mod tests;
