//! What a call brings along: a body, an id in its path, parameters in its query.
//!
//! Invariant: whatever cannot be read is refused in the API's own error shape, and bodies are
//! bounded before they are read.
use super::{
    State,
    error::{ApiError, Code},
};
use crate::document;
use axum::{
    body::{Body, to_bytes},
    extract::{FromRequest, FromRequestParts, Path, Query, Request},
};
use bytes::Bytes;
use http::request::Parts;
use serde_json::{Map, Value};
use std::{error::Error, str::FromStr};

/// The largest body of an ordinary call.
const BODY_LIMIT_BYTES: usize = 1 << 20;

/// The largest pool document: tens of thousands of credentials.
const DOCUMENT_LIMIT_BYTES: usize = 16 << 20;

/// A body that is a JSON object.
#[derive(Debug)]
pub(super) struct Object(pub(super) Map<String, Value>);

/// A body that is a JSON object or, where nothing needs to be said, empty.
#[derive(Debug)]
pub(super) struct OptionalObject(pub(super) Map<String, Value>);

/// A body that is any JSON, large enough for a pool document.
#[derive(Debug)]
pub(super) struct Document(pub(super) Value);

impl FromRequest<State> for Object {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &State) -> Result<Self, ApiError> {
        let bytes = read(request.into_body(), BODY_LIMIT_BYTES).await?;
        object(&bytes).map(Self)
    }
}

impl FromRequest<State> for OptionalObject {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &State) -> Result<Self, ApiError> {
        let bytes = read(request.into_body(), BODY_LIMIT_BYTES).await?;
        if bytes.is_empty() {
            return Ok(Self(Map::new()));
        }
        object(&bytes).map(Self)
    }
}

impl FromRequest<State> for Document {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &State) -> Result<Self, ApiError> {
        let bytes = read(request.into_body(), DOCUMENT_LIMIT_BYTES).await?;
        json(&bytes).map(Self)
    }
}

async fn read(body: Body, limit: usize) -> Result<Bytes, ApiError> {
    to_bytes(body, limit).await.map_err(|error| {
        let is_too_large = error
            .source()
            .is_some_and(<dyn Error>::is::<http_body_util::LengthLimitError>);
        if is_too_large {
            let message = format!("the body is larger than {} MiB", limit >> 20);
            ApiError::new(Code::BodyTooLarge, message)
        } else {
            ApiError::new(Code::InvalidJson, "the body broke off")
        }
    })
}

fn json(bytes: &[u8]) -> Result<Value, ApiError> {
    document::parse(bytes).map_err(|m| ApiError::new(Code::InvalidJson, m.to_string()))
}

fn object(bytes: &[u8]) -> Result<Map<String, Value>, ApiError> {
    match json(bytes)? {
        Value::Object(map) => Ok(map),
        _ => Err(ApiError::new(
            Code::InvalidJson,
            "the body must be a JSON object",
        )),
    }
}

/// The `{id}` of the path.
#[derive(Debug)]
pub(super) struct Id<T>(pub(super) T);

impl<T: FromStr> FromRequestParts<State> for Id<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, ApiError> {
        // An id that cannot be one names nothing.
        let missing = || ApiError::new(Code::NotFound, "there is nothing with that id");
        let Path(text) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|_| missing())?;
        text.parse().map(Self).map_err(|_| missing())
    }
}

/// A query parameter, as handler and description know it.
#[derive(Debug)]
pub(super) struct Param {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
}

/// The parameters of the query.
#[derive(Debug)]
pub(super) struct Params(Vec<(String, String)>);

impl FromRequestParts<State> for Params {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &State) -> Result<Self, ApiError> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(pairs)) => Ok(Self(pairs)),
            Err(_) => Err(ApiError::new(
                Code::InvalidQuery,
                "the query cannot be read; write it as name=value&name=value",
            )),
        }
    }
}

impl Params {
    /// Refuses parameters that nobody knows, and those that are given twice.
    pub(super) fn check(&self, known: &[Param]) -> Result<(), ApiError> {
        for (n, (name, _)) in self.0.iter().enumerate() {
            let refuse = |message: String| {
                let error = ApiError::new(Code::InvalidQuery, message);
                Err(error.at(name.clone()))
            };
            if !known.iter().any(|param| param.name == name) {
                let names: Vec<&str> = known.iter().map(|param| param.name).collect();
                let names = names.join(", ");
                return refuse(format!(
                    "there is no such query parameter; known are {names}"
                ));
            }
            if self.0.iter().take(n).any(|(earlier, _)| earlier == name) {
                return refuse("is given twice".to_owned());
            }
        }
        Ok(())
    }

    /// The value of one parameter; `accepted` says what `parse` understands.
    pub(super) fn read<T>(
        &self,
        name: &str,
        accepted: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        let Some((_, text)) = self.0.iter().find(|(n, _)| n == name) else {
            return Ok(None);
        };
        let value = parse(text).ok_or_else(|| {
            ApiError::new(Code::InvalidQuery, format!("must be {accepted}")).at(name)
        })?;
        Ok(Some(value))
    }

    /// A switch; off if it is not given.
    pub(super) fn is_on(&self, name: &str) -> Result<bool, ApiError> {
        let value = self.read(name, "true or false", |text| text.parse().ok())?;
        Ok(value.unwrap_or(false))
    }
}
