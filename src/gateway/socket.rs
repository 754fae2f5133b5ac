//! WebSocket: the upgrade of a client's connection, and what is spoken on it afterwards.
//!
//! Two kinds of socket are served. [`session`] carries turns of the Responses API, of which each asks
//! admission by itself ([`begin`]) and runs ([`turn`]) on one upstream ([`pinned`]); [`realtime`] is
//! one session with one lease. Both are made of two [`leg`]s; [`dial`] opens the one towards upstream
//! as an attempt of the dispatcher, at the endpoints that [`spoken`] leaves.
//!
//! Invariant: no extension is ever agreed to, so that what a message says is what was sent.
mod begin;
#[cfg(test)]
mod bench;
mod dial;
mod framed;
mod leg;
mod pinned;
mod realtime;
mod session;
mod spoken;
mod turn;

use self::{
    dial::{Dialler, Found},
    leg::Leg,
    session::{Context, Session},
    spoken::{Noting, can_be_served, keep_off},
};
use super::{
    Door, Reply,
    call::{Answered, Call, Policy, authenticate},
    outgoing::Outgoing,
    owned::Ties,
    refuse::{NO_WEBSOCKET, REQUEST_ID, Refused},
    relay,
    ticket::Ticket,
};
use crate::{
    domain::{
        pool::{ClientKey, EdgeRef},
        protocol::Protocol,
        reason::Reason,
        unspoken::SocketKind,
    },
    engine::dispatch::{self, Dispatched, Route as Way, dispatch},
    ports::Attempt,
    protocol::{
        operation::Operation,
        route::{Route, model_name},
        socket::split_subprotocols,
    },
    tasks,
};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header, request::Parts};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use std::{future::Future, pin::Pin, sync::Arc};
use tokio::sync::{mpsc, watch};
use tokio_tungstenite::tungstenite::{handshake::derive_accept_key, protocol::Role};

const ORIGINATOR: HeaderName = HeaderName::from_static("originator");

/// Ties a socket to the thread that serves it: the thread ends after its sockets, and they end when
/// it is to end.
#[derive(Clone, Debug)]
pub(super) struct Tether {
    alive: mpsc::Sender<()>,
    stopped: watch::Receiver<bool>,
}

impl Tether {
    pub(super) const fn new(alive: mpsc::Sender<()>, stopped: watch::Receiver<bool>) -> Self {
        Self { alive, stopped }
    }

    pub(super) async fn stopped(&mut self) {
        // Without a sender nobody will ever say so, and the thread is ending anyway.
        let _ = self.stopped.wait_for(|stop| *stop).await;
    }
}

/// What is to be done once the client's connection is a socket.
pub(super) type Start = Box<dyn FnOnce(Ticket) + Send>;

