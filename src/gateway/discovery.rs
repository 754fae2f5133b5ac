//! Which models there are where no catalog says so: the provider is asked, rarely, and never
//! waited for long.
//!
//! Invariant: a provider that does not answer costs its own names, and at most [`WITHIN`], once in
//! a while; it never keeps the others' names from being listed.
use super::Door;
use crate::{
    clock::Instant,
    domain::{
        ids::{CredentialId, EndpointId},
        pool::{ClientKey, EdgeIndex, EdgeRef, Pool},
        protocol::Protocol,
    },
    ports::{Attempt, Timeouts},
    protocol::{auth::credential_header, models},
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::timeout;

/// How long an answer is believed: new models appear a few times a year.
const BELIEVED_FOR: Duration = Duration::from_mins(10);

/// How long a provider that did not answer is left alone.
const LEFT_ALONE_FOR: Duration = Duration::from_secs(30);

/// How long a provider may take.
const WITHIN: Duration = Duration::from_secs(3);

/// The longest list that is read: the largest aggregator's is below one.
const LIST_BYTES: usize = 8 << 20;

/// What Anthropic's API wants to hear; its list of models has had this shape since then.
const ANTHROPIC_VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

type Names = Arc<[Box<str>]>;
type Source = (EndpointId, CredentialId, Protocol);

/// What providers have said.
#[derive(Debug, Default)]
pub(super) struct Discovery(Mutex<HashMap<Source, Known>>);

#[derive(Clone, Debug)]
struct Known {
    names: Names,
    until: Instant,
}

impl Discovery {
    fn known(&self, source: Source) -> Option<Known> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&source).cloned()
    }

    fn learn(&self, source: Source, names: Names, believed_for: Duration) {
        let now = Instant::now();
        let until = now + believed_for;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What nobody has asked for in a long time is forgotten.
        all.retain(|_, known| known.until + BELIEVED_FOR > now);
        all.insert(source, Known { names, until });
    }
}

/// The names that `key` can ask for through `protocol`, sorted: those in catalogs, and those that
/// providers without a catalog name.
pub(super) async fn names(
    door: &Door,
    pool: &Arc<Pool>,
    protocol: Protocol,
    key: Option<&ClientKey>,
) -> Vec<Box<str>> {
    let scope = key.and_then(|k| k.accounts.as_deref());
    let is_usable = |index: &EdgeIndex| {
        let edge = pool.edge(*index);
        pool.takes_work(edge) && pool.is_in_scope(edge, scope)
    };
    let mut names: BTreeSet<Box<str>> = BTreeSet::new();
    for (model, edges) in pool.catalog(protocol) {
        if edges.iter().any(is_usable) {
            names.insert((**model).into());
        }
    }
    // One credential speaks for its endpoint; asking with each would say the same.
    let mut endpoints = HashSet::new();
    let asked = pool
        .open_edges(protocol)
        .filter(is_usable)
        .filter(|index| endpoints.insert(pool.edge(*index).endpoint))
        .map(|index| ask(door, EdgeRef::new(Arc::clone(pool), index), protocol));
    for found in futures_util::future::join_all(asked).await {
        names.extend(found.iter().cloned());
    }
    names
        .into_iter()
        .filter(|m| key.is_none_or(|k| k.may_use_model(m)))
        .collect()
}

async fn ask(door: &Door, edge: EdgeRef, protocol: Protocol) -> Names {
    let discovery = &door.gateway.discovery;
    let source = (edge.endpoint().id, edge.credential().id, protocol);
    let known = discovery.known(source);
    if let Some(known) = &known
        && Instant::now() < known.until
    {
        return Arc::clone(&known.names);
    }
    let answered = timeout(WITHIN, fetch(door, &edge, protocol)).await;
    if let Ok(Some(names)) = answered {
        let names: Names = names.into();
        discovery.learn(source, Arc::clone(&names), BELIEVED_FOR);
        return names;
    }
    tracing::info!(endpoint = %edge.endpoint().id, "a provider did not list its models");
    // What it said before is better than nothing.
    let names = known.map_or_else(|| Names::from([]), |k| k.names);
    discovery.learn(source, Arc::clone(&names), LEFT_ALONE_FOR);
    names
}

/// `None` unless it answers with a list.
async fn fetch(door: &Door, edge: &EdgeRef, protocol: Protocol) -> Option<Vec<Box<str>>> {
    let base_url = &edge.endpoint().base_url;
    let secret = &edge.credential().secret;
    let mut edge_headers = vec![credential_header(protocol, base_url.host(), secret)?];
    if protocol == Protocol::Anthropic {
        let (name, value) = ANTHROPIC_VERSION;
        edge_headers.push((
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        ));
    }
    let path = match protocol {
        Protocol::Anthropic => "/v1/models?limit=1000",
        Protocol::Gemini => "/v1beta/models?pageSize=1000",
        Protocol::OpenAi => "/v1/models",
        Protocol::OpenAiVideos | Protocol::FalQueue => return None,
    };
    let headers = HeaderMap::new();
    let attempt = Attempt {
        base_url,
        method: Method::GET,
        target: base_url.target(path),
        headers: &headers,
        edge_headers,
        payload: None,
        timeouts: Timeouts {
            connect: WITHIN,
            header: WITHIN,
        },
    };
    let answer = door.upstream.send(attempt, &mut || ()).await.ok()?;
    if answer.head.status != StatusCode::OK {
        return None;
    }
    let body = Limited::new(answer.body, LIST_BYTES).collect().await.ok()?;
    models::names_in(protocol, &body.to_bytes())
}
