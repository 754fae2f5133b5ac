//! How a turn comes to run: from the message that asks for it to its place on a socket to upstream.
//!
//! Invariants: one message is one request, with one record and one reservation, however often it is
//! asked for; admission stands before every turn, and what upstream refused before its first event
//! moves as a request of HTTP would.
use super::{
    dial::{Dialler, Found, FromFrame},
    framed::{Framed, peek},
    leg::{Leg, closed},
    pinned::{Pinned, redial},
    session::Context,
    spoken::{Noting, keep_off},
    turn::{Turn, excerpt},
};
use crate::{
    domain::{
        admission::Demand, ledger::Outcome, pool::EdgeRef, protocol::Protocol, reason::Reason,
        unspoken::SocketKind,
    },
    engine::{
        admission::Lease,
        dispatch::{self, Dispatched, Route as Way, Rules, Undelivered, dispatch},
    },
    gateway::{
        call::{Call, Policy, authenticate},
        outgoing::Outgoing,
        owned::Ties,
        refuse::{NO_WEBSOCKET, Refused},
        ticket::{Ended, Opening, Ticket},
    },
    protocol::{
        operation::Operation,
        route::{ModelSource, Route},
        socket,
    },
};
use bytes::Bytes;
use http::header;
use http_body_util::BodyExt as _;
use std::{sync::Arc, time::Duration};
use tokio_tungstenite::tungstenite::{
    Message, Utf8Bytes,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

/// What asking for a turn came to.
pub(super) enum Begun {
    /// Upstream has answered its first words on a socket of its own.
    Fresh {
        turn: Turn,
        leg: Box<Leg>,
        first: Message,
        idle: Duration,
    },
    /// It may go to the socket that there is.
    Admitted {
        turn: Turn,
        message: Message,
        idle: Duration,
    },
    /// It came to nothing, and the client is told so.
    Told(String),
    /// The socket is closed on it, by upstream or for want of one there.
    Closed(Option<CloseFrame>),
}

/// What a turn asks.
pub(super) struct Request {
    pub(super) text: Utf8Bytes,
    /// Where the socket is pinned to.
    pub(super) pinned: Option<Pinned>,
    /// Whether there is a socket to it.
    pub(super) has_leg: bool,
    /// The turn's companion, where it was asked for before and nothing of it was sent: it stays the
    /// one request that it was.
    pub(super) resumed: Option<Ticket>,
}

/// Brings a turn to upstream.
pub(super) async fn begin(context: Arc<Context>, mut request: Request) -> Begun {
    let policy = Policy::of(&context.door.gateway.configuration.settings());
    let resumed = request.resumed.take();
    let is_resumed = resumed.is_some();
    let mut ticket = resumed.unwrap_or_else(|| open(&context, policy));
    let call = Call {
        door: &context.door,
        parts: &context.parts,
        route: ROUTE,
        policy,
        commitment: None,
    };
    match attempt(&call, &mut ticket, &request, is_resumed).await {
        Ok(Sent::Fresh(leg, first, lease, edge)) => Begun::Fresh {
            turn: Turn::new(ticket, lease, edge),
            leg,
            first,
            idle: policy.idle,
        },
        Ok(Sent::Admitted(message, lease, edge)) => Begun::Admitted {
            turn: Turn::new(ticket, lease, edge),
            message,
            idle: policy.idle,
        },
        Ok(Sent::Told(text)) => Begun::Told(text),
        Ok(Sent::Closed(frame)) => Begun::Closed(frame),
        Err(refused) if refused.reason == Reason::UpgradeRequired => {
            // The record is what counts; the client gets a close and no message.
            refused.message(&mut ticket);
            Begun::Closed(Some(to_http()))
        }
        Err(refused) => Begun::Told(for_good(refused, request.pinned).message(&mut ticket)),
    }
}

fn open(context: &Context, policy: Policy) -> Ticket {
    Ticket::new(
        &context.door,
        Opening {
            protocol: Protocol::OpenAi,
            operation: "responses.socket",
            method: "GET",
            path: context.parts.uri.path(),
            is_traced: policy.is_traced,
        },
    )
}

/// A turn is what a `POST` would be.
const ROUTE: Route<'static> = Route {
    protocol: Protocol::OpenAi,
    operation: Operation::Responses,
    leases: Operation::Responses.leases(),
    reattach: false,
    model: ModelSource::Body,
    owner_id: None,
    takes_body: false,
};

