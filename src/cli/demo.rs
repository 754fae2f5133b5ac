//! `fairlane demo`: the whole appliance on a throw-away database, with a simulated provider, a pool
//! shaped like a real one, client keys, and a paced mix of interactive and bursty traffic.
use crate::{
    access,
    app::App,
    config::Boot,
    document::read_json,
    domain::pool::document::Mode,
    entropy,
    sim::{
        CHAT_MODEL, Config, Sim, SimHandle,
        traffic::{Profile, Traffic, TrafficHandle},
    },
    store::{Store, operator},
    telemetry::log,
};
use anyhow::Context as _;
use serde_json::{Value, json};
use std::{
    io::{IsTerminal as _, Write as _},
    net::SocketAddr,
    path::Path,
    time::Duration,
};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Where clients connect; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Stop by itself after so many seconds.
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
}

/// How often the summary is renewed.
const EVERY: Duration = Duration::from_secs(2);

/// The key that is printed for the newcomer.
const YOURS: &str = "you";

/// Who makes traffic, and how.
const CLIENTS: [(&str, Profile); 4] = [
    ("chat", Profile::Interactive),
    ("editor", Profile::Interactive),
    ("agents", Profile::Bursty),
    ("nightly", Profile::Batch),
];

/// Length of the dashboard's password.
const PASSWORD_CHARACTERS: usize = 12;

/// Streams per account, small enough that a volley of the agents fills them.
const STREAM_LIMIT: u32 = 4;

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let boot = Boot::from_vars(std::iter::empty())?;
    let _log = log::start(tracing_subscriber::EnvFilter::new("error"), boot.log_format);
    super::serve::runtime()?.block_on(demo(boot, arguments))
}

async fn demo(mut boot: Boot, arguments: &Arguments) -> anyhow::Result<()> {
    let dir = tempfile::tempdir().context("no place for the throw-away database")?;
    let sim = Sim::start(Config::lifelike()).await?;
    let keys = Keys::new();
    boot.db = dir.path().join("demo.db");
    boot.listen = arguments.listen;
    let (db, document, secrets) = (boot.db.clone(), pool(&sim, &keys), keys.clone());
    crate::blocking::run(move || fill(&db, &document, &secrets))
        .await
        .context("the throw-away database could not be filled")??;
    let app = App::start(&boot).await.with_context(|| {
        format!(
            "try another address: fairlane demo --listen 127.0.0.1:0 ({})",
            arguments.listen
        )
    })?;
    let base_url = format!("http://{}", app.address);
    introduce(&base_url, &keys);
    let traffic = Traffic {
        base_url,
        keys: keys.traffic(),
    };
    let traffic = traffic.start()?;
    show(&app, &traffic, arguments.seconds).await?;
    traffic.stop().await;
    app.stop().await?;
    sim.stop().await;
    Ok(())
}

/// The secrets of the demo: yours, those of the traffic, one for the admin API, and the dashboard's
/// password.
#[derive(Clone)]
struct Keys {
    yours: String,
    admin: String,
    password: String,
    clients: Vec<String>,
}

impl Keys {
    fn new() -> Self {
        let key = || entropy::secret(entropy::CLIENT_KEY);
        Self {
            yours: key(),
            admin: entropy::secret(entropy::ADMIN_TOKEN),
            password: short_password(),
            clients: CLIENTS.iter().map(|_| key()).collect(),
        }
    }

    fn traffic(&self) -> Vec<(String, String, Profile)> {
        let secrets = self.clients.iter();
        let row = |((name, profile), secret): (&(&str, Profile), &String)| {
            ((*name).to_owned(), secret.clone(), *profile)
        };
        CLIENTS.iter().zip(secrets).map(row).collect()
    }
}

/// Short enough to be typed: it guards a throw-away instance.
fn short_password() -> String {
    entropy::secret("")
        .chars()
        .take(PASSWORD_CHARACTERS)
        .collect()
}

