//! What accounts, credentials, endpoints and client keys have in common, and the calls that
//! follow from it.
use super::{
    State,
    acting::Acting,
    edit::{Which, edit},
    error::{ApiError, notes},
    input::{Id, Object, Params},
    page::{self, Page},
    routes::{Route, Schema},
    schema::{self, Field, Type},
};
use crate::{
    document::single::Thing,
    domain::pool::{self, document::Warning},
    store::{Store, StoreError},
};
use axum::{
    extract,
    response::{IntoResponse as _, Response},
};
use http::StatusCode;
use serde_json::{Map, Value, json};
use std::{
    fmt::Display,
    future::{self, Future},
    slice,
};

/// A kind of thing in the pool, as the API shows it.
pub(super) trait Noun: Thing {
    /// The name of its schema.
    const SCHEMA: &'static str;
    /// Whether it can be drained and disabled.
    const HAS_STATE: bool = true;
    /// Its fields.
    const FIELDS: &'static [Field];
    /// What is read beside them, and is true of this moment alone.
    const NOW: &'static [Field] = &[];

    /// It as the API shows it, without its secret.
    fn show(&self) -> Value;
    /// The [`NOW`](Self::NOW) of each, in their order.
    fn now(_: &State, things: &[Self]) -> impl Future<Output = Vec<Map<String, Value>>> + Send {
        future::ready(vec![Map::new(); things.len()])
    }
    /// Reads every one of them.
    fn read_all(store: &Store) -> impl Future<Output = Result<Vec<Self>, StoreError>> + Send;
    /// Reads one of them.
    fn read(
        store: &Store,
        id: Self::Id,
    ) -> impl Future<Output = Result<Option<Self>, StoreError>> + Send;
    /// Removes one of them; `false` if there is none.
    fn remove(store: &Store, id: Self::Id)
    -> impl Future<Output = Result<bool, StoreError>> + Send;
}

/// What may stand beside a thing that was just written.
const BESIDE: &[Field] = &[Field::read(
    "warnings",
    Type::List(&Type::Ref("Note")),
    "What was put right on the way.",
)];

/// List, read, change and remove; and for things with a state, a path for each state.
pub(super) fn routes<N: Noun>() -> Vec<Route> {
    let (kind, schema) = (N::KIND, N::SCHEMA);
    let many = format!("/{}", N::LIST);
    let one = format!("{many}/{{id}}");
    let mut routes = vec![
        Route::get(many, format!("Lists {}.", N::LIST), list::<N>)
            .asks(page::QUERY)
            .gives(format!("{schema}List")),
        Route::get(&one, format!("Shows one {kind}."), show::<N>).gives(schema),
        Route::patch(
            &one,
            format!("Changes one {kind}: what is left out stays, null means inherit or none."),
            change::<N>,
        )
        .takes(format!("{schema}Change"))
        .gives(written_schema::<N>()),
        Route::delete(&one, format!("Removes one {kind}."), remove::<N>),
    ];
    if N::HAS_STATE {
        let to = |verb: &str| format!("{one}/{verb}");
        let summary = |what: &str| format!("{what}, as a change of its state would.");
        let states = [
            Route::post(to("enable"), summary("Lets it take work"), enable::<N>),
            Route::post(
                to("drain"),
                summary("Lets it finish, and take no new work"),
                drain::<N>,
            ),
            Route::post(to("disable"), summary("Takes it out"), disable::<N>),
        ];
        routes.extend(states.map(|route| route.gives(written_schema::<N>())));
    }
    routes
}

/// The route that makes one, with the handler that does it.
pub(super) fn adding<N: Noun>() -> Route {
    Route::post(
        format!("/{}", N::LIST),
        format!("Adds one {}.", N::KIND),
        add::<N>,
    )
    .takes(format!("New{}", N::SCHEMA))
    .creates(written_schema::<N>())
}

fn written_schema<N: Noun>() -> String {
    format!("Written{}", N::SCHEMA)
}

/// The schemas that [`routes`] and [`adding`] name.
pub(super) fn schemas<N: Noun>() -> Vec<Schema> {
    let name = N::SCHEMA;
    let list = json!({
        "type": "object",
        "properties": {
            "items": {
                "type": "array",
                "items": { "$ref": format!("#/components/schemas/{name}") },
            },
            "next_cursor": {
                "anyOf": [{ "type": "string" }, { "type": "null" }],
                "description": "Where the next page begins; null on the last one.",
            },
        },
        "additionalProperties": false,
        "required": ["items", "next_cursor"],
    });
    vec![
        (
            name.to_owned(),
            schema::answer(&[N::FIELDS, N::NOW].concat()),
        ),
        (
            written_schema::<N>(),
            schema::answer_with(N::FIELDS, BESIDE),
        ),
        (format!("{name}List"), list),
        (format!("New{name}"), schema::new(N::FIELDS)),
        (format!("{name}Change"), schema::change(N::FIELDS)),
    ]
}

