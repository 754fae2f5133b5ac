//! The metrics, in Prometheus' text format under the prefix `fairlane_`.
//!
//! Invariant: the set of label values is bounded by the code and the pool, never by what clients
//! send.
use crate::domain::{
    breaker::Breaker,
    dispatch::{Cause, Moved, Provenance, meaning::Meaning},
    ids::{AccountId, EndpointId},
    protocol::Protocol,
    reason::Reason,
};
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Metric, Registry},
};
use std::{fmt, sync::Arc, time::Duration};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Answered {
    protocol: &'static str,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Spoken {
    protocol: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Kind {
    kind: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Proven {
    provenance: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Caused {
    cause: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Ended {
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct AtEndpoint {
    endpoint: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfAccount {
    account: String,
    kind: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Direction {
    direction: &'static str,
}

/// What only the scrape itself can find out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Ordinary stream capacity, or `None` where some account is unlimited.
    pub stream_capacity: Option<u64>,
    /// Streams in flight.
    pub streams_in_flight: u64,
    /// Requests parked.
    pub waiters: u64,
    /// Requests in flight.
    pub live_requests: u64,
    /// Ledger rows dropped since the start.
    pub ledger_dropped: u64,
    /// Rows of owners dropped since the start.
    pub owner_rows_dropped: u64,
}

/// The registry and the handles that the code counts with; cheap to clone.
#[derive(Clone)]
pub struct Metrics(Arc<Handles>);

struct Handles {
    registry: Registry,
    requests: Family<Answered, Counter>,
    request_seconds: Family<Spoken, Histogram, fn() -> Histogram>,
    first_byte_seconds: Histogram,
    wait_seconds: Histogram,
    cap_rejections: Family<Kind, Counter>,
    fair_share_rejections: Counter,
    account_leases: Family<OfAccount, Gauge>,
    heals: Family<Kind, Counter>,
    failures: Family<Proven, Counter>,
    failovers: Family<Caused, Counter>,
    cooldowns: Counter,
    probes: Family<Ended, Counter>,
    breakers: Family<AtEndpoint, Gauge>,
    tokens: Family<Direction, Counter>,
    store_write_seconds: Histogram,
    stream_capacity: Gauge,
    streams_in_flight: Gauge,
    waiters: Gauge,
    live_requests: Gauge,
    ledger_dropped: Gauge,
    owner_rows_dropped: Gauge,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

/// From a refused connection to the longest generation, in seconds.
const LONG: [f64; 12] = [
    0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1200.0,
];

/// From a page in the cache to a disk that hangs, in seconds.
const SHORT: [f64; 9] = [0.0001, 0.0005, 0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0];

fn long() -> Histogram {
    Histogram::new(LONG)
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("fairlane");
        let r = &mut registry;
        let long_family = || Family::new_with_constructor(long as fn() -> Histogram);
        let store_writes = Histogram::new(SHORT);
        let handles = Handles {
            requests: put(r, "requests", "Requests answered", Family::default()),
            request_seconds: put(r, "request_seconds", "From arrival to end", long_family()),
            first_byte_seconds: put(r, "upstream_first_byte_seconds", FIRST_BYTE, long()),
            wait_seconds: put(r, "wait_seconds", "Time parked for capacity", long()),
            cap_rejections: put(r, "account_cap_rejections", CAPPED, Family::default()),
            fair_share_rejections: put(
                r,
                "api_key_fair_share_rejections",
                SHARED,
                Counter::default(),
            ),
            account_leases: put(r, "account_leases", HELD, Family::default()),
            heals: put(r, "watchdog_heals", HEALED, Family::default()),
            failures: put(r, "egress_failures", UNANSWERED, Family::default()),
            failovers: put(r, "failovers", MOVED, Family::default()),
            cooldowns: put(r, "cooldowns", COOLED, Counter::default()),
            probes: put(r, "probes", PROBED, Family::default()),
            breakers: put(r, "breaker_state", BREAKER, Family::default()),
            tokens: put(r, "tokens", "Tokens as upstream counted", Family::default()),
            store_write_seconds: put(r, "store_write_seconds", COMMIT, store_writes),
            stream_capacity: put(r, "stream_pool_capacity", CAPACITY, Gauge::default()),
            streams_in_flight: put(r, "stream_pool_inflight", "Streams held", Gauge::default()),
            waiters: put(r, "waiters", "Requests parked", Gauge::default()),
            live_requests: put(r, "live_requests", "Requests in flight", Gauge::default()),
            ledger_dropped: put(r, "ledger_dropped_total", DROPPED, Gauge::default()),
            owner_rows_dropped: put(r, "owner_rows_dropped_total", LOST, Gauge::default()),
            registry,
        };
        Self(Arc::new(handles))
    }
}

const FIRST_BYTE: &str = "From arrival to the first byte of the answer";
const CAPPED: &str = "Requests refused because every candidate was at a cap";
const SHARED: &str = "Requests that a client key's share of a congested pool held back";
const HELD: &str = "Slots held on each account";
const HEALED: &str = "What was found to be wrong and put right";
const UNANSWERED: &str = "Attempts that got no answer";
const MOVED: &str = "Requests that went on to another account";
const COOLED: &str = "Limits met that began or prolonged a cooldown";
const PROBED: &str = "Single requests let through after a cooldown, by how they ended";
const BREAKER: &str = "0 passing, 1 probing, 2 resting";
const COMMIT: &str = "From asking for a change to its commit";
const CAPACITY: &str = "Streams that ordinary requests may hold, -1 where unlimited";
const DROPPED: &str = "Rows of the request log that were dropped under pressure";
const LOST: &str = "Owners of responses that were not stored, under pressure";

/// Registers a metric and gives the handle to count with.
fn put<M: Clone + Metric>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

impl Metrics {
    /// A request was answered.
    pub fn answered(&self, protocol: Protocol, status: u16, took: Duration) {
        let protocol = protocol.name();
        // Whatever upstream invents, there are no more than these.
        let status = status.clamp(100, 599);
        self.0
            .requests
            .get_or_create(&Answered { protocol, status })
            .inc();
        self.0
            .request_seconds
            .get_or_create(&Spoken { protocol })
            .observe(took.as_secs_f64());
    }

    /// The first byte of an answer came.
    pub fn first_byte(&self, after: Duration) {
        self.0.first_byte_seconds.observe(after.as_secs_f64());
    }

    /// A request was parked for so long.
    pub fn waited(&self, time: Duration) {
        self.0.wait_seconds.observe(time.as_secs_f64());
    }

    /// A request was refused by fairlane.
    pub fn refused(&self, reason: Reason) {
        let kind = match reason {
            Reason::AccountStreamCap => "stream",
            Reason::AccountCreateCap => "create",
            Reason::AccountJobCap => "job",
            Reason::CredentialCap => "credential",
            _ => return,
        };
        self.0.cap_rejections.get_or_create(&Kind { kind }).inc();
    }

    /// A request was held back because its key holds its share of a congested pool; once each.
    pub fn fair_share_denied(&self) {
        self.0.fair_share_rejections.inc();
    }

    /// So many of a kind had gone wrong and were put right: slots that were counted wrongly, waiters
    /// that could have been let in.
    pub fn healed(&self, kind: &'static str, many: u64) {
        self.0.heals.get_or_create(&Kind { kind }).inc_by(many);
    }

    /// What is held on each account now: streams, creates, jobs.
    pub fn account_leases(&self, held: impl IntoIterator<Item = (AccountId, [u64; 3])>) {
        // Accounts that are gone are shown no more.
        self.0.account_leases.clear();
        for (account, slots) in held {
            for (kind, slots) in ["stream", "create", "job"].into_iter().zip(slots) {
                let account = account.to_string();
                let label = OfAccount { account, kind };
                let slots = i64::try_from(slots).unwrap_or(i64::MAX);
                self.0.account_leases.get_or_create(&label).set(slots);
            }
        }
    }

    /// An attempt got no answer.
    pub fn attempt_failed(&self, provenance: Provenance) {
        let provenance = provenance.name();
        self.0.failures.get_or_create(&Proven { provenance }).inc();
    }

    /// A request goes on to another edge.
    pub fn moved(&self, why: Moved) {
        let cause = match why {
            Moved::Failure(Cause::Connection) => "connection",
            Moved::Failure(Cause::HeaderTimeout) => "header_timeout",
            Moved::Failure(Cause::NotSpoken) => "not_spoken",
            Moved::Refusal(Meaning::Limited(_)) => "limited",
            Moved::Refusal(Meaning::AuthRefused) => "auth",
            Moved::Refusal(Meaning::BillingRefused) => "billing",
            Moved::Refusal(Meaning::Refused { .. }) => "refused",
            Moved::Refusal(Meaning::OriginUnreached) => "origin_unreached",
            Moved::Refusal(Meaning::Failed | Meaning::Accepted | Meaning::ClientsFault) => "failed",
        };
        self.0.failovers.get_or_create(&Caused { cause }).inc();
    }

    /// A limit was met.
    pub fn cooled(&self) {
        self.0.cooldowns.inc();
    }

    /// The single request after a cooldown ended.
    pub fn probed(&self, outcome: &'static str) {
        self.0.probes.get_or_create(&Ended { outcome }).inc();
    }

    /// How the breakers stand now.
    pub fn breakers(&self, standing: &[(EndpointId, Breaker)]) {
        // Endpoints that are gone are shown no more.
        self.0.breakers.clear();
        for (endpoint, breaker) in standing {
            let value = match breaker {
                Breaker::Passing { .. } => 0,
                Breaker::Due | Breaker::Probing { .. } => 1,
                Breaker::Resting { .. } => 2,
            };
            let endpoint = endpoint.to_string();
            self.0
                .breakers
                .get_or_create(&AtEndpoint { endpoint })
                .set(value);
        }
    }

    /// Upstream counted tokens.
    pub fn tokens(&self, input: u64, output: u64) {
        for (direction, count) in [("input", input), ("output", output)] {
            if count > 0 {
                let label = Direction { direction };
                self.0.tokens.get_or_create(&label).inc_by(count);
            }
        }
    }

    /// The store committed.
    pub fn store_committed(&self, took: Duration) {
        self.0.store_write_seconds.observe(took.as_secs_f64());
    }

    /// Everything, in Prometheus' text format.
    pub fn render(&self, now: Snapshot) -> Result<String, fmt::Error> {
        let gauge = |gauge: &Gauge, value: u64| {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        match now.stream_capacity {
            Some(capacity) => gauge(&self.0.stream_capacity, capacity),
            None => {
                self.0.stream_capacity.set(-1);
            }
        }
        gauge(&self.0.streams_in_flight, now.streams_in_flight);
        gauge(&self.0.waiters, now.waiters);
        gauge(&self.0.live_requests, now.live_requests);
        gauge(&self.0.ledger_dropped, now.ledger_dropped);
        gauge(&self.0.owner_rows_dropped, now.owner_rows_dropped);
        let mut text = String::new();
        encode(&mut text, &self.0.registry)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_labels_are_as_documented() {
        let metrics = Metrics::default();
        metrics.answered(Protocol::OpenAi, 200, Duration::from_millis(3));
        metrics.refused(Reason::AccountStreamCap);
        metrics.fair_share_denied();
        metrics.healed("count", 2);
        metrics.account_leases([(AccountId::from_u128(1), [3, 1, 0])]);
        metrics.attempt_failed(Provenance::NotDispatched);
        metrics.moved(Moved::Failure(Cause::Connection));
        metrics.tokens(3, 0);
        metrics.first_byte(Duration::from_millis(1));
        metrics.waited(Duration::from_millis(1));
        metrics.store_committed(Duration::from_millis(1));
        let text = metrics.render(Snapshot::default()).unwrap();
        let mut named: Vec<&str> = text
            .lines()
            .filter(|l| !l.contains("_bucket") && !l.starts_with("# HELP"))
            .collect();
        // Those of one name come in no order.
        named.sort_unstable();
        insta::assert_snapshot!(named.join("\n"));
    }
}