/// Answers a request for a socket.
pub(super) async fn answer(
    door: &Arc<Door>,
    parts: &Parts,
    (route, policy): (Route<'_>, Policy),
    ticket: &mut Ticket,
) -> Result<Answered, Refused> {
    let upgrade = Upgrade::of(parts)?;
    let parts = upgrade.cleaned(parts);
    let key = authenticate(door, &parts, Protocol::OpenAi, policy)?;
    ticket.is_from(key.as_ref());
    let kind = match route.operation {
        Operation::Realtime => SocketKind::Realtime,
        _ => SocketKind::Turns,
    };
    if !can_be_served(door, key.as_deref(), kind) {
        return Err(Refused::new(Reason::UpgradeRequired, NO_WEBSOCKET));
    }
    if kind == SocketKind::Realtime {
        let call = Call {
            door,
            parts: &parts,
            route,
            policy,
            commitment: None,
        };
        return open_realtime(&call, ticket, key, upgrade).await;
    }
    let response = upgrade.response(ticket, None);
    let context = Context {
        door: Arc::clone(door),
        parts,
        limit: policy.body_limit,
    };
    let start: Start = Box::new(move |mut ticket| {
        // The turns are recorded, each by itself.
        ticket.withdraw();
        drop(ticket);
        upgrade.serve(context.limit, |client, tether| {
            Session::new(context, client).run(tether)
        });
    });
    Ok(Answered::Switched(response, start))
}

/// Refuses a model outside the key's scope.
fn check_model(key: &ClientKey, model: &str) -> Result<(), Refused> {
    if key.may_use_model(model) {
        return Ok(());
    }
    Err(Refused::new(
        Reason::ModelNotAllowed,
        format!("This client key may not use the model {model}."),
    ))
}

/// Whether the client is one whose timers ping frames do not reset.
fn is_codex(headers: &HeaderMap) -> bool {
    headers
        .get(ORIGINATOR)
        .is_some_and(|v| v.as_bytes().starts_with(b"codex"))
}

async fn open_realtime(
    call: &Call<'_>,
    ticket: &mut Ticket,
    key: Option<Arc<ClientKey>>,
    upgrade: Upgrade,
) -> Result<Answered, Refused> {
    let query = call.parts.uri.query().unwrap_or_default();
    let model: Arc<str> = model_in(query).ok_or_else(|| {
        Refused::new(
            Reason::InvalidRequest,
            "The query names no model; a realtime session needs \"model\" in it.",
        )
    })?;
    ticket.asks_for(Some(&model), 0);
    if let Some(key) = &key {
        check_model(key, &model)?;
    }
    ticket.holds(call.door.reserve(key.as_deref()).await?);
    let ties: Ties = call.ties(key.as_ref().map(|k| k.id), None).await?;
    let mut demand = call.demand(ticket.id(), (key.clone(), Some(Arc::clone(&model))), ties);
    let noting = Noting {
        gateway: &call.door.gateway,
        kind: SocketKind::Realtime,
    };
    keep_off(noting.gateway, &mut demand, noting.kind)?;
    let outgoing = Renamed {
        outgoing: Outgoing::prepare(call, None, call.policy.timeouts).await?,
        model: &model,
        path_and_query: (call.parts.uri.path(), query),
    };
    let limit = call.policy.body_limit;
    let dialler = Dialler::new(&*call.door.upstream, noting.kind, (limit, call.policy.idle));
    let way = Way {
        upstream: &dialler,
        observer: &noting,
        ..call.way()
    };
    let rules = call.rules(&ticket.live);
    let sent = dispatch(way, demand, rules, &ticket.live, &outgoing).await;
    let dispatched = match sent {
        Ok(dispatched) => dispatched,
        Err(error) => {
            let wanted = (Some(model), ties);
            return Err(call.explained(error, key.as_deref(), wanted).await);
        }
    };
    let Some(Found::Socket(upstream, _)) = dialler.found() else {
        let (head, source) = relay::Source::new(call.route, dispatched, call.policy.idle, ticket);
        return Ok(Answered::Relayed(head, source));
    };
    noting.agreed(&dispatched.edge);
    Ok(switched(ticket, dispatched, (*upstream, limit), upgrade))
}

/// The client's switch to a session that upstream has agreed to.
fn switched(
    ticket: &mut Ticket,
    dispatched: Dispatched,
    (upstream, limit): (Leg, u64),
    upgrade: Upgrade,
) -> Answered {
    let Dispatched {
        answer,
        edge,
        lease,
    } = dispatched;
    let status = StatusCode::SWITCHING_PROTOCOLS.as_u16();
    ticket.was_told(&edge, status, None);
    let chosen = answer.head.headers.get(header::SEC_WEBSOCKET_PROTOCOL);
    let response = upgrade.response(ticket, chosen);
    let start: Start = Box::new(move |ticket| {
        let session = realtime::Session {
            ticket,
            lease,
            upstream,
            limit,
        };
        upgrade.serve(limit, |client, tether| session.run(client, tether));
    });
    Answered::Switched(response, start)
}

/// The model that a query names.
fn model_in(query: &str) -> Option<Arc<str>> {
    let raw = query.split('&').find_map(|p| p.strip_prefix("model="))?;
    (!raw.is_empty()).then(|| model_name(raw).into())
}

/// A session's opening with each edge's name for the model.
struct Renamed<'a> {
    outgoing: Outgoing<'a>,
    model: &'a str,
    path_and_query: (&'a str, &'a str),
}

