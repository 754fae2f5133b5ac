//! Live parts of pages: one fragment, asked for again and again.
//!
//! Rule: what has not changed is answered 204, so that the page is left alone. The page says what
//! it shows by the version that stood on its fragment.
use super::shell::{Shell, render};
use crate::digest;
use askama::Template;
use axum::response::{Html, IntoResponse as _, Response};
use axum_htmx::{HxReswap, HxRetarget, SwapOption};
use http::{HeaderMap, HeaderName, StatusCode};
use std::sync::OnceLock;

/// What the page shows now.
const SHOWN: HeaderName = HeaderName::from_static("x-shown-version");

/// What it will show.
const VERSION: HeaderName = HeaderName::from_static("x-version");

/// Whether it is the page itself that asks, and no person.
pub(super) fn is_tick(headers: &HeaderMap) -> bool {
    headers.contains_key(SHOWN)
}

#[derive(Template)]
#[template(path = "components/signed_out.html")]
struct SignedOut<'a> {
    shell: &'a Shell,
    login: String,
}

/// Says on top of the page that its person is signed out: a tick must neither put the login into
/// the page nor take away what the person reads.
pub(super) fn signed_out(shell: &Shell, login: String) -> Response {
    (
        StatusCode::UNAUTHORIZED,
        HxRetarget("#problems".to_owned()),
        HxReswap(SwapOption::InnerHtml),
        render(&SignedOut { shell, login }),
    )
        .into_response()
}

/// Answers with the fragment, unless the page shows it already.
pub(super) fn answer(fragment: &impl Template, headers: &HeaderMap) -> Response {
    answer_drawn(fragment.render().as_ref(), headers)
}

/// The same with one that others are shown as well.
pub(super) fn answer_shared(
    drawing: &OnceLock<Result<String, askama::Error>>,
    headers: &HeaderMap,
) -> Response {
    match drawing.get() {
        Some(drawn) => answer_drawn(drawn.as_ref(), headers),
        None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn answer_drawn(drawn: Result<&String, &askama::Error>, headers: &HeaderMap) -> Response {
    let body = match drawn {
        Ok(body) => body,
        Err(error) => {
            tracing::error!(%error, "a template failed");
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
    };
    let version = version(body);
    let is_shown = headers
        .get(SHOWN)
        .is_some_and(|shown| shown.as_bytes() == version.as_bytes());
    if is_shown {
        return StatusCode::NO_CONTENT.into_response();
    }
    ([(VERSION, version)], Html(body.clone())).into_response()
}

/// Names a text; half of its hash is enough.
pub(super) fn version(body: &str) -> String {
    let hash = digest::sha256(body.as_bytes());
    let half: [u8; 8] = std::array::from_fn(|n| hash.get(n).copied().unwrap_or_default());
    format!("{:016x}", u64::from_be_bytes(half))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Template)]
    #[template(source = "<p>{{ n }}</p>", ext = "html")]
    struct Sample {
        n: u32,
    }

    #[test]
    fn a_fragment_that_is_shown_already_is_not_sent_again() {
        let first = answer(&Sample { n: 1 }, &HeaderMap::new());
        assert_eq!(first.status(), StatusCode::OK);
        let shown = HeaderMap::from_iter([(SHOWN, first.headers()[VERSION].clone())]);
        assert_eq!(
            answer(&Sample { n: 1 }, &shown).status(),
            StatusCode::NO_CONTENT
        );
        assert_eq!(answer(&Sample { n: 2 }, &shown).status(), StatusCode::OK);
    }
}
