//! Refusals and failures as the API answers them: `{"error": {"code", "message", "field"?, …}}`.
//!
//! Invariant: no answer holds a secret or the database's own words; those go to the log, once,
//! when the answer is made.
use crate::{domain::pool::document::Mistake, store::StoreError};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $status:ident;)*) => {
        /// What kind of refusal it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// Every code, for the description of the API.
            pub(super) const ALL: &'static [&'static str] = &[$($code,)*];

            const fn name(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            const fn status(self) -> StatusCode {
                match self { $(Self::$name => StatusCode::$status,)* }
            }
        }
    };
}

codes! {
    /// No admin token, or none that is known.
    AuthRequired = "AUTH_REQUIRED", UNAUTHORIZED;
    /// Another site may have made the browser send it.
    CrossSite = "CROSS_SITE", FORBIDDEN;
    /// No such path, or nothing of that id.
    NotFound = "NOT_FOUND", NOT_FOUND;
    /// The path exists, but not for this method.
    MethodNotAllowed = "METHOD_NOT_ALLOWED", METHOD_NOT_ALLOWED;
    /// The body is not JSON, or not an object.
    InvalidJson = "INVALID_JSON", BAD_REQUEST;
    /// A field is unknown, missing or has a value that is not accepted.
    InvalidField = "INVALID_FIELD", BAD_REQUEST;
    /// The pool document has mistakes.
    InvalidDocument = "INVALID_DOCUMENT", BAD_REQUEST;
    /// A query parameter is unknown or has a value that is not accepted.
    InvalidQuery = "INVALID_QUERY", BAD_REQUEST;
    /// The body is larger than is read.
    BodyTooLarge = "BODY_TOO_LARGE", PAYLOAD_TOO_LARGE;
    /// Another thing of that kind has the name.
    NameTaken = "NAME_TAKEN", CONFLICT;
    /// Another thing of that kind has the secret.
    SecretTaken = "SECRET_TAKEN", CONFLICT;
    /// Something else needs it.
    InUse = "IN_USE", CONFLICT;
    /// The setting has changed since it was read.
    SettingConflict = "SETTING_CONFLICT", CONFLICT;
    /// The environment states the setting.
    SettingLocked = "SETTING_LOCKED", CONFLICT;
    /// The database cannot be read or written now.
    StoreUnavailable = "STORE_UNAVAILABLE", SERVICE_UNAVAILABLE;
    /// A fault of the program.
    Internal = "INTERNAL", INTERNAL_SERVER_ERROR;
}

/// An answer that is not what was asked for.
#[derive(Debug)]
pub(super) struct ApiError(Box<Detail>);

#[derive(Debug)]
struct Detail {
    code: Code,
    message: String,
    field: Option<String>,
    mistakes: Vec<Mistake>,
    /// What was asked for and what is there instead, where the two collide.
    values: Option<(Value, Value)>,
    /// For the log alone.
    cause: Option<StoreError>,
}

impl ApiError {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self(Box::new(Detail {
            code,
            message: message.into(),
            field: None,
            mistakes: Vec::new(),
            values: None,
            cause: None,
        }))
    }

    /// The field or query parameter that it is about.
    pub(super) fn at(mut self, field: impl Into<String>) -> Self {
        self.0.field = Some(field.into());
        self
    }

    /// What was asked for, and what is there now.
    pub(super) fn between(mut self, yours: Value, current: Value) -> Self {
        self.0.values = Some((yours, current));
        self
    }

    /// Every mistake that was found; the first one stands for all where only one can be shown.
    pub(super) fn mistakes(code: Code, mistakes: Vec<Mistake>) -> Self {
        let first = mistakes.first();
        let mut error = Self::new(code, first.map_or_else(String::new, ToString::to_string));
        error.0.field = first.map(|m| m.path.clone()).filter(|p| !p.is_empty());
        error.0.mistakes = mistakes;
        error
    }

    /// One field that is not accepted.
    pub(super) fn field(path: &str, what: impl Into<String>) -> Self {
        Self::mistakes(Code::InvalidField, vec![Mistake::new(path, what)])
    }

    /// Nobody who is known asks.
    pub(super) fn auth_required() -> Self {
        let message = "this needs the header Authorization: Bearer with an admin token, or a login";
        Self::new(Code::AuthRequired, message)
    }

    /// There is nothing of that kind with the id that was asked for.
    pub(super) fn no_such(kind: &str) -> Self {
        Self::new(Code::NotFound, format!("there is no {kind} with that id"))
    }

    fn caused(code: Code, message: String, cause: StoreError) -> Self {
        let mut error = Self::new(code, message);
        error.0.cause = Some(cause);
        error
    }

    /// The change was made, but what is in force could not be brought up to date.
    pub(super) fn stored_only(cause: StoreError) -> Self {
        let message = "the change is stored but not in force yet; it will be as soon as the database can be read again";
        Self::caused(Code::StoreUnavailable, message.to_owned(), cause)
    }
}

impl Detail {
    fn body(&self) -> Value {
        let mut error = json!({ "code": self.code.name(), "message": self.message });
        let mut put = |key: &str, value: Value| {
            if let Value::Object(map) = &mut error {
                map.insert(key.to_owned(), value);
            }
        };
        if let Some(field) = &self.field {
            put("field", json!(field));
        }
        if !self.mistakes.is_empty() {
            put("mistakes", notes(&self.mistakes));
        }
        if let Some((yours, current)) = &self.values {
            put("yours", yours.clone());
            put("current", current.clone());
        }
        json!({ "error": error })
    }
}

/// Mistakes or warnings as a list of `{"path", "what"}`.
pub(super) fn notes(notes: &[Mistake]) -> Value {
    notes
        .iter()
        .map(|note| json!({ "path": note.path, "what": note.what }))
        .collect()
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let text = error.to_string();
        match &error {
            StoreError::NameTaken { .. } => Self::new(Code::NameTaken, text).at("name"),
            StoreError::SecretTaken { .. } => Self::new(Code::SecretTaken, text).at("secret"),
            StoreError::InUse { .. } => Self::new(Code::InUse, text),
            StoreError::Dangling { .. } => Self::new(Code::InvalidField, text),
            StoreError::SettingConflict { key, .. } => {
                let key = key.clone();
                Self::new(Code::SettingConflict, text).at(key)
            }
            StoreError::Busy | StoreError::Closed => {
                Self::caused(Code::StoreUnavailable, text, error)
            }
            StoreError::Database { fault, .. } if fault.is_disk() => {
                Self::caused(Code::StoreUnavailable, fault.to_string(), error)
            }
            StoreError::Refused { .. }
            | StoreError::Panicked
            | StoreError::Database { .. }
            | StoreError::Inconsistent { .. } => {
                let message = "something went wrong inside fairlane; its log says what";
                Self::caused(Code::Internal, message.to_owned(), error)
            }
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let detail = &*self.0;
        if let Some(cause) = &detail.cause {
            tracing::error!(error = %cause, "a call of the admin API failed");
        }
        let mut response = (detail.code.status(), axum::Json(detail.body())).into_response();
        let headers = response.headers_mut();
        match detail.code {
            Code::AuthRequired => {
                let scheme = HeaderValue::from_static("Bearer");
                headers.insert(header::WWW_AUTHENTICATE, scheme);
            }
            Code::StoreUnavailable => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => (),
        }
        response
    }
}