/// How a client learns on an open socket that what it wants is to be had over HTTP alone.
///
/// No message says that in words which clients act on. Those that fall back open a new socket after
/// any close, and its upgrade is where they can be told.
fn to_http() -> CloseFrame {
    CloseFrame {
        code: CloseCode::Again,
        reason: NO_WEBSOCKET.into(),
    }
}

/// What the credential of a pinned socket can never serve, a client can start anew elsewhere.
fn for_good(mut refused: Refused, pinned: Option<Pinned>) -> Refused {
    let is_for_good = matches!(
        refused.reason,
        Reason::OwnerUnavailable
            | Reason::OwnerUnknown
            | Reason::OwnerConflict
            | Reason::NoServiceableAccount
            | Reason::ModelNotFound
    );
    refused.is_continued |= pinned.is_some() && is_for_good;
    refused
}

enum Sent {
    Fresh(Box<Leg>, Message, Lease, EdgeRef),
    Admitted(Message, Lease, EdgeRef),
    Told(String),
    Closed(Option<CloseFrame>),
}

/// Brings a turn to upstream, or to the socket that leads there. One that is resumed has its
/// reservation, was let in once, and has had a part of its patience.
async fn attempt(
    call: &Call<'_>,
    ticket: &mut Ticket,
    request: &Request,
    is_resumed: bool,
) -> Result<Sent, Refused> {
    let key = authenticate(call.door, call.parts, Protocol::OpenAi, call.policy)?;
    ticket.is_from(key.as_ref());
    let peeked = peek(&request.text, call.policy.body_limit)?;
    let model = call.model(Some(&peeked))?;
    ticket.asks_for(model.as_ref(), request.text.len() as u64);
    if let (Some(key), Some(model)) = (&key, &model) {
        super::check_model(key, model)?;
    }
    if !is_resumed {
        ticket.holds(call.door.reserve(key.as_deref()).await?);
    }
    let mut ties = call.ties(key.as_ref().map(|k| k.id), Some(&peeked)).await?;
    if let Some(pinned) = request.pinned {
        pinned.tie(&mut ties)?;
    }
    let mut demand = call.demand(ticket.id(), (key, model), ties);
    demand.is_moving = is_resumed;
    let outgoing = Framed {
        outgoing: Outgoing::prepare(call, None, call.policy.timeouts).await?,
        text: &request.text,
        peeked: &peeked,
    };
    let mut rules = Rules {
        is_repeatable: false,
        ..call.rules(&ticket.live)
    };
    if is_resumed {
        let waited = ticket.live.received_at.elapsed();
        rules.patience = rules.patience.saturating_sub(waited);
    }
    let asking = Asking {
        call,
        rules,
        outgoing: &outgoing,
    };
    match request.pinned {
        Some(pin) if request.has_leg => asking.again(ticket, (demand, ties), pin).await,
        pinned => asking.first(ticket, (demand, ties), pinned).await,
    }
}

/// A turn that is to be brought to upstream, by certain rules.
struct Asking<'a> {
    call: &'a Call<'a>,
    rules: Rules,
    outgoing: &'a Framed<'a>,
}

