//! What lies under a connection: the transport, and the witness above it.
use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;

/// A connected byte stream.
#[derive(Debug)]
pub(super) enum Transport {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Counts the writes that were *attempted* above TLS. No new attempt since a request was handed
/// over proves that nothing of it left; an attempt that failed proves nothing.
#[derive(Debug, Default)]
pub(super) struct Witness(AtomicU64);

impl Witness {
    pub(super) fn attempts(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The transport with its witness.
#[derive(Debug)]
pub(super) struct Witnessed {
    transport: Transport,
    witness: Arc<Witness>,
}

impl Witnessed {
    pub(super) fn new(transport: Transport) -> (Self, Arc<Witness>) {
        let witness = Arc::new(Witness::default());
        let io = Self {
            transport,
            witness: Arc::clone(&witness),
        };
        (io, witness)
    }

    fn note(&self) {
        self.witness.0.fetch_add(1, Ordering::Relaxed);
    }
}

macro_rules! on_transport {
    ($self:ident, $io:ident => $call:expr) => {
        match &mut $self.transport {
            Transport::Plain(io) => {
                let $io = Pin::new(io);
                $call
            }
            Transport::Tls(io) => {
                let $io = Pin::new(io.as_mut());
                $call
            }
        }
    };
}

impl AsyncRead for Witnessed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        on_transport!(self, io => io.poll_read(cx, buf))
    }
}

impl AsyncWrite for Witnessed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if !buf.is_empty() {
            self.note();
        }
        on_transport!(self, io => io.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if bufs.iter().any(|b| !b.is_empty()) {
            self.note();
        }
        on_transport!(self, io => io.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.transport {
            Transport::Plain(io) => io.is_write_vectored(),
            Transport::Tls(io) => io.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_transport!(self, io => io.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_transport!(self, io => io.poll_shutdown(cx))
    }
}
