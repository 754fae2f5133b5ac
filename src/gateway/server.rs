//! Threads of the data plane, and the connections that they serve.
//!
//! Each thread has a runtime of its own and its own upstream connections, so that a request stays
//! on one core; they share admission and configuration only. One task accepts for all of them and
//! deals connections out in turn, which keeps the threads equally busy whatever the kernel does.
use super::{Door, Gateway, opening::Opening, socket::Tether};
use crate::{gateway::Elsewhere, peer::Peer, ports::Upstream, tasks};
use http::{Request, header};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use socket2::SockRef;
use std::{
    convert::Infallible, io, net::TcpStream as StdStream, pin::pin, sync::Arc, thread,
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
};
use tokio_rustls::TlsAcceptor;

/// How long a connection may take to send a request's head, idle time between requests included:
/// above the 75 s that clients count on.
const HEAD_WITHIN: Duration = Duration::from_secs(90);

/// A peer that vanished without a word is found within about a minute.
const PROBE_AFTER: Duration = Duration::from_secs(30);
const PROBE_EVERY: Duration = Duration::from_secs(10);

/// Connections that were accepted and not yet taken by their thread.
const HANDOVER: usize = 256;

/// A request is over when its last byte has been handed to its connection. So long may it take
/// from there to a client that is slow to read, once nothing else keeps the thread.
const LAST_BYTES_WITHIN: Duration = Duration::from_secs(5);

/// The same where requests are being cut off, and their connections end with the thread alone.
const LAST_BYTES_CUT_OFF_WITHIN: Duration = Duration::from_secs(1);

/// How often resting upstream connections are looked through.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// What a thread needs to make its way to providers.
pub trait UpstreamFactory: Send + Sync {
    /// A way of its own for one thread, and what keeps it tidy.
    fn make(&self) -> (Arc<dyn Upstream>, Box<dyn Fn() + Send>);
}

/// The threads of the data plane.
#[derive(Debug)]
pub struct Workers {
    inboxes: Vec<mpsc::Sender<StdStream>>,
    stop: watch::Sender<bool>,
    threads: Vec<thread::JoinHandle<()>>,
}

/// What every thread gets.
#[derive(Clone)]
pub struct Plan {
    /// What all share.
    pub gateway: Gateway,
    /// What answers everything that is not for the data plane.
    pub elsewhere: Elsewhere,
    /// The certificate, where the listener speaks TLS.
    pub tls: Option<TlsAcceptor>,
}

impl Workers {
    /// Starts `count` threads.
    pub fn start(count: usize, plan: &Plan, upstreams: &dyn UpstreamFactory) -> io::Result<Self> {
        let (stop, stopped) = watch::channel(false);
        let mut workers = Self {
            inboxes: Vec::new(),
            stop,
            threads: Vec::new(),
        };
        for n in 0..count.max(1) {
            let (inbox, connections) = mpsc::channel(HANDOVER);
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            let (upstream, sweep) = upstreams.make();
            let elsewhere = Arc::clone(&plan.elsewhere);
            let door = Arc::new(Door::new(plan.gateway.clone(), upstream, elsewhere));
            let tls = plan.tls.clone();
            let stopped = stopped.clone();
            let thread = thread::Builder::new()
                .name(format!("data-plane-{n}"))
                .spawn(move || {
                    runtime.block_on(work(door, tls, connections, (stopped, sweep)));
                    // A name that is still being resolved would be waited for otherwise.
                    runtime.shutdown_background();
                })?;
            workers.inboxes.push(inbox);
            workers.threads.push(thread);
        }
        Ok(workers)
    }

