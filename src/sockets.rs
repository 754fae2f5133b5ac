//! How every TCP connection is set up, whichever way it goes.
use socket2::{SockRef, TcpKeepalive};
use std::{io, time::Duration};

/// A peer that vanished without a word is found within about a minute.
const PROBE_AFTER: Duration = Duration::from_secs(30);
const PROBE_EVERY: Duration = Duration::from_secs(10);
const PROBES: u32 = 3;

/// Small frames leave at once, and a peer that vanished is noticed, whether data is under way to
/// it or not.
pub fn set_up(socket: &SockRef<'_>) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(PROBE_AFTER)
        .with_interval(PROBE_EVERY)
        .with_retries(PROBES);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_user_timeout(Some(PROBE_AFTER + PROBE_EVERY * PROBES))
}
