//! A connection's first bytes, which tell the version of HTTP, within a time limit: what reads
//! them has none of its own, and whoever says nothing would keep a descriptor for good.
//!
//! Invariant: once the version can be told, the limit is gone; bytes are never touched.
use std::{
    future::Future as _,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Sleep,
};

/// What a connection of HTTP/2 begins with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A byte stream whose opening is bounded.
pub(super) struct Opening<S> {
    stream: S,
    /// What of the preface is still to come; nothing once the version can be told.
    awaited: &'static [u8],
    within: Duration,
    limit: Option<Pin<Box<Sleep>>>,
}

impl<S> Opening<S> {
    pub(super) const fn new(stream: S, within: Duration) -> Self {
        Self {
            stream,
            awaited: PREFACE,
            within,
            limit: None,
        }
    }

    fn note(&mut self, bytes: &[u8]) {
        let rest = self.awaited.strip_prefix(bytes);
        // An end tells as much as a byte that the preface does not have there.
        self.awaited = rest.filter(|_| !bytes.is_empty()).unwrap_or_default();
        if self.awaited.is_empty() {
            self.limit = None;
        }
    }

    fn poll_limit(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let within = self.within;
        let limit = self
            .limit
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(within)));
        limit
            .as_mut()
            .poll(cx)
            .map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Opening<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if self.awaited.is_empty() {
            return read;
        }
        match read {
            Poll::Pending => self.poll_limit(cx),
            Poll::Ready(read) => {
                self.note(buf.filled().get(before..).unwrap_or_default());
                Poll::Ready(read)
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Opening<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
