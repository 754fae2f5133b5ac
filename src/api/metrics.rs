//! `GET /metrics`: what the code counted, and what only a look at this moment can tell.
use super::{
    State,
    error::{ApiError, Code},
};
use crate::{clock, engine::picture::Picture, telemetry::metrics::Snapshot};
use axum::{
    extract,
    response::{IntoResponse as _, Response},
};
use http::header;

/// The format that the encoder writes, by its registered name.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) async fn metrics(
    extract::State(state): extract::State<State>,
) -> Result<Response, ApiError> {
    let configuration = state.reload().configuration();
    let admission = configuration.admission();
    state.metrics().breakers(&admission.breakers());
    let picture = Picture::take(configuration, clock::unix_millis());
    let accounts = picture.pool.accounts().iter().zip(&picture.accounts);
    state
        .metrics()
        .account_leases(accounts.map(|(account, on)| {
            let used = on.used;
            (account.id, [used.streams, used.creates, used.jobs])
        }));
    let text = state
        .metrics()
        .render(snapshot(&state, &picture))
        .map_err(|error| {
            tracing::error!(%error, "the metrics could not be written");
            ApiError::new(Code::Internal, "the metrics could not be written")
        })?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response())
}

fn snapshot(state: &State, picture: &Picture) -> Snapshot {
    let totals = &picture.totals;
    Snapshot {
        stream_capacity: totals.capacity,
        streams_in_flight: totals.in_flight,
        waiters: totals.waiters as u64,
        live_requests: state.live().count() as u64,
        ledger_dropped: state.store().ledger_dropped(),
        owner_rows_dropped: state.store().owners_dropped(),
    }
}
