//! Settings: every one with where its value comes from, and changes that take all or nothing.
//!
//! Invariant: a change is made to what its caller has seen. If somebody changed one of the named
//! settings since, it is refused with both values.
use super::{
    State,
    acting::Acting,
    error::{ApiError, Code},
    input::Object,
    routes::{Route, Schema},
    schema::{
        self, Field, NULLABLE_INTEGER,
        Type::{self, Either, Flag, Integer, List, Map, Nullable, Ref, Text, Words},
    },
};
use crate::{
    domain::{
        pool::document::Mistake,
        settings::{self, Declaration, Kind, Name, Settings, TABLE, ValueError},
    },
    store::{StoreError, settings::Overrides},
};
use axum::{Json, extract};
use serde_json::{Value, json};

/// A setting's value: a number, a switch or a text.
const VALUE: Type = Either(&[Integer, Flag, Text]);

#[rustfmt::skip]
const SETTING: &[Field] = &[
    Field::read("name", Text, "Its name."),
    Field::read("value", VALUE, "What is in force."),
    Field::read("source", Words(&["override", "environment", "default"]), "Which layer says so."),
    Field::read("inherited", VALUE, "What would be in force without the override."),
    Field::read("env", Nullable(&VALUE), "What the environment says; null if it says nothing."),
    Field::read("env_name", Text, "The environment variable that sets it."),
    Field::read("default", VALUE, "What it is when nobody says anything."),
    Field::read("is_locked", Flag, "Whether the environment states it, so that it can only be cleared."),
    Field::read("group", Words(&["capacity", "routing", "timeouts", "clients", "operation"]), "Where it belongs."),
    Field::read("kind", Words(&["integer", "switch", "text"]), "What kind of value it has."),
    Field::read("min", NULLABLE_INTEGER, "The smallest accepted number."),
    Field::read("max", NULLABLE_INTEGER, "The largest accepted number."),
    Field::read("about", Text, "What it does."),
    Field::read("accepted", Text, "What it accepts, in words."),
];

const SETTINGS: &[Field] = &[
    Field::read("version", Integer, "To be sent back with a change."),
    Field::read("settings", List(&Ref("Setting")), "Every setting."),
];

#[rustfmt::skip]
const CHANGE: &[Field] = &[
    Field::write("version", Integer, "The version at which the settings were read.").required(),
    Field::write("set", Map(&Nullable(&VALUE)), "New values by name; null clears the override.").required(),
];

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/settings", "Every setting with its source.", list).gives("Settings"),
        Route::patch("/settings", "Sets or clears settings, all or none.", change)
            .takes("SettingsChange")
            .gives("Settings"),
    ]
}

pub(super) fn schemas() -> Vec<Schema> {
    vec![
        ("Settings".to_owned(), schema::answer(SETTINGS)),
        ("Setting".to_owned(), schema::answer(SETTING)),
        ("SettingsChange".to_owned(), schema::new(CHANGE)),
    ]
}

async fn list(extract::State(state): extract::State<State>) -> Result<Json<Value>, ApiError> {
    let overrides = state.store().overrides().await?;
    Ok(Json(show(&state, &overrides)))
}

async fn change(Acting(state): Acting, Object(said): Object) -> Result<Json<Value>, ApiError> {
    let change = Change::read(&said)?;
    let stored = state.store().overrides().await?;
    if !stored.was_at(change.version) {
        let what = format!(
            "was never given out; the settings are at {}",
            stored.version
        );
        return Err(ApiError::field("version", what));
    }
    check_locks(&state, &change)?;
    if !change.values.is_empty() {
        let written = state
            .store()
            .change_settings(change.version, change.values.clone());
        written.await.map_err(|error| refused(error, &change))?;
        state.bring_into_force().await?;
    }
    list(extract::State(state)).await
}

/// What a caller wants changed.
struct Change {
    version: i64,
    values: Vec<(Name, Option<settings::Value>)>,
}

