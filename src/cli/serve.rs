//! `fairlane serve`: the appliance.
use crate::{app::App, config::Boot, telemetry::log};
use tokio::signal::unix::{SignalKind, signal};

pub(super) fn run(boot: Boot) -> anyhow::Result<()> {
    let _log = log::start(boot.log.clone(), boot.log_format);
    let runtime = runtime()?;
    let ended = runtime.block_on(serve(boot));
    // After a second signal nothing is waited for, blocking work included.
    runtime.shutdown_background();
    ended
}

/// The runtime of the admin side and of background work; the data plane has its own threads.
pub(super) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("admin")
        .enable_all()
        .build()
}

async fn serve(boot: Boot) -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let app = App::start(&boot).await?;
    let scheme = if boot.tls.is_some() { "https" } else { "http" };
    let db = boot.db.display();
    tracing::info!(address = %format!("{scheme}://{}", app.address), %db, "fairlane is ready");
    if let Some(address) = app.admin_address {
        tracing::info!(address = %format!("http://{address}"), "admin API and metrics");
    }
    tokio::select! {
        _ = interrupt.recv() => (),
        _ = terminate.recv() => (),
    }
    tracing::info!("stopping; a second signal ends it at once");
    tokio::select! {
        stopped = app.stop() => stopped,
        _ = interrupt.recv() => anyhow::bail!("stopped at once by a second signal"),
        _ = terminate.recv() => anyhow::bail!("stopped at once by a second signal"),
    }
}
