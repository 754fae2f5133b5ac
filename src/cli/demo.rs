//! `fairlane demo`: the whole appliance on a throw-away database, with a simulated provider, a pool
//! shaped like a real one, client keys, and a paced mix of interactive and bursty traffic.
use crate::{
    access,
    app::App,
    config::Boot,
    document::read_json,
    domain::{
        pool::{KeyLimits, document::Mode},
        settings::{self as setting, Name},
    },
    entropy,
    sim::{
        Act, CHAT_MODEL, Config, Rule, Sim, SimHandle,
        traffic::{Profile, Traffic, TrafficHandle},
    },
    store::{Store, operator, settings},
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

/// Who makes traffic, and how: one key that wants more than there is, eight that together hold half
/// of it, and five with people behind them.
const CLIENTS: [(&str, Profile); 14] = [
    ("agents", Profile::Steady(150)),
    ("build", Profile::Steady(7)),
    ("docs", Profile::Steady(7)),
    ("evals", Profile::Steady(7)),
    ("nightly", Profile::Steady(7)),
    ("review", Profile::Steady(7)),
    ("search", Profile::Steady(7)),
    ("support", Profile::Steady(7)),
    ("triage", Profile::Steady(6)),
    ("chat", Profile::Interactive),
    ("editor", Profile::Interactive),
    ("mobile", Profile::Interactive),
    ("notebook", Profile::Interactive),
    ("voice", Profile::Interactive),
];

/// Limits of their own that some of them have: a little more than their traffic uses in a minute, at
/// once and in a whole day, so that the page shows use against a limit, and refusals stay rare.
const OWN_LIMITS: [(&str, KeyLimits); 2] = [
    (
        "build",
        KeyLimits {
            requests_per_minute: Some(200),
            concurrency: Some(10),
            tokens_per_day: Some(20_000_000),
        },
    ),
    (
        "chat",
        KeyLimits {
            requests_per_minute: Some(40),
            concurrency: Some(4),
            tokens_per_day: Some(3_000_000),
        },
    ),
];

/// Length of the dashboard's password.
const PASSWORD_CHARACTERS: usize = 12;

/// Accounts of the pool, each with so many stream slots as is usual.
const ACCOUNTS: usize = 14;

/// From so many percent on the pool is shared out: what keeps people's requests from waiting.
const FAIR_SHARE_PCT: i64 = 80;

/// Now and then the provider tells one account to wait.
const LIMITED_EVERY: Duration = Duration::from_secs(45);

/// For so many seconds.
const LIMITED_SECONDS: u64 = 15;

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
    let (db, document, secrets) = (boot.db.clone(), pool(&sim.base_url(), &keys), keys.clone());
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
    tokio::select! {
        seen = show(&app, &traffic, arguments.seconds) => seen?,
        () = upset(&sim, &keys.upstream) => (),
    }
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
    /// What the accounts present to the provider.
    upstream: Vec<String>,
}

