//! Credentials. Their secrets go in and never come out.
use super::{
    acting::Acting,
    edit::{Which, edit},
    error::ApiError,
    input::{Id, Object},
    noun::{self, Noun, catalog, ids, state_fields, written},
    routes::{Route, Schema},
    schema::{
        self, CATALOG, CATALOG_INPUT, DISABLED_REASON, Field, NULLABLE_INTEGER, NULLABLE_TEXTS,
        ORIGIN, STATE, TEXTS,
        Type::{self, Text},
    },
};
use crate::{
    domain::{ids::CredentialId, pool::Credential},
    store::{Store, StoreError},
};
use serde_json::{Map, Value, json};

const LIMIT: (Type, Type) = (NULLABLE_INTEGER, NULLABLE_INTEGER);

const ROTATION: &[Field] =
    &[Field::write("secret", Text, "The secret to be used from now on.").required()];

pub(super) fn routes() -> Vec<Route> {
    let mut routes = noun::routes::<Credential>();
    routes.insert(1, noun::adding::<Credential>());
    let rotation = Route::post(
        "/credentials/{id}/rotate",
        "Replaces its secret; everything else stays.",
        rotate,
    );
    routes.push(
        rotation
            .takes("CredentialRotation")
            .gives("WrittenCredential"),
    );
    routes
}

pub(super) fn schemas() -> Vec<Schema> {
    let mut schemas = noun::schemas::<Credential>();
    schemas.push(("CredentialRotation".to_owned(), schema::new(ROTATION)));
    schemas
}

async fn rotate(
    Acting(state): Acting,
    Id(id): Id<CredentialId>,
    Object(said): Object,
) -> Result<axum::Json<Value>, ApiError> {
    let secret = only_secret(&said)?.ok_or_else(|| ApiError::field("secret", "is missing"))?;
    let said = Map::from_iter([("secret".to_owned(), secret.clone())]);
    let (credential, warnings) = edit::<Credential>(&state, Which::Stored(id), said).await?;
    Ok(axum::Json(written(&credential, &warnings)))
}

/// The field `secret` of a body that may hold nothing else; null is as good as nothing.
pub(super) fn only_secret(said: &Map<String, Value>) -> Result<Option<&Value>, ApiError> {
    match said.keys().find(|key| *key != "secret") {
        Some(other) => Err(ApiError::field(
            other,
            "there is no such field; known is secret",
        )),
        None => Ok(said.get("secret").filter(|secret| !secret.is_null())),
    }
}

impl Noun for Credential {
    const SCHEMA: &'static str = "Credential";
    #[rustfmt::skip]
    const FIELDS: &'static [Field] = &[
        Field::read("id", Text, "Minted once; a new secret does not change it."),
        Field::both("name", (Text, Text), "Unique among credentials; made up if left out."),
        Field::write("secret", Text, "What authenticates to upstream.").required().at_first(),
        Field::read("secret_hint", Text, "The last four characters of its secret."),
        Field::read("origin", ORIGIN, "Who brought its secret; what the environment brought drains once it is no longer listed there."),
        Field::both("accounts", (TEXTS, NULLABLE_TEXTS), "The accounts it is charged to, by id (ids or names are accepted); null means one of its own."),
        Field::both("endpoints", (TEXTS, TEXTS), "The endpoints it works at, by id (ids or names are accepted).").required(),
        Field::both("models", (CATALOG, CATALOG_INPUT), "What it may use; null means every model."),
        Field::both("stream_limit", LIMIT, "Own cap of streams; null means none."),
        Field::both("create_limit", LIMIT, "Own cap of requests being started; null means none."),
        Field::both("job_limit", LIMIT, "Own cap of jobs; null means none."),
        Field::both("state", (STATE, STATE), "Whether it takes new work."),
        Field::read("disabled_reason", DISABLED_REASON, "Who or what disabled it."),
    ];

    fn show(&self) -> Value {
        let (state, disabled_reason) = state_fields(self.state);
        json!({
            "id": self.id.to_string(),
            "name": &*self.name,
            "secret_hint": self.secret.hint(),
            "origin": self.origin.name(),
            "accounts": ids(&self.accounts),
            "endpoints": ids(&self.endpoints),
            "models": catalog(&self.models),
            "stream_limit": self.stream_limit,
            "create_limit": self.create_limit,
            "job_limit": self.job_limit,
            "state": state,
            "disabled_reason": disabled_reason,
        })
    }

    async fn read_all(store: &Store) -> Result<Vec<Self>, StoreError> {
        store.credentials().await
    }

    async fn read(store: &Store, id: CredentialId) -> Result<Option<Self>, StoreError> {
        store.credential(id).await
    }

    async fn remove(store: &Store, id: CredentialId) -> Result<bool, StoreError> {
        store.remove_credential(id).await
    }
}
