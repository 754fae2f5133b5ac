//! The steps of one call, in their order: whose it is, what it says, where it goes, what comes back.
use super::{
    Door, Gateway, Reply, discovery,
    intake::{self, Bounds, Intake, IntakeError},
    listing,
    outgoing::Outgoing,
    owned::Ties,
    refuse::Refused,
    relay, socket,
    ticket::{Opening, Ticket},
    waiting::{self, Commitment, Prospect},
};
use crate::{
    clock::unix_millis,
    domain::{
        admission::{Demand, Kinds},
        dispatch::Moved,
        ids::RequestId,
        moment::Moment,
        pool::{ClientKey, EdgeRef},
        protocol::Protocol,
        reason::Reason,
        settings::{Name, Settings},
    },
    engine::{
        dispatch::{Observer, Route as Way, Rules, Undelivered, dispatch},
        live::Progress,
    },
    ports::{SendFailure, Timeouts},
    protocol::{
        keepalive::answered_within,
        models::close_names,
        owned,
        peek::Peeked,
        route::{ModelSource, Route, Routed, client_credential, model_name, route},
    },
};
use http::{Method, Response, request::Parts};
use http_body::Body as _;
use hyper::body::Incoming;
use std::{sync::Arc, time::Duration};

/// What the settings say of one request, read once when it arrives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    pub(super) is_traced: bool,
    requires_key: bool,
    pub(super) body_limit: u64,
    pub(super) idle: Duration,
    /// How long a conversation prefers where it was.
    pub(super) affinity: Duration,
    pub(super) timeouts: Timeouts,
    rules: Rules,
}

impl Policy {
    pub(super) fn of(settings: &Settings) -> Self {
        let seconds = |name| Duration::from_secs(settings.integer(name));
        Self {
            is_traced: settings.is_on(Name::StageTrace),
            requires_key: settings.is_on(Name::RequireClientKey),
            body_limit: settings.integer(Name::RequestBodyLimitMb) << 20,
            idle: seconds(Name::IdleTimeoutSeconds),
            affinity: seconds(Name::AffinityTtlSeconds),
            timeouts: Timeouts {
                connect: seconds(Name::ConnectTimeoutSeconds),
                header: seconds(Name::HeaderTimeoutSeconds),
            },
            rules: Rules {
                max_attempts: u32::try_from(settings.integer(Name::MaxAttempts)).unwrap_or(1),
                is_repeatable: false,
                retries_5xx: settings.is_on(Name::RetryUpstream5xx),
                patience: seconds(Name::CapacityWaitSeconds),
                answer_by: None,
            },
        }
    }
}

/// Answers a request of the data plane.
///
/// With a `commitment`, its client may have been answered ahead: then the body alone counts.
pub(super) async fn answer(
    door: &Arc<Door>,
    parts: &Parts,
    body: Incoming,
    commitment: Option<&Commitment>,
) -> Response<Reply> {
    let mut body = Some(body);
    let policy = Policy::of(&door.gateway.configuration.settings());
    let uri = &parts.uri;
    let routed = route(&parts.method, uri.path(), &parts.headers, uri.query());
    let mut ticket = open(door, parts, &routed, policy);
    let operation = match &routed {
        Routed::Call(route) => Some(route.operation),
        _ => None,
    };
    let result = match routed {
        Routed::Call(route) => {
            let call = Call {
                door,
                parts,
                route,
                policy,
                commitment,
            };
            call.run(&mut ticket, &mut body).await
        }
        Routed::Models { shape, id } => match authenticate(door, parts, shape, policy) {
            Ok(key) => {
                ticket.is_from(key.as_ref());
                listing::answer(door, &mut ticket, key.as_deref(), (shape, id)).await
            }
            Err(refused) => Err(refused),
        },
        Routed::Socket(route) => {
            let asked = (route, policy);
            Box::pin(socket::answer(door, parts, asked, &mut ticket)).await
        }
        other => Err(misrouted(&other, uri.path())),
    };
    match result {
        Ok(Answered::Whole(response)) => response,
        Ok(Answered::Relayed(head, relay)) => relay.attach(head, ticket, parts),
        Ok(Answered::Switched(response, start)) => {
            start(ticket);
            response
        }
        Err(refused) => {
            if let Some(unread) = body {
                intake::discard(unread, &parts.headers, policy.body_limit).await;
            }
            refused.answer(&mut ticket, operation)
        }
    }
}

/// What a call came to.
pub(super) enum Answered {
    /// Answered by fairlane; the ticket is settled.
    Whole(Response<Reply>),
    /// Answered by upstream.
    Relayed(http::response::Parts, relay::Source),
    /// The connection becomes a socket, of which the ticket goes along with what is served on it.
    Switched(Response<Reply>, socket::Start),
}