impl Keys {
    fn new() -> Self {
        let key = || entropy::secret(entropy::CLIENT_KEY);
        Self {
            yours: key(),
            admin: entropy::secret(entropy::ADMIN_TOKEN),
            password: short_password(),
            clients: CLIENTS.iter().map(|_| key()).collect(),
            upstream: (0..ACCOUNTS).map(|_| entropy::secret("sk-demo-")).collect(),
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

/// A pool shaped like a real one: accounts with a credential each, at one provider.
fn pool(base_url: &str, keys: &Keys) -> Value {
    let account = |n: usize| json!({"name": account_name(n)});
    let credential = |n: usize| {
        let name = format!("{}-key", account_name(n));
        json!({"name": name, "secret": keys.upstream.get(n), "accounts": [account_name(n)],
               "endpoints": ["simulated"]})
    };
    let key = |name: &str, secret: &str| {
        let limits = limits_of(name);
        json!({"name": name, "secret": secret, "requests_per_minute": limits.requests_per_minute,
               "concurrency": limits.concurrency, "tokens_per_day": limits.tokens_per_day})
    };
    let mut all = vec![key(YOURS, &keys.yours)];
    let clients = CLIENTS.iter().zip(&keys.clients);
    all.extend(clients.map(|((name, _), secret)| key(name, secret)));
    json!({
        "endpoints": [{"name": "simulated", "base_url": base_url,
                       "protocols": ["openai", "anthropic", "gemini"]}],
        "accounts": (0..ACCOUNTS).map(account).collect::<Vec<_>>(),
        "credentials": (0..ACCOUNTS).map(credential).collect::<Vec<_>>(),
        "keys": all,
    })
}

fn limits_of(name: &str) -> KeyLimits {
    let its = OWN_LIMITS.iter().find(|(limited, _)| *limited == name);
    its.map_or_else(KeyLimits::default, |(_, limits)| *limits)
}

fn account_name(n: usize) -> String {
    format!("team-{:02}", n + 1)
}

/// Lets the provider tell one account after the other to wait, for ever.
async fn upset(sim: &SimHandle, secrets: &[String]) {
    for secret in secrets.iter().cycle() {
        tokio::time::sleep(LIMITED_EVERY).await;
        let limited = Act {
            headers: vec![("retry-after".to_owned(), LIMITED_SECONDS.to_string())],
            ..Act::status(429)
        };
        sim.script([Rule::new(limited).credential(secret).times(1)]);
    }
}

fn fill(db: &Path, document: &Value, secrets: &Keys) -> anyhow::Result<()> {
    let document = read_json(document.to_string().as_bytes())
        .map_err(crate::store::pool::ImportError::Mistakes)?;
    let store = Store::open(db)?;
    store.import_blocking(document, Mode::Merge)?;
    super::admin::store_token(&store, "demo", &secrets.admin)?;
    let hash = access::hash_blocking(&secrets.password)?;
    store.write_blocking(move |tx| operator::set_password_hash(tx, &hash))?;
    let threshold = Name::FairShareCongestionThresholdPct;
    let shared = [(threshold, Some(setting::Value::Integer(FAIR_SHARE_PCT)))];
    store.write_blocking(move |tx| settings::change(tx, 0, &shared))?;
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
    let streams = app.totals();
    let of = streams
        .capacity
        .map_or_else(|| "∞".to_owned(), |c| c.to_string());
    let mut lines = vec![
        format!(
            "pool       {:>3} of {of} streams in flight, {} waiting for a slot",
            streams.in_flight, streams.waiters
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::pool::ClientKey;

    /// The keys as they are imported.
    async fn keys() -> Vec<ClientKey> {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("demo.db")).unwrap();
        let document = pool("http://127.0.0.1:9", &Keys::new()).to_string();
        let document = read_json(document.as_bytes()).unwrap();
        store.import(document, Mode::Merge).await.unwrap();
        let contents = store.pool().await.unwrap().contents;
        contents.keys.iter().map(|key| (**key).clone()).collect()
    }

    #[tokio::test]
    async fn some_keys_have_limits_of_their_own_which_their_requests_at_once_do_not_meet() {
        let keys = keys().await;
        assert_eq!(keys.len(), CLIENTS.len() + 1);
        for key in &keys {
            assert_eq!(key.limits, limits_of(&key.name), "{}", key.name);
        }
        for (name, limits) in OWN_LIMITS {
            assert!(limits.requests_per_minute.is_some() && limits.tokens_per_day.is_some());
            let client = CLIENTS.iter().find(|(client, _)| *client == name);
            let at_once = match client.unwrap().1 {
                Profile::Steady(streams) => streams,
                Profile::Interactive => 3,
                other => unreachable!("{name} is {other:?}"),
            };
            let limit = u64::from(limits.concurrency.unwrap());
            assert!(at_once < limit && limit < 2 * at_once, "{name}");
        }
    }
}
