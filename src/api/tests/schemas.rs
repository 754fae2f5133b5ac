//! The description of the API, and answers held against it.
use super::*;
use crate::api::routes::{self, Route};
use std::collections::BTreeSet;

#[test]
fn the_description_is_as_reviewed() {
    insta::assert_json_snapshot!(openapi::document());
}

#[test]
fn every_schema_that_is_named_exists_and_every_one_that_exists_is_named() {
    let document = openapi::document();
    let mut named = BTreeSet::new();
    references(&document, &mut named);
    let there: BTreeSet<String> = routes::schemas()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(named, there);
    assert_eq!(routes::schemas().len(), there.len());
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match value.as_str() {
                    Some(text) if key == "$ref" => {
                        found.insert(text.rsplit('/').next().unwrap().to_owned());
                    }
                    _ => references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => (),
    }
}

#[tokio::test]
async fn the_description_is_served() {
    let bench = empty(Layer::default()).await;
    assert_eq!(bench.get("/openapi.json").await, openapi::document());
}

/// Holds an answer against what the table declares for that call.
pub(super) fn check_answer(method: &str, path: &str, answer: &Answer) {
    let path = path.split('?').next().unwrap();
    let route = routes::table()
        .into_iter()
        .find(|r| r.method == method && matches(r, path));
    let is_success = answer.status.is_success();
    let schema = match &route {
        Some(route) if is_success => {
            assert_eq!(answer.status, route.status, "{method} {path}");
            route.gives.clone()
        }
        _ => Some("Error".to_owned()),
    };
    match schema {
        Some(name) => check(
            &reference(&name),
            &answer.json(),
            &format!("{method} {path}"),
        ),
        None => assert_eq!(answer.text, "", "{method} {path}"),
    }
}

fn matches(route: &Route, path: &str) -> bool {
    let (declared, called): (Vec<_>, Vec<_>) =
        (route.path.split('/').collect(), path.split('/').collect());
    let is_same = |(d, c): (&&str, &&str)| *d == "{id}" || d == c;
    declared.len() == called.len() && declared.iter().zip(&called).all(is_same)
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// As much of JSON Schema as the declarations use.
fn check(schema: &Value, value: &Value, at: &str) {
    if let Err(what) = accepts(schema, value, at) {
        panic!("{what}");
    }
}

fn accepts(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap();
        let found = routes::schemas().into_iter().find(|(n, _)| n == name);
        return accepts(&found.unwrap().1, value, at);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let fits = any.iter().any(|s| accepts(s, value, at).is_ok());
        return fits
            .then_some(())
            .ok_or(format!("{at}: {value} fits none of {schema}"));
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        return Err(format!("{at}: {value} is none of {words:?}"));
    }
    match schema["type"].as_str() {
        Some("object") => accepts_object(schema, value, at),
        Some("array") => {
            let items = value
                .as_array()
                .ok_or(format!("{at}: {value} is no list"))?;
            items
                .iter()
                .try_for_each(|i| accepts(&schema["items"], i, &format!("{at}[]")))
        }
        Some("string") => value
            .is_string()
            .then_some(())
            .ok_or(format!("{at}: {value}")),
        Some("integer") => value.is_i64().then_some(()).ok_or(format!("{at}: {value}")),
        Some("boolean") => value
            .is_boolean()
            .then_some(())
            .ok_or(format!("{at}: {value}")),
        Some("null") => value
            .is_null()
            .then_some(())
            .ok_or(format!("{at}: {value}")),
        None => Ok(()),
        Some(other) => Err(format!("{at}: no rule for {other}")),
    }
}

fn accepts_object(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let map = value
        .as_object()
        .ok_or(format!("{at}: {value} is no object"))?;
    for (key, value) in map {
        let at = format!("{at}.{key}");
        match (&schema["properties"][key], &schema["additionalProperties"]) {
            (Value::Null, Value::Bool(true)) => (),
            (Value::Null, Value::Object(of)) => accepts(&json!(of), value, &at)?,
            (Value::Null, _) => return Err(format!("{at} is not declared")),
            (declared, _) => accepts(declared, value, &at)?,
        }
    }
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    match required
        .iter()
        .find(|key| !map.contains_key(key.as_str().unwrap()))
    {
        Some(missing) => Err(format!("{at}: {missing} is missing")),
        None => Ok(()),
    }
}
