//! `fairlane healthcheck`: asks the running instance whether it is ready.
use crate::{config::Boot, crypto};
use anyhow::Context as _;
use rustls::{ClientConnection, StreamOwned, pki_types::ServerName};
use std::{
    io::{self, Read, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream},
    time::Duration,
};

/// An instance that does not answer within this is not ready, whatever else it is.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn run(boot: &Boot) -> anyhow::Result<()> {
    let address = reachable(boot.admin_listen.unwrap_or(boot.listen));
    // The admin listener is without TLS always.
    let tls = boot.tls.as_ref().filter(|_| boot.admin_listen.is_none());
    let answer = match tls {
        None => ask(connect(address)),
        Some((chain, _)) => {
            let config = crypto::trusting_only(chain)?;
            let name = ServerName::IpAddress(address.ip().into());
            let session = ClientConnection::new(config, name)?;
            ask(connect(address).map(|stream| StreamOwned::new(session, stream)))
        }
    };
    let answer = answer.with_context(|| format!("no answer from {address}"))?;
    let status = answer.lines().next().unwrap_or_default();
    anyhow::ensure!(status.contains(" 200 "), "not ready: {status}");
    Ok(())
}

/// Where an instance that listens everywhere can be reached from here.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

fn ask(stream: io::Result<impl Read + Write>) -> io::Result<String> {
    let mut stream = stream?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    let read = stream.take(4096).read_to_end(&mut answer);
    // A server that closes without TLS' own farewell has said all that was asked.
    read.or_else(|e| if answer.is_empty() { Err(e) } else { Ok(0) })?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
