//! What the inner rings need of the outside: the way to a provider, a place for records, and a memory
//! for who owns what.
use crate::{
    domain::{
        admission::Note,
        dispatch::{Cause, Provenance},
        ids::{AccountId, CredentialId, KeyId},
        ledger::Entry,
        owners::{Object, ObjectKind, OwnerRow, Sighting},
        pool::{BaseUrl, Fingerprint},
    },
    engine::payload::Payload,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, response};
use http_body::Body;
use std::{future::Future, pin::Pin, time::Duration};
use tokio::io::{AsyncRead, AsyncWrite};

/// One request on its way to one endpoint.
#[derive(Debug)]
pub struct Attempt<'a> {
    /// Where to.
    pub base_url: &'a BaseUrl,
    /// The method.
    pub method: Method,
    /// Path and query as they are to be sent.
    pub target: String,
    /// Headers as the client sent them, less what must not travel.
    pub headers: &'a HeaderMap,
    /// Headers of this edge, the credential among them; they replace those of the same name.
    pub edge_headers: Vec<(HeaderName, HeaderValue)>,
    /// The body, or `None` for requests that have none.
    pub payload: Option<Payload>,
    /// How long each step may take.
    pub timeouts: Timeouts,
}

/// The separate time limits; there is none on the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until connected, TLS included.
    pub connect: Duration,
    /// From then until the response headers.
    pub header: Duration,
}

/// Upstream's answer: its head, and its body as it comes.
pub struct Answer {
    /// Status and headers as upstream sent them.
    pub head: response::Parts,
    /// The body; dropping it before its end drops the request.
    pub body: AnswerBody,
}

/// A body as it comes from upstream.
pub type AnswerBody = Pin<Box<dyn Body<Data = Bytes, Error = BrokenOff> + Send>>;

/// Upstream broke off in the middle of a body. The text is for the log.
#[derive(Debug, thiserror::Error)]
#[error("upstream broke off: {0}")]
pub struct BrokenOff(pub String);

/// An attempt that got no answer.
#[derive(Debug, thiserror::Error)]
#[error("{detail}")]
pub struct SendFailure {
    /// Whether the request can have left.
    pub provenance: Provenance,
    /// What kind of failure it was.
    pub cause: Cause,
    /// What happened, for the log; never shown to clients.
    pub detail: String,
}

/// What a send will come to.
pub type Sending<'a> = Pin<Box<dyn Future<Output = Result<Answer, SendFailure>> + Send + 'a>>;

/// After this long on its way a request counts as started, though upstream has not answered: the
/// headers of a non-streaming answer come only with its end.
pub const STARTED_AFTER: Duration = Duration::from_secs(5);

/// What is to happen once a request counts as started.
pub type Started<'s> = dyn FnMut() + Send + 's;

/// Bytes in both directions.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection on which WebSocket is spoken from now on.
pub type SocketIo = Box<dyn Duplex>;

/// What became of asking upstream for a WebSocket.
pub enum Opened {
    /// It agreed; the head of its answer, and the connection.
    Socket(response::Parts, SocketIo),
    /// It answered otherwise.
    Refused(Answer),
}

/// What asking for a WebSocket will come to.
pub type OpeningSocket<'a> = Pin<Box<dyn Future<Output = Result<Opened, SendFailure>> + Send + 'a>>;

/// The way to providers.
pub trait Upstream: Send + Sync {
    /// Asks for a WebSocket, without extensions; what makes the request an upgrade is added here.
    /// Dropping the future drops the connection.
    fn open_socket<'a>(&'a self, attempt: Attempt<'a>) -> OpeningSocket<'a>;

    /// Sends one request and waits for the head of its answer. Dropping the future drops the
    /// request. `started` is called if [`STARTED_AFTER`] passes before the answer.
    fn send<'a>(&'a self, attempt: Attempt<'a>, started: &'a mut Started<'_>) -> Sending<'a>;
}

/// Takes the records of ended requests, without ever making the caller wait; what cannot be kept
/// is counted and dropped.
pub trait Ledger: Send + Sync {
    /// Takes one record.
    fn keep(&self, entry: Box<Entry>);
}

/// Is told what happens to the pool, without ever making the caller wait.
pub trait PoolWatch: Send + Sync {
    /// Something cooled, rested or came back.
    fn noted(&self, note: &Note);
    /// Upstream answered work of a credential with a limit.
    fn limit_met(&self, credential: CredentialId);
    /// Upstream refuses a credential's secret: while it has that secret it is to be disabled.
    fn credential_refused(&self, credential: CredentialId, secret: Fingerprint);
    /// Upstream refuses to bill these accounts: they are to be disabled.
    fn billing_refused(&self, accounts: &[AccountId]);
}

/// Something could not be stored, or not be looked up. The text is for the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unstored(pub String);

/// What a call of the store will come to.
pub type Stored<'a, T> = Pin<Box<dyn Future<Output = Result<T, Unstored>> + Send + 'a>>;

/// Remembers who owns what lives on upstream. `caller` is the client key on whose behalf it is
/// asked; `None` is a keyless request.
pub trait OwnerStore: Send + Sync {
    /// Adds rows; they are on disk when this succeeds.
    fn bind(&self, rows: Vec<OwnerRow>) -> Stored<'_, ()>;

    /// Adds a row soon, without ever making the caller wait. `false`, and counted, if it is lost.
    fn try_bind(&self, row: OwnerRow) -> bool;

    /// What each of these objects is to the caller, in their order.
    fn sightings(&self, objects: Vec<Object>, caller: Option<KeyId>) -> Stored<'_, Vec<Sighting>>;

    /// What the caller made of that kind; of responses and turn states, which nobody lists, nothing.
    fn own_objects(&self, kind: ObjectKind, caller: Option<KeyId>) -> Stored<'_, Vec<OwnerRow>>;

    /// Removes what the caller made under that id; that it was not there is no error.
    fn forget(&self, object: Object, caller: Option<KeyId>) -> Stored<'_, ()>;
}