impl Asking<'_> {
    /// On the socket that there is: admission alone stands before it.
    async fn again(
        &self,
        ticket: &Ticket,
        (mut demand, ties): (Demand, Ties),
        pin: Pinned,
    ) -> Result<Sent, Refused> {
        let Self { call, rules, .. } = self;
        pin.hold(&call.door.gateway.configuration.pool(), &mut demand);
        let admission = call.way().admission;
        let patience = (rules.patience, rules.answer_by);
        let lease = match dispatch::admit(admission, &mut demand, patience, &ticket.live).await {
            Ok(lease) => lease,
            Err(denied) => {
                let error = Undelivered::Denied(denied);
                let Demand { key, model, .. } = demand;
                return Err(call.explained(error, key.as_deref(), (model, ties)).await);
            }
        };
        let edge = lease.edge().clone();
        // The pool may have changed while the turn waited, and the socket leads where it always did.
        if Pinned::at(&edge) != pin {
            return Err(Refused::owner_unavailable());
        }
        let text = self.outgoing.text_for(&edge);
        Ok(Sent::Admitted(Message::Text(text), lease, edge))
    }

    /// As the first on a new socket to upstream.
    async fn first(
        &self,
        ticket: &mut Ticket,
        (mut demand, ties): (Demand, Ties),
        pinned: Option<Pinned>,
    ) -> Result<Sent, Refused> {
        let Self { call, rules, .. } = *self;
        let noting = Noting {
            gateway: &call.door.gateway,
            kind: SocketKind::Turns,
        };
        keep_off(noting.gateway, &mut demand, noting.kind)?;
        let (key, model) = (demand.key.clone(), demand.model.clone());
        let limits = (call.policy.body_limit, call.policy.idle);
        let dialler = Dialler::new(&*call.door.upstream, noting.kind, limits);
        let way = Way {
            upstream: &dialler,
            observer: &noting,
            ..call.way()
        };
        let sent = match pinned {
            None => dispatch(way, demand, rules, &ticket.live, self.outgoing).await,
            Some(pin) => {
                let demands = pin.split(&call.door.gateway.configuration.pool(), demand);
                redial(way, demands, rules, &ticket.live, self.outgoing).await
            }
        };
        let dispatched = match sent {
            Ok(dispatched) => dispatched,
            Err(error) => {
                return Err(call.explained(error, key.as_deref(), (model, ties)).await);
            }
        };
        let found = dialler.found();
        if found.is_some() {
            noting.agreed(&dispatched.edge);
        }
        let dispatched = call.settle_owners(ties, dispatched, ticket).await?;
        Ok(came_to(ticket, dispatched, found).await)
    }
}

/// What the attempts of a first turn came to.
async fn came_to(ticket: &mut Ticket, mut dispatched: Dispatched, found: Option<Found>) -> Sent {
    let head = &dispatched.answer.head;
    let is_frame = head.extensions.get::<FromFrame>().is_some();
    match (dispatched.lease.take(), found) {
        (Some(lease), Some(Found::Socket(leg, Some(first)))) if is_frame => {
            Sent::Fresh(leg, first, lease, dispatched.edge)
        }
        (Some(_), Some(Found::Closed(frame))) if is_frame => {
            ticket.was_told(&dispatched.edge, 502, None);
            ticket.settle(Ended {
                error: Some(closed(frame.as_ref()).into()),
                ..Ended::with(Outcome::Broken)
            });
            Sent::Closed(frame)
        }
        _ => Sent::Told(passed_on(ticket, dispatched, is_frame).await),
    }
}

/// Upstream's refusal as the client gets it, and the end of the ticket.
async fn passed_on(ticket: &mut Ticket, dispatched: Dispatched, is_frame: bool) -> String {
    let Dispatched { answer, edge, .. } = dispatched;
    let status = answer.head.status.as_u16();
    // Half a refusal is as good as none: the status says the most.
    let body = match answer.body.collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(_) => Bytes::new(),
    };
    let text = if is_frame {
        String::from_utf8_lossy(&body).into_owned()
    } else {
        let wait = answer.head.headers.get(header::RETRY_AFTER);
        let wait = wait.and_then(|v| v.to_str().ok());
        let wait = wait.or((status == 429).then_some("1"));
        socket::refusal_message(status, wait, &body)
    };
    ticket.was_told(&edge, status, None);
    ticket.settle(Ended {
        error: Some(excerpt(&edge, &text)),
        response_bytes: text.len() as u64,
        ..Ended::with(Outcome::Failed)
    });
    text
}
