//! The request log.
use super::{
    State,
    error::ApiError,
    input::{Id, Param, Params},
    page::{self, Page},
    routes::{Route, Schema},
    schema::{
        self, Field, NULLABLE_INTEGER, NULLABLE_TEXT,
        Type::{Integer, List, Ref, Text, Time, Words},
    },
};
use crate::{
    document,
    domain::{
        ids::RequestId,
        ledger::{Entry, Outcome},
        protocol::Protocol,
        reason::Reason,
    },
    store::ledger::LedgerFilter,
};
use axum::{Json, extract};
use serde_json::{Value, json};

const QUERY: &[Param] = &[
    page::CURSOR,
    page::LIMIT,
    Param {
        name: "key",
        about: "Only the requests of the client key of that id.",
    },
    Param {
        name: "account",
        about: "Only requests whose last attempt was charged to the account of that id.",
    },
    Param {
        name: "status",
        about: "Only answers of that class, such as 2xx.",
    },
    Param {
        name: "outcome",
        about: "Only requests that ended so: ok, refused, failed, broken or client_gone.",
    },
];

#[rustfmt::skip]
const REQUEST: &[Field] = &[
    Field::read("id", Text, "The request, as in the header x-request-id."),
    Field::read("started_at", Time, "When it arrived."),
    Field::read("key", NULLABLE_TEXT, "The client key's id."),
    Field::read("account", NULLABLE_TEXT, "The account of the last attempt."),
    Field::read("credential", NULLABLE_TEXT, "The credential of the last attempt."),
    Field::read("endpoint", NULLABLE_TEXT, "The endpoint of the last attempt."),
    Field::read("protocol", NULLABLE_TEXT, "What it spoke."),
    Field::read("method", Text, "Its method."),
    Field::read("path", Text, "Its path, without the query."),
    Field::read("model", NULLABLE_TEXT, "The model that the client asked for."),
    Field::read("upstream_model", NULLABLE_TEXT, "The model that upstream was asked for."),
    Field::read("status", NULLABLE_INTEGER, "The status that the client got."),
    Field::read("reason", NULLABLE_TEXT, "Why fairlane itself refused or ended it."),
    Field::read("outcome", Words(&["ok", "refused", "failed", "broken", "client_gone"]), "How it ended."),
    Field::read("attempts", Integer, "How many times it was sent upstream."),
    Field::read("request_bytes", Integer, "Size of the request body."),
    Field::read("response_bytes", Integer, "Size of the response body, as far as it reached the client."),
    Field::read("queued_ms", NULLABLE_INTEGER, "Time spent waiting for capacity."),
    Field::read("headers_ms", NULLABLE_INTEGER, "Time until upstream's headers."),
    Field::read("first_byte_ms", NULLABLE_INTEGER, "Time until the first byte of the response body."),
    Field::read("total_ms", NULLABLE_INTEGER, "Time until the end."),
    Field::read("input_tokens", NULLABLE_INTEGER, "Tokens that went in; null if upstream did not say."),
    Field::read("output_tokens", NULLABLE_INTEGER, "Tokens that came out; null if upstream did not say."),
    Field::read("cached_tokens", NULLABLE_INTEGER, "Those of the input that upstream had cached."),
    Field::read("upstream_request_id", NULLABLE_TEXT, "Upstream's own id of it."),
    Field::read("error", NULLABLE_TEXT, "The beginning of an error's text, secrets masked."),
];

const LIST: &[Field] = &[
    Field::read("items", List(&Ref("Request")), "Requests, newest first."),
    Field::read(
        "next_cursor",
        NULLABLE_TEXT,
        "Where the next page begins; null on the last one.",
    ),
];

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(
            "/requests",
            "Lists requests that have ended, newest first.",
            list,
        )
        .asks(QUERY)
        .gives("RequestList"),
        Route::get("/requests/{id}", "Shows one request that has ended.", one).gives("Request"),
    ]
}

pub(super) fn schemas() -> Vec<Schema> {
    vec![
        ("Request".to_owned(), schema::answer(REQUEST)),
        ("RequestList".to_owned(), schema::answer(LIST)),
    ]
}

async fn list(
    extract::State(state): extract::State<State>,
    params: Params,
) -> Result<Json<Value>, ApiError> {
    params.check(QUERY)?;
    let page = Page::<RequestId>::read(&params)?;
    let outcomes = "ok, refused, failed, broken or client_gone";
    let filter = LedgerFilter {
        before: page.cursor,
        key: params.read("key", "the id of a client key", |t| t.parse().ok())?,
        account: params.read("account", "the id of an account", |t| t.parse().ok())?,
        status_class: params.read("status", "a class of status, such as 4xx", class)?,
        outcome: params.read("outcome", outcomes, Outcome::from_name)?,
        limit: u32::try_from(page.limit + 1).unwrap_or(u32::MAX),
    };
    let some = state.store().requests(filter).await?;
    Ok(Json(page.answer(some, |entry| entry.id, show)))
}

/// `4` or `4xx`.
fn class(text: &str) -> Option<u16> {
    let digit = text.strip_suffix("xx").unwrap_or(text);
    digit.parse().ok().filter(|class| (1..=5).contains(class))
}

async fn one(
    extract::State(state): extract::State<State>,
    Id(id): Id<RequestId>,
) -> Result<Json<Value>, ApiError> {
    let entry = state.store().request(id).await?;
    let entry = entry.ok_or_else(|| ApiError::no_such("request in the log"))?;
    Ok(Json(show(&entry)))
}

fn show(entry: &Entry) -> Value {
    json!({
        "id": entry.id.to_string(),
        "started_at": document::format_millis(entry.started_at),
        "key": entry.key.map(|id| id.to_string()),
        "account": entry.account.map(|id| id.to_string()),
        "credential": entry.credential.map(|id| id.to_string()),
        "endpoint": entry.endpoint.map(|id| id.to_string()),
        "protocol": entry.protocol.map(Protocol::name),
        "method": &*entry.method,
        "path": &*entry.path,
        "model": entry.model.as_deref(),
        "upstream_model": entry.upstream_model.as_deref(),
        "status": entry.status,
        "reason": entry.reason.map(Reason::code),
        "outcome": entry.outcome.name(),
        "attempts": entry.attempts,
        "request_bytes": entry.request_bytes,
        "response_bytes": entry.response_bytes,
        "queued_ms": entry.queued_ms,
        "headers_ms": entry.headers_ms,
        "first_byte_ms": entry.first_byte_ms,
        "total_ms": entry.total_ms,
        "input_tokens": entry.input_tokens,
        "output_tokens": entry.output_tokens,
        "cached_tokens": entry.cached_tokens,
        "upstream_request_id": entry.upstream_request_id.as_deref(),
        "error": entry.error.as_deref(),
    })
}
