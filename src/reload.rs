//! Keeps the configuration in step with the store: after every change made here, and within a
//! fraction of a second after one made by another process.
//!
//! Invariant: reloads run one at a time and each reads one consistent state, so that a slower one
//! can never put an older configuration over a newer one.
use crate::{
    domain::pool::Pool,
    engine::configuration::Configuration,
    store::{self, Store, StoreError},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Mutex, time::MissedTickBehavior};

/// How often the store is asked whether another process has changed something: one indexed read.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Brings what is stored into force; cheap to clone.
#[derive(Clone, Debug)]
pub struct Reload(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    store: Store,
    configuration: Configuration,
    turn: Mutex<()>,
    seen: AtomicI64,
}

impl Reload {
    /// Reads the configuration for the first time.
    pub fn first(
        store: &Store,
        environment: crate::domain::settings::Layer,
    ) -> Result<Self, StoreError> {
        let (pool, overrides) = store.read_blocking(read)?;
        let configuration =
            Configuration::new(environment, &known(&overrides), Pool::new(pool.contents));
        Ok(Self(Arc::new(Shared {
            store: store.clone(),
            configuration,
            turn: Mutex::new(()),
            seen: AtomicI64::new(pool.version),
        })))
    }

    /// The configuration that is kept in step.
    pub fn configuration(&self) -> &Configuration {
        &self.0.configuration
    }

    /// The version of the stored configuration that is in force.
    pub fn version(&self) -> i64 {
        self.0.seen.load(Ordering::Acquire)
    }

    /// Brings what is stored now into force.
    pub async fn now(&self) -> Result<(), StoreError> {
        let _turn = self.0.turn.lock().await;
        let (pool, overrides) = self.0.store.read(read).await?;
        let version = pool.version;
        // Working out the edges of a large pool takes a while; the runtime need not wait for it.
        let configuration = self.0.configuration.clone();
        let swapped = move || configuration.swap(&known(&overrides), Pool::new(pool.contents));
        let swapped = crate::blocking::run(swapped).await;
        swapped.ok_or(StoreError::Closed)?;
        self.0.seen.store(version, Ordering::Release);
        Ok(())
    }

    /// Looks for changes by others, for ever.
    pub async fn watch(self) {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut was_failing = false;
        loop {
            ticks.tick().await;
            let looked = self.look().await;
            match &looked {
                Err(error) if !was_failing => {
                    tracing::error!(%error, "the configuration could not be read again; the last one stays in force");
                }
                Ok(()) if was_failing => tracing::info!("the configuration can be read again"),
                _ => (),
            }
            was_failing = looked.is_err();
        }
    }

    async fn look(&self) -> Result<(), StoreError> {
        if self.0.store.config_version().await? == self.0.seen.load(Ordering::Acquire) {
            return Ok(());
        }
        self.now().await?;
        tracing::info!("the configuration has changed and is in force");
        Ok(())
    }
}

type State = (store::pool::PoolSnapshot, store::settings::Overrides);

fn read(conn: &rusqlite::Connection) -> Result<State, StoreError> {
    Ok((store::pool::pool(conn)?, store::settings::overrides(conn)?))
}

/// The overrides that this program knows; others, left by another version, are said and skipped.
fn known(overrides: &store::settings::Overrides) -> crate::domain::settings::Layer {
    let (layer, refused) = overrides.layer();
    for row in refused {
        tracing::warn!(
            setting = row.key,
            "a stored setting is not known or not accepted by this version and is left alone"
        );
    }
    layer
}