    /// Accepts connections and deals them out until `stopped` resolves.
    pub async fn accept(&self, listener: TcpListener, stopped: impl Future<Output = ()>) {
        let mut stopped = pin!(stopped);
        let mut turn = 0;
        loop {
            let accepted = tokio::select! {
                () = &mut stopped => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    turn += 1;
                    self.deal(turn, stream).await;
                }
                // Out of descriptors, most likely; the ones in use will be given back.
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    async fn deal(&self, turn: usize, stream: TcpStream) {
        let Some(inbox) = self.inboxes.get(turn % self.inboxes.len()) else {
            return;
        };
        match stream.into_std() {
            // A thread that is gone took its reason to the log.
            Ok(stream) => drop(inbox.send(stream).await),
            Err(error) => tracing::debug!(%error, "a connection went before it was served"),
        }
    }

    /// Lets idle connections go and waits for the threads to end. What still runs is cut off, so
    /// this comes after the grace; what has ended is written to its end if its client reads on.
    pub fn stop(self) {
        self.stop.send_replace(true);
        drop(self.inboxes);
        for thread in self.threads {
            if thread.join().is_err() {
                tracing::error!("a thread of the data plane panicked");
            }
        }
    }
}

async fn work(
    door: Arc<Door>,
    tls: Option<TlsAcceptor>,
    mut connections: mpsc::Receiver<StdStream>,
    (stopped, sweep): (watch::Receiver<bool>, Box<dyn Fn() + Send>),
) {
    let mut tidying = tokio::time::interval(SWEEP_EVERY);
    let (alive, mut ended) = mpsc::channel::<()>(1);
    loop {
        tokio::select! {
            connection = connections.recv() => match connection {
                Some(connection) => {
                    let alive = alive.clone();
                    let tether = Tether::new(alive.clone(), stopped.clone());
                    let serving = serve(Arc::clone(&door), tls.clone(), connection, tether);
                    tasks::spawn("connection", async move {
                        serving.await;
                        drop(alive);
                    });
                }
                None => break,
            },
            _ = tidying.tick() => sweep(),
        }
    }
    drop(alive);
    let patience = if door.gateway.live.is_cut_off() {
        LAST_BYTES_CUT_OFF_WITHIN
    } else {
        LAST_BYTES_WITHIN
    };
    if tokio::time::timeout(patience, ended.recv()).await.is_err() {
        tracing::debug!("connections were still open at the end and are closed");
    }
}

async fn serve(door: Arc<Door>, tls: Option<TlsAcceptor>, connection: StdStream, tether: Tether) {
    let stream = match prepare(connection) {
        Ok(stream) => stream,
        Err(error) => {
            tracing::debug!(%error, "a connection went before it was served");
            return;
        }
    };
    let address = match stream.peer_addr() {
        Ok(address) => address,
        Err(error) => {
            tracing::debug!(%error, "a connection went before it was served");
            return;
        }
    };
    let is_tls = tls.is_some();
    let peer = Peer { address, is_tls };
    match tls {
        None => speak(door, stream, peer, tether).await,
        // In a box: a connection without TLS need not keep room for one with it.
        Some(tls) => match tokio::time::timeout(HEAD_WITHIN, Box::pin(tls.accept(stream))).await {
            Ok(Ok(stream)) => Box::pin(speak(door, stream, peer, tether)).await,
            Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
            Err(_) => tracing::debug!("a TLS handshake took too long"),
        },
    }
}

fn prepare(connection: StdStream) -> io::Result<TcpStream> {
    crate::sockets::set_up(&SockRef::from(&connection))?;
    TcpStream::from_std(connection)
}

async fn speak<S>(door: Arc<Door>, stream: S, peer: Peer, mut tether: Tether)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let tied = tether.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        let door = Arc::clone(&door);
        // Most requests have no use for it.
        if request.headers().contains_key(header::UPGRADE) {
            request.extensions_mut().insert(tied.clone());
        }
        async move { Ok::<_, Infallible>(door.handle(request, peer).await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PROBE_AFTER)
        .keep_alive_timeout(PROBE_EVERY);
    let stream = TokioIo::new(Opening::new(stream, HEAD_WITHIN));
    let mut connection = pin!(builder.serve_connection_with_upgrades(stream, service));
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = tether.stopped() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::trace!(%error, "a connection ended early");
    }
}

#[cfg(test)]
mod tests;
