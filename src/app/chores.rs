//! What goes on beside the requests, and what is done once at the start.
//!
//! Invariant: of what goes on, what fails is told of and tried again at its next turn; what is done at
//! the start must succeed for there to be one.
use crate::{
    domain::{
        pool::{
            Credential,
            document::{Change, ChangeKind, Document, Mode},
        },
        settings::Name,
    },
    reload::Reload,
    standing::{self, Keeper},
    store::Store,
    tasks,
    upstream::Client,
};
use std::{sync::Arc, time::Duration};
use tokio::task::JoinHandle;

/// How often rows that are too old are looked for.
const PRUNE_EVERY: Duration = Duration::from_mins(10);

/// What goes on beside the requests.
pub(super) fn background(store: &Store, reload: &Reload, keeper: &Keeper) -> Vec<JoinHandle<()>> {
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
pub(super) fn recall(store: &Store, reload: &Reload) -> impl Future<Output = ()> + Send + use<> {
    let store = store.clone();
    reload.configuration().allowance().recall(move |wanted| {
        let store = store.clone();
        async move { store.earlier_use(wanted).await }
    })
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
pub(super) async fn sync_environment(store: &Store, document: &Document) -> anyhow::Result<()> {
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
