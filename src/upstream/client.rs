//! The client: takes a resting connection or dials, sends, and classifies what went wrong.
use super::{
    dial::{DialError, dial},
    exchange::{Connection, Receiving},
    idle::{Idle, Origin},
};
use crate::{
    domain::{
        dispatch::{Cause, Provenance},
        pool::BaseUrl,
    },
    engine::payload::{Outgoing, Payload},
    ports::{
        Answer, Attempt, OpeningSocket, STARTED_AFTER, SendFailure, Sending, Started, Upstream,
    },
};
use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, Uri, header};
use std::{future::poll_fn, pin::pin, sync::Arc, task::Poll, time::Duration};
use tokio::time::{Instant, sleep_until};

/// Connections to every origin. One for each thread of the data plane, so that a connection is
/// always used where its socket is registered.
#[derive(Clone, Debug, Default)]
pub struct Client {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) idle: Idle,
}

/// A peer that closes after every answer can spoil several resting connections at once; after
/// this many the next one is dialled afresh.
const STALE_AT_MOST: usize = 8;

impl Client {
    /// Closes connections that have rested for too long; to be called every few seconds.
    pub fn sweep(&self) {
        self.shared.idle.sweep(Instant::now());
    }

    /// How many connections rest.
    pub fn resting(&self) -> usize {
        self.shared.idle.count()
    }

    async fn exchange(
        &self,
        attempt: Attempt<'_>,
        started: &mut Started<'_>,
    ) -> Result<Answer, SendFailure> {
        let origin = origin_of(attempt.base_url);
        let request = Outline::of(&attempt)?;
        let mut stale = 0;
        loop {
            let resting = if stale < STALE_AT_MOST {
                self.resting_connection(&origin).await
            } else {
                None
            };
            let is_fresh = resting.is_none();
            let mut connection = match resting {
                Some(connection) => connection,
                None => self.fresh(&attempt, attempt.timeouts.connect).await?,
            };
            let limit = attempt.timeouts.header;
            match send(&mut connection, request.build(), limit, started).await {
                Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                    return Err(switched());
                }
                Ok(response) => {
                    let (head, body) = response.into_parts();
                    let shared = Arc::clone(&self.shared);
                    let body = Receiving::new(body, connection, origin, shared);
                    let body = body.rest_if_empty().await;
                    return Ok(Answer {
                        head,
                        body: Box::pin(body),
                    });
                }
                // Closed by upstream while it rested, and nothing was written: as if it had not
                // been there.
                Err(failure) if !is_fresh && failure.provenance == Provenance::NotDispatched => {
                    stale += 1;
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    async fn resting_connection(&self, origin: &Origin) -> Option<Connection> {
        while let Some(mut connection) = self.shared.idle.take(origin, Instant::now()) {
            if poll_fn(|cx| Poll::Ready(connection.poll_usable(cx))).await {
                return Some(connection);
            }
        }
        None
    }

    async fn fresh(
        &self,
        attempt: &Attempt<'_>,
        limit: Duration,
    ) -> Result<Connection, SendFailure> {
        let transport = dial(attempt.base_url, limit)
            .await
            .map_err(|e| unsent(&e))?;
        Connection::open(transport).await.map_err(|e| unsent(&e))
    }
}

impl Upstream for Client {
    fn send<'a>(&'a self, attempt: Attempt<'a>, started: &'a mut Started<'_>) -> Sending<'a> {
        Box::pin(self.exchange(attempt, started))
    }

    fn open_socket<'a>(&'a self, attempt: Attempt<'a>) -> OpeningSocket<'a> {
        Box::pin(super::socket::open(attempt))
    }
}

fn origin_of(base_url: &BaseUrl) -> Origin {
    Origin {
        is_tls: base_url.is_tls(),
        host: base_url.host().into(),
        port: base_url.port(),
    }
}

pub(super) fn unsent(error: &DialError) -> SendFailure {
    SendFailure {
        provenance: Provenance::NotDispatched,
        cause: Cause::Connection,
        detail: error.to_string(),
    }
}

/// No request asks for another protocol, so that whatever follows would be nobody's.
fn switched() -> SendFailure {
    SendFailure {
        provenance: Provenance::Unknown,
        cause: Cause::Connection,
        detail: "upstream switched protocols without being asked to".to_owned(),
    }
}

async fn send(
    connection: &mut Connection,
    request: Request<Outgoing>,
    limit: Duration,
    started: &mut Started<'_>,
) -> Result<http::Response<hyper::body::Incoming>, SendFailure> {
    let (witness, before) = connection.witness();
    let begun = Instant::now();
    // One timer for both moments: registering one costs more than most of what is done here.
    let mut timer = pin!(sleep_until(begun + limit.min(STARTED_AFTER)));
    let mut answer = pin!(connection.send(request));
    loop {
        tokio::select! {
            biased;
            answered = &mut answer => return answered.map_err(|lost| SendFailure {
                provenance: provenance(lost.may_have_left),
                cause: Cause::Connection,
                detail: describe(&lost.error),
            }),
            () = &mut timer => {
                if begun.elapsed() >= limit {
                    break;
                }
                started();
                timer.as_mut().reset(begun + limit);
            }
        }
    }
    Err(SendFailure {
        provenance: provenance(witness.attempts() != before),
        cause: Cause::HeaderTimeout,
        detail: format!("no response headers within {} s", limit.as_secs()),
    })
}

pub(super) fn provenance(may_have_left: bool) -> Provenance {
    if may_have_left {
        Provenance::Unknown
    } else {
        Provenance::NotDispatched
    }
}

/// The error with its sources, for the log.
pub(super) fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

/// The parts of a request that had to be parsed; builds it for one connection after another.
pub(super) struct Outline<'a> {
    attempt: &'a Attempt<'a>,
    uri: Uri,
    host: HeaderValue,
}

impl<'a> Outline<'a> {
    pub(super) fn of(attempt: &'a Attempt<'a>) -> Result<Self, SendFailure> {
        let refused = |detail: String| SendFailure {
            provenance: Provenance::NotDispatched,
            cause: Cause::Connection,
            detail,
        };
        Ok(Self {
            attempt,
            uri: attempt
                .target
                .parse()
                .map_err(|e| refused(format!("the request target cannot be sent: {e}")))?,
            host: HeaderValue::from_str(attempt.base_url.authority())
                .map_err(|e| refused(format!("the host cannot be sent: {e}")))?,
        })
    }

    pub(super) fn build(&self) -> Request<Outgoing> {
        let payload = self.attempt.payload.as_ref();
        let body = payload.map_or_else(
            || Payload::from_bytes(Bytes::new()).outgoing(),
            Payload::outgoing,
        );
        let mut request = Request::new(body);
        *request.method_mut() = self.attempt.method.clone();
        *request.uri_mut() = self.uri.clone();
        let headers = request.headers_mut();
        headers.clone_from(self.attempt.headers);
        headers.insert(header::HOST, self.host.clone());
        if let Some(payload) = payload {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(payload.length()));
        }
        for (name, value) in &self.attempt.edge_headers {
            headers.insert(name.clone(), value.clone());
        }
        request
    }
}
