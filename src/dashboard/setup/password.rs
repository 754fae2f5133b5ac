//! Step one: the password.
use super::trouble;
use crate::{
    access::{MIN_CHARACTERS, PasswordError, SetUp},
    dashboard::{
        State,
        form::{Faults, Form},
        login::{too_many, with_session},
        session::{From, Operator, go},
        shell::{Shell, render},
        wants::Wants,
    },
};
use askama::Template;
use axum::{
    extract,
    response::{IntoResponse as _, Response},
};
use http::StatusCode;
use serde::Deserialize;

#[derive(Template)]
#[template(path = "setup/password.html")]
struct PasswordPage {
    shell: Shell,
    needs_token: bool,
    min: usize,
    faults: Faults,
}

#[derive(Deserialize)]
pub(in crate::dashboard) struct Typed {
    #[serde(default)]
    token: String,
    #[serde(default)]
    password: String,
    #[serde(default)]
    repeated: String,
}

/// `GET /setup/password`.
pub(super) async fn show(
    extract::State(state): extract::State<State>,
    shell: Shell,
    from: From,
    operator: Option<Operator>,
) -> Response {
    match state.access().is_set_up().await {
        Ok(false) => render(&page(shell, &from, Faults::default())),
        Ok(true) if operator.is_some() => go("/setup".to_owned(), Wants::Page),
        Ok(true) => go("/login".to_owned(), Wants::Page),
        Err(error) => trouble(&shell, error, Wants::Page),
    }
}

fn page(shell: Shell, from: &From, faults: Faults) -> PasswordPage {
    PasswordPage {
        shell,
        needs_token: !from.sender.is_local,
        min: MIN_CHARACTERS,
        faults,
    }
}

/// `POST /setup/password`.
pub(super) async fn set(
    extract::State(state): extract::State<State>,
    shell: Shell,
    from: From,
    Form(typed): Form<Typed>,
) -> Response {
    if typed.password != typed.repeated {
        let text = shell.t("setup-password-differs").to_string();
        return again(
            shell,
            &from,
            ("repeated", text),
            StatusCode::UNPROCESSABLE_ENTITY,
        );
    }
    let access = state.access();
    let tried = access.set_up(
        &from.sender,
        &typed.token,
        &typed.password,
        &from.user_agent,
    );
    match tried.await {
        Ok(SetUp::Done(secret)) => {
            let next = go("/setup".to_owned(), Wants::Page);
            with_session(access, &from, &secret, next)
        }
        Ok(SetUp::Already) => go("/login".to_owned(), Wants::Page),
        Ok(SetUp::WrongToken) => {
            let text = shell.t("setup-token-wrong").to_string();
            again(
                shell,
                &from,
                ("token", text),
                StatusCode::UNPROCESSABLE_ENTITY,
            )
        }
        Ok(SetUp::TooMany(wait)) => {
            let text = too_many(&shell, wait);
            again(shell, &from, ("token", text), StatusCode::TOO_MANY_REQUESTS)
        }
        Ok(SetUp::Refused(error)) => {
            let text = refusal(&shell, error);
            again(
                shell,
                &from,
                ("password", text),
                StatusCode::UNPROCESSABLE_ENTITY,
            )
        }
        Err(error) => trouble(&shell, error, Wants::Page),
    }
}

fn refusal(shell: &Shell, error: PasswordError) -> String {
    match error {
        PasswordError::TooShort => shell.t("password-too-short").num("min", MIN_CHARACTERS),
        PasswordError::TooLong => shell.t("password-too-long"),
    }
    .to_string()
}

fn again(
    shell: Shell,
    from: &From,
    (field, text): (&'static str, String),
    status: StatusCode,
) -> Response {
    let mut faults = Faults::default();
    faults.add(field, text);
    (status, render(&page(shell, from, faults))).into_response()
}

#[cfg(test)]
pub(super) fn samples(shell: &Shell) -> Vec<(&'static str, String)> {
    let mut faults = Faults::default();
    faults.add("token", shell.t("setup-token-wrong"));
    faults.add("password", refusal(shell, PasswordError::TooShort));
    faults.add("repeated", shell.t("setup-password-differs"));
    let pages = [(false, Faults::default()), (true, faults)];
    pages
        .into_iter()
        .map(|(needs_token, faults)| {
            let page = PasswordPage {
                shell: shell.clone(),
                needs_token,
                min: MIN_CHARACTERS,
                faults,
            };
            ("setup/password", page.render().unwrap())
        })
        .collect()
}
