//! Who holds what at this moment: the pool's totals, how each account, credential and endpoint stands,
//! every key, everyone who waits, every lease, and every request with what it waits for.
//!
//! Invariant: every number comes from the picture, which the dashboard shows as well.
mod held;
mod reset;
mod standing;

use super::{
    State,
    error::ApiError,
    routes::{Route, Schema},
    schema::{
        self, Field, NULLABLE_INTEGER,
        Type::{Flag, Integer, List, Ref},
    },
};
use crate::{clock, engine::picture::Picture};
use axum::{Json, extract};
use serde_json::{Value, json};

#[rustfmt::skip]
const POOL: &[Field] = &[
    Field::read("stream_capacity", NULLABLE_INTEGER, "Streams that ordinary requests may hold; null where some account is unlimited."),
    Field::read("streams_in_flight", Integer, "Streams held on accounts that take work."),
    Field::read("stream_reserve", Integer, "Streams beyond the capacity that only those may hold who come back to a running response."),
    Field::read("serving_stream_capacity", NULLABLE_INTEGER, "Of the capacity, what can serve now: nothing of it cools or rests. Shares are parts of this. Null where it is unlimited."),
    Field::read("congestion_threshold_pct", Integer, "From how many percent of the serving capacity on it is congested; 0 means never."),
    Field::read("congested", Flag, "Whether keys are held to their shares now."),
    Field::read("leases", Integer, "Requests that hold slots."),
    Field::read("waiters", Integer, "Requests parked for capacity."),
    Field::read("oldest_wait_ms", NULLABLE_INTEGER, "How long the one has waited that waits longest; null if none waits."),
];

#[rustfmt::skip]
const CONCURRENCY: &[Field] = &[
    Field::read("pool", Ref("PoolTotals"), "The pool as a whole."),
    Field::read("accounts", List(&Ref("AccountStanding")), "Every account."),
    Field::read("credentials", List(&Ref("CredentialStanding")), "Every credential."),
    Field::read("endpoints", List(&Ref("EndpointStanding")), "Every endpoint."),
    Field::read("keys", List(&Ref("KeyStanding")), "Every client key, and whoever else holds or waits."),
    Field::read("waiters", List(&Ref("WaiterGroup")), "Requests that wait, by key and reason, the longest wait first."),
    Field::read("leases", List(&Ref("Lease")), "Every lease, oldest first."),
    Field::read("live_requests", List(&Ref("LiveRequest")), "Requests in flight, oldest first."),
];

pub(super) fn routes() -> Vec<Route> {
    let mut routes = vec![
        Route::get(
            "/concurrency",
            "Who holds what and who waits for what, at this moment.",
            concurrency,
        )
        .gives("Concurrency"),
    ];
    routes.extend(reset::routes());
    routes
}

pub(super) fn schemas() -> Vec<Schema> {
    let mut schemas = vec![
        ("Concurrency".to_owned(), schema::answer(CONCURRENCY)),
        ("PoolTotals".to_owned(), schema::answer(POOL)),
    ];
    schemas.extend(held::schemas());
    schemas.extend(standing::schemas());
    schemas.extend(reset::schemas());
    schemas
}

async fn concurrency(
    extract::State(state): extract::State<State>,
) -> Result<Json<Value>, ApiError> {
    let picture = Picture::take(state.reload().configuration(), clock::unix_millis());
    let settings = state.reload().configuration().settings();
    let standings = standing::Standings::new(&picture, &settings);
    let totals = &picture.totals;
    let live = picture.live(state.live().snapshot());
    Ok(Json(json!({
        "pool": {
            "stream_capacity": totals.capacity,
            "streams_in_flight": totals.in_flight,
            "stream_reserve": totals.reserve,
            "serving_stream_capacity": totals.serving,
            "congestion_threshold_pct": totals.threshold_pct,
            "congested": totals.is_congested(),
            "leases": totals.leases,
            "waiters": totals.waiters,
            "oldest_wait_ms": totals.oldest_wait_ms,
        },
        "accounts": standings.accounts(),
        "credentials": standings.credentials(),
        "endpoints": standings.endpoints(),
        "keys": held::keys(&picture),
        "waiters": held::waiters(&picture),
        "leases": held::leases(&picture, &live),
        "live_requests": held::requests(&live),
    })))
}
