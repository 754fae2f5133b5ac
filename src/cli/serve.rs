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

/// What a newcomer has to do next.
fn invitation(dashboard: &str, token: &str) -> String {
    format!(
        "
  Set fairlane up in the browser: {dashboard}
  On this machine that is all. From elsewhere it asks for this token, once:

  {token}
"
    )
}

async fn serve(boot: Boot) -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let app = App::start(&boot).await?;
    let scheme = if boot.tls.is_some() { "https" } else { "http" };
    let db = boot.db.display();
    tracing::info!(address = %format!("{scheme}://{}", app.address), %db, "fairlane is ready");
    let dashboard = app.admin_address.map_or_else(
        || format!("{scheme}://{}/", app.address),
        |address| format!("http://{address}/"),
    );
    if let Some(token) = &app.setup_token {
        // Not to the log: it is kept, and the token is a secret.
        eprintln!("{}", invitation(&dashboard, token));
    }
    if let Some(address) = app.admin_address {
        tracing::info!(address = %format!("http://{address}"), "dashboard, admin API and metrics");
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