fn open(door: &Arc<Door>, parts: &Parts, routed: &Routed<'_>, policy: Policy) -> Ticket {
    let (protocol, operation) = match routed {
        Routed::Call(route) | Routed::Socket(route) => (route.protocol, route.operation.name()),
        Routed::Models { shape, .. } => (*shape, "models"),
        Routed::NotFound(protocol) | Routed::MethodNotAllowed { protocol, .. } => {
            (*protocol, "unknown")
        }
        Routed::UpgradeRequired => (Protocol::OpenAi, "websocket"),
        Routed::NotDataPlane => (Protocol::OpenAi, "unknown"),
    };
    Ticket::new(
        door,
        Opening {
            protocol,
            operation,
            method: method_name(&parts.method),
            path: parts.uri.path(),
            is_traced: policy.is_traced,
        },
    )
}

/// Methods of the data plane by name; clients invent others, which are recorded as one.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "OTHER",
    }
}

fn misrouted(routed: &Routed<'_>, path: &str) -> Refused {
    match routed {
        Routed::MethodNotAllowed { allow, .. } => Refused {
            allow: Some(allow),
            ..Refused::new(
                Reason::MethodNotAllowed,
                format!("This path takes {allow}."),
            )
        },
        Routed::UpgradeRequired => Refused::new(
            Reason::UpgradeRequired,
            "This path speaks WebSocket alone; ask for an upgrade.",
        ),
        _ => Refused::new(
            Reason::PathNotFound,
            format!("There is no such path here: {path}"),
        ),
    }
}

/// Whose request it is; `None` where keys are not required and none was given.
pub(super) fn authenticate(
    door: &Door,
    parts: &Parts,
    protocol: Protocol,
    policy: Policy,
) -> Result<Option<Arc<ClientKey>>, Refused> {
    let given = client_credential(&parts.headers, parts.uri.query(), protocol);
    let Some(given) = given else {
        if policy.requires_key {
            return Err(Refused::new(
                Reason::InvalidClientKey,
                "A client key is needed, and none was given.",
            ));
        }
        return Ok(None);
    };
    let hash = crate::digest::sha256(&given);
    let pool = door.gateway.configuration.pool();
    match pool.key(&hash) {
        Some(key) if key.is_expired(unix_millis()) => Err(Refused::new(
            Reason::ClientKeyExpired,
            "This client key has expired.",
        )),
        Some(key) => Ok(Some(Arc::clone(key))),
        // A key that is wrong is never as good as none: whoever sends one expects its rights.
        None => Err(Refused::new(
            Reason::InvalidClientKey,
            "This client key is not known here.",
        )),
    }
}

/// One request that is to be sent upstream.
pub(super) struct Call<'a> {
    pub(super) door: &'a Door,
    pub(super) parts: &'a Parts,
    pub(super) route: Route<'a>,
    pub(super) policy: Policy,
    /// Where it may be answered ahead.
    pub(super) commitment: Option<&'a Commitment>,
}

