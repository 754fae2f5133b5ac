//! The list of models, answered by fairlane: what the caller's key can reach.
use super::{
    Gateway, Reply,
    call::Answered,
    refuse::{REQUEST_ID, Refused},
    ticket::{Ended, Ticket},
};
use crate::{
    domain::{
        ledger::Outcome,
        pool::{ClientKey, Pool},
        protocol::Protocol,
        reason::Reason,
    },
    protocol::{models, route::model_name},
};
use http::{HeaderValue, Response, header};

/// The names that `key` can ask for through `protocol`: those in a catalog of an edge that takes
/// work and is in scope, sorted.
pub(super) fn names<'p>(
    pool: &'p Pool,
    protocol: Protocol,
    key: Option<&ClientKey>,
) -> Vec<&'p str> {
    let scope = key.and_then(|k| k.accounts.as_deref());
    pool.catalog(protocol)
        .into_iter()
        .filter(|(model, _)| key.is_none_or(|k| k.may_use_model(model)))
        .filter(|(_, edges)| {
            edges.iter().any(|index| {
                let edge = pool.edge(*index);
                pool.takes_work(edge) && pool.is_in_scope(edge, scope)
            })
        })
        .map(|(model, _)| &**model)
        .collect()
}

/// The list, or one model of it.
pub(super) fn answer(
    gateway: &Gateway,
    ticket: &mut Ticket,
    key: Option<&ClientKey>,
    (shape, id): (Protocol, Option<&str>),
) -> Result<Answered, Refused> {
    let pool = gateway.configuration.pool();
    let names = names(&pool, shape, key);
    let body = match id.map(model_name) {
        None => models::list(shape, names.iter().copied()),
        Some(id) if names.contains(&&*id) => models::single(shape, &id),
        Some(id) => {
            let close = models::close_names(&id, names.iter().copied());
            let hint = if close.is_empty() {
                String::new()
            } else {
                format!(" Close names: {}.", close.join(", "))
            };
            return Err(Refused::new(
                Reason::ModelNotFound,
                format!("There is no model {id} in the catalogs here.{hint}"),
            ));
        }
    };
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
    Ok(Answered::Whole(response))
}
