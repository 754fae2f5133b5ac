//! What would change, said before it is saved.
//!
//! Invariant: the form that saves carries exactly what the review shows, and what the person had
//! seen when it was typed.
use super::{super::shell::Shell, Changes, Said, page::Current, was, words};
use crate::domain::settings::{Source, Value};
use askama::Template;

#[derive(Template)]
#[template(path = "settings/review.html")]
pub(super) struct ReviewPage {
    pub(super) shell: Shell,
    version: String,
    rows: Vec<Change>,
}

/// One setting that would change.
struct Change {
    key: &'static str,
    /// The key of its name.
    name: &'static str,
    was: String,
    /// As the form sends it.
    typed: String,
    from: String,
    source: Source,
    to: String,
}

impl ReviewPage {
    pub(super) fn new(shell: Shell, current: &Current, said: &Said, changes: &Changes) -> Self {
        let said = |key: &str| said.get(key).cloned().unwrap_or_default();
        let row = |(name, value): &(_, Option<Value>)| {
            let setting = current.settings.setting(*name);
            let key = setting_key(*name);
            let value = value.as_ref()?;
            Some(Change {
                key,
                name: words::words(*name).0,
                was: said(&was(key)),
                typed: value.to_string(),
                from: words::value(&shell, &setting.value),
                source: setting.source,
                to: words::value(&shell, value),
            })
        };
        Self {
            version: said("version"),
            rows: changes.iter().filter_map(row).collect(),
            shell,
        }
    }
}

fn setting_key(name: crate::domain::settings::Name) -> &'static str {
    name.declaration().key
}
