//! What the operator can put right by hand, should it ever be needed.
//!
//! Invariant: what is done stands in the audit log; what cannot be written down is not done.
use super::super::{
    acting::Acting,
    error::{ApiError, Code},
    input::{Param, Params},
    routes::{Route, Schema},
    schema::{
        self, Field,
        Type::{Integer, Words},
    },
};
use crate::domain::admission::LeaseId;
use axum::Json;
use serde_json::{Value, json};

#[rustfmt::skip]
const PARAMS: &[Param] = &[
    Param { name: "action", about: "reset-semaphores counts every slot anew from the leases that are held and lets in whoever can be; release-lease gives back what one lease holds, while its request runs on; reset-limiter empties a credential's adaptive limiter." },
    Param { name: "lease", about: "With release-lease: which, as in lease_7." },
    Param { name: "credential", about: "With reset-limiter: whose." },
];

#[rustfmt::skip]
const DONE: &[Field] = &[
    Field::read("action", Words(&["reset-semaphores", "release-lease"]), "What was done."),
];

#[rustfmt::skip]
const FOUND: &[Field] = &[
    Field::read("slots_corrected", Integer, "With reset-semaphores: slots that had been counted wrongly."),
    Field::read("granted", Integer, "With reset-semaphores: waiting requests that were let in."),
];

pub(super) fn routes() -> Vec<Route> {
    let about = "Puts right by hand what should never be wrong.";
    vec![
        Route::post("/concurrency", about, act)
            .asks(PARAMS)
            .gives("ConcurrencyAction"),
    ]
}

pub(super) fn schemas() -> Vec<Schema> {
    let schema = schema::answer_with(DONE, FOUND);
    vec![("ConcurrencyAction".to_owned(), schema)]
}

enum Action {
    ResetSemaphores,
    ReleaseLease,
    ResetLimiter,
}

async fn act(acting: Acting, params: Params) -> Result<Json<Value>, ApiError> {
    params.check(PARAMS)?;
    let accepted = "reset-semaphores, release-lease or reset-limiter";
    let action = params.read("action", accepted, |word| match word {
        "reset-semaphores" => Some(Action::ResetSemaphores),
        "release-lease" => Some(Action::ReleaseLease),
        "reset-limiter" => Some(Action::ResetLimiter),
        _ => None,
    })?;
    match action {
        Some(Action::ResetSemaphores) => reset_semaphores(acting).await,
        Some(Action::ReleaseLease) => release_lease(acting, &params).await,
        Some(Action::ResetLimiter) => {
            let message = "no credential has an adaptive limiter, so there is none to reset";
            Err(ApiError::new(Code::NotFound, message))
        }
        None => {
            let message = format!("say what to do: {accepted}");
            Err(ApiError::new(Code::InvalidQuery, message).at("action"))
        }
    }
}

async fn reset_semaphores(Acting(state): Acting) -> Result<Json<Value>, ApiError> {
    let admission = state.reload().configuration().admission();
    let (leases, waiters) = admission.counts();
    let detail = format!("{leases} leases, {waiters} waiting");
    let audited = state
        .store()
        .audit("reset_semaphores", "admission".to_owned(), detail);
    audited.await?;
    let healed = admission.recount();
    Ok(Json(json!({
        "action": "reset-semaphores",
        "slots_corrected": healed.slots,
        "granted": healed.granted,
    })))
}

async fn release_lease(Acting(state): Acting, params: &Params) -> Result<Json<Value>, ApiError> {
    let lease: Option<LeaseId> =
        params.read("lease", "a lease, as in lease_7", |text| text.parse().ok())?;
    let lease = lease
        .ok_or_else(|| ApiError::new(Code::InvalidQuery, "say which, as in lease_7").at("lease"))?;
    let admission = state.reload().configuration().admission();
    let (_, held, _) = admission.picture();
    let gone = || ApiError::new(Code::NotFound, "no such lease is held");
    let held = held.iter().find(|held| held.lease == lease);
    let detail = held.ok_or_else(gone)?.holder.to_string();
    let audited = state
        .store()
        .audit("release_lease", lease.to_string(), detail);
    audited.await?;
    if !admission.evict(lease) {
        return Err(gone());
    }
    Ok(Json(json!({ "action": "release-lease" })))
}