impl dispatch::Outgoing for Renamed<'_> {
    fn attempt<'e>(&'e self, edge: &'e EdgeRef) -> Attempt<'e> {
        let attempt = self.outgoing.attempt(edge);
        let asked = edge.upstream_model(self.model);
        if asked == self.model {
            return attempt;
        }
        let (path, query) = self.path_and_query;
        let pairs = query.split('&').map(|pair| {
            if pair.starts_with("model=") {
                format!("model={}", crate::protocol::route::escape_name(asked))
            } else {
                pair.to_owned()
            }
        });
        let query: Vec<String> = pairs.collect();
        let target = format!("{path}?{}", query.join("&"));
        Attempt {
            target: edge.endpoint().base_url.target(&target),
            ..attempt
        }
    }
}

/// A client's request for a socket, found to be in order.
struct Upgrade {
    on: OnUpgrade,
    tether: Tether,
    accept: String,
    /// The key among the subprotocols, where the client sent it so.
    key: Option<String>,
    /// The other subprotocols.
    subprotocols: Vec<String>,
}

impl Upgrade {
    fn of(parts: &Parts) -> Result<Self, Refused> {
        let on = parts.extensions.get::<OnUpgrade>().cloned();
        let tether = parts.extensions.get::<Tether>().cloned();
        let (Some(on), Some(tether)) = (on, tether) else {
            return Err(Refused::new(
                Reason::UpgradeRequired,
                "This connection cannot become a WebSocket; use HTTP/1.1.",
            ));
        };
        let value = |name: HeaderName| parts.headers.get(name).map(HeaderValue::as_bytes);
        let key = value(header::SEC_WEBSOCKET_KEY).filter(|k| !k.is_empty());
        let is_current = value(header::SEC_WEBSOCKET_VERSION) == Some(b"13");
        let Some(key) = key.filter(|_| is_current) else {
            return Err(Refused::new(
                Reason::InvalidRequest,
                "A WebSocket is opened with Sec-WebSocket-Key and Sec-WebSocket-Version: 13.",
            ));
        };
        let offered = parts.headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
        let offered: Vec<&str> = offered.filter_map(|v| v.to_str().ok()).collect();
        let offered = offered.join(",");
        let (secret, others) = split_subprotocols(&offered);
        Ok(Self {
            on,
            tether,
            accept: derive_accept_key(key),
            key: secret.map(str::to_owned),
            subprotocols: others.into_iter().map(str::to_owned).collect(),
        })
    }

    /// The head without what is about this upgrade alone; a key among the subprotocols becomes what
    /// it would be in a header.
    fn cleaned(&self, parts: &Parts) -> Parts {
        let mut parts = parts.clone();
        parts.extensions = http::Extensions::new();
        let headers = &mut parts.headers;
        for name in [
            header::SEC_WEBSOCKET_KEY,
            header::SEC_WEBSOCKET_VERSION,
            header::SEC_WEBSOCKET_EXTENSIONS,
            header::SEC_WEBSOCKET_PROTOCOL,
        ] {
            headers.remove(name);
        }
        if let Ok(offer) = HeaderValue::from_str(&self.subprotocols.join(", "))
            && !offer.is_empty()
        {
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, offer);
        }
        if let Some(key) = &self.key
            && !headers.contains_key(header::AUTHORIZATION)
            && let Ok(value) = HeaderValue::from_str(&format!("Bearer {key}"))
        {
            headers.insert(header::AUTHORIZATION, value);
        }
        parts
    }

    /// The answer that agrees.
    fn response(&self, ticket: &Ticket, chosen: Option<&HeaderValue>) -> Response<Reply> {
        let mut response = Response::new(Reply::whole(bytes::Bytes::new()));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        if let Ok(accept) = HeaderValue::from_str(&self.accept) {
            headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
        }
        if let Some(chosen) = chosen {
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, chosen.clone());
        }
        if let Ok(id) = HeaderValue::from_str(&ticket.id().to_string()) {
            headers.insert(REQUEST_ID, id);
        }
        response
    }

    /// Serves the socket in a task of its own, once the answer has been written.
    fn serve<F>(self, limit: u64, serving: impl FnOnce(Leg, Tether) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let Self { on, tether, .. } = self;
        let alive = tether.alive.clone();
        let work: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move {
            match on.await {
                Ok(io) => {
                    let io = Box::new(TokioIo::new(io));
                    let client = Leg::new(io, Role::Server, limit).await;
                    serving(client, tether).await;
                }
                Err(error) => tracing::debug!(%error, "a client left before its upgrade"),
            }
            drop(alive);
        });
        tasks::spawn("socket", work);
    }
}
