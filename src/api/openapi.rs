//! The description of the admin API, made from the same table as its router.
use super::{
    PREFIX,
    error::Code,
    routes::{self, Route, Schema},
    schema::{
        self, Field,
        Type::{Any, List, Ref, Text, Words},
    },
};
use axum::Json;
use serde_json::{Map as JsonMap, Value, json};

#[rustfmt::skip]
const ERROR: &[Field] = &[
    Field::read("code", Words(Code::ALL), "What kind of refusal it is."),
    Field::read("message", Text, "What is wrong, and what would be right."),
];

#[rustfmt::skip]
const ERROR_MORE: &[Field] = &[
    Field::read("field", Text, "The field or query parameter that it is about."),
    Field::read("mistakes", List(&Ref("Note")), "Everything that is wrong."),
    Field::read("yours", Any, "The value that was asked for, where it collides with another."),
    Field::read("current", Any, "The value that is there instead."),
];

const ERROR_ANSWER: &[Field] = &[Field::read(
    "error",
    Ref("ErrorDetail"),
    "Why it was refused.",
)];

pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/openapi.json", "This description.", describe).gives("Description")]
}

pub(super) fn schemas() -> Vec<Schema> {
    let description = json!({ "type": "object", "additionalProperties": true });
    vec![
        ("Description".to_owned(), description),
        ("Error".to_owned(), schema::answer(ERROR_ANSWER)),
        (
            "ErrorDetail".to_owned(),
            schema::answer_with(ERROR, ERROR_MORE),
        ),
    ]
}

async fn describe() -> Json<Value> {
    Json(document())
}

/// The whole description.
pub(super) fn document() -> Value {
    let mut paths = JsonMap::new();
    for route in routes::table() {
        let path = paths.entry(route.path.clone()).or_insert_with(|| json!({}));
        if let Value::Object(methods) = path {
            let method = route.method.as_str().to_ascii_lowercase();
            methods.insert(method, operation(&route));
        }
    }
    let schemas: JsonMap<String, Value> = routes::schemas().into_iter().collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "fairlane admin API",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "servers": [{ "url": PREFIX }],
        "security": [{ "adminToken": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "adminToken": { "type": "http", "scheme": "bearer" } },
            "schemas": schemas,
        },
    })
}

fn operation(route: &Route) -> Value {
    let mut success = json!({ "description": "Done." });
    if let (Some(schema), Value::Object(map)) = (&route.gives, &mut success) {
        map.insert("content".to_owned(), content(schema));
    }
    let mut operation = json!({
        "summary": route.summary,
        "parameters": parameters(route),
        "responses": {
            route.status.as_str(): success,
            "default": { "description": "Refused.", "content": content("Error") },
        },
    });
    if let (Some(schema), Value::Object(map)) = (&route.takes, &mut operation) {
        let body = json!({ "content": content(schema) });
        map.insert("requestBody".to_owned(), body);
    }
    operation
}

fn parameters(route: &Route) -> Vec<Value> {
    let text = || json!({ "type": "string" });
    let in_path = route
        .path
        .contains("{id}")
        .then(|| json!({ "name": "id", "in": "path", "required": true, "schema": text() }));
    let in_query = route.query.iter().map(|param| {
        json!({
            "name": param.name,
            "in": "query",
            "description": param.about,
            "schema": text(),
        })
    });
    in_path.into_iter().chain(in_query).collect()
}

fn content(schema: &str) -> Value {
    let reference = format!("#/components/schemas/{schema}");
    json!({ "application/json": { "schema": { "$ref": reference } } })
}
