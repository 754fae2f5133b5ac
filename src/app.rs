//! The composition root: builds, wires, starts, drains and stops. Only this module names every
//! adapter.
mod admin;
mod chores;

use crate::{
    access::Access,
    api, clock,
    config::Boot,
    crypto, dashboard,
    domain::{ledger::Entry, settings::Name},
    engine::{
        owners::Owners,
        picture::{Picture, Totals},
    },
    gateway::{Gateway, server},
    ports::{Ledger, Upstream},
    reload::Reload,
    standing::Keeper,
    store::{Claim, Store},
    tasks,
    telemetry::metrics::Metrics,
    upstream::Client,
};
use anyhow::Context as _;
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

/// How long a stop waits for the admin side's calls to end; one that is never sent to its end has
/// no end.
const ADMIN_ENDS_WITHIN: Duration = Duration::from_secs(2);

/// A running instance.
pub struct App {
    /// Where clients connect.
    pub address: SocketAddr,
    /// Where dashboard, admin API and metrics are, if not there.
    pub admin_address: Option<SocketAddr>,
    /// What lets somebody elsewhere set the first password; `None` if there is one already.
    pub setup_token: Option<String>,
    gateway: Gateway,
    reload: Reload,
    keeper: Keeper,
    store: Store,
    workers: Arc<server::Workers>,
    readiness: api::Readiness,
    stop: watch::Sender<bool>,
    accepting: Vec<JoinHandle<()>>,
    background: Vec<JoinHandle<()>>,
    _claim: Claim,
}

impl App {
    /// Starts an instance; to be called within a runtime, which serves the admin side.
    pub async fn start(boot: &Boot) -> anyhow::Result<Self> {
        let store = Store::open(&boot.db)?;
        let claim = store.claim()?;
        if let Some(document) = &boot.upstream_keys {
            chores::sync_environment(&store, document).await?;
        }
        let reload = Reload::first(&store, boot.settings.clone())?;
        let (gateway, keeper) = gateway(&store, &reload)?;
        let recalled = chores::recall(&store, &reload);
        let readiness = api::Readiness::default();
        let (access, setup_token) = access(boot, &store, &reload).await?;
        let state = api::State::new(
            store.clone(),
            reload.clone(),
            (gateway.metrics.clone(), gateway.live.clone()),
            readiness.clone(),
            access.clone(),
        );
        let listener = listen(boot.listen).await?;
        let address = listener.local_addr()?;
        let dashboard = dashboard(boot, (&store, &reload), &gateway, (&access, address))?;
        let pages = dashboard::router(dashboard.clone());
        let (stop, stopped) = watch::channel(false);
        let mut accepting = Vec::new();
        let (elsewhere, admin_address) = match boot.admin_listen {
            None => (api::router(state).fallback_service(pages), None),
            Some(address) => {
                let router = api::own_listener(state.clone()).fallback_service(pages);
                let (bound, task) = admin::serve(address, router, stopped.clone()).await?;
                accepting.push(task);
                (api::health(state), Some(bound))
            }
        };
        let tls = boot.tls.as_ref();
        let plan = server::Plan {
            gateway: gateway.clone(),
            elsewhere: admin::hand_over(elsewhere),
            tls: tls.map(|(c, k)| crypto::acceptor(c, k)).transpose()?,
        };
        let workers = Arc::new(server::Workers::start(cores(), &plan, &Clients)?);
        accepting.push(accept(&workers, listener, stopped));
        let mut background = chores::background(&store, &reload, &keeper);
        background.push(tasks::spawn("fullness", dashboard.watch_fullness()));
        background.push(tasks::spawn("earlier use", recalled));
        Ok(Self {
            address,
            admin_address,
            setup_token,
            gateway,
            reload,
            keeper,
            store,
            workers,
            readiness,
            stop,
            accepting,
            background,
            _claim: claim,
        })
    }

    /// Requests in flight, leases held and requests parked: what must be nothing at rest.
    pub fn in_flight(&self) -> (usize, usize, usize) {
        let (leases, waiters) = self.gateway.configuration.admission().counts();
        (self.gateway.live.count(), leases, waiters)
    }

    /// How full the pool is.
    pub fn totals(&self) -> Totals {
        Picture::take(&self.gateway.configuration, clock::unix_millis()).totals
    }

