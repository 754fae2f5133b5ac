//! Settings: every one with what is in force, who said so and what clearing it would leave.
//!
//! Invariant: only what the person changed is written, and only over what the person has seen. If
//! somebody else changed it meanwhile, both values are shown and nothing is written.
mod words;

use super::{
    State,
    error::Trouble,
    form::{Faults, Form},
    session::{Operator, go},
    shell::{Shell, render},
    wants::Wants,
};
use crate::{
    domain::settings::{Declaration, Group, Kind, Layer, Name, Setting, Settings, TABLE, Value},
    store::StoreError,
};
use askama::Template;
use axum::{
    extract::{self, Query},
    response::{IntoResponse as _, Response},
};
use http::StatusCode;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Template)]
#[template(path = "settings.html")]
struct SettingsPage {
    shell: Shell,
    /// The version at which what the page shows was read.
    version: i64,
    sections: Vec<Section>,
    faults: Faults,
    /// What was just done, if something was.
    done: Option<Done>,
}

/// One group's settings.
struct Section {
    group: Group,
    rows: Vec<Row>,
}

impl Section {
    /// The key of its heading.
    fn heading(&self) -> &'static str {
        words::heading(self.group)
    }
}

/// One setting.
struct Row {
    declaration: &'static Declaration,
    setting: Setting,
    /// What stands in its field.
    typed: String,
    /// What stood there before the person typed.
    was: String,
    conflict: Option<Conflict>,
}

/// Somebody else was faster.
struct Conflict {
    /// What the person wanted; `None` to clear it.
    mine: Option<Value>,
}

/// What the last form did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Done {
    Saved,
    Cleared,
    Nothing,
}

#[derive(Deserialize)]
pub(super) struct Asked {
    done: Option<Done>,
}

/// A form's fields by name.
type Said = BTreeMap<String, String>;
type Changes = Vec<(Name, Option<Value>)>;

/// What is stored and what the environment states.
struct Current {
    version: i64,
    settings: Settings,
    environment: Layer,
}

impl Current {
    async fn read(state: &State) -> Result<Self, StoreError> {
        let overrides = state.store().overrides().await?;
        let environment = state.reload().configuration().environment().clone();
        Ok(Self {
            version: overrides.version,
            settings: Settings::resolve(&environment, &overrides.layer().0),
            environment,
        })
    }

    fn page(&self, shell: Shell) -> SettingsPage {
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
            faults: Faults::default(),
            done: None,
        }
    }

    fn row(&self, declaration: &'static Declaration) -> Row {
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
    fn words(&self) -> (&'static str, &'static str) {
        words::words(self.declaration.name)
    }

    fn is_number(&self) -> bool {
        matches!(self.declaration.kind, Kind::Integer { .. })
    }

    fn is_switch(&self) -> bool {
        self.declaration.kind == Kind::Switch
    }

    fn is_locked(&self) -> bool {
        self.setting.environment.is_some()
    }

    fn is_override(&self) -> bool {
        self.setting.source == crate::domain::settings::Source::Override
    }

    /// The source of what clearing would leave.
    fn inherited_from(&self) -> &'static str {
        if self.is_locked() {
            "environment"
        } else {
            "default"
        }
    }
}

impl SettingsPage {
    fn rows(&mut self) -> impl Iterator<Item = &mut Row> {
        self.sections
            .iter_mut()
            .flat_map(|section| &mut section.rows)
    }

