//! Whether the process is alive, and whether it should be sent work.
//!
//! Invariant: asking never waits long and costs the disk one small write every few seconds at
//! most, however often it is asked; the answer tells no more than anybody may know.
use super::State;
use crate::{
    clock::Instant,
    store::{Health, Store, StoreError},
};
use axum::{
    extract,
    response::{IntoResponse as _, Response},
};
use http::StatusCode;
use serde_json::json;
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::timeout;

/// How often the disk is tried.
const PROBE_EVERY: Duration = Duration::from_secs(3);

/// How long whoever asks waits for the disk; orchestrators give up soon after.
const PROBE_PATIENCE: Duration = Duration::from_secs(2);

/// A change that waits for longer is a sign that the writer hangs.
const STALLED_AFTER: Duration = Duration::from_secs(5);

/// Says that the process is about to stop; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    /// From now on the process wants no new work.
    pub fn drain(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it wants no new work.
    pub fn is_draining(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// What the last attempt to write came to.
#[derive(Debug, Default)]
pub(super) struct Probe(Mutex<Tried>);

#[derive(Clone, Debug, Default)]
struct Tried {
    at: Option<Instant>,
    failure: Option<Unwritable>,
}

/// Why nothing could be written.
#[derive(Clone, Debug)]
enum Unwritable {
    Error(StoreError),
    TookTooLong,
}

impl Probe {
    /// Tries the disk if that is due; says what the last attempt came to.
    async fn try_if_due(&self, store: &Store) -> Option<Unwritable> {
        if !self.is_due() {
            return self.lock().failure.clone();
        }
        let failure = match timeout(PROBE_PATIENCE, store.probe()).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(Unwritable::Error(error)),
            Err(_) => Some(Unwritable::TookTooLong),
        };
        self.lock().failure.clone_from(&failure);
        failure
    }

    /// Whether it is time; if so, this caller is the one who tries.
    fn is_due(&self) -> bool {
        let now = Instant::now();
        let mut tried = self.lock();
        let is_due = tried.at.is_none_or(|at| now - at >= PROBE_EVERY);
        if is_due {
            tried.at = Some(now);
        }
        is_due
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Tried> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `GET /healthz`.
pub(super) async fn alive() -> &'static str {
    "ok"
}

/// `GET /readyz`.
pub(super) async fn ready(extract::State(state): extract::State<State>) -> Response {
    let probed = state.probe().try_if_due(state.store()).await;
    let health = state.store().health();
    let reasons = reasons(state.readiness(), probed.as_ref(), &health);
    let status = if reasons.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let body = json!({ "ready": reasons.is_empty(), "reasons": reasons });
    (status, axum::Json(body)).into_response()
}

/// Why no work should be sent here: a word for programs, and after it one for people.
fn reasons(readiness: &Readiness, probed: Option<&Unwritable>, health: &Health) -> Vec<String> {
    let mut reasons = Vec::new();
    if readiness.is_draining() {
        reasons.push("draining: the process is stopping and takes no new work".to_owned());
    }
    let is_stalled = matches!(probed, Some(Unwritable::TookTooLong))
        || health.oldest_unanswered.is_some_and(|t| t > STALLED_AFTER);
    if is_stalled {
        reasons.push("writer_stalled: a change has been waiting for the disk too long".to_owned());
    }
    let trouble = match probed {
        Some(Unwritable::Error(error)) => Some(error),
        _ => health.trouble.as_ref(),
    };
    if let Some(error) = trouble {
        let what = match error {
            // The detail may name paths.
            StoreError::Database { fault, .. } => fault.to_string(),
            StoreError::Busy | StoreError::Closed => error.to_string(),
            _ => "the last write failed".to_owned(),
        };
        reasons.push(format!("database_not_writable: {what}"));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Fault;

    fn words(reasons: &[String]) -> Vec<&str> {
        reasons.iter().filter_map(|r| r.split(':').next()).collect()
    }

    fn healthy() -> Health {
        Health {
            queued: 0,
            rows_queued: 0,
            oldest_unanswered: None,
            last_success_at: None,
            trouble: None,
        }
    }

    #[test]
    fn every_trouble_is_a_reason_of_its_own() {
        let readiness = Readiness::default();
        assert!(reasons(&readiness, None, &healthy()).is_empty());
        let full = StoreError::Database {
            fault: Fault::Full,
            detail: "unable to write /secret/place".to_owned(),
        };
        let troubled = Health {
            oldest_unanswered: Some(STALLED_AFTER * 2),
            trouble: Some(full),
            ..healthy()
        };
        readiness.drain();
        let found = reasons(&readiness, None, &troubled);
        assert_eq!(
            words(&found),
            ["draining", "writer_stalled", "database_not_writable"]
        );
        assert!(!found.concat().contains("/secret"), "{found:?}");
    }

    #[test]
    fn a_probe_that_takes_too_long_is_a_stalled_writer() {
        let probed = Unwritable::TookTooLong;
        let found = reasons(&Readiness::default(), Some(&probed), &healthy());
        assert_eq!(words(&found), ["writer_stalled"]);
    }
}
