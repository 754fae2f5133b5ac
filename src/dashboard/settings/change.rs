//! What the person changed, and writing it.
//!
//! Invariant: nothing is written over what the person has not seen.
use super::{
    super::{State, error::Trouble, form::Faults, session::go, shell::Shell, wants::Wants},
    Changes, Said,
    page::{Current, Done},
    takes_theirs, was, words,
};
use crate::{
    domain::settings::{Layer, TABLE},
    store::StoreError,
};
use axum::response::Response;
use http::StatusCode;

/// No form of ours looks like that.
pub(super) fn forged() -> Trouble {
    Trouble::UnreadableForm(StatusCode::BAD_REQUEST)
}

pub(super) fn version(said: &Said) -> Option<i64> {
    said.get("version")?.parse().ok()
}

/// What the person changed. What cannot be taken is said at its field.
pub(super) fn changed(
    shell: &Shell,
    said: &Said,
    environment: &Layer,
    faults: &mut Faults,
) -> Changes {
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
pub(super) async fn write(
    state: &State,
    (shell, wants): (Shell, Wants),
    said: &Said,
    changes: Changes,
    done: Done,
) -> Response {
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

pub(super) async fn try_write(state: &State, said: &Said, changes: Changes) -> Result<(), Trouble> {
    let given_out = state.store().overrides().await?;
    let version = version(said).filter(|version| given_out.was_at(*version));
    let version = version.ok_or_else(forged)?;
    state.store().change_settings(version, changes).await?;
    state.reload().now().await?;
    Ok(())
}

pub(super) fn address(done: Done) -> String {
    let word = match done {
        Done::Saved => "saved",
        Done::Cleared => "cleared",
        Done::Nothing => "nothing",
    };
    format!("/settings?done={word}")
}

/// Clears a stored row that has no effect, whatever its key.
pub(super) async fn clear_refused(
    state: &State,
    (shell, wants): (Shell, Wants),
    said: &Said,
    key: String,
) -> Response {
    let Some(version) = version(said) else {
        return forged().respond(&shell, wants);
    };
    let cleared = state.store().clear_setting(version, key).await;
    let error = match cleared {
        Ok(_) => match state.reload().now().await {
            Ok(()) => return go(address(Done::Cleared), wants),
            Err(error) => error,
        },
        Err(error) => error,
    };
    match (error, Current::read(state).await) {
        (StoreError::SettingConflict { .. }, Ok(current)) => {
            let mut page = current.page(shell);
            let text = page.shell.t("setting-refused-changed").to_string();
            page.faults.add("refused", text);
            page.refused(StatusCode::CONFLICT)
        }
        (StoreError::SettingConflict { .. }, Err(error)) | (error, _) => {
            Trouble::from(error).respond(&shell, wants)
        }
    }
}
