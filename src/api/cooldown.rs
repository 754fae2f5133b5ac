//! The operator's word that a cooldown is over.
use super::{
    State,
    acting::Acting,
    error::ApiError,
    input::Id,
    noun::Noun,
    routes::{Route, Schema},
    schema::{self, Field, Type::Flag},
};
use crate::{
    domain::{
        admission::Subject,
        ids::{AccountId, CredentialId},
        pool::{Account, Credential},
    },
    engine::cooldowns,
};
use axum::Json;
use serde_json::{Value, json};

const CLEARED: &[Field] = &[Field::read(
    "cleared",
    Flag,
    "Whether there was a cooldown to end.",
)];

pub(super) fn routes() -> Vec<Route> {
    let account = Route::post(
        "/accounts/{id}/clear-cooldown",
        "Ends its cooldowns, and those of its credentials where its limits apply to each.",
        clear_account,
    );
    let credential = Route::post(
        "/credentials/{id}/clear-cooldown",
        "Ends its cooldowns.",
        clear_credential,
    );
    [account, credential]
        .map(|route| route.gives("ClearedCooldown"))
        .into()
}

pub(super) fn schemas() -> Vec<Schema> {
    vec![("ClearedCooldown".to_owned(), schema::answer(CLEARED))]
}

async fn clear_account(
    Acting(state): Acting,
    Id(id): Id<AccountId>,
) -> Result<Json<Value>, ApiError> {
    let stored = Account::read(state.store(), id).await?;
    let account = stored.ok_or_else(|| ApiError::no_such("account"))?;
    let subject = (Subject::Account(id), id.to_string());
    clear(&state, subject, &account.name).await
}

async fn clear_credential(
    Acting(state): Acting,
    Id(id): Id<CredentialId>,
) -> Result<Json<Value>, ApiError> {
    let stored = Credential::read(state.store(), id).await?;
    let credential = stored.ok_or_else(|| ApiError::no_such("credential"))?;
    let subject = (Subject::Credential(id), id.to_string());
    clear(&state, subject, &credential.name).await
}

async fn clear(
    state: &State,
    (subject, id): (Subject, String),
    name: &str,
) -> Result<Json<Value>, ApiError> {
    let configuration = state.reload().configuration();
    if !cooldowns::is_any(configuration, subject) {
        return Ok(Json(json!({ "cleared": false })));
    }
    // Written down first: what cannot be written down is not done.
    let audited = state.store().audit("clear_cooldown", id, name.to_owned());
    audited.await?;
    let cleared = cooldowns::clear(configuration, subject);
    Ok(Json(json!({ "cleared": cleared })))
}
