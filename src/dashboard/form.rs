//! Forms: what was typed, and what is wrong with it.
//!
//! Rule: an answer to a form that cannot be taken is 422, keeps everything that was typed but
//! secrets, says at its top what is wrong, and again at each field.
use axum::RequestExt as _;
use axum::{
    extract::{FromRequest, Request, rejection::FormRejection},
    response::Response,
};
use serde::de::DeserializeOwned;

use super::{State, error::Trouble, shell::Shell, wants::Wants};

/// A form's fields. What is no form of that shape did not come from a page of ours.
pub(super) struct Form<T>(pub(super) T);

impl<T: DeserializeOwned + 'static> FromRequest<State> for Form<T> {
    type Rejection = Response;

    async fn from_request(mut request: Request, state: &State) -> Result<Self, Response> {
        let (shell, wants) = {
            let Ok(shell) = request.extract_parts_with_state::<Shell, _>(state).await;
            (shell, Wants::of(request.headers()))
        };
        match axum::Form::<T>::from_request(request, state).await {
            Ok(axum::Form(fields)) => Ok(Self(fields)),
            Err(rejection) => Err(trouble(&rejection).respond(&shell, wants)),
        }
    }
}

fn trouble(rejection: &FormRejection) -> Trouble {
    tracing::debug!(%rejection, "a form could not be read");
    Trouble::UnreadableForm(rejection.status())
}

/// What is wrong with a form, field by field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Faults(Vec<Fault>);

/// What is wrong with one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The field's name, which is also its id in the page.
    pub(super) field: &'static str,
    /// In the person's language.
    pub(super) text: String,
}

impl Faults {
    pub(super) fn add(&mut self, field: &'static str, text: impl std::fmt::Display) {
        self.0.push(Fault {
            field,
            text: text.to_string(),
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is wrong with that field; empty if nothing is.
    pub(super) fn at(&self, field: &str) -> &str {
        let fault = self.0.iter().find(|fault| fault.field == field);
        fault.map_or("", |fault| &fault.text)
    }

    pub(super) fn all(&self) -> &[Fault] {
        &self.0
    }
}