impl Call<'_> {
    async fn run(
        &self,
        ticket: &mut Ticket,
        body: &mut Option<Incoming>,
    ) -> Result<Answered, Refused> {
        let key = authenticate(self.door, self.parts, self.route.protocol, self.policy)?;
        ticket.is_from(key.as_ref());
        let intake = match body.take() {
            Some(body) => self.intake(body).await?,
            None => None,
        };
        let peeked = intake.as_ref().map(|i| &i.peeked);
        let model = self.model(peeked)?;
        let bytes = intake.as_ref().map_or(0, |i| i.payload.length());
        ticket.asks_for(model.as_ref(), bytes);
        if let (Some(key), Some(model)) = (&key, &model)
            && !key.may_use_model(model)
        {
            return Err(Refused::new(
                Reason::ModelNotAllowed,
                format!("This client key may not use the model {model}."),
            ));
        }
        ticket.holds(self.door.reserve(key.as_deref()).await?);
        if let Some(kind) = owned::listed(self.route.operation) {
            return Box::pin(self.list(ticket, key, kind)).await;
        }
        let ties = self.ties(key.as_ref().map(|k| k.id), peeked).await?;
        let demand = self.demand(ticket.id(), (key, model), ties);
        self.send(ticket, (demand, ties), intake).await
    }

    async fn intake(&self, body: Incoming) -> Result<Option<Intake>, IntakeError> {
        if !self.route.takes_body && body.is_end_stream() {
            return Ok(None);
        }
        let bounds = Bounds {
            limit: self.policy.body_limit,
            idle: self.policy.idle,
            budget: &self.door.gateway.budget,
        };
        intake::read(body, &self.parts.headers, bounds)
            .await
            .map(Some)
    }

    pub(super) fn model(&self, peeked: Option<&Peeked>) -> Result<Option<Arc<str>>, Refused> {
        let in_body = || peeked.and_then(|p| p.model.as_deref()).map(Into::into);
        match self.route.model {
            ModelSource::Path(raw) => Ok(Some(model_name(raw).into())),
            ModelSource::OptionalBody => Ok(in_body()),
            ModelSource::None => Ok(None),
            ModelSource::Body => match in_body() {
                Some(model) => Ok(Some(model)),
                None => Err(Refused::new(
                    Reason::InvalidRequest,
                    "The request body names no model; this operation needs the field \"model\".",
                )),
            },
        }
    }

    pub(super) fn demand(
        &self,
        holder: RequestId,
        (key, model): (Option<Arc<ClientKey>>, Option<Arc<str>>),
        ties: Ties,
    ) -> Demand {
        Demand {
            holder,
            key,
            protocol: self.route.protocol,
            model,
            kinds: Kinds {
                stream: self.route.leases.stream,
                create: self.route.leases.create,
                job: false,
            },
            reattach: self.route.reattach,
            owner: ties.owner,
            preferred: ties.preferred,
            tried: Vec::new(),
            until: Moment::default(),
            is_moving: false,
        }
    }

    async fn send(
        &self,
        ticket: &mut Ticket,
        (demand, ties): (Demand, Ties),
        intake: Option<Intake>,
    ) -> Result<Answered, Refused> {
        let wanted = demand.model.clone();
        let key = demand.key.clone();
        let is_streamed = intake.as_ref().and_then(|i| i.peeked.stream) == Some(true);
        let mut outgoing = Outgoing::prepare(self, intake, self.policy.timeouts).await?;
        outgoing.prospect = Prospect::of(self, ticket.id(), is_streamed);
        let rules = self.rules(&ticket.live);
        let sent = dispatch(self.way(), demand, rules, &ticket.live, &outgoing).await;
        let dispatched = match sent {
            Ok(dispatched) => dispatched,
            Err(error) => return Err(self.explained(error, key.as_deref(), (wanted, ties)).await),
        };
        let dispatched = self.settle_owners(ties, dispatched, ticket).await?;
        if ticket.live.is_committed() && !waiting::is_promised(&dispatched.answer.head) {
            let told = Box::pin(waiting::disappoint(self, dispatched, ticket)).await;
            return Ok(Answered::Whole(told));
        }
        let (head, source) = relay::Source::new(self.route, dispatched, self.policy.idle, ticket);
        Ok(Answered::Relayed(head, source))
    }

    pub(super) fn rules(&self, live: &Progress) -> Rules {
        let within = answered_within(&self.parts.headers);
        Rules {
            answer_by: within.and_then(|within| live.received_at.checked_add(within)),
            is_repeatable: matches!(self.parts.method, Method::GET | Method::HEAD),
            ..self.policy.rules
        }
    }

    pub(super) fn way(&self) -> Way<'_> {
        let gateway = &self.door.gateway;
        Way {
            admission: gateway.configuration.admission(),
            upstream: &*self.door.upstream,
            observer: gateway,
            watch: &*gateway.watch,
        }
    }

    /// The refusal; for a model that nobody serves, with the names that come close.
    pub(super) async fn explained(
        &self,
        error: Undelivered,
        key: Option<&ClientKey>,
        (wanted, ties): (Option<Arc<str>>, Ties),
    ) -> Refused {
        let is_unknown = matches!(&error, Undelivered::Denied(denied)
            if denied.refusal.reason == Reason::ModelNotFound);
        let Some(model) = wanted.filter(|_| is_unknown) else {
            return self.tied(ties, error);
        };
        let pool = Arc::clone(&self.door.gateway.configuration.pool());
        let names = discovery::names(self.door, &pool, self.route.protocol, key).await;
        let close = close_names(&model, names.iter().map(|n| &**n));
        let hint = if close.is_empty() {
            String::new()
        } else {
            format!(" Close names that are served: {}.", close.join(", "))
        };
        Refused::new(
            Reason::ModelNotFound,
            format!("No account serves the model {model}.{hint}"),
        )
    }
}

impl Observer for Gateway {
    fn attempt_failed(&self, edge: &EdgeRef, failure: &SendFailure) {
        self.metrics.attempt_failed(failure.provenance);
        tracing::warn!(
            credential = %edge.credential().id,
            endpoint = %edge.endpoint().id,
            provenance = failure.provenance.name(),
            error = %failure,
            "an attempt got no answer"
        );
    }

    fn moved(&self, why: Moved) {
        self.metrics.moved(why);
    }
}