async fn list<N: Noun>(
    extract::State(state): extract::State<State>,
    params: Params,
) -> Result<axum::Json<Value>, ApiError> {
    params.check(page::QUERY)?;
    let page = Page::<N::Id>::read(&params)?;
    let all = N::read_all(state.store()).await?;
    let after = |thing: &N| page.cursor.is_none_or(|cursor| thing.id() > cursor);
    let some: Vec<N> = all.into_iter().filter(after).take(page.limit + 1).collect();
    let now = N::now(&state, &some).await;
    let some = some.into_iter().zip(now).collect();
    let shown = page.answer(some, |(thing, _): &(N, _)| thing.id(), shown_now);
    Ok(axum::Json(shown))
}

async fn show<N: Noun>(
    extract::State(state): extract::State<State>,
    Id(id): Id<N::Id>,
) -> Result<axum::Json<Value>, ApiError> {
    let thing = N::read(state.store(), id).await?;
    let thing = thing.ok_or_else(|| ApiError::no_such(N::KIND))?;
    let now = N::now(&state, slice::from_ref(&thing)).await;
    let now = now.into_iter().next().unwrap_or_default();
    Ok(axum::Json(shown_now(&(thing, now))))
}

/// A thing with what is true of it now.
fn shown_now<N: Noun>((thing, now): &(N, Map<String, Value>)) -> Value {
    let mut shown = thing.show();
    if let Value::Object(map) = &mut shown {
        map.extend(now.clone());
    }
    shown
}

async fn add<N: Noun>(Acting(state): Acting, Object(said): Object) -> Result<Response, ApiError> {
    let (thing, warnings) = edit::<N>(&state, Which::New, said).await?;
    Ok((StatusCode::CREATED, axum::Json(written(&thing, &warnings))).into_response())
}

async fn change<N: Noun>(
    Acting(state): Acting,
    Id(id): Id<N::Id>,
    Object(said): Object,
) -> Result<axum::Json<Value>, ApiError> {
    if said.contains_key("secret") {
        let what = format!("is replaced by POST /{}/{{id}}/rotate alone", N::LIST);
        return Err(ApiError::field("secret", what));
    }
    // Whoever clears a name or a state cannot mean anything by it.
    let fixed = if N::HAS_STATE {
        &["name", "state"][..]
    } else {
        &["name"]
    };
    for key in fixed {
        if said.get(*key).is_some_and(Value::is_null) {
            return Err(ApiError::field(
                key,
                "cannot be cleared; leave it out to keep it",
            ));
        }
    }
    let (thing, warnings) = edit::<N>(&state, Which::Stored(id), said).await?;
    Ok(axum::Json(written(&thing, &warnings)))
}

async fn remove<N: Noun>(Acting(state): Acting, Id(id): Id<N::Id>) -> Result<StatusCode, ApiError> {
    if !N::remove(state.store(), id).await? {
        return Err(ApiError::no_such(N::KIND));
    }
    state.bring_into_force().await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn enable<N: Noun>(state: Acting, id: Id<N::Id>) -> Result<axum::Json<Value>, ApiError> {
    turn::<N>(state, id, "active").await
}

async fn drain<N: Noun>(state: Acting, id: Id<N::Id>) -> Result<axum::Json<Value>, ApiError> {
    turn::<N>(state, id, "draining").await
}

async fn disable<N: Noun>(state: Acting, id: Id<N::Id>) -> Result<axum::Json<Value>, ApiError> {
    turn::<N>(state, id, "disabled").await
}

async fn turn<N: Noun>(
    Acting(state): Acting,
    Id(id): Id<N::Id>,
    wanted: &str,
) -> Result<axum::Json<Value>, ApiError> {
    let said = Map::from_iter([("state".to_owned(), json!(wanted))]);
    let (thing, warnings) = edit::<N>(&state, Which::Stored(id), said).await?;
    Ok(axum::Json(written(&thing, &warnings)))
}

/// A thing that was just written, and what was put right on the way.
pub(super) fn written<N: Noun>(thing: &N, warnings: &[Warning]) -> Value {
    let mut shown = thing.show();
    if let (false, Value::Object(map)) = (warnings.is_empty(), &mut shown) {
        map.insert("warnings".to_owned(), notes(warnings));
    }
    shown
}

/// A state, as the two fields that show it.
pub(super) fn state_fields(state: pool::State) -> (&'static str, Option<&'static str>) {
    match state {
        pool::State::Active | pool::State::Draining => (state.name(), None),
        pool::State::Disabled(reason) => (state.name(), Some(reason.name())),
    }
}

/// A catalog as a list of `{"model", "upstream_model"}`, or null for everything.
pub(super) fn catalog(catalog: &pool::Catalog) -> Value {
    let Some(rows) = catalog else {
        return Value::Null;
    };
    rows.iter()
        .map(|row| json!({ "model": &*row.model, "upstream_model": row.upstream_model.as_deref() }))
        .collect()
}

/// Ids as texts.
pub(super) fn ids<T: Display>(ids: &[T]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}
