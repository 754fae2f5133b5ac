//! The list of models, answered by fairlane: what the caller's key can reach.
use super::{
    Door, Reply,
    call::Answered,
    discovery::names,
    refuse::{REQUEST_ID, Refused},
    ticket::{Ended, Ticket},
};
use crate::{
    domain::{ledger::Outcome, pool::ClientKey, protocol::Protocol, reason::Reason},
    protocol::{models, route::model_name},
};
use bytes::Bytes;
use http::{HeaderValue, Response, header};
use std::sync::Arc;

/// The list, or one model of it.
pub(super) async fn answer(
    door: &Door,
    ticket: &mut Ticket,
    key: Option<&ClientKey>,
    (shape, id): (Protocol, Option<&str>),
) -> Result<Answered, Refused> {
    let pool = Arc::clone(&door.gateway.configuration.pool());
    let names = names(door, &pool, shape, key).await;
    let body = match id.map(model_name) {
        None => models::list(shape, names.iter().map(|n| &**n)),
        Some(id) if names.iter().any(|n| **n == *id) => models::single(shape, &id),
        Some(id) => {
            let close = models::close_names(&id, names.iter().map(|n| &**n));
            let hint = if close.is_empty() {
                String::new()
            } else {
                format!(" Close names: {}.", close.join(", "))
            };
            return Err(Refused::new(
                Reason::ModelNotFound,
                format!("There is no model {id} here.{hint}"),
            ));
        }
    };
    Ok(whole(ticket, body))
}

/// An answer of fairlane's own that is no refusal.
pub(super) fn whole(ticket: &mut Ticket, body: impl Into<Bytes>) -> Answered {
    let mut response = Response::new(Reply::whole(body));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    if let Ok(id) = HeaderValue::from_str(&ticket.id().to_string()) {
        headers.insert(REQUEST_ID, id);
    }
    ticket.settle(Ended {
        status: Some(200),
        ..Ended::with(Outcome::Ok)
    });
    Answered::Whole(response)
}
