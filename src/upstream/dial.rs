//! The dialer: names, TCP and TLS, each failure with its own type.
//!
//! Invariant: whatever is returned here as an error happened before any byte of a request could
//! have left.
use super::{tls, wire::Transport};
use crate::domain::pool::BaseUrl;
use rustls::pki_types::ServerName;
use socket2::SockRef;
use std::{io, net::SocketAddr, time::Duration};
use tokio::{
    net::TcpStream,
    time::{Instant, timeout_at},
};
use tokio_rustls::TlsConnector;

/// Why no connection could be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum DialError {
    /// The name does not resolve.
    #[error("the name could not be resolved: {0}")]
    Name(io::Error),
    /// No address of it accepts a connection.
    #[error("no connection: {0}")]
    Connect(io::Error),
    /// The TLS handshake failed.
    #[error("the TLS handshake failed: {0}")]
    Tls(io::Error),
    /// It took longer than `connect_timeout_seconds`.
    #[error("no connection within {seconds} s ({step})")]
    Timeout {
        /// What was being waited for.
        step: &'static str,
        /// The limit.
        seconds: u64,
    },
    /// The HTTP layer refused the fresh connection.
    #[error("the connection could not be set up: {0}")]
    Setup(hyper::Error),
}

/// Connects to `base_url`, TLS included, within `limit`.
pub(super) async fn dial(base_url: &BaseUrl, limit: Duration) -> Result<Transport, DialError> {
    let deadline = Instant::now() + limit;
    let late = |step| DialError::Timeout {
        step,
        seconds: limit.as_secs(),
    };
    let addresses = timeout_at(
        deadline,
        tokio::net::lookup_host((base_url.host(), base_url.port())),
    )
    .await
    .map_err(|_| late("resolving the name"))?
    .map_err(DialError::Name)?;
    let tcp = connect(addresses.collect(), deadline)
        .await
        .map_err(|e| match e {
            Some(error) => DialError::Connect(error),
            None => late("connecting"),
        })?;
    if !base_url.is_tls() {
        return Ok(Transport::Plain(tcp));
    }
    let config = tls::client_config().map_err(|e| DialError::Tls(io::Error::other(e)))?;
    let name = ServerName::try_from(base_url.host().to_owned())
        .map_err(|e| DialError::Tls(io::Error::new(io::ErrorKind::InvalidInput, e)))?;
    let stream = timeout_at(deadline, TlsConnector::from(config).connect(name, tcp))
        .await
        .map_err(|_| late("the TLS handshake"))?
        .map_err(DialError::Tls)?;
    Ok(Transport::Tls(Box::new(stream)))
}

/// Tries the addresses in turn, each with an equal part of the time that is left, so that one
/// silent address does not use up the others' time. `None` means that the time ran out.
async fn connect(
    addresses: Vec<SocketAddr>,
    deadline: Instant,
) -> Result<TcpStream, Option<io::Error>> {
    let mut last = None;
    let count = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
    for (n, address) in (0..count).zip(addresses) {
        let now = Instant::now();
        let part = deadline.saturating_duration_since(now) / (count - n);
        match timeout_at(now + part, TcpStream::connect(address)).await {
            Ok(Ok(tcp)) => {
                crate::sockets::set_up(&SockRef::from(&tcp)).map_err(Some)?;
                return Ok(tcp);
            }
            Ok(Err(error)) => last = Some(error),
            Err(_) => (),
        }
    }
    Err(last)
}
