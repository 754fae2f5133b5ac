//! One place where trouble becomes a status and a page, or a piece of one.
use super::{
    shell::{Shell, render},
    wants::Wants,
};
use crate::{access::AccessError, store::StoreError};
use askama::Template;
use axum::response::{IntoResponse as _, Response};
use axum_htmx::{HxReswap, HxRetarget, SwapOption};
use http::StatusCode;
use std::any::Any;

/// Why a page could not be shown or a change not be made.
#[derive(Debug)]
pub(super) enum Trouble {
    /// There is no such page, or no such thing.
    NotFound,
    /// The lease to be released is not held any more.
    LeaseGone,
    /// The address does not take that method.
    WrongMethod,
    /// Another site may have made the browser send it.
    CrossSite,
    /// What was sent is not the form of that page.
    UnreadableForm(StatusCode),
    /// The database.
    Store(StoreError),
    /// A fault of the program. The text is for the log.
    Internal(String),
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<AccessError> for Trouble {
    fn from(error: AccessError) -> Self {
        match error {
            AccessError::Store(error) => Self::Store(error),
            AccessError::Hashing => Self::Internal(error.to_string()),
        }
    }
}

impl Trouble {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::NotFound | Self::LeaseGone => StatusCode::NOT_FOUND,
            Self::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
            Self::CrossSite => StatusCode::FORBIDDEN,
            Self::UnreadableForm(status) => *status,
            Self::Store(error) if is_unavailable(error) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Store(_) | Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The answer; what is ours is logged, once.
    pub(super) fn respond(self, shell: &Shell, wants: Wants) -> Response {
        match &self {
            Self::Store(error) => tracing::error!(%error, "a page could not be shown"),
            Self::Internal(error) => tracing::error!(error, "a page could not be shown"),
            Self::NotFound
            | Self::LeaseGone
            | Self::WrongMethod
            | Self::CrossSite
            | Self::UnreadableForm(_) => (),
        }
        let status = self.status();
        let page = ErrorPage {
            shell: shell.without_query(),
            trouble: self,
        };
        match wants {
            Wants::Page => (status, render(&page)).into_response(),
            // Next to the top of the page that is open, which stays as it is.
            Wants::Fragment => (
                status,
                HxRetarget("#problems".to_owned()),
                HxReswap(SwapOption::InnerHtml),
                render(&TroubleNotice { page: &page }),
            )
                .into_response(),
        }
    }
}

fn is_unavailable(error: &StoreError) -> bool {
    match error {
        StoreError::Busy | StoreError::Closed => true,
        StoreError::Database { fault, .. } => fault.is_disk(),
        _ => false,
    }
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage {
    shell: Shell,
    trouble: Trouble,
}

/// The same in a page that is open.
#[derive(Template)]
#[template(path = "components/trouble.html")]
struct TroubleNotice<'a> {
    page: &'a ErrorPage,
}

impl ErrorPage {
    fn title(&self) -> String {
        let key = match &self.trouble {
            Trouble::NotFound => "error-not-found",
            Trouble::LeaseGone => "error-lease-gone",
            Trouble::WrongMethod => "error-wrong-method",
            Trouble::CrossSite => "error-cross-site",
            Trouble::UnreadableForm(_) => "error-form",
            Trouble::Store(error) if is_unavailable(error) => "error-store",
            Trouble::Store(_) | Trouble::Internal(_) => "error-internal",
        };
        self.shell.t(key).to_string()
    }

    fn help(&self) -> String {
        let key = match &self.trouble {
            Trouble::NotFound => "error-not-found-help",
            Trouble::LeaseGone => "error-lease-gone-help",
            Trouble::WrongMethod => "error-wrong-method-help",
            Trouble::CrossSite => "error-cross-site-help",
            Trouble::UnreadableForm(_) => "error-form-help",
            Trouble::Store(error) if is_unavailable(error) => "error-store-help",
            Trouble::Store(_) | Trouble::Internal(_) => "error-internal-help",
        };
        self.shell.t(key).to_string()
    }

    /// Where to go on, and in which words.
    fn back(&self) -> (&'static str, String) {
        let (address, key) = match &self.trouble {
            Trouble::LeaseGone => ("/concurrency", "error-back-concurrency"),
            _ => ("/", "error-back"),
        };
        (address, self.shell.t(key).to_string())
    }
}

pub(super) async fn no_such_page(shell: Shell, wants: Wants) -> Response {
    Trouble::NotFound.respond(&shell, wants)
}

pub(super) async fn wrong_method(shell: Shell, wants: Wants) -> Response {
    Trouble::WrongMethod.respond(&shell, wants)
}

/// What a panic said may hold anything, so that it goes no further than the panic hook's own log.
pub(super) fn panicked(_: Box<dyn Any + Send + 'static>) -> Response {
    tracing::error!("a page panicked");
    let text = "Something went wrong inside fairlane; its log says what.\n";
    (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
}

#[cfg(test)]
pub(super) fn samples(shell: &Shell) -> Vec<(&'static str, String)> {
    let troubles = [
        Trouble::NotFound,
        Trouble::LeaseGone,
        Trouble::WrongMethod,
        Trouble::CrossSite,
        Trouble::UnreadableForm(StatusCode::BAD_REQUEST),
        Trouble::Store(StoreError::Busy),
        Trouble::Internal("a test".to_owned()),
    ];
    troubles
        .into_iter()
        .map(|trouble| {
            let shell = shell.clone();
            let page = ErrorPage { shell, trouble };
            TroubleNotice { page: &page }.render().unwrap();
            ("error", page.render().unwrap())
        })
        .collect()
}
