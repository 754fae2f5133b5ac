//! The page: every setting with its value, its source and what clearing it would leave.
//!
//! Invariant: what stands in a field is what is in force or what the person typed, and the page
//! keeps which of the two the person had seen.
use super::{
    super::{
        State,
        form::Faults,
        shell::{Shell, render},
    },
    Changes, Said, takes_theirs, was, words,
};
use crate::{
    domain::settings::{
        Declaration, Group, Kind, Layer, Name, Setting, Settings, Source, TABLE, Value,
    },
    store::StoreError,
};
use askama::Template;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use serde::Deserialize;

#[derive(Template)]
#[template(path = "settings.html")]
pub(super) struct SettingsPage {
    pub(super) shell: Shell,
    /// The version at which what the page shows was read.
    pub(super) version: i64,
    pub(super) sections: Vec<Section>,
    /// What is stored and has no effect.
    pub(super) refused: Vec<Refused>,
    pub(super) faults: Faults,
    /// What was just done, if something was.
    pub(super) done: Option<Done>,
}

/// One group's settings.
pub(super) struct Section {
    pub(super) group: Group,
    pub(super) rows: Vec<Row>,
}

impl Section {
    /// Whether there is anything in it that can be set here.
    pub(super) fn can_change(&self) -> bool {
        self.rows.iter().any(|row| !row.is_locked())
    }

    /// The key of its heading.
    pub(super) fn heading(&self) -> &'static str {
        words::heading(self.group)
    }
}

/// One setting.
pub(super) struct Row {
    pub(super) declaration: &'static Declaration,
    pub(super) setting: Setting,
    /// What stands in its field.
    pub(super) typed: String,
    /// What stood there before the person typed.
    pub(super) was: String,
    pub(super) conflict: Option<Conflict>,
}

/// Somebody else was faster.
pub(super) struct Conflict {
    /// What the person wanted; `None` to clear it.
    pub(super) mine: Option<Value>,
}

/// What the last form did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Done {
    Saved,
    Cleared,
    Nothing,
}

/// What is stored and what the environment states.
pub(super) struct Current {
    pub(super) version: i64,
    pub(super) settings: Settings,
    pub(super) environment: Layer,
    /// What is stored and not accepted.
    pub(super) refused: Vec<Refused>,
}

/// A stored row that this version does not accept, and so leaves alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) key: String,
    pub(super) value: String,
    /// The setting, if there is one of that key.
    pub(super) name: Option<Name>,
}

impl Current {
    pub(super) async fn read(state: &State) -> Result<Self, StoreError> {
        let overrides = state.store().overrides().await?;
        let environment = state.reload().configuration().environment().clone();
        let (layer, refused) = overrides.layer();
        let refused = refused.into_iter().map(|row| Refused {
            key: row.key.clone(),
            value: row.value.clone(),
            name: Name::from_key(&row.key),
        });
        Ok(Self {
            version: overrides.version,
            settings: Settings::resolve(&environment, &layer),
            refused: refused.collect(),
            environment,
        })
    }

    pub(super) fn page(&self, shell: Shell) -> SettingsPage {
        let section = |group| {
            let of_group = TABLE.iter().filter(|d| d.group == group);
            Section {
                group,
                rows: of_group.map(|declaration| self.row(declaration)).collect(),
            }
        };
        SettingsPage {
            shell,
            version: self.version,
            sections: Group::ALL.map(section).into(),
            refused: self.refused.clone(),
            faults: Faults::default(),
            done: None,
        }
    }

    pub(super) fn row(&self, declaration: &'static Declaration) -> Row {
        let setting = self.settings.setting(declaration.name).clone();
        let text = setting.value.to_string();
        Row {
            declaration,
            setting,
            typed: text.clone(),
            was: text,
            conflict: None,
        }
    }
}

impl Row {
    /// The keys of its name and its explanation.
    pub(super) fn words(&self) -> (&'static str, &'static str) {
        words::words(self.declaration.name)
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self.declaration.kind, Kind::Integer { .. })
    }

    pub(super) fn is_switch(&self) -> bool {
        self.declaration.kind == Kind::Switch
    }

    /// The words to choose from; none where it takes something else.
    pub(super) fn choices(&self) -> &'static [&'static str] {
        match self.declaration.kind {
            Kind::Word { accepted } => accepted,
            _ => &[],
        }
    }

    pub(super) fn is_locked(&self) -> bool {
        self.setting.environment.is_some()
    }

    pub(super) fn is_override(&self) -> bool {
        self.setting.source == Source::Override
    }

    /// The source of what clearing would leave.
    pub(super) fn inherited_from(&self) -> &'static str {
        if self.is_locked() {
            "environment"
        } else {
            "default"
        }
    }
}

impl SettingsPage {
    pub(super) fn rows(&mut self) -> impl Iterator<Item = &mut Row> {
        self.sections
            .iter_mut()
            .flat_map(|section| &mut section.rows)
    }

    /// With what was typed, over what the person had seen.
    pub(super) fn keep(&mut self, said: &Said) {
        for row in self.rows().filter(|row| !row.is_locked()) {
            let key = row.declaration.key;
            if takes_theirs(said, key) {
                continue;
            }
            if let Some(typed) = said.get(key) {
                row.typed.clone_from(typed);
            }
            if let Some(was) = said.get(&was(key)) {
                row.was.clone_from(was);
            }
        }
    }

    /// With both values at every setting that is not any more what the person had seen.
    pub(super) fn show_conflicts(&mut self, said: &Said, changes: Changes, named: &str) {
        for (name, mine) in changes {
            let Some(row) = self.rows().find(|row| row.declaration.name == name) else {
                continue;
            };
            if let Some(mine) = &mine {
                row.typed = mine.to_string();
            }
            let key = row.declaration.key;
            let is_as_seen = said.get(&was(key)).is_some_and(|text| *text == row.was);
            if key == named || !is_as_seen {
                row.conflict = Some(Conflict { mine });
                let text = self.shell.t("setting-conflict").to_string();
                self.faults.add(key, text);
            }
        }
    }

    /// Why a stored row has no effect.
    pub(super) fn why_refused(&self, row: &Refused) -> String {
        match row.name {
            None => self.shell.t("setting-unknown").to_string(),
            Some(name) => words::accepts(&self.shell, name.declaration()),
        }
    }

    pub(super) fn value(&self, value: &Value) -> String {
        words::value(&self.shell, value)
    }

    pub(super) fn refused(self, status: StatusCode) -> Response {
        (status, render(&self)).into_response()
    }
}
