//! Admin tokens: what programs present to this API.
use super::{
    State,
    acting::Acting,
    error::ApiError,
    input::{Id, Object, Params},
    page::{self, Page},
    routes::{Route, Schema},
    schema::{
        self, Field, NULLABLE_TEXT,
        Type::{List, Ref, Text, Time},
    },
};
use crate::{
    clock, digest, document,
    domain::{ids::TokenId, secret::Secret},
    entropy,
    store::tokens::AdminToken,
};
use axum::{
    Json, extract,
    response::{IntoResponse as _, Response},
};
use http::StatusCode;
use serde_json::{Map, Value, json};
use std::sync::Arc;

const TOKEN: &[Field] = &[
    Field::read("id", Text, "Minted once."),
    Field::both("name", (Text, Text), "Unique among admin tokens.").required(),
    Field::read(
        "secret_hint",
        Text,
        "The last four characters of its secret.",
    ),
    Field::read("created_at", Time, "When it was made."),
];

const SHOWN_ONCE: &[Field] = &[Field::read(
    "secret",
    Text,
    "Its secret; this is the only time that it is shown.",
)];

const LIST: &[Field] = &[
    Field::read("items", List(&Ref("Token")), "Admin tokens."),
    Field::read(
        "next_cursor",
        NULLABLE_TEXT,
        "Where the next page begins; null on the last one.",
    ),
];

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/tokens", "Lists admin tokens.", list)
            .asks(page::QUERY)
            .gives("TokenList"),
        Route::post(
            "/tokens",
            "Adds an admin token; its secret is shown this once.",
            add,
        )
        .takes("NewToken")
        .creates("TokenWithSecret"),
        Route::delete("/tokens/{id}", "Removes an admin token.", remove),
    ]
}

pub(super) fn schemas() -> Vec<Schema> {
    vec![
        ("Token".to_owned(), schema::answer(TOKEN)),
        ("TokenList".to_owned(), schema::answer(LIST)),
        ("NewToken".to_owned(), schema::new(TOKEN)),
        (
            "TokenWithSecret".to_owned(),
            schema::answer_with(TOKEN, SHOWN_ONCE),
        ),
    ]
}

async fn list(
    extract::State(state): extract::State<State>,
    params: Params,
) -> Result<Json<Value>, ApiError> {
    params.check(page::QUERY)?;
    let page = Page::<TokenId>::read(&params)?;
    let all = state.store().tokens().await?;
    let after = |token: &AdminToken| page.cursor.is_none_or(|cursor| token.id > cursor);
    let some = all.into_iter().filter(after).take(page.limit + 1).collect();
    Ok(Json(page.answer(some, |token| token.id, show)))
}

async fn add(Acting(state): Acting, Object(said): Object) -> Result<Response, ApiError> {
    let name = name(&said)?;
    // Cleaning a secret that was just minted takes nothing off it; the hint comes with it.
    let Ok((secret, _)) = Secret::clean(&entropy::secret(entropy::ADMIN_TOKEN)) else {
        return Err(ApiError::field("name", "could not be given a secret"));
    };
    let token = AdminToken {
        id: TokenId::from_u128(entropy::uuid7()),
        name,
        hash: digest::sha256(secret.expose().as_bytes()),
        secret_hint: secret.hint().into(),
        created_at: clock::unix_millis(),
    };
    let mut shown = show(&token);
    state.store().add_token(token).await?;
    state.bring_into_force().await?;
    if let Value::Object(map) = &mut shown {
        map.insert("secret".to_owned(), json!(secret.expose()));
    }
    Ok((StatusCode::CREATED, Json(shown)).into_response())
}

fn name(said: &Map<String, Value>) -> Result<Arc<str>, ApiError> {
    if let Some(other) = said.keys().find(|key| *key != "name") {
        return Err(ApiError::field(
            other,
            "there is no such field; known is name",
        ));
    }
    let text = match said.get("name") {
        Some(Value::String(text)) => text,
        None | Some(Value::Null) => return Err(ApiError::field("name", "is missing")),
        Some(_) => return Err(ApiError::field("name", "must be a text in quotes")),
    };
    document::checked_name(text).map_err(|what| ApiError::field("name", what))
}

async fn remove(Acting(state): Acting, Id(id): Id<TokenId>) -> Result<StatusCode, ApiError> {
    if !state.store().remove_token(id).await? {
        return Err(ApiError::no_such("token"));
    }
    state.bring_into_force().await?;
    Ok(StatusCode::NO_CONTENT)
}

fn show(token: &AdminToken) -> Value {
    json!({
        "id": token.id.to_string(),
        "name": &*token.name,
        "secret_hint": &*token.secret_hint,
        "created_at": document::format_millis(token.created_at),
    })
}
