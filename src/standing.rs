//! Keeps what upstream's answers do to the pool: cooldowns outlive the process, refused credentials
//! and unpaid accounts are disabled, and refused credentials are tested again by themselves.
//!
//! Invariants: whoever reports something never waits; what is reported is kept in the order of its
//! coming, and nothing of it is lost while the process runs, since a later report of the same thing
//! replaces the earlier. A test enables only what upstream's refusal has disabled.
use crate::{
    clock::{Instant, unix_millis},
    domain::{
        admission::{Healed, Note, Subject},
        cooldown::Kept,
        ids::{AccountId, CredentialId},
        pool::{Credential, DisabledReason, Fingerprint, Pool, State},
        protocol::Protocol,
        retest,
    },
    engine::probe::{Target, Verdict, probe},
    ports::{PoolWatch, Upstream},
    reload::Reload,
    store::{Store, StoreError, standing::Change},
    telemetry::metrics::Metrics,
};
use futures_util::StreamExt as _;
use std::{
    collections::{BTreeSet, HashMap},
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;

/// How many credentials are tested at once.
const TESTS_AT_ONCE: usize = 8;

/// How many limits wait to be written down at most: evidence, of which a part is enough.
const LIMITS_AT_MOST: usize = 4096;

/// How long to wait before what the disk refused is tried again.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// How often it is looked whether a test is due.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// What is to be kept; cheap to clone.
#[derive(Clone)]
pub struct Keeper(Arc<Shared>);

struct Shared {
    metrics: Metrics,
    pending: Mutex<Pending>,
    is_pending: Notify,
    /// Held while something is written.
    turn: tokio::sync::Mutex<()>,
}

/// What cools: a subject, or one model of it.
type Cools = (Subject, Option<Arc<str>>);

/// What is left of a cooldown, if anything, and when that was reported, in milliseconds since 1970.
type Reported = (Option<Kept>, i64);

/// What is not on the disk yet. Bounded by the pool, since each thing is here once.
#[derive(Default)]
struct Pending {
    cooldowns: HashMap<Cools, Reported>,
    refused: BTreeSet<(CredentialId, Fingerprint)>,
    unpaid: BTreeSet<AccountId>,
    /// Limits met, and when; evidence alone, of which some may be dropped.
    limits: BTreeSet<(CredentialId, i64)>,
}

impl PoolWatch for Keeper {
    fn noted(&self, note: &Note) {
        match note {
            Note::Cooled {
                subject,
                model,
                kept,
            } => {
                self.0.metrics.cooled();
                tracing::warn!(
                    subject = %Shown(*subject),
                    model = model.as_deref(),
                    seconds = kept.ends_in_ms.div_ceil(1000),
                    "upstream asks to wait: cools"
                );
                self.cooldown(*subject, model.clone(), Some(*kept));
            }
            Note::Opened { subject, model } => {
                tracing::info!(subject = %Shown(*subject), model = model.as_deref(), "cools no more");
                self.cooldown(*subject, model.clone(), None);
            }
            Note::Probed { outcome } => self.0.metrics.probed(outcome.name()),
            Note::HeldBack {
                request,
                key,
                share,
            } => {
                self.0.metrics.fair_share_denied();
                tracing::info!(
                    %request, %key,
                    mine = share.mine, share = share.streams(),
                    weight = share.weight, weights = share.weights,
                    in_flight = share.in_flight, capacity = share.capacity,
                    threshold_pct = share.threshold_pct,
                    "the pool is congested and the key holds its share: the request waits"
                );
            }
            Note::Tripped(endpoint) => {
                tracing::warn!(%endpoint, "too many failures in a row: the endpoint rests");
            }
            Note::Closed(endpoint) => tracing::info!(%endpoint, "the endpoint is back"),
            Note::Healed(Healed { slots, granted }) => {
                self.0.metrics.healed("count", *slots);
                self.0.metrics.healed("waiter", *granted);
                tracing::error!(
                    slots,
                    granted,
                    "slots were counted wrongly: they are counted rightly now, and whoever waited for them is let in"
                );
            }
        }
    }

    fn limit_met(&self, credential: CredentialId) {
        let mut pending = self.lock();
        if pending.limits.len() < LIMITS_AT_MOST {
            pending.limits.insert((credential, unix_millis()));
            drop(pending);
            self.0.is_pending.notify_one();
        }
    }

    fn credential_refused(&self, credential: CredentialId, secret: Fingerprint) {
        self.lock().refused.insert((credential, secret));
        self.0.is_pending.notify_one();
    }

    fn billing_refused(&self, accounts: &[AccountId]) {
        self.lock().unpaid.extend(accounts);
        self.0.is_pending.notify_one();
    }
}

impl Keeper {
    /// Nothing to keep yet.
    pub fn new(metrics: Metrics) -> Self {
        Self(Arc::new(Shared {
            metrics,
            pending: Mutex::default(),
            is_pending: Notify::new(),
            turn: tokio::sync::Mutex::default(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.0
            .pending
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn cooldown(&self, subject: Subject, model: Option<Arc<str>>, kept: Option<Kept>) {
        let change = (kept, unix_millis());
        self.lock().cooldowns.insert((subject, model), change);
        self.0.is_pending.notify_one();
    }

    /// Writes down what is reported, for ever.
    pub async fn keep(self, store: Store, reload: Reload) {
        loop {
            self.0.is_pending.notified().await;
            while let Err(error) = self.write(&store, &reload).await {
                tracing::error!(%error, "what upstream said of the pool could not be kept; it is tried again");
                tokio::time::sleep(TRY_AGAIN_AFTER).await;
            }
        }
    }

    /// Writes down what has been reported by now; on an error, or if that is given up midway, it
    /// stays reported.
    pub async fn write(&self, store: &Store, reload: &Reload) -> Result<(), StoreError> {
        // Whoever writes last, at the end, waits for what another has taken and not written.
        let _turn = self.0.turn.lock().await;
        let mut taken = Taken {
            pending: mem::take(&mut *self.lock()),
            keeper: self,
        };
        write(&taken.pending, store, reload).await?;
        taken.pending = Pending::default();
        Ok(())
    }
}

/// What is being written; goes back unless it was.
struct Taken<'k> {
    pending: Pending,
    keeper: &'k Keeper,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let unwritten = mem::take(&mut self.pending);
        self.keeper.lock().put_back(unwritten);
    }
}

impl Pending {
    /// What was reported meanwhile is newer.
    fn put_back(&mut self, taken: Self) {
        for (subject, change) in taken.cooldowns {
            self.cooldowns.entry(subject).or_insert(change);
        }
        self.refused.extend(taken.refused);
        self.unpaid.extend(taken.unpaid);
        self.limits.extend(taken.limits);
    }
}

async fn write(taken: &Pending, store: &Store, reload: &Reload) -> Result<(), StoreError> {
    let now_ms = unix_millis();
    // Spans were right when they were reported.
    let change = |((subject, model), (kept, at)): (&Cools, &Reported)| {
        let gone = u64::try_from(now_ms - at).unwrap_or(0);
        let kept = kept.map(|kept| Kept {
            ends_in_ms: kept.ends_in_ms.saturating_sub(gone),
            told_in_ms: kept.told_in_ms.map(|ms| ms.saturating_sub(gone)),
            ..kept
        });
        (*subject, model.clone(), kept)
    };
    let changes: Vec<Change> = taken.cooldowns.iter().map(change).collect();
    if !changes.is_empty() {
        store.keep_cooldowns(now_ms, changes).await?;
    }
    if !taken.limits.is_empty() {
        let limits = taken.limits.iter().copied().collect();
        store.keep_limits(limits).await?;
    }
    let mut disabled = Vec::new();
    for (id, secret) in &taken.refused {
        if store.refuse(*id, *secret).await? {
            disabled.push((Subject::Credential(*id), DisabledReason::Auth));
        }
    }
    for id in &taken.unpaid {
        let (subject, reason) = (Subject::Account(*id), DisabledReason::Billing);
        if store.disable(subject, reason).await? {
            disabled.push((subject, reason));
        }
    }
    for (subject, reason) in &disabled {
        tracing::warn!(subject = %Shown(*subject), reason = reason.name(), "disabled: upstream refuses it");
    }
    if !disabled.is_empty() {
        reload.now().await?;
    }
    Ok(())
}

struct Shown(Subject);

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Subject::Account(id) => id.fmt(f),
            Subject::Credential(id) => id.fmt(f),
        }
    }
}

/// How often refused credentials are tested.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How often it is looked whether a test is due.
    pub look_every: Duration,
    /// How long to wait before the test that follows so many earlier ones.
    pub wait: fn(u32) -> Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            look_every: LOOK_EVERY,
            wait: |done| Duration::from_millis(retest::wait_ms(done)),
        }
    }
}