impl Change {
    fn read(said: &serde_json::Map<String, Value>) -> Result<Self, ApiError> {
        let mut mistakes = Vec::new();
        for key in said
            .keys()
            .filter(|k| !matches!(k.as_str(), "version" | "set"))
        {
            let what = "there is no such field; known are version, set";
            mistakes.push(Mistake::new(key, what));
        }
        let version = said.get("version").and_then(Value::as_i64);
        if version.is_none() {
            let what = "must be the version at which the settings were read";
            mistakes.push(Mistake::new("version", what));
        }
        let mut values = Vec::new();
        match said.get("set") {
            Some(Value::Object(set)) => {
                for (key, value) in set {
                    match one(key, value) {
                        Ok(one) => values.push(one),
                        Err(what) => mistakes.push(Mistake::new(key, what)),
                    }
                }
            }
            _ => mistakes.push(Mistake::new(
                "set",
                "must be an object of settings and values",
            )),
        }
        match version {
            Some(version) if mistakes.is_empty() => Ok(Self { version, values }),
            _ => Err(ApiError::mistakes(Code::InvalidField, mistakes)),
        }
    }
}

fn one(key: &str, value: &Value) -> Result<(Name, Option<settings::Value>), String> {
    let name = Name::from_key(key).ok_or("there is no such setting")?;
    let declaration = name.declaration();
    let text = match value {
        Value::Null => return Ok((name, None)),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let value = declaration.parse(&text);
    let value = value.map_err(|error: ValueError| error.to_string())?;
    Ok((name, Some(value)))
}

/// What the environment states can be cleared, but not set.
fn check_locks(state: &State, change: &Change) -> Result<(), ApiError> {
    let environment = state.reload().configuration().environment();
    for (name, value) in &change.values {
        let locked = environment.locks(*name, value.as_ref());
        let (Some(yours), Some(current)) = (value, locked) else {
            continue;
        };
        let declaration = name.declaration();
        let message = format!(
            "{} is stated by the environment variable {}; change it there",
            declaration.key,
            declaration.env()
        );
        let error = ApiError::new(Code::SettingLocked, message).at(declaration.key);
        return Err(error.between(plain(yours), plain(current)));
    }
    Ok(())
}

/// The store's refusal, with both values where somebody was faster.
fn refused(error: StoreError, change: &Change) -> ApiError {
    let StoreError::SettingConflict { key, current } = &error else {
        return error.into();
    };
    let yours = change
        .values
        .iter()
        .find(|(n, _)| n.declaration().key == key);
    let yours = yours.and_then(|(_, value)| value.as_ref()).map(plain);
    let current = current.as_deref().map(|text| {
        let parsed = Name::from_key(key).and_then(|n| n.declaration().parse(text).ok());
        parsed.map_or_else(|| json!(text), |value| plain(&value))
    });
    ApiError::from(error).between(json!(yours), json!(current))
}

fn show(state: &State, overrides: &Overrides) -> Value {
    let environment = state.reload().configuration().environment();
    let settings = Settings::resolve(environment, &overrides.layer().0);
    let rows: Vec<Value> = TABLE.iter().map(|d| row(d, &settings)).collect();
    json!({ "version": overrides.version, "settings": rows })
}

fn row(declaration: &Declaration, settings: &Settings) -> Value {
    let setting = settings.setting(declaration.name);
    let (kind, min, max) = match declaration.kind {
        Kind::Integer { min, max } => ("integer", Some(min), Some(max)),
        Kind::Switch => ("switch", None, None),
        Kind::Word { .. } | Kind::Origins => ("text", None, None),
    };
    json!({
        "name": declaration.key,
        "value": plain(&setting.value),
        "source": setting.source.name(),
        "inherited": plain(&setting.inherited),
        "env": setting.environment.as_ref().map(plain),
        "env_name": declaration.env(),
        "default": plain(&declaration.default_value()),
        "is_locked": setting.environment.is_some(),
        "group": declaration.group.name(),
        "kind": kind,
        "min": min,
        "max": max,
        "about": declaration.about,
        "accepted": declaration.accepted(),
    })
}

fn plain(value: &settings::Value) -> Value {
    match value {
        settings::Value::Integer(n) => json!(n),
        settings::Value::Switch(b) => json!(b),
        settings::Value::Text(t) => json!(&**t),
    }
}
