//! `fairlane healthcheck`: asks the running instance whether it is ready.
use crate::config::Boot;
use anyhow::Context as _;
use std::{
    io::{Read as _, Write as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream},
    time::Duration,
};

/// An instance that does not answer within this is not ready, whatever else it is.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn run(boot: &Boot) -> anyhow::Result<()> {
    anyhow::ensure!(
        boot.tls.is_none() || boot.admin_listen.is_some(),
        "the instance speaks TLS only; check it from outside, or give it FAIRLANE_ADMIN_LISTEN"
    );
    let address = reachable(boot.admin_listen.unwrap_or(boot.listen));
    let answer = ask(address).with_context(|| format!("no answer from {address}"))?;
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

fn ask(address: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(4096).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