/// When each refused credential is tested next.
#[derive(Default)]
struct Schedule {
    pace: Pace,
    next: HashMap<CredentialId, (u32, Instant)>,
}

impl Schedule {
    /// Follows the pool, and gives those that are due. Each is counted as tested.
    fn due(&mut self, pool: &Pool, now: Instant) -> Vec<CredentialId> {
        let refused = pool.credentials().iter().filter(|c| is_refused(c));
        let refused: BTreeSet<CredentialId> = refused.map(|c| c.id).collect();
        self.next.retain(|id, _| refused.contains(id));
        let after = |done| now + (self.pace.wait)(done);
        let mut due = Vec::new();
        for id in refused {
            let (done, at) = self.next.entry(id).or_insert_with(|| (0, after(0)));
            if *at <= now {
                *done += 1;
                *at = after(*done);
                due.push(id);
            }
        }
        due
    }
}

fn is_refused(credential: &Credential) -> bool {
    credential.state == State::Disabled(DisabledReason::Auth)
}

/// Tests refused credentials when they are due, for ever.
pub async fn retest(store: Store, reload: Reload, upstream: Arc<dyn Upstream>, pace: Pace) {
    let mut schedule = Schedule {
        pace,
        ..Schedule::default()
    };
    loop {
        tokio::time::sleep(pace.look_every).await;
        let pool = Arc::clone(&reload.configuration().pool());
        let due = schedule.due(&pool, Instant::now());
        let tests = due.into_iter().map(|id| works(&pool, id, &*upstream));
        let tested: Vec<(CredentialId, bool)> = futures_util::stream::iter(tests)
            .buffer_unordered(TESTS_AT_ONCE)
            .collect()
            .await;
        for (id, _) in tested.into_iter().filter(|(_, works)| *works) {
            if let Err(error) = enable(&store, &reload, id).await {
                tracing::error!(%error, credential = %id, "a credential that works again could not be enabled");
            }
        }
    }
}

