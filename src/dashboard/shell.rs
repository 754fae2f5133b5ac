//! What every page needs round its own content: language, theme, time zone, where it is.
use super::{
    State, assets,
    i18n::{LANGUAGES, Locale, Message},
    time::Zone,
};
use askama::Template;
use axum::{
    extract::FromRequestParts,
    response::{Html, IntoResponse as _, Response},
};
use axum_extra::extract::CookieJar;
use http::{StatusCode, header, request::Parts};
use std::{convert::Infallible, sync::Arc};

/// The cookies by which a browser remembers what a person chose.
pub(super) const LANGUAGE_COOKIE: &str = "fairlane_language";
pub(super) const THEME_COOKIE: &str = "fairlane_theme";
const ZONE_COOKIE: &str = "fairlane_zone";

/// Light, dark, or as the system has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Theme {
    System,
    Light,
    Dark,
}

impl Theme {
    pub(super) const ALL: [Self; 3] = [Self::System, Self::Light, Self::Dark];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|theme| theme.name() == name)
    }

    fn label(self) -> &'static str {
        match self {
            Self::System => "theme-system",
            Self::Light => "theme-light",
            Self::Dark => "theme-dark",
        }
    }
}

/// One entry of the navigation.
pub(super) struct Entry {
    pub(super) path: &'static str,
    pub(super) icon: &'static str,
    pub(super) label: &'static str,
    /// Whether a line is drawn above it.
    pub(super) begins_group: bool,
}

const fn entry(
    path: &'static str,
    icon: &'static str,
    label: &'static str,
    begins_group: bool,
) -> Entry {
    Entry {
        path,
        icon,
        label,
        begins_group,
    }
}

/// The navigation: only pages that exist. Their order is Overview, Concurrency, Jobs; Pool, Keys;
/// Requests, Usage; Playground, Settings, System, with a line above the first of each group.
const NAVIGATION: &[Entry] = &[
    entry("/", "overview", "nav-overview", false),
    entry("/concurrency", "concurrency", "nav-concurrency", false),
    entry("/pool", "pool", "nav-pool", true),
    entry("/keys", "keys", "nav-keys", false),
    entry("/requests", "requests", "nav-requests", true),
    entry("/settings", "settings", "nav-settings", true),
];

/// What a page is drawn into; templates call it `shell`.
#[derive(Clone)]
pub(super) struct Shell {
    pub(super) locale: Locale,
    pub(super) theme: Theme,
    pub(super) zone: Zone,
    /// Path and query of this page, to come back to.
    pub(super) here: Arc<str>,
}

impl Shell {
    pub(super) fn of(parts: &Parts, state: &State) -> Self {
        let jar = CookieJar::from_headers(&parts.headers);
        let cookie = |name: &str| jar.get(name).map(|c| c.value().to_owned());
        let accept = parts.headers.get(header::ACCEPT_LANGUAGE);
        let accept = accept.and_then(|v| v.to_str().ok());
        let language = cookie(LANGUAGE_COOKIE);
        let here = if parts.method.is_safe() {
            parts.uri.path_and_query().map_or("/", |p| p.as_str())
        } else {
            parts.uri.path()
        };
        Self {
            locale: state.i18n().locale(language.as_deref(), accept),
            theme: cookie(THEME_COOKIE)
                .and_then(|name| Theme::from_name(&name))
                .unwrap_or(Theme::System),
            zone: Zone::of(cookie(ZONE_COOKIE).as_deref()),
            here: here.into(),
        }
    }

    /// The same for a page that is not there: whatever its address carries is nobody's filter, and
    /// nothing of it needs to stand in a form.
    pub(super) fn without_query(&self) -> Self {
        let path = self.here.split('?').next().unwrap_or("/");
        Self {
            here: path.into(),
            ..self.clone()
        }
    }

    /// The message of that key.
    pub(super) fn t(&self, key: &'static str) -> Message<'_> {
        self.locale.t(key)
    }

    /// The address of an embedded file.
    #[expect(clippy::unused_self, reason = "templates can only call methods")]
    pub(super) fn asset(&self, file: &str) -> String {
        assets::url(file)
    }

    #[expect(clippy::unused_self, reason = "templates can only call methods")]
    pub(super) fn htmx(&self) -> String {
        assets::url(assets::HTMX)
    }

    #[expect(clippy::unused_self, reason = "templates can only call methods")]
    pub(super) fn navigation(&self) -> &'static [Entry] {
        NAVIGATION
    }

    /// Whether this page is the entry's or one below it.
    pub(super) fn is_at(&self, entry: &Entry) -> bool {
        let path = self.here.split('?').next().unwrap_or_default();
        match entry.path {
            "/" => path == "/",
            wanted => path
                .strip_prefix(wanted)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        }
    }

    #[expect(clippy::unused_self, reason = "templates can only call methods")]
    pub(super) fn languages(&self) -> [(&'static str, &'static str); 3] {
        LANGUAGES
    }

    /// Each theme's word, label and whether it is the chosen one.
    pub(super) fn themes(&self) -> [(&'static str, String, bool); 3] {
        Theme::ALL.map(|theme| {
            let label = self.t(theme.label()).to_string();
            (theme.name(), label, theme == self.theme)
        })
    }
}

impl FromRequestParts<State> for Shell {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, Infallible> {
        Ok(Self::of(parts, state))
    }
}

/// A rendered template as an answer.
pub(super) fn render(template: &impl Template) -> Response {
    match template.render() {
        Ok(body) => Html(body).into_response(),
        Err(error) => {
            tracing::error!(%error, "a template failed");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
