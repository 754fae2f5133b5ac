//! Settings: every one with what is in force, who said so and what clearing it would leave.
//!
//! Invariant: only what the person changed is written, and only over what the person has seen. If
//! somebody else changed it meanwhile, both values are shown and nothing is written.
mod change;
mod page;
mod review;
mod words;

use self::{
    change::{address, changed, clear_refused, forged, version, write},
    page::{Current, Done, SettingsPage},
    review::ReviewPage,
};
use super::{
    State,
    error::Trouble,
    form::{Faults, Form},
    session::{Operator, go},
    shell::{Shell, render},
    wants::Wants,
};
use crate::domain::settings::{Name, Value};
use axum::{
    extract::{self, Query},
    response::Response,
};
use http::StatusCode;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A form's fields by name.
type Said = BTreeMap<String, String>;
type Changes = Vec<(Name, Option<Value>)>;

#[derive(Deserialize)]
pub(super) struct Asked {
    done: Option<Done>,
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

/// `POST /settings`: shows what would change in one group; once that is confirmed, saves it.
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
    // Whoever corrects the form still stands on what was first seen.
    let Some(version) = version(&said).filter(|seen| (0..=current.version).contains(seen)) else {
        return forged().respond(&shell, wants);
    };
    let mut faults = Faults::default();
    let changes = changed(&shell, &said, &current.environment, &mut faults);
    if said.contains_key("edit") {
        return render(&typed(&current, shell, &said, version));
    }
    if !faults.is_empty() {
        let mut page = typed(&current, shell, &said, version);
        page.faults = faults;
        return page.refused(StatusCode::UNPROCESSABLE_ENTITY);
    }
    if changes.is_empty() {
        return go(address(Done::Nothing), wants);
    }
    if said.contains_key("confirmed") {
        return write(&state, (shell, wants), &said, changes, Done::Saved).await;
    }
    render(&ReviewPage::new(shell, &current, &said, &changes))
}

/// The page with what was typed over what the person had seen.
fn typed(current: &Current, shell: Shell, said: &Said, version: i64) -> SettingsPage {
    let mut page = current.page(shell);
    page.keep(said);
    page.version = version;
    page
}

/// `POST /settings/clear`: clears the override of one setting.
pub(super) async fn clear(
    extract::State(state): extract::State<State>,
    shell: Shell,
    wants: Wants,
    _: Operator,
    Form(said): Form<Said>,
) -> Response {
    let Some(key) = said.get("setting") else {
        return forged().respond(&shell, wants);
    };
    if let Some(name) = Name::from_key(key) {
        let changes = vec![(name, None)];
        return write(&state, (shell, wants), &said, changes, Done::Cleared).await;
    }
    let stored = match state.store().overrides().await {
        Ok(stored) => stored,
        Err(error) => return Trouble::from(error).respond(&shell, wants),
    };
    if !stored.rows.iter().any(|row| row.key == *key) {
        return forged().respond(&shell, wants);
    }
    clear_refused(&state, (shell, wants), &said, key.clone()).await
}

#[cfg(test)]
pub(super) fn samples(shell: &Shell) -> Vec<(&'static str, String)> {
    use self::page::Refused;
    use crate::domain::settings::{Layer, Settings, TABLE};
    use askama::Template as _;
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
        refused: [("max_attempts", "many"), ("no_such_setting", "1")]
            .map(|(key, value)| Refused {
                key: key.to_owned(),
                value: value.to_owned(),
                name: Name::from_key(key),
            })
            .into(),
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
    let review = ReviewPage::new(shell.clone(), &current, &Said::new(), &changes);
    all.push(("settings/review", review.render().unwrap()));
    let mut page = current.page(shell.clone());
    page.show_conflicts(&Said::new(), changes, "max_attempts");
    all.push(("settings/conflicts", page.render().unwrap()));
    all
}