    /// The store, for those that look at an instance from inside its process.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Stops: refuses new work, lets what runs go on for the grace, then cuts off what is left,
    /// writes everything down and closes.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.readiness.drain();
        self.gateway.configuration.admission().close();
        let grace = {
            let settings = self.gateway.configuration.settings();
            Duration::from_secs(settings.integer(Name::ShutdownGraceSeconds))
        };
        if tokio::time::timeout(grace, self.gateway.live.drained())
            .await
            .is_err()
        {
            self.gateway.live.cut_off();
            let left = self.gateway.live.count();
            tracing::warn!(
                left,
                "requests were still running at the end of the grace and are cut off"
            );
        }
        self.stop.send_replace(true);
        for mut task in self.accepting {
            if tokio::time::timeout(ADMIN_ENDS_WITHIN, &mut task)
                .await
                .is_err()
            {
                task.abort();
                task.await.ok();
            }
        }
        for task in self.background {
            task.abort();
        }
        if let Err(error) = self.keeper.write(&self.store, &self.reload).await {
            tracing::error!(%error, "what upstream said of the pool last could not be kept");
        }
        let workers = Arc::into_inner(self.workers);
        let store = self.store.clone();
        let closed = crate::blocking::run(move || {
            if let Some(workers) = workers {
                workers.stop();
            }
            store.close();
        });
        closed
            .await
            .context("the program ended before everything was written")
    }
}

/// Who may operate, and what lets somebody elsewhere set the first password.
async fn access(
    boot: &Boot,
    store: &Store,
    reload: &Reload,
) -> anyhow::Result<(Access, Option<String>)> {
    let access = Access::new(
        store.clone(),
        reload.clone(),
        boot.trusted_proxies.clone(),
        boot.public_url.clone(),
    );
    if let Some(password) = &boot.admin_password {
        access.set_first_password(password.expose()).await?;
    }
    let setup_token = access.offer_set_up().await?;
    Ok((access, setup_token))
}

/// What the dashboard's pages share, for the listener that they are on.
fn dashboard(
    boot: &Boot,
    (store, reload): (&Store, &Reload),
    gateway: &Gateway,
    (access, address): (&Access, SocketAddr),
) -> anyhow::Result<dashboard::State> {
    let parts = dashboard::Parts {
        store: store.clone(),
        reload: reload.clone(),
        live: gateway.live.clone(),
        access: access.clone(),
        upstream: Arc::new(Client::default()),
        clients: dashboard::Clients {
            address,
            is_tls: boot.tls.is_some(),
            is_shared: boot.admin_listen.is_none(),
        },
    };
    Ok(dashboard::State::new(parts)?)
}

/// The gateway, with what an earlier process learnt of the pool.
fn gateway(store: &Store, reload: &Reload) -> anyhow::Result<(Gateway, Keeper)> {
    let metrics = Metrics::default();
    let observed = metrics.clone();
    store.observe_writes(Box::new(move |took| observed.store_committed(took)));
    let ledger = Arc::new(StoreLedger {
        store: store.clone(),
        reload: reload.clone(),
    });
    let keeper = Keeper::new(metrics.clone());
    let admission = reload.configuration().admission();
    let kept = store.cooldowns_blocking(crate::clock::unix_millis())?;
    let kept = kept
        .into_iter()
        .filter_map(|(s, m, kept)| Some((s, m, kept?)));
    admission.restore(kept);
    admission.watched_by(Arc::new(keeper.clone()));
    let configuration = reload.configuration().clone();
    let owners = Owners::new(Arc::new(store.clone()));
    let told = (ledger as Arc<dyn Ledger>, Arc::new(keeper.clone()) as _);
    let gateway = Gateway::new(configuration, metrics, told, owners);
    Ok((gateway, keeper))
}

fn accept(
    workers: &Arc<server::Workers>,
    listener: TcpListener,
    stopped: watch::Receiver<bool>,
) -> JoinHandle<()> {
    let workers = Arc::clone(workers);
    tasks::spawn("acceptor", async move {
        workers.accept(listener, stopping(stopped)).await;
    })
}

/// One thread of the data plane for each core.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}"))
}

async fn stopping(mut stopped: watch::Receiver<bool>) {
    // The sender goes only after it has said so.
    let _ = stopped.wait_for(|stop| *stop).await;
}

/// A client of its own for each thread.
struct Clients;

impl server::UpstreamFactory for Clients {
    fn make(&self) -> (Arc<dyn Upstream>, Box<dyn Fn() + Send>) {
        let client = Client::default();
        let tidied = client.clone();
        (Arc::new(client), Box::new(move || tidied.sweep()))
    }
}

/// Records go to the store, unless none are to be kept.
struct StoreLedger {
    store: Store,
    reload: Reload,
}

impl Ledger for StoreLedger {
    fn keep(&self, entry: Box<Entry>) {
        let settings = self.reload.configuration().settings();
        if settings.integer(Name::RequestLogRetentionDays) > 0 {
            self.store.try_log(entry);
        }
    }
}