/// A pool shaped like a real one: three accounts, one of them with two credentials, one that only
/// helps out.
fn pool(sim: &SimHandle, keys: &Keys) -> Value {
    let account = |name: &str, priority: i32| json!({"name": name, "stream_limit": STREAM_LIMIT, "priority": priority});
    let credential = |name: &str, account: &str| {
        let secret = entropy::secret("sk-demo-");
        json!({"name": name, "secret": secret, "accounts": [account], "endpoints": ["simulated"]})
    };
    let key = |name: &str, secret: &str| json!({"name": name, "secret": secret});
    let mut all = vec![key(YOURS, &keys.yours)];
    let clients = CLIENTS.iter().zip(&keys.clients);
    all.extend(clients.map(|((name, _), secret)| key(name, secret)));
    json!({
        "endpoints": [{"name": "simulated", "base_url": sim.base_url(),
                       "protocols": ["openai", "anthropic", "gemini"]}],
        "accounts": [account("team-a", 0), account("team-b", 0), account("overflow", 1)],
        "credentials": [credential("a-1", "team-a"), credential("a-2", "team-a"),
                        credential("b-1", "team-b"), credential("overflow-1", "overflow")],
        "keys": all,
    })
}

fn fill(db: &Path, document: &Value, secrets: &Keys) -> anyhow::Result<()> {
    let document = read_json(document.to_string().as_bytes())
        .map_err(crate::store::pool::ImportError::Mistakes)?;
    let store = Store::open(db)?;
    store.import_blocking(document, Mode::Merge)?;
    super::admin::store_token(&store, "demo", &secrets.admin)?;
    let hash = access::hash_blocking(&secrets.password)?;
    store.write_blocking(move |tx| operator::set_password_hash(tx, &hash))?;
    store.close();
    Ok(())
}

fn introduce(base_url: &str, keys: &Keys) {
    println!(
        "fairlane demo: a throw-away instance in front of a simulated provider

  dashboard    {base_url}/
  password     {password}
  client key   {yours}
  admin token  {admin}

Try it:

  curl -N {base_url}/v1/chat/completions -H 'Authorization: Bearer {yours}' \\
    -H 'Content-Type: application/json' \\
    -d '{{\"model\":\"{CHAT_MODEL}\",\"stream\":true,\"messages\":[{{\"role\":\"user\",\"content\":\"Hello\"}}]}}'

  curl {base_url}/api/admin/pool -H 'Authorization: Bearer {admin}'

Ctrl-C ends it, and the database with it.
",
        yours = keys.yours,
        admin = keys.admin,
        password = keys.password,
    );
}

/// Renews the summary until somebody has seen enough.
async fn show(app: &App, traffic: &TrafficHandle, seconds: Option<u64>) -> anyhow::Result<()> {
    let mut ticks = tokio::time::interval(EVERY);
    let end = async {
        match seconds {
            Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(end);
    let mut interrupt = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?;
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let mut drawn = 0;
    loop {
        tokio::select! {
            _ = ticks.tick() => drawn = draw(&summary(app, traffic), drawn)?,
            () = &mut end => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
            _ = terminate.recv() => return Ok(()),
        }
    }
}

/// The state in a few lines of fixed shape.
fn summary(app: &App, traffic: &TrafficHandle) -> Vec<String> {
    let streams = app.streams();
    let of = streams
        .capacity
        .map_or_else(|| "∞".to_owned(), |c| c.to_string());
    let mut lines = vec![
        format!(
            "pool       {:>3} of {of} streams in flight, {} waiting for a slot",
            streams.in_flight, streams.waiting
        ),
        format!(
            "{:10} {:>7} {:>9} {:>8} {:>7} {:>8}",
            "key", "done", "in flight", "refused", "failed", "tokens"
        ),
    ];
    for (name, counts) in &traffic.snapshot().keys {
        lines.push(format!(
            "{name:10} {:>7} {:>9} {:>8} {:>7} {:>8}",
            counts.ok,
            counts.in_flight,
            counts.refusals(),
            counts.failed,
            counts.tokens
        ));
    }
    lines
}

/// Draws over the last summary on a terminal, and below it elsewhere; gives how many lines that
/// were.
fn draw(lines: &[String], drawn: usize) -> std::io::Result<usize> {
    let mut out = std::io::stdout().lock();
    if out.is_terminal() && drawn > 0 {
        write!(out, "\x1b[{drawn}A")?;
    }
    for line in lines {
        if out.is_terminal() {
            write!(out, "\x1b[2K")?;
        }
        writeln!(out, "{line}")?;
    }
    if !out.is_terminal() {
        writeln!(out)?;
    }
    out.flush()?;
    Ok(lines.len())
}
