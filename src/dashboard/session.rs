//! Who is asking. A handler that takes an [`Operator`] cannot be reached without a session: the
//! extractor is the permission.
use super::{State, error::Trouble, live, shell::Shell, wants::Wants};
use crate::{
    domain::ids::SessionId,
    peer::{Peer, Sender},
};
use axum::{
    extract::{FromRequestParts, OptionalFromRequestParts},
    response::{IntoResponse as _, Redirect, Response},
};
use axum_htmx::{HX_CURRENT_URL, HxRedirect};
use http::{HeaderMap, Uri, header, request::Parts};

/// A person who is logged in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operator {
    /// Their session.
    pub(super) session: SessionId,
}

impl FromRequestParts<State> for Operator {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, Response> {
        let found = <Self as OptionalFromRequestParts<State>>::from_request_parts(parts, state);
        match found.await? {
            Some(operator) => Ok(operator),
            None => Err(to_the_door(parts, state).await?),
        }
    }
}

impl OptionalFromRequestParts<State> for Operator {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &State,
    ) -> Result<Option<Self>, Response> {
        match state.access().session(&parts.headers).await {
            Ok(found) => Ok(found.map(|session| Self {
                session: session.id,
            })),
            Err(error) => Err(failed(parts, state, error.into())),
        }
    }
}

/// Where a person without a session goes first.
async fn to_the_door(parts: &Parts, state: &State) -> Result<Response, Response> {
    match state.access().is_set_up().await {
        Ok(true) if live::is_tick(&parts.headers) => {
            let login = login_to(page_of(&parts.headers).as_deref().unwrap_or("/"));
            Ok(live::signed_out(&Shell::of(parts, state), login))
        }
        Ok(true) => Ok(go(login_address(parts), Wants::of(&parts.headers))),
        Ok(false) => Ok(go("/setup/password".to_owned(), Wants::of(&parts.headers))),
        Err(error) => Err(failed(parts, state, error.into())),
    }
}

/// The login, which leads back to the page that was asked for.
fn login_address(parts: &Parts) -> String {
    let wanted = parts.uri.path_and_query().map_or("/", |p| p.as_str());
    if parts.method.is_safe() && Wants::of(&parts.headers) == Wants::Page {
        login_to(wanted)
    } else {
        login_to("/")
    }
}

/// The login, which leads on to that address of ours.
fn login_to(wanted: &str) -> String {
    if wanted == "/" {
        return "/login".to_owned();
    }
    let query = form_urlencoded(wanted);
    format!("/login?next={query}")
}

/// The page that a fragment was asked for by.
fn page_of(headers: &HeaderMap) -> Option<String> {
    let url: Uri = headers.get(HX_CURRENT_URL)?.to_str().ok()?.parse().ok()?;
    Some(local_address(url.path_and_query()?.as_str()).to_owned())
}

/// Bytes that need no escape in a query's value.
pub(super) fn form_urlencoded(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::new(), |mut escaped, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
        escaped
    })
}

fn failed(parts: &Parts, state: &State, trouble: Trouble) -> Response {
    trouble.respond(&Shell::of(parts, state), Wants::of(&parts.headers))
}

/// Leads the browser to another page: a fragment's answer would be put into the page otherwise.
pub(super) fn go(address: String, wants: Wants) -> Response {
    match wants {
        Wants::Page => Redirect::to(&address).into_response(),
        Wants::Fragment => (HxRedirect(address), ()).into_response(),
    }
}

/// Only an address of this very dashboard may be gone to on a request's word.
pub(super) fn local_address(wanted: &str) -> &str {
    let is_local = wanted.starts_with('/')
        && !wanted.starts_with("//")
        && wanted.bytes().all(|b| b.is_ascii_graphic() && b != b'\\');
    if is_local { wanted } else { "/" }
}

/// Who sent a request, session or not.
pub(super) struct From {
    pub(super) sender: Sender,
    pub(super) user_agent: String,
}

impl From {
    fn of(parts: &Parts, state: &State) -> Self {
        // Every listener says who is there; without a word it is nobody from here.
        let nobody = Peer {
            address: ([0, 0, 0, 0], 0).into(),
            is_tls: false,
        };
        let peer = parts.extensions.get::<Peer>().copied().unwrap_or(nobody);
        Self {
            sender: state.access().sender(peer, &parts.headers),
            user_agent: text(&parts.headers, header::USER_AGENT),
        }
    }
}

fn text(headers: &HeaderMap, name: http::HeaderName) -> String {
    let value = headers.get(name).and_then(|v| v.to_str().ok());
    value.unwrap_or_default().to_owned()
}

impl FromRequestParts<State> for From {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &State,
    ) -> Result<Self, std::convert::Infallible> {
        Ok(Self::of(parts, state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_dashboard_are_gone_to() {
        let check = |wanted: &str, expect: &str| assert_eq!(local_address(wanted), expect);
        check("/settings?group=x", "/settings?group=x");
        check("//evil.example", "/");
        check("/\\evil.example", "/");
        check("https://evil.example", "/");
        check("/a\nSet-Cookie: x", "/");
        check("", "/");
    }
}
