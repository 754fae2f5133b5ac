//! Client keys. A secret is shown when it is made, and never again.
use super::{
    State,
    acting::Acting,
    credentials::only_secret,
    edit::{Which, edit},
    error::ApiError,
    input::{Id, Object, OptionalObject},
    noun::{self, Noun, ids, written},
    routes::{Route, Schema},
    schema::{
        self, Field, MOMENT_INPUT, NULLABLE_INTEGER, NULLABLE_TEXT, NULLABLE_TEXTS,
        Type::{Integer, List, Nullable, Ref, Text, Time},
    },
};
use crate::{
    document,
    domain::{
        ids::KeyId,
        pool::{ClientKey, document::Warning},
        secret::Secret,
    },
    engine::allowance::Used,
    entropy,
    store::{Store, StoreError},
};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use serde_json::{Map, Value, json};

/// What is used of the limits, by their names.
#[rustfmt::skip]
const USE: &[Field] = &[
    Field::read("requests_per_minute", NULLABLE_INTEGER, "Requests that began in the last minute; null while what an earlier process counted cannot be read."),
    Field::read("concurrency", Integer, "Requests in flight."),
    Field::read("tokens_per_day", NULLABLE_INTEGER, "Tokens of the requests that began since midnight UTC and have ended; null while what an earlier process counted cannot be read."),
];

/// What stands beside a key whose secret was just made.
const SHOWN_ONCE: &[Field] = &[
    Field::read(
        "secret",
        Text,
        "Its secret; this is the only time that it is shown.",
    ),
    Field::read(
        "warnings",
        List(&Ref("Note")),
        "What was put right on the way.",
    ),
];

const ROTATION: &[Field] = &[Field::write(
    "secret",
    NULLABLE_TEXT,
    "Its new secret; minted if left out.",
)];

pub(super) fn routes() -> Vec<Route> {
    let mut routes = noun::routes::<ClientKey>();
    let adding = Route::post("/keys", "Adds one key; its secret is shown this once.", add);
    routes.insert(1, adding.takes("NewKey").creates("KeyWithSecret"));
    let rotation = Route::post(
        "/keys/{id}/rotate",
        "Replaces its secret, which is shown this once.",
        rotate,
    );
    routes.push(rotation.takes("KeyRotation").gives("KeyWithSecret"));
    routes
}

pub(super) fn schemas() -> Vec<Schema> {
    let mut schemas = noun::schemas::<ClientKey>();
    let shown = schema::answer_with(ClientKey::FIELDS, SHOWN_ONCE);
    schemas.push(("KeyWithSecret".to_owned(), shown));
    schemas.push(("KeyRotation".to_owned(), schema::new(ROTATION)));
    schemas.push(("KeyUse".to_owned(), schema::answer(USE)));
    schemas
}

async fn add(Acting(state): Acting, Object(mut said): Object) -> Result<Response, ApiError> {
    let secret = given_or_minted(&mut said);
    let (key, warnings) = edit::<ClientKey>(&state, Which::New, said).await?;
    let shown = with_secret(&key, &secret, &warnings);
    Ok((StatusCode::CREATED, axum::Json(shown)).into_response())
}

async fn rotate(
    Acting(state): Acting,
    Id(id): Id<KeyId>,
    OptionalObject(said): OptionalObject,
) -> Result<axum::Json<Value>, ApiError> {
    let given = only_secret(&said)?.cloned();
    let mut said = Map::from_iter(given.map(|secret| ("secret".to_owned(), secret)));
    let secret = given_or_minted(&mut said);
    let (key, warnings) = edit::<ClientKey>(&state, Which::Stored(id), said).await?;
    Ok(axum::Json(with_secret(&key, &secret, &warnings)))
}

