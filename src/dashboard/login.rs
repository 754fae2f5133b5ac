//! Logging in and out.
use super::{
    State,
    error::Trouble,
    form::{Faults, Form},
    session::{From, Operator, go, local_address},
    shell::{Shell, render},
    wants::Wants,
};
use crate::access::{Access, Login};
use askama::Template;
use axum::{
    extract::{self, Query},
    response::{IntoResponse as _, Response},
};
use http::{StatusCode, header};
use serde::Deserialize;

#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage {
    shell: Shell,
    next: String,
    faults: Faults,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Next {
    #[serde(default)]
    next: String,
}

#[derive(Deserialize)]
pub(super) struct Typed {
    #[serde(default)]
    password: String,
    #[serde(default)]
    next: String,
}

/// `GET /login`.
pub(super) async fn show(
    extract::State(state): extract::State<State>,
    shell: Shell,
    operator: Option<Operator>,
    Query(next): Query<Next>,
) -> Response {
    if operator.is_some() {
        return go(local_address(&next.next).to_owned(), Wants::Page);
    }
    match state.access().is_set_up().await {
        Ok(false) => return go("/setup/password".to_owned(), Wants::Page),
        Ok(true) => (),
        Err(error) => return Trouble::from(error).respond(&shell, Wants::Page),
    }
    render(&LoginPage {
        shell,
        next: next.next,
        faults: Faults::default(),
    })
}

/// `POST /login`.
pub(super) async fn log_in(
    extract::State(state): extract::State<State>,
    shell: Shell,
    from: From,
    Form(typed): Form<Typed>,
) -> Response {
    let access = state.access();
    let tried = access.log_in(&from.sender, &typed.password, &from.user_agent);
    let mut faults = Faults::default();
    let status = match tried.await {
        Ok(Login::Opened(secret)) => {
            let target = go(local_address(&typed.next).to_owned(), Wants::Page);
            return with_session(access, &from, &secret, target);
        }
        Ok(Login::NotSetUp) => return go("/setup/password".to_owned(), Wants::Page),
        Ok(Login::Wrong) => {
            faults.add("password", shell.t("login-wrong"));
            StatusCode::UNPROCESSABLE_ENTITY
        }
        Ok(Login::TooMany(wait)) => {
            faults.add("password", too_many(&shell, wait));
            StatusCode::TOO_MANY_REQUESTS
        }
        Err(error) => return Trouble::from(error).respond(&shell, Wants::Page),
    };
    let next = typed.next;
    let page = LoginPage {
        shell,
        next,
        faults,
    };
    (status, render(&page)).into_response()
}

/// What to say to whoever has tried too often.
pub(super) fn too_many(shell: &Shell, wait: std::time::Duration) -> String {
    // Rounded up, so that whoever waits as long as it says gets in.
    let seconds = std::time::Duration::from_secs(
        wait.as_millis()
            .div_ceil(1000)
            .try_into()
            .unwrap_or(u64::MAX),
    );
    shell
        .t("login-too-many")
        .text("wait", shell.span(seconds))
        .to_string()
}

/// An answer that opens a session in the browser.
pub(super) fn with_session(
    access: &Access,
    from: &From,
    secret: &str,
    mut answer: Response,
) -> Response {
    if let Some(cookie) = access.session_cookie(&from.sender, secret) {
        answer.headers_mut().append(header::SET_COOKIE, cookie);
    }
    answer
}

/// `POST /logout`.
pub(super) async fn log_out(
    extract::State(state): extract::State<State>,
    shell: Shell,
    from: From,
    operator: Operator,
) -> Response {
    if let Err(error) = state.access().log_out(operator.session).await {
        return Trouble::from(error).respond(&shell, Wants::Page);
    }
    let mut answer = go("/login".to_owned(), Wants::Page);
    if let Some(cookie) = Access::no_session_cookie(&from.sender) {
        answer.headers_mut().append(header::SET_COOKIE, cookie);
    }
    answer
}

#[cfg(test)]
pub(super) fn samples(shell: &Shell) -> Vec<(&'static str, String)> {
    let mut faults = Faults::default();
    faults.add(
        "password",
        too_many(shell, std::time::Duration::from_millis(1500)),
    );
    [Faults::default(), faults]
        .into_iter()
        .map(|faults| {
            let page = LoginPage {
                shell: shell.clone(),
                next: "/".to_owned(),
                faults,
            };
            ("login", page.render().unwrap())
        })
        .collect()
}
