//! The composition root: builds, wires, starts, drains and stops. Only this module names every
//! adapter.
use crate::{
    access::Access,
    api, clock,
    config::Boot,
    crypto, dashboard,
    domain::{
        ledger::Entry,
        pool::{
            Credential,
            document::{Change, ChangeKind, Document, Mode},
        },
        settings::Name,
    },
    engine::{
        owners::Owners,
        picture::{Picture, Totals},
    },
    gateway::{Elsewhere, Gateway, Reply, server},
    peer::Peer,
    ports::{Ledger, Upstream},
    reload::Reload,
    standing::{self, Keeper},
    store::{Claim, Store},
    tasks,
    telemetry::metrics::Metrics,
    upstream::Client,
};
use anyhow::Context as _;
use axum::{Router, extract::ConnectInfo};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};
use tower::ServiceExt as _;

/// How often rows that are too old are looked for.
const PRUNE_EVERY: Duration = Duration::from_mins(10);

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
            sync_environment(&store, document).await?;
        }
        let reload = Reload::first(&store, boot.settings.clone())?;
        let (gateway, keeper) = gateway(&store, &reload)?;
        let recalled = recall(&store, &reload);
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
                let (bound, task) = serve_admin(address, router, stopped.clone()).await?;
                accepting.push(task);
                (api::health(state), Some(bound))
            }
        };
        let tls = boot.tls.as_ref();
        let plan = server::Plan {
            gateway: gateway.clone(),
            elsewhere: hand_over(elsewhere),
            tls: tls.map(|(c, k)| crypto::acceptor(c, k)).transpose()?,
        };
        let workers = Arc::new(server::Workers::start(cores(), &plan, &Clients)?);
        accepting.push(accept(&workers, listener, stopped));
        let mut background = background(&store, &reload, &keeper);
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

/// What goes on beside the requests.
fn background(store: &Store, reload: &Reload, keeper: &Keeper) -> Vec<JoinHandle<()>> {
    let admission = reload.configuration().admission().clone();
    let (kept, tested) = (keeper.clone(), Arc::new(Client::default()));
    vec![
        tasks::spawn("reload", reload.clone().watch()),
        tasks::spawn("prune", prune(store.clone(), reload.clone())),
        tasks::spawn("admission time", admission.keep_time()),
        tasks::spawn("keeper", kept.keep(store.clone(), reload.clone())),
        tasks::spawn(
            "credential tests",
            standing::retest(
                store.clone(),
                reload.clone(),
                tested,
                standing::Pace::default(),
            ),
        ),
    ]
}

/// Lets the limits of client keys know, from now on, that an earlier process may have counted too.
fn recall(store: &Store, reload: &Reload) -> impl Future<Output = ()> + Send + use<> {
    let store = store.clone();
    reload.configuration().allowance().recall(move |wanted| {
        let store = store.clone();
        async move { store.earlier_use(wanted).await }
    })
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

async fn serve_admin(
    address: SocketAddr,
    router: Router,
    stopped: watch::Receiver<bool>,
) -> anyhow::Result<(SocketAddr, JoinHandle<()>)> {
    let listener = listen(address).await?;
    let bound = listener.local_addr()?;
    let router = router.layer(axum::middleware::map_request(name_peer));
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    let task = tasks::spawn("admin listener", async move {
        let serving = axum::serve(listener, service).with_graceful_shutdown(stopping(stopped));
        if let Err(error) = serving.await {
            tracing::error!(%error, "the admin listener ended");
        }
    });
    Ok((bound, task))
}

/// Says who is there, as the main listener does.
async fn name_peer(
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    mut request: axum::extract::Request,
) -> axum::extract::Request {
    let is_tls = false;
    request.extensions_mut().insert(Peer { address, is_tls });
    request
}

/// Runs the admin side's router on the runtime that is current now, whichever thread asks.
fn hand_over(router: Router) -> Elsewhere {
    let runtime = tokio::runtime::Handle::current();
    Arc::new(move |request: Request<Incoming>| {
        let router = router.clone();
        let _on = runtime.enter();
        let (sender, answer) = tokio::sync::oneshot::channel();
        tasks::spawn("admin request", async move {
            let answered = router.oneshot(request.map(axum::body::Body::new)).await;
            let Ok(response) = answered;
            // The client may have left meanwhile.
            let _ = sender.send(response.map(|b| Reply::foreign(MapError(b))));
        });
        Box::pin(async move {
            answer.await.unwrap_or_else(|_| {
                let mut response = Response::new(Reply::whole("internal error\n"));
                *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                response
            })
        })
    })
}

/// An axum body with an `io::Error`, as the gateway's bodies have it.
struct MapError(axum::body::Body);

impl http_body::Body for MapError {
    type Data = bytes::Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, io::Error>>> {
        std::pin::Pin::new(&mut self.0)
            .poll_frame(cx)
            .map_err(io::Error::other)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.0.size_hint()
    }
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

async fn prune(store: Store, reload: Reload) {
    let mut ticks = tokio::time::interval(PRUNE_EVERY);
    loop {
        ticks.tick().await;
        let days = {
            let settings = reload.configuration().settings();
            settings.integer(Name::RequestLogRetentionDays)
        };
        let kept_ms = i64::try_from(days * 24 * 3600 * 1000).unwrap_or(i64::MAX);
        let now = crate::clock::unix_millis();
        let before = now.saturating_sub(kept_ms);
        match store.prune_ledger(before).await {
            Ok(0) => (),
            Ok(rows) => tracing::info!(rows, "old rows of the request log were removed"),
            Err(error) => {
                tracing::warn!(%error, "old rows of the request log could not be removed");
            }
        }
        match store.prune_owners(now).await {
            Ok(0) => (),
            Ok(rows) => tracing::info!(rows, "owners of what upstream has forgotten were removed"),
            Err(error) => tracing::warn!(%error, "old owners could not be removed"),
        }
    }
}

/// Brings the upstream secrets of the environment into the pool, and lets those drain that it
/// brought before and no longer lists.
async fn sync_environment(store: &Store, document: &Document) -> anyhow::Result<()> {
    let store = store.acting_as("environment");
    let plan = store.import(document.clone(), Mode::Sync).await?;
    for warning in &plan.warnings {
        tracing::warn!("{warning}");
    }
    let drained = |c: &&Change<Credential>| c.kind == ChangeKind::Drained;
    for change in plan.credentials.iter().filter(drained) {
        let credential = &*change.value.name;
        tracing::info!(
            credential,
            "drains: the environment no longer lists its secret"
        );
    }
    Ok(())
}