/// The secret that the body gives; where it gives none, a fresh one is put there.
fn given_or_minted(said: &mut Map<String, Value>) -> Value {
    let minted = || json!(entropy::secret(entropy::CLIENT_KEY));
    let secret = said.entry("secret").or_insert(Value::Null);
    if secret.is_null() {
        *secret = minted();
    }
    secret.clone()
}

fn with_secret(key: &ClientKey, given: &Value, warnings: &[Warning]) -> Value {
    let mut shown = written(key, warnings);
    // As it was stored: without what was pasted around it.
    let clean = given.as_str().and_then(|text| Secret::clean(text).ok());
    if let (Value::Object(map), Some((secret, _))) = (&mut shown, clean) {
        map.insert("secret".to_owned(), json!(secret.expose()));
    }
    shown
}

impl Noun for ClientKey {
    const SCHEMA: &'static str = "Key";
    const HAS_STATE: bool = false;
    #[rustfmt::skip]
    const FIELDS: &'static [Field] = &[
        Field::read("id", Text, "Minted once; a new secret does not change it."),
        Field::both("name", (Text, Text), "Unique among keys.").required(),
        Field::write("secret", NULLABLE_TEXT, "Its secret, 20 characters or more; minted if left out.").at_first(),
        Field::read("secret_hint", Text, "The last four characters of its secret."),
        Field::both("weight", (Integer, NULLABLE_INTEGER), "Its share when the pool is tight."),
        Field::both("accounts", (NULLABLE_TEXTS, NULLABLE_TEXTS), "The accounts it may use, by id (ids or names are accepted); null means all."),
        Field::both("models", (NULLABLE_TEXTS, NULLABLE_TEXTS), "The models it may ask for; null means all."),
        Field::both("requests_per_minute", (NULLABLE_INTEGER, NULLABLE_INTEGER), "Requests that may begin in any minute; null means no limit."),
        Field::both("concurrency", (NULLABLE_INTEGER, NULLABLE_INTEGER), "Requests that may be in flight at once; null means no limit."),
        Field::both("tokens_per_day", (NULLABLE_INTEGER, NULLABLE_INTEGER), "Tokens, read and written, that it may use in a day of UTC; null means no limit."),
        Field::both("expires_at", (Nullable(&Time), MOMENT_INPUT), "When it ends; null means never."),
    ];
    const NOW: &'static [Field] = &[Field::read(
        "used",
        Ref("KeyUse"),
        "What it uses now of what its limits may limit, whether it has them or not.",
    )];

    fn show(&self) -> Value {
        let models = self.models.as_ref();
        let models: Option<Vec<&str>> = models.map(|list| list.iter().map(|m| &**m).collect());
        json!({
            "id": self.id.to_string(),
            "name": &*self.name,
            "secret_hint": &*self.secret_hint,
            "weight": self.weight,
            "accounts": self.accounts.as_deref().map(ids),
            "models": models,
            "requests_per_minute": self.limits.requests_per_minute,
            "concurrency": self.limits.concurrency,
            "tokens_per_day": self.limits.tokens_per_day,
            "expires_at": self.expires_at.map(document::format_millis),
        })
    }

    async fn now(state: &State, keys: &[Self]) -> Vec<Map<String, Value>> {
        let ids: Vec<KeyId> = keys.iter().map(|key| key.id).collect();
        let used = state.reload().configuration().allowance().used(&ids).await;
        let shown = |used: Used| {
            json!({
                "requests_per_minute": used.requests,
                "concurrency": used.in_flight,
                "tokens_per_day": used.tokens,
            })
        };
        used.into_iter()
            .map(|used| Map::from_iter([("used".to_owned(), shown(used))]))
            .collect()
    }

    async fn read_all(store: &Store) -> Result<Vec<Self>, StoreError> {
        store.keys().await
    }

    async fn read(store: &Store, id: KeyId) -> Result<Option<Self>, StoreError> {
        store.key(id).await
    }

    async fn remove(store: &Store, id: KeyId) -> Result<bool, StoreError> {
        store.remove_key(id).await
    }
}
