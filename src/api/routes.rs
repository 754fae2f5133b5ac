//! The one table of routes: the router that serves them and the description that tells of them
//! are both made from it, so that they cannot disagree.
use super::{
    State, accounts, audit, concurrency, cooldown, credentials, endpoints,
    error::{ApiError, Code},
    explain,
    input::Param,
    keys, openapi, pool, requests, settings, tokens,
};
use axum::{
    Router,
    handler::Handler,
    routing::{MethodFilter, MethodRouter, on},
};
use http::{Method, StatusCode};
use serde_json::Value;

/// One method of one path, below the prefix of the admin API.
pub(super) struct Route {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) summary: String,
    pub(super) query: &'static [Param],
    /// The schema of the body that it takes.
    pub(super) takes: Option<String>,
    pub(super) status: StatusCode,
    /// The schema of what it answers.
    pub(super) gives: Option<String>,
    handler: MethodRouter<State>,
}

impl Route {
    fn new<H, T>(
        (method, filter): (Method, MethodFilter),
        path: impl Into<String>,
        summary: impl Into<String>,
        handler: H,
    ) -> Self
    where
        H: Handler<T, State>,
        T: 'static,
    {
        Self {
            method,
            path: path.into(),
            summary: summary.into(),
            query: &[],
            takes: None,
            status: StatusCode::OK,
            gives: None,
            handler: on(filter, handler),
        }
    }

    pub(super) fn get<H, T>(path: impl Into<String>, summary: impl Into<String>, handler: H) -> Self
    where
        H: Handler<T, State>,
        T: 'static,
    {
        Self::new((Method::GET, MethodFilter::GET), path, summary, handler)
    }

    pub(super) fn post<H, T>(
        path: impl Into<String>,
        summary: impl Into<String>,
        handler: H,
    ) -> Self
    where
        H: Handler<T, State>,
        T: 'static,
    {
        Self::new((Method::POST, MethodFilter::POST), path, summary, handler)
    }

    pub(super) fn put<H, T>(path: impl Into<String>, summary: impl Into<String>, handler: H) -> Self
    where
        H: Handler<T, State>,
        T: 'static,
    {
        Self::new((Method::PUT, MethodFilter::PUT), path, summary, handler)
    }

    pub(super) fn patch<H, T>(
        path: impl Into<String>,
        summary: impl Into<String>,
        handler: H,
    ) -> Self
    where
        H: Handler<T, State>,
        T: 'static,
    {
        Self::new((Method::PATCH, MethodFilter::PATCH), path, summary, handler)
    }

    /// A removal: it answers nothing.
    pub(super) fn delete<H, T>(
        path: impl Into<String>,
        summary: impl Into<String>,
        handler: H,
    ) -> Self
    where
        H: Handler<T, State>,
        T: 'static,
    {
        let method = (Method::DELETE, MethodFilter::DELETE);
        let mut route = Self::new(method, path, summary, handler);
        route.status = StatusCode::NO_CONTENT;
        route
    }

    /// The query parameters that it knows.
    pub(super) fn asks(mut self, query: &'static [Param]) -> Self {
        self.query = query;
        self
    }

    /// The schema of its body.
    pub(super) fn takes(mut self, schema: impl Into<String>) -> Self {
        self.takes = Some(schema.into());
        self
    }

    /// The schema of its answer.
    pub(super) fn gives(mut self, schema: impl Into<String>) -> Self {
        self.gives = Some(schema.into());
        self
    }

    /// The schema of the thing that it makes.
    pub(super) fn creates(mut self, schema: impl Into<String>) -> Self {
        self.status = StatusCode::CREATED;
        self.gives(schema)
    }
}

/// A schema and its name.
pub(super) type Schema = (String, Value);

/// Every route, in the order in which the description lists them.
pub(super) fn table() -> Vec<Route> {
    let nouns = [
        pool::routes(),
        accounts::routes(),
        credentials::routes(),
        cooldown::routes(),
        endpoints::routes(),
        keys::routes(),
        settings::routes(),
        tokens::routes(),
        requests::routes(),
        concurrency::routes(),
        explain::routes(),
        audit::routes(),
        openapi::routes(),
    ];
    nouns.into_iter().flatten().collect()
}

/// Every schema that the table names, and those that these refer to.
pub(super) fn schemas() -> Vec<Schema> {
    let nouns = [
        pool::schemas(),
        accounts::schemas(),
        credentials::schemas(),
        cooldown::schemas(),
        endpoints::schemas(),
        keys::schemas(),
        settings::schemas(),
        tokens::schemas(),
        requests::schemas(),
        concurrency::schemas(),
        explain::schemas(),
        audit::schemas(),
        openapi::schemas(),
    ];
    nouns.into_iter().flatten().collect()
}

/// The router of the whole table, unguarded and without its prefix.
pub(super) fn router() -> Router<State> {
    let router = table().into_iter().fold(Router::new(), |router, route| {
        router.route(&route.path, route.handler)
    });
    router
        .method_not_allowed_fallback(wrong_method)
        .fallback(unknown)
}

pub(super) async fn unknown() -> ApiError {
    ApiError::new(Code::NotFound, "there is no such path")
}

pub(super) async fn wrong_method() -> ApiError {
    let message = "this path does not take that method; the header Allow lists those it takes";
    ApiError::new(Code::MethodNotAllowed, message)
}
