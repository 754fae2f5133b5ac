//! Taking a JSON object apart, field by field, collecting every mistake with its path.
use crate::domain::pool::document::{Field, Mistake, Warning};
use serde_json::{Map, Value};

/// What was noticed so far.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) mistakes: Vec<Mistake>,
    pub(super) warnings: Vec<Warning>,
}

impl Notes {
    pub(super) fn mistake(&mut self, path: impl Into<String>, what: impl Into<String>) {
        self.mistakes.push(Mistake::new(path, what));
    }

    pub(super) fn warn(&mut self, path: impl Into<String>, what: impl Into<String>) {
        self.warnings.push(Warning::new(path, what));
    }
}

/// An object and where it stands.
pub(super) struct Object<'a> {
    pub(super) path: String,
    map: &'a Map<String, Value>,
}

impl<'a> Object<'a> {
    pub(super) fn new(path: String, map: &'a Map<String, Value>) -> Self {
        Self { path, map }
    }

    /// The path of one field.
    pub(super) fn at(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    pub(super) fn value(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key)
    }

    /// Every field that is not among `known` is a mistake.
    pub(super) fn check_known(&self, known: &[&str], notes: &mut Notes) {
        for key in self.map.keys().filter(|k| !known.contains(&k.as_str())) {
            let close = known.iter().find(|k| distance(k, key) <= 2);
            let what = match close {
                Some(close) => format!("there is no such field; did you mean {close:?}?"),
                None => format!("there is no such field; known are {}", known.join(", ")),
            };
            notes.mistake(self.at(key), what);
        }
    }

    /// A field for something that does not exist yet may be there, but must say nothing.
    pub(super) fn refuse_unavailable(&self, key: &str, notes: &mut Notes) {
        let says_something = match self.value(key) {
            None | Some(Value::Null | Value::Bool(false)) => false,
            Some(Value::Array(list)) => !list.is_empty(),
            Some(Value::Object(map)) => !map.is_empty(),
            Some(Value::String(text)) => !text.is_empty(),
            Some(_) => true,
        };
        if says_something {
            notes.mistake(
                self.at(key),
                "is not available in this version; leave it out",
            );
        }
    }

    /// A field that `parse` understands; its error says what must be there instead.
    pub(super) fn field<T>(
        &self,
        key: &str,
        notes: &mut Notes,
        parse: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Field<T> {
        match self.value(key) {
            None => Field::Absent,
            Some(Value::Null) => Field::Null,
            Some(value) => match parse(value) {
                Ok(value) => Field::Value(value),
                Err(what) => {
                    notes.mistake(self.at(key), what);
                    Field::Absent
                }
            },
        }
    }

    /// A list; each item that `parse` does not understand is a mistake of its own. An empty list
    /// is one where `empty` says why.
    pub(super) fn list<T>(
        &self,
        key: &str,
        notes: &mut Notes,
        empty: Option<&str>,
        parse: impl Fn(&Value) -> Result<T, String>,
    ) -> Field<Vec<T>> {
        let items = match self.value(key) {
            None => return Field::Absent,
            Some(Value::Null) => return Field::Null,
            Some(Value::Array(items)) => items,
            Some(_) => {
                notes.mistake(self.at(key), "must be a list or null");
                return Field::Absent;
            }
        };
        if let (true, Some(what)) = (items.is_empty(), empty) {
            notes.mistake(self.at(key), what);
            return Field::Absent;
        }
        let mut read = Vec::with_capacity(items.len());
        for (n, item) in items.iter().enumerate() {
            match parse(item) {
                Ok(item) => read.push(item),
                Err(what) => notes.mistake(format!("{}[{n}]", self.at(key)), what),
            }
        }
        Field::Value(read)
    }

    /// A list of objects, each read by `read`.
    pub(super) fn each<T>(
        &self,
        key: &str,
        notes: &mut Notes,
        read: impl Fn(&Object<'_>, &mut Notes) -> T,
    ) -> Vec<T> {
        let items = match self.value(key) {
            None | Some(Value::Null) => return Vec::new(),
            Some(Value::Array(items)) => items,
            Some(_) => {
                notes.mistake(self.at(key), "must be a list of objects");
                return Vec::new();
            }
        };
        let mut found = Vec::with_capacity(items.len());
        for (n, item) in items.iter().enumerate() {
            let path = format!("{}[{n}]", self.at(key));
            match item {
                Value::Object(map) => found.push(read(&Object::new(path, map), notes)),
                _ => notes.mistake(path, "must be an object"),
            }
        }
        found
    }
}

/// A whole number from `min` to `max`.
pub(super) fn whole(value: &Value, min: i64, max: i64) -> Result<i64, String> {
    value
        .as_i64()
        .filter(|n| (min..=max).contains(n))
        .ok_or_else(|| format!("must be a whole number from {min} to {max}, or null"))
}

pub(super) fn switch(value: &Value) -> Result<bool, String> {
    value
        .as_bool()
        .ok_or_else(|| "must be true or false, or null".to_owned())
}

pub(super) fn text(value: &Value) -> Result<&str, String> {
    value
        .as_str()
        .ok_or_else(|| "must be a text in quotes".to_owned())
}

/// How many letters must be changed, added or left out to get from one word to the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (n, x) in a.chars().enumerate() {
        let mut next = vec![n + 1];
        for ((above, diagonal), y) in row.iter().skip(1).zip(&row).zip(&b) {
            let left = next.last().copied().unwrap_or(0);
            let replaced = diagonal + usize::from(x != *y);
            next.push(replaced.min(above + 1).min(left + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}