async fn enable(store: &Store, reload: &Reload, id: CredentialId) -> Result<(), StoreError> {
    let subject = Subject::Credential(id);
    if store.enable(subject, DisabledReason::Auth).await? {
        tracing::info!(credential = %id, "enabled: upstream accepts it again");
        reload.now().await?;
    }
    Ok(())
}

/// Whether upstream accepts a credential, by a call that costs nothing. Where the protocol has none
/// it is not known to.
async fn works(pool: &Pool, id: CredentialId, upstream: &dyn Upstream) -> (CredentialId, bool) {
    for edge in pool.edges_of(id) {
        let edge = pool.edge(edge);
        let endpoint = pool.endpoint(edge);
        let free = endpoint.protocols.iter().find(|p| has_free_call(**p));
        let Some(protocol) = free.copied() else {
            continue;
        };
        let target = Target {
            base_url: &endpoint.base_url,
            protocol,
            secret: &pool.credential(edge).secret,
        };
        let probed = probe(upstream, target).await;
        return (id, probed.verdict == Verdict::Works);
    }
    (id, false)
}

/// Whether there is a list of models to ask for.
const fn has_free_call(protocol: Protocol) -> bool {
    match protocol {
        Protocol::OpenAi | Protocol::Anthropic | Protocol::Gemini => true,
        Protocol::OpenAiVideos | Protocol::FalQueue => false,
    }
}

#[cfg(test)]
mod tests;
