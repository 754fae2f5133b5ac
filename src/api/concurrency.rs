//! Who holds what at this moment: the pool's totals, how each account, credential and endpoint stands,
//! and every request with what it waits for.
mod standing;

use super::{
    State,
    error::ApiError,
    routes::{Route, Schema},
    schema::{
        self, Field, NULLABLE_INTEGER,
        Type::{Integer, List, Ref, Text, Time},
    },
};
use crate::{document, engine::live::Progress};
use axum::{Json, extract};
use serde_json::{Value, json};

#[rustfmt::skip]
const POOL: &[Field] = &[
    Field::read("stream_capacity", NULLABLE_INTEGER, "Streams that ordinary requests may hold; null where some account is unlimited."),
    Field::read("streams_in_flight", Integer, "Streams held."),
    Field::read("leases", Integer, "Requests that hold slots."),
    Field::read("waiters", Integer, "Requests parked for capacity."),
];

const LIVE: &[Field] = &[
    Field::read("id", Text, "The request."),
    Field::read("received_at", Time, "When it arrived."),
    Field::read(
        "stage",
        Text,
        "The stage that it reached last: it waits for the one after.",
    ),
    Field::read("age_ms", Integer, "How long ago it arrived."),
];

const CONCURRENCY: &[Field] = &[
    Field::read("pool", Ref("PoolTotals"), "The pool as a whole."),
    Field::read("accounts", List(&Ref("AccountStanding")), "Every account."),
    Field::read(
        "credentials",
        List(&Ref("CredentialStanding")),
        "Every credential.",
    ),
    Field::read(
        "endpoints",
        List(&Ref("EndpointStanding")),
        "Every endpoint.",
    ),
    Field::read(
        "live_requests",
        List(&Ref("LiveRequest")),
        "Requests in flight, oldest first.",
    ),
];

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(
            "/concurrency",
            "The pool's totals and every request in flight.",
            concurrency,
        )
        .gives("Concurrency"),
    ]
}

pub(super) fn schemas() -> Vec<Schema> {
    let mut schemas = vec![
        ("Concurrency".to_owned(), schema::answer(CONCURRENCY)),
        ("PoolTotals".to_owned(), schema::answer(POOL)),
        ("LiveRequest".to_owned(), schema::answer(LIVE)),
    ];
    schemas.extend(standing::schemas());
    schemas
}

async fn concurrency(
    extract::State(state): extract::State<State>,
) -> Result<Json<Value>, ApiError> {
    let configuration = state.reload().configuration();
    let admission = configuration.admission();
    let standings = standing::Standings::new(configuration);
    let (in_flight, capacity) = admission.stream_totals();
    let (leases, waiters) = admission.counts();
    let mut live = state.live().snapshot();
    live.sort_unstable_by_key(|request| request.id);
    Ok(Json(json!({
        "pool": {
            "stream_capacity": capacity,
            "streams_in_flight": in_flight,
            "leases": leases,
            "waiters": waiters,
        },
        "accounts": standings.accounts(),
        "credentials": standings.credentials(),
        "endpoints": standings.endpoints(),
        "live_requests": live.iter().map(|request| show(request)).collect::<Vec<_>>(),
    })))
}

fn show(request: &Progress) -> Value {
    let age = request.received_at.elapsed().as_millis();
    json!({
        "id": request.id.to_string(),
        "received_at": document::format_millis(request.received_unix_ms),
        "stage": request.stage().name(),
        "age_ms": u64::try_from(age).unwrap_or(u64::MAX),
    })
}
