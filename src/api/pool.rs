//! The pool as one document: export, import, and what an import would do.
use super::{
    State,
    acting::Acting,
    error::{ApiError, Code, notes},
    input::{self, Param, Params},
    routes::{Route, Schema},
    schema::{
        self, Field, NULLABLE_TEXT,
        Type::{Any, Flag, List, Map, Ref, Text},
    },
};
use crate::{
    document,
    domain::pool::document::{Change, ChangeKind, Mode, Plan},
    store::pool::ImportError,
};
use axum::{Json, extract};
use serde_json::{Value, json};
use std::fmt::Display;

const QUERY: &[Param] = &[
    Param {
        name: "sync",
        about: "Whether what the document no longer lists drains (keys: is removed).",
    },
    Param {
        name: "dry_run",
        about: "Whether the plan is only shown.",
    },
];

const CHANGES: schema::Type = List(&Ref("Change"));

#[rustfmt::skip]
const PLAN: &[Field] = &[
    Field::read("dry_run", Flag, "Whether nothing was written."),
    Field::read("endpoints", CHANGES, "Every endpoint."),
    Field::read("accounts", CHANGES, "Every account."),
    Field::read("credentials", CHANGES, "Every credential."),
    Field::read("keys", CHANGES, "Every client key."),
    Field::read("minted_keys", List(&Ref("MintedKey")), "Keys that came without a secret and were given one."),
    Field::read("warnings", List(&Ref("Note")), "What was put right or left out on the way."),
];

const CHANGE: &[Field] = &[
    Field::read("id", NULLABLE_TEXT, "Its id; null if it would be new."),
    Field::read("name", Text, "Its name."),
    Field::read("change", schema::Type::Words(KINDS), "What happens to it."),
];

const KINDS: &[&str] = &[
    ChangeKind::Added.name(),
    ChangeKind::Changed.name(),
    ChangeKind::Rotated.name(),
    ChangeKind::Drained.name(),
    ChangeKind::Removed.name(),
    ChangeKind::Unchanged.name(),
];

#[rustfmt::skip]
const MINTED: &[Field] = &[
    Field::read("id", NULLABLE_TEXT, "The key's id; null if it would be new."),
    Field::read("name", Text, "The key's name."),
    Field::read("secret", NULLABLE_TEXT, "Its secret, shown this once; null if nothing was written."),
];

const NOTE: &[Field] = &[
    Field::read("path", Text, "Where it stands."),
    Field::read("what", Text, "What is to be said of it."),
];

const ENTRIES: (schema::Type, schema::Type) = (List(&Map(&Any)), List(&Map(&Any)));

const DOCUMENT: &[Field] = &[
    Field::both("endpoints", ENTRIES, "Endpoints, by name."),
    Field::both("egress_pools", ENTRIES, "Always empty in this version."),
    Field::both("accounts", ENTRIES, "Accounts, by name."),
    Field::both(
        "credentials",
        ENTRIES,
        "Credentials, known by their secret.",
    ),
    Field::both("keys", ENTRIES, "Client keys, by name."),
];

const MODEL_ROW: &[Field] = &[
    Field::both("model", (Text, Text), "What clients ask for."),
    Field::both(
        "upstream_model",
        (NULLABLE_TEXT, NULLABLE_TEXT),
        "What upstream is asked for instead.",
    ),
];

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/pool", "The pool as a document, without secrets.", export)
            .gives("PoolDocument"),
        Route::put(
            "/pool",
            "Imports a pool document, all of it or nothing.",
            import,
        )
        .asks(QUERY)
        .takes("PoolDocument")
        .gives("PoolPlan"),
    ]
}

pub(super) fn schemas() -> Vec<Schema> {
    let named = |name: &str, schema: Value| (name.to_owned(), schema);
    vec![
        named("PoolDocument", schema::new(DOCUMENT)),
        named("PoolPlan", schema::answer(PLAN)),
        named("Change", schema::answer(CHANGE)),
        named("MintedKey", schema::answer(MINTED)),
        named("Note", schema::answer(NOTE)),
        named("ModelRow", schema::new(MODEL_ROW)),
    ]
}

async fn export(extract::State(state): extract::State<State>) -> Result<Json<Value>, ApiError> {
    let pool = state.store().pool().await?;
    Ok(Json(document::write_json(&pool.contents, false)))
}

async fn import(
    Acting(state): Acting,
    params: Params,
    input::Document(said): input::Document,
) -> Result<Json<Value>, ApiError> {
    params.check(QUERY)?;
    let is_dry = params.is_on("dry_run")?;
    let mode = if params.is_on("sync")? {
        Mode::Sync
    } else {
        Mode::Merge
    };
    let document = document::read_value(&said)
        .map_err(|mistake| ApiError::mistakes(Code::InvalidDocument, vec![mistake]))?;
    let plan = if is_dry {
        state.store().plan_import(document, mode).await?
    } else {
        let plan = state.store().import(document, mode).await?;
        state.bring_into_force().await?;
        plan
    };
    Ok(Json(summary(&plan, is_dry)))
}

impl From<ImportError> for ApiError {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::Mistakes(mistakes) => Self::mistakes(Code::InvalidDocument, mistakes),
            ImportError::Store(error) => error.into(),
        }
    }
}

/// What a plan did, or would do: then the ids and secrets that it minted are worth nothing.
fn summary(plan: &Plan, is_dry: bool) -> Value {
    let minted: Vec<Value> = plan
        .minted
        .iter()
        .map(|key| {
            let is_new = plan
                .keys
                .iter()
                .any(|c| c.value.id == key.id && c.kind == ChangeKind::Added);
            json!({
                "id": (!(is_dry && is_new)).then(|| key.id.to_string()),
                "name": &*key.name,
                "secret": (!is_dry).then(|| key.secret.expose()),
            })
        })
        .collect();
    json!({
        "dry_run": is_dry,
        "endpoints": changes(&plan.endpoints, is_dry, |e| (e.id, &e.name)),
        "accounts": changes(&plan.accounts, is_dry, |a| (a.id, &a.name)),
        "credentials": changes(&plan.credentials, is_dry, |c| (c.id, &c.name)),
        "keys": changes(&plan.keys, is_dry, |k| (k.id, &k.name)),
        "minted_keys": minted,
        "warnings": notes(&plan.warnings),
    })
}

fn changes<T, Id: Display>(
    changes: &[Change<T>],
    is_dry: bool,
    name: impl Fn(&T) -> (Id, &std::sync::Arc<str>),
) -> Value {
    changes
        .iter()
        .map(|change| {
            let (id, name) = name(&change.value);
            let is_real = !(is_dry && change.kind == ChangeKind::Added);
            json!({
                "id": is_real.then(|| id.to_string()),
                "name": &**name,
                "change": change.kind.name(),
            })
        })
        .collect()
}
