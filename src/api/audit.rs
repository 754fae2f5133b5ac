//! Who changed what, and when.
use super::{
    State,
    error::ApiError,
    input::Params,
    page::{self, Page},
    routes::{Route, Schema},
    schema::{
        self, Field, NULLABLE_TEXT,
        Type::{List, Ref, Text, Time},
    },
};
use crate::{document, domain::ids::AuditId, store::audit::Written};
use axum::{Json, extract};
use serde_json::{Value, json};

#[rustfmt::skip]
const LINE: &[Field] = &[
    Field::read("id", Text, "The line."),
    Field::read("at", Time, "When it was done."),
    Field::read("actor", Text, "Who did it: dashboard, token and its name, upstream, environment or cli."),
    Field::read("action", Text, "What was done, as verb and kind."),
    Field::read("subject", Text, "To what: an id, or the name of a setting."),
    Field::read("detail", Text, "Its name, or what it was set to; never a secret."),
];

const LIST: &[Field] = &[
    Field::read("items", List(&Ref("AuditLine")), "Lines, newest first."),
    Field::read(
        "next_cursor",
        NULLABLE_TEXT,
        "Where the next page begins; null on the last one.",
    ),
];

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/audit", "Who changed what, newest first.", list)
            .asks(page::QUERY)
            .gives("AuditList"),
    ]
}

pub(super) fn schemas() -> Vec<Schema> {
    vec![
        ("AuditLine".to_owned(), schema::answer(LINE)),
        ("AuditList".to_owned(), schema::answer(LIST)),
    ]
}

async fn list(
    extract::State(state): extract::State<State>,
    params: Params,
) -> Result<Json<Value>, ApiError> {
    params.check(page::QUERY)?;
    let page = Page::<AuditId>::read(&params)?;
    let before = page.cursor.map(AuditId::as_u128);
    let limit = u32::try_from(page.limit + 1).unwrap_or(u32::MAX);
    let lines = state.store().audit_lines(before, limit).await?;
    Ok(Json(page.answer(
        lines,
        |line| AuditId::from_u128(line.id),
        show,
    )))
}

fn show(line: &Written) -> Value {
    json!({
        "id": AuditId::from_u128(line.id).to_string(),
        "at": document::format_millis(line.at),
        "actor": line.actor,
        "action": line.action,
        "subject": line.subject,
        "detail": line.detail,
    })
}
