//! Language and theme: remembered by the browser, for people with and without a session.
use super::{
    State,
    form::Form,
    i18n::LANGUAGES,
    session::{From, local_address},
    shell::{LANGUAGE_COOKIE, THEME_COOKIE, Theme},
};
use axum::{
    extract,
    response::{AppendHeaders, IntoResponse as _, Redirect, Response},
};
use http::header;
use serde::Deserialize;

/// A year.
const SECONDS: u32 = 365 * 24 * 3600;

#[derive(Debug, Deserialize)]
pub(super) struct Choice {
    #[serde(default)]
    language: String,
    #[serde(default)]
    theme: String,
    #[serde(default)]
    here: String,
}

/// `POST /preferences`: remembers what was chosen, and leads back.
pub(super) async fn change(
    extract::State(_): extract::State<State>,
    from: From,
    Form(choice): Form<Choice>,
) -> Response {
    let language = LANGUAGES.iter().find(|(tag, _)| *tag == choice.language);
    let language = language.map(|(tag, _)| (LANGUAGE_COOKIE, *tag));
    let theme = Theme::from_name(&choice.theme).map(|theme| (THEME_COOKIE, theme.name()));
    let secure = if from.sender.is_tls { "; Secure" } else { "" };
    let cookies = [language, theme]
        .into_iter()
        .flatten()
        .map(|(name, value)| {
            let text = format!(
                "{name}={value}; HttpOnly; SameSite=Lax; Path=/; Max-Age={SECONDS}{secure}"
            );
            (header::SET_COOKIE, text)
        });
    let cookies: Vec<_> = cookies.collect();
    let back = Redirect::to(local_address(&choice.here));
    (AppendHeaders(cookies), back).into_response()
}
