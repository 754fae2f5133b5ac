//! The demo's traffic: people, volleys and batch jobs as HTTP clients at a modest pace.
//!
//! Invariant: it is an ordinary client. It knows a base URL and secrets, speaks HTTP to loopback
//! only, and learns no more than any client would.
use std::{
    collections::BTreeMap,
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::{mpsc, watch};

use super::bell::{Bell, WaitedInVain};

mod client;
mod people;

/// How the holder of a key behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// A few people, each with a short streamed question every few seconds.
    Interactive,
    /// Volleys of streams at once, and rest between them, as agents do.
    Bursty,
    /// Whole answers, one after the other, all the time.
    Batch,
    /// So many who each have one stream after the other, without a rest.
    Steady(u64),
}

/// Traffic that is to be made.
#[derive(Clone)]
pub struct Traffic {
    /// Where to: `http://`, an address of loopback or `localhost`, and a port.
    pub base_url: String,
    /// Who: a name to be shown, the secret, and how its holder behaves.
    pub keys: Vec<(String, String, Profile)>,
}

/// A base URL that traffic is not sent to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("demo traffic goes to http://, a loopback address and a port, not to {0:?}")]
pub struct NotLoopback(pub String);

/// What became of the requests so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Answered completely.
    pub ok: u64,
    /// Refused, by the code in `x-fairlane-reason`, or by the status where there was none.
    pub refused: BTreeMap<String, u64>,
    /// Not answered, or not to the end.
    pub failed: u64,
    /// Under way.
    pub in_flight: u64,
    /// Tokens in the answers, as far as they said.
    pub tokens: u64,
}

impl Counts {
    /// All refusals, whatever the reason.
    pub fn refusals(&self) -> u64 {
        self.refused.values().sum()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ok, {} in flight, {} failed, {} tokens",
            self.ok, self.in_flight, self.failed, self.tokens
        )?;
        for (reason, count) in &self.refused {
            write!(f, ", {count} {reason}")?;
        }
        Ok(())
    }
}

/// Where the traffic stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// By the keys' names, in their order.
    pub keys: Vec<(String, Counts)>,
}

impl Snapshot {
    /// All keys together.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        for (_, counts) in &self.keys {
            total.ok += counts.ok;
            total.failed += counts.failed;
            total.in_flight += counts.in_flight;
            total.tokens += counts.tokens;
            for (reason, count) in &counts.refused {
                *total.refused.entry(reason.clone()).or_default() += count;
            }
        }
        total
    }
}

/// Running traffic. It stops when this is dropped.
pub struct TrafficHandle {
    desk: Arc<Desk>,
    stop: watch::Sender<bool>,
    ended: mpsc::Receiver<()>,
}

impl Traffic {
    /// Starts the traffic on the current runtime.
    ///
    /// # Errors
    /// When the base URL is not one of loopback.
    pub fn start(self) -> Result<TrafficHandle, NotLoopback> {
        let address = loopback(&self.base_url).ok_or(NotLoopback(self.base_url))?;
        let names = self
            .keys
            .iter()
            .map(|(name, ..)| (name.clone(), Counts::default()));
        let desk = Arc::new(Desk {
            address,
            counts: Mutex::new(names.collect()),
            bell: Bell::default(),
        });
        let (stop, stopping) = watch::channel(false);
        let (alive, ended) = mpsc::channel(1);
        for (index, (_, secret, profile)) in self.keys.into_iter().enumerate() {
            for number in 0..people::number_of(profile) {
                let (alive, mut stopping) = (alive.clone(), stopping.clone());
                let person = people::Person {
                    desk: Arc::clone(&desk),
                    key: index,
                    secret: secret.clone(),
                    profile,
                    number,
                };
                crate::tasks::spawn("demo-traffic", async move {
                    tokio::select! {
                        () = person.live() => {}
                        _ = stopping.changed() => {}
                    }
                    drop(alive);
                });
            }
        }
        Ok(TrafficHandle { desk, stop, ended })
    }
}

impl TrafficHandle {
    /// Where it stands now.
    pub fn snapshot(&self) -> Snapshot {
        self.desk.snapshot()
    }

    /// Waits until it stands as wished.
    ///
    /// # Errors
    /// When half a minute does not bring it about.
    pub async fn wait_for(
        &self,
        wish: impl Fn(&Snapshot) -> bool,
    ) -> Result<Snapshot, WaitedInVain> {
        let look = || Some(self.snapshot()).filter(&wish);
        let describe = || format!("{:#?}", self.snapshot());
        self.desk.bell.wait(look, describe).await
    }

    /// Breaks off what is under way; returns when nothing is.
    pub async fn stop(mut self) -> Snapshot {
        self.stop.send_replace(true);
        while self.ended.recv().await.is_some() {}
        self.snapshot()
    }
}

impl Drop for TrafficHandle {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

/// What all who make traffic share.
struct Desk {
    address: SocketAddr,
    counts: Mutex<Vec<(String, Counts)>>,
    bell: Bell,
}

impl Desk {
    fn snapshot(&self) -> Snapshot {
        let keys = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        Snapshot { keys: keys.clone() }
    }

    fn count(&self, key: usize, change: impl FnOnce(&mut Counts)) {
        let mut keys = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, counts)) = keys.get_mut(key) {
            change(counts);
        }
        drop(keys);
        self.bell.ring();
    }
}

/// The address of a base URL, if it is on this machine.
fn loopback(base_url: &str) -> Option<SocketAddr> {
    let authority = base_url.strip_prefix("http://")?.trim_end_matches('/');
    if let Some(port) = authority.strip_prefix("localhost:") {
        return Some((IpAddr::from(Ipv4Addr::LOCALHOST), port.parse().ok()?).into());
    }
    let address: SocketAddr = authority.parse().ok()?;
    address.ip().is_loopback().then_some(address)
}

/// A random time in a range of milliseconds.
fn between(least_ms: u64, most_ms: u64) -> Duration {
    let random = crate::entropy::bytes();
    let random = random.first_chunk().map_or(0, |n| u64::from_le_bytes(*n));
    let span = most_ms.saturating_sub(least_ms) + 1;
    Duration::from_millis(least_ms + random % span)
}

#[cfg(test)]
mod tests;
