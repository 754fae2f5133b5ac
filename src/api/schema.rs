//! The shapes of bodies, declared as tables of fields beside the code that reads and writes them.
//!
//! Invariant: what a handler answers has exactly the fields that are declared for it; the tests
//! hold every answer against its declaration.
use serde_json::{Map, Value, json};

/// The type of a field.
#[derive(Clone, Copy, Debug)]
pub(super) enum Type {
    /// A text.
    Text,
    /// A point in time, such as `2030-01-31T18:00:00Z`.
    Time,
    /// A whole number.
    Integer,
    /// True or false.
    Flag,
    /// One of these words.
    Words(&'static [&'static str]),
    /// Anything.
    Any,
    /// An object whose keys are free.
    Map(&'static Type),
    /// A list.
    List(&'static Type),
    /// That, or null.
    Nullable(&'static Type),
    /// Any of these.
    Either(&'static [Type]),
    /// The schema of that name.
    Ref(&'static str),
}

use Type::{Any, Either, Flag, Integer, List, Nullable, Ref, Text, Time, Words};

pub(super) const TEXTS: Type = List(&Text);
pub(super) const NULLABLE_TEXT: Type = Nullable(&Text);
pub(super) const NULLABLE_TEXTS: Type = Nullable(&TEXTS);
pub(super) const NULLABLE_INTEGER: Type = Nullable(&Integer);
/// A catalog as it is read.
pub(super) const CATALOG: Type = Nullable(&List(&Ref("ModelRow")));
/// A catalog as it is written: a row may be the model's name alone.
pub(super) const CATALOG_INPUT: Type = Nullable(&List(&Either(&[Text, Ref("ModelRow")])));
pub(super) const STATE: Type = Words(&["active", "draining", "disabled"]);
pub(super) const ORIGIN: Type = Words(&["operator", "environment"]);
pub(super) const DISABLED_REASON: Type = Nullable(&Words(&["operator", "auth", "billing"]));
/// A moment as it is written: a time, or milliseconds since 1970.
pub(super) const MOMENT_INPUT: Type = Nullable(&Either(&[Time, Integer]));

impl Type {
    fn schema(self) -> Value {
        match self {
            Text => json!({ "type": "string" }),
            Time => json!({ "type": "string", "format": "date-time" }),
            Integer => json!({ "type": "integer" }),
            Flag => json!({ "type": "boolean" }),
            Words(words) => json!({ "type": "string", "enum": words }),
            Any => json!({}),
            Self::Map(of) => json!({ "type": "object", "additionalProperties": of.schema() }),
            List(of) => json!({ "type": "array", "items": of.schema() }),
            Nullable(of) => json!({ "anyOf": [of.schema(), { "type": "null" }] }),
            Either(all) => {
                json!({ "anyOf": all.iter().map(|t| t.schema()).collect::<Vec<_>>() })
            }
            Ref(name) => json!({ "$ref": format!("#/components/schemas/{name}") }),
        }
    }
}

/// One field of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    name: &'static str,
    /// Its type in answers, if it stands there.
    read: Option<Type>,
    /// Its type in bodies, if it may stand there.
    write: Option<Type>,
    when: When,
    about: &'static str,
}

/// When a field stands in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// It may always be there.
    Optional,
    /// It must be there when the thing is made.
    Required,
    /// It may be there when the thing is made, and never later.
    AtFirst,
    /// It must be there when the thing is made, and never later.
    RequiredAtFirst,
}

impl Field {
    const fn new(
        name: &'static str,
        read: Option<Type>,
        write: Option<Type>,
        about: &'static str,
    ) -> Self {
        Self {
            name,
            read,
            write,
            when: When::Optional,
            about,
        }
    }

    /// A field that stands in answers alone.
    pub(super) const fn read(name: &'static str, kind: Type, about: &'static str) -> Self {
        Self::new(name, Some(kind), None, about)
    }

    /// A field that stands in bodies alone.
    pub(super) const fn write(name: &'static str, kind: Type, about: &'static str) -> Self {
        Self::new(name, None, Some(kind), about)
    }

    /// A field that stands in both, with what is read and what may be written.
    pub(super) const fn both(
        name: &'static str,
        (read, write): (Type, Type),
        about: &'static str,
    ) -> Self {
        Self::new(name, Some(read), Some(write), about)
    }

    /// The same, required when the thing is made.
    pub(super) const fn required(mut self) -> Self {
        self.when = When::Required;
        self
    }

    /// The same, never to be changed in passing.
    pub(super) const fn at_first(mut self) -> Self {
        self.when = match self.when {
            When::Required => When::RequiredAtFirst,
            _ => When::AtFirst,
        };
        self
    }
}

/// An object of an answer: every field is always there.
pub(super) fn answer(fields: &[Field]) -> Value {
    object(
        fields
            .iter()
            .filter_map(|f| Some((f, f.read?, true)))
            .collect(),
    )
}

/// An object of an answer, with more fields that may be missing.
pub(super) fn answer_with(fields: &[Field], more: &[Field]) -> Value {
    let always = fields.iter().filter_map(|f| Some((f, f.read?, true)));
    let sometimes = more.iter().filter_map(|f| Some((f, f.read?, false)));
    object(always.chain(sometimes).collect())
}

/// The body that makes a thing.
pub(super) fn new(fields: &[Field]) -> Value {
    let is_required = |f: &Field| matches!(f.when, When::Required | When::RequiredAtFirst);
    object(
        fields
            .iter()
            .filter_map(|f| Some((f, f.write?, is_required(f))))
            .collect(),
    )
}

/// The body that changes a thing: nothing is required.
pub(super) fn change(fields: &[Field]) -> Value {
    let is_fixed = |f: &Field| matches!(f.when, When::AtFirst | When::RequiredAtFirst);
    object(
        fields
            .iter()
            .filter(|f| !is_fixed(f))
            .filter_map(|f| Some((f, f.write?, false)))
            .collect(),
    )
}

fn object(fields: Vec<(&Field, Type, bool)>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (field, kind, is_required) in fields {
        let mut schema = kind.schema();
        if let Value::Object(map) = &mut schema {
            map.insert("description".to_owned(), json!(field.about));
        }
        properties.insert(field.name.to_owned(), schema);
        if is_required {
            required.push(field.name);
        }
    }
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if let (false, Value::Object(map)) = (required.is_empty(), &mut schema) {
        map.insert("required".to_owned(), json!(required));
    }
    schema
}