    /// With what was typed, over what the person had seen.
    fn keep(&mut self, said: &Said) {
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
    fn show_conflicts(&mut self, said: &Said, changes: Changes, named: &str) {
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

    fn value(&self, value: &Value) -> String {
        words::value(&self.shell, value)
    }

    fn refused(self, status: StatusCode) -> Response {
        (status, render(&self)).into_response()
    }
}

fn was(key: &str) -> String {
    format!("was.{key}")
}

/// Whether the person chose what somebody else had put.
fn takes_theirs(said: &Said, key: &str) -> bool {
    let choice = said.get(&format!("choice.{key}"));
    choice.is_some_and(|choice| choice == "theirs")
}

/// `GET /settings`.
pub(super) async fn show(
    extract::State(state): extract::State<State>,
    shell: Shell,
    wants: Wants,
    _: Operator,
    Query(asked): Query<Asked>,
) -> Response {
    match Current::read(&state).await {
        Ok(current) => {
            let mut page = current.page(shell);
            page.done = asked.done;
            render(&page)
        }
        Err(error) => Trouble::from(error).respond(&shell, wants),
    }
}

/// `POST /settings`: saves what was changed in one group.
pub(super) async fn save(
    extract::State(state): extract::State<State>,
    shell: Shell,
    wants: Wants,
    _: Operator,
    Form(said): Form<Said>,
) -> Response {
    let current = match Current::read(&state).await {
        Ok(current) => current,
        Err(error) => return Trouble::from(error).respond(&shell, wants),
    };
    let mut faults = Faults::default();
    let changes = changed(&shell, &said, &current.environment, &mut faults);
    if faults.is_empty() {
        let done = Done::Saved;
        return write(&state, (shell, wants), &said, changes, done).await;
    }
    // Whoever corrects the form still stands on what was first seen.
    let Some(version) = version(&said) else {
        return forged().respond(&shell, wants);
    };
    let mut page = current.page(shell);
    page.keep(&said);
    page.version = version;
    page.faults = faults;
    page.refused(StatusCode::UNPROCESSABLE_ENTITY)
}

/// `POST /settings/clear`: clears the override of one setting.
pub(super) async fn clear(
    extract::State(state): extract::State<State>,
    shell: Shell,
    wants: Wants,
    _: Operator,
    Form(said): Form<Said>,
) -> Response {
    let name = said.get("setting").and_then(|key| Name::from_key(key));
    let Some(name) = name else {
        return forged().respond(&shell, wants);
    };
    let changes = vec![(name, None)];
    write(&state, (shell, wants), &said, changes, Done::Cleared).await
}

/// No form of ours looks like that.
fn forged() -> Trouble {
    Trouble::UnreadableForm(StatusCode::BAD_REQUEST)
}

fn version(said: &Said) -> Option<i64> {
    said.get("version")?.parse().ok()
}

/// What the person changed. What cannot be taken is said at its field.
fn changed(shell: &Shell, said: &Said, environment: &Layer, faults: &mut Faults) -> Changes {
    let mut changes = Vec::new();
    for declaration in TABLE {
        let key = declaration.key;
        let Some(typed) = said.get(key) else {
            continue;
        };
        let is_as_it_was = said.get(&was(key)).is_some_and(|was| was == typed.trim());
        if is_as_it_was || takes_theirs(said, key) {
            continue;
        }
        match declaration.parse(typed) {
            Err(_) => faults.add(key, words::accepted(shell, declaration)),
            Ok(value) if environment.locks(declaration.name, Some(&value)).is_some() => {
                faults.add(
                    key,
                    shell.t("setting-locked").text("env", declaration.env()),
                );
            }
            Ok(value) => changes.push((declaration.name, Some(value))),
        }
    }
    changes
}

/// Writes, brings into force, and leads back; or shows what somebody else did meanwhile.
async fn write(
    state: &State,
    (shell, wants): (Shell, Wants),
    said: &Said,
    changes: Changes,
    done: Done,
) -> Response {
    if changes.is_empty() {
        return go(address(Done::Nothing), wants);
    }
    match try_write(state, said, changes.clone()).await {
        Ok(()) => go(address(done), wants),
        Err(Trouble::Store(StoreError::SettingConflict { key, .. })) => {
            match Current::read(state).await {
                Ok(current) => {
                    let mut page = current.page(shell);
                    page.show_conflicts(said, changes, &key);
                    page.refused(StatusCode::CONFLICT)
                }
                Err(error) => Trouble::from(error).respond(&shell, wants),
            }
        }
        Err(trouble) => trouble.respond(&shell, wants),
    }
}

async fn try_write(state: &State, said: &Said, changes: Changes) -> Result<(), Trouble> {
    let given_out = state.store().overrides().await?;
    let version = version(said).filter(|version| given_out.was_at(*version));
    let version = version.ok_or_else(forged)?;
    state.store().change_settings(version, changes).await?;
    state.reload().now().await?;
    Ok(())
}

fn address(done: Done) -> String {
    let word = match done {
        Done::Saved => "saved",
        Done::Cleared => "cleared",
        Done::Nothing => "nothing",
    };
    format!("/settings?done={word}")
}

#[cfg(test)]
pub(super) fn samples(shell: &Shell) -> Vec<(&'static str, String)> {
    let set = |n| Some(Value::Integer(n));
    let mut environment = Layer::default();
    environment.put(Name::MaxAttempts, set(2));
    environment.put(Name::AccountCreateLimit, set(2));
    let mut overrides = Layer::default();
    overrides.put(Name::AccountStreamLimit, set(12));
    overrides.put(Name::MaxAttempts, set(4));
    overrides.put(Name::CorsAllowedOrigins, Some(Value::Text("".into())));
    let current = Current {
        version: 3,
        settings: Settings::resolve(&environment, &overrides),
        environment,
    };
    let mut all = Vec::new();
    for done in [Done::Saved, Done::Cleared, Done::Nothing] {
        let mut page = current.page(shell.clone());
        page.done = Some(done);
        all.push(("settings", page.render().unwrap()));
    }
    let said: Said = TABLE
        .iter()
        .map(|d| (d.key.to_owned(), "-1".to_owned()))
        .collect();
    let mut page = current.page(shell.clone());
    page.keep(&said);
    changed(shell, &said, &current.environment, &mut page.faults);
    page.faults.add(
        Name::AccountCreateLimit.declaration().key,
        shell.t("setting-locked").text("env", "1"),
    );
    all.push(("settings/faults", page.render().unwrap()));
    let changes = vec![
        (Name::AccountStreamLimit, set(20)),
        (Name::StageTrace, Some(Value::Switch(true))),
        (Name::MaxAttempts, None),
    ];
    let mut page = current.page(shell.clone());
    page.show_conflicts(&Said::new(), changes, "max_attempts");
    all.push(("settings/conflicts", page.render().unwrap()));
    all
}
