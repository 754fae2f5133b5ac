//! Request bodies that can be sent again: in memory, or in an unlinked file when memory is short.
//!
//! Invariant: the bodies kept in memory share one [`Budget`]; a body gives its part back when its
//! last copy is dropped.
use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use std::{
    fs::File,
    future::Future,
    io::{self, Write},
    mem,
    ops::Range,
    os::unix::fs::FileExt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

/// Bodies up to this size are kept in memory whatever the budget says: refusing small ones would
/// cost more than it saves.
pub const ALWAYS_IN_MEMORY_BYTES: u64 = 1 << 20;

/// What all bodies that are kept in memory may take together.
pub const BUDGET_BYTES: u64 = 256 << 20;

/// How much of a spooled body is read at once.
const PIECE_BYTES: usize = 256 << 10;

/// The memory that kept bodies share.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    used: AtomicU64,
}

impl Budget {
    /// A budget of `limit` bytes.
    pub fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self {
            limit,
            used: AtomicU64::new(0),
        })
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    fn reserve(self: &Arc<Self>, bytes: u64, is_forced: bool) -> Option<Share> {
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        let share = Share {
            budget: Arc::clone(self),
            bytes,
        };
        // A share that is not wanted gives itself back here.
        (is_forced || before + bytes <= self.limit).then_some(share)
    }
}

/// A part of the budget, given back on drop.
#[derive(Debug)]
struct Share {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A request body, cheap to clone.
#[derive(Clone, Debug)]
pub struct Payload {
    kept: Kept,
    splice: Option<Splice>,
}

/// A stretch of the body that is sent in other words.
#[derive(Clone, Debug)]
struct Splice {
    from: u64,
    to: u64,
    instead: Bytes,
}

#[derive(Clone, Debug)]
enum Kept {
    /// The share is held while the body may be in memory.
    Memory {
        bytes: Bytes,
        _share: Option<Arc<Share>>,
    },
    Spooled(Arc<File>, u64),
}

impl Payload {
    /// A body that is in memory anyway.
    pub fn from_bytes(bytes: Bytes) -> Self {
        Self::of(Kept::Memory {
            bytes,
            _share: None,
        })
    }

    const fn of(kept: Kept) -> Self {
        Self { kept, splice: None }
    }

    /// The same body with the bytes of `stretch` replaced when it is sent; nothing is copied.
    #[must_use]
    pub fn with_replaced(&self, stretch: Range<usize>, instead: Bytes) -> Self {
        let length = self.kept.length();
        let to = (stretch.end as u64).min(length);
        let from = (stretch.start as u64).min(to);
        Self {
            kept: self.kept.clone(),
            splice: Some(Splice { from, to, instead }),
        }
    }

    /// How many bytes are sent.
    pub fn length(&self) -> u64 {
        match &self.splice {
            None => self.kept.length(),
            Some(s) => self.kept.length() - (s.to - s.from) + s.instead.len() as u64,
        }
    }

    /// Whether it lies in a file.
    pub fn is_spooled(&self) -> bool {
        matches!(self.kept, Kept::Spooled(..))
    }

    /// The whole body as it came, read back from its file where it was spooled.
    pub async fn bytes(&self) -> io::Result<Bytes> {
        match &self.kept {
            Kept::Memory { bytes, .. } => Ok(bytes.clone()),
            Kept::Spooled(file, length) => {
                let length = usize::try_from(*length).map_err(io::Error::other)?;
                read_piece(Arc::clone(file), 0, length).await
            }
        }
    }

    /// A body to be sent; may be asked for again.
    pub fn outgoing(&self) -> Outgoing {
        let end = self.kept.length();
        let (before, instead, after) = match &self.splice {
            None => (0..end, Bytes::new(), end..end),
            Some(s) => (0..s.from, s.instead.clone(), s.to..end),
        };
        Outgoing(Box::new(Parts {
            kept: self.kept.clone(),
            before,
            instead,
            after,
            reading: None,
        }))
    }
}

impl Kept {
    fn length(&self) -> u64 {
        match self {
            Self::Memory { bytes, .. } => bytes.len() as u64,
            Self::Spooled(_, length) => *length,
        }
    }
}

/// Collects a body piece by piece.
#[derive(Debug)]
pub struct Collector {
    budget: Arc<Budget>,
    first: Option<Bytes>,
    buffer: BytesMut,
    share: Option<Share>,
    spooled: Option<(Arc<File>, u64)>,
}

impl Collector {
    /// An empty body.
    pub fn new(budget: &Arc<Budget>) -> Self {
        Self {
            budget: Arc::clone(budget),
            first: None,
            buffer: BytesMut::new(),
            share: None,
            spooled: None,
        }
    }

    /// How many bytes have come so far.
    pub fn length(&self) -> u64 {
        match (&self.spooled, &self.first) {
            (Some((_, length)), _) => *length,
            (None, Some(first)) => first.len() as u64,
            (None, None) => self.buffer.len() as u64,
        }
    }

    /// Adds a piece; `expected` is the whole length where the client stated it.
    pub async fn push(&mut self, piece: Bytes, expected: Option<u64>) -> io::Result<()> {
        if self.spooled.is_some() {
            return self.append(piece).await;
        }
        // Most bodies come in one piece, which is kept as it is.
        if self.length() == 0 && expected == Some(piece.len() as u64) {
            return self.keep_or_spool(piece).await;
        }
        if let Some(first) = self.first.take() {
            self.buffer.extend_from_slice(&first);
        }
        let whole = expected
            .unwrap_or(0)
            .max((self.buffer.len() + piece.len()) as u64);
        if whole > ALWAYS_IN_MEMORY_BYTES && !self.has_share_for(whole) {
            let start = self.buffer.split().freeze();
            self.share = None;
            self.spool(start).await?;
            return self.append(piece).await;
        }
        if self.buffer.is_empty() {
            // The stated length is only believed up to what small bodies may take anyway.
            let hint = whole.min(ALWAYS_IN_MEMORY_BYTES);
            self.buffer.reserve(usize::try_from(hint).unwrap_or(0));
        }
        self.buffer.extend_from_slice(&piece);
        Ok(())
    }

    async fn keep_or_spool(&mut self, piece: Bytes) -> io::Result<()> {
        let length = piece.len() as u64;
        if length > ALWAYS_IN_MEMORY_BYTES && !self.has_share_for(length) {
            return self.spool(piece).await;
        }
        self.first = Some(piece);
        Ok(())
    }

    fn has_share_for(&mut self, whole: u64) -> bool {
        let held = self.share.as_ref().map_or(0, |s| s.bytes);
        if held >= whole {
            return true;
        }
        // Doubling, so that a body of unknown length asks a few times only.
        let wanted = whole.max(held * 2);
        match self.budget.reserve(wanted - held, false) {
            None => false,
            Some(mut more) => {
                if let Some(share) = &mut self.share {
                    share.bytes += more.bytes;
                    more.bytes = 0;
                } else {
                    self.share = Some(more);
                }
                true
            }
        }
    }

    async fn spool(&mut self, start: Bytes) -> io::Result<()> {
        let file = crate::blocking::run(move || {
            let mut file = tempfile::tempfile()?;
            file.write_all(&start)?;
            Ok::<_, io::Error>((Arc::new(file), start.len() as u64))
        });
        self.spooled = Some(file.await.unwrap_or_else(|| Err(gone()))?);
        Ok(())
    }

    async fn append(&mut self, piece: Bytes) -> io::Result<()> {
        let Some((file, length)) = &mut self.spooled else {
            return Ok(());
        };
        let bytes = piece.len() as u64;
        let target = Arc::clone(file);
        let written = crate::blocking::run(move || (&*target).write_all(&piece));
        written.await.unwrap_or_else(|| Err(gone()))?;
        *length += bytes;
        Ok(())
    }

    /// The body as it came.
    pub fn finish(self) -> Payload {
        if let Some((file, length)) = self.spooled {
            return Payload::of(Kept::Spooled(file, length));
        }
        let bytes = self.first.unwrap_or_else(|| self.buffer.freeze());
        let share = match self.share {
            Some(share) => Some(share),
            None if bytes.is_empty() => None,
            None => self.budget.reserve(bytes.len() as u64, true),
        };
        Payload::of(Kept::Memory {
            bytes,
            _share: share.map(Arc::new),
        })
    }
}

fn gone() -> io::Error {
    io::Error::other("the program is stopping")
}

async fn read_piece(file: Arc<File>, at: u64, length: usize) -> io::Result<Bytes> {
    let read = crate::blocking::run(move || {
        let mut piece = vec![0; length];
        // By position: an attempt that was dropped may still be reading elsewhere in the file.
        file.read_exact_at(&mut piece, at)?;
        Ok(Bytes::from(piece))
    });
    read.await.unwrap_or_else(|| Err(gone()))
}

type Reading = Pin<Box<dyn Future<Output = io::Result<Bytes>> + Send>>;

/// A body on its way out: what stands before a replaced stretch, what replaces it, what follows.
/// Behind a pointer: connections reserve room for many of it.
pub struct Outgoing(Box<Parts>);

struct Parts {
    kept: Kept,
    before: Range<u64>,
    instead: Bytes,
    after: Range<u64>,
    reading: Option<Reading>,
}

impl Parts {
    fn left(&self) -> u64 {
        let ranges = (self.before.end - self.before.start) + (self.after.end - self.after.start);
        ranges + self.instead.len() as u64
    }

    /// The next piece of `range`, which shrinks by it.
    fn poll_range(
        kept: &Kept,
        range: &mut Range<u64>,
        reading: &mut Option<Reading>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Bytes>> {
        let left = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let piece = match kept {
            Kept::Memory { bytes, .. } => {
                let start = usize::try_from(range.start).map_err(io::Error::other)?;
                bytes.slice(start..start + left)
            }
            Kept::Spooled(file, _) => {
                let (file, at) = (Arc::clone(file), range.start);
                let read = reading
                    .get_or_insert_with(|| Box::pin(read_piece(file, at, left.min(PIECE_BYTES))));
                ready!(read.as_mut().poll(cx))?
            }
        };
        *reading = None;
        range.start += piece.len() as u64;
        Poll::Ready(Ok(piece))
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = &mut *self.0;
        let piece = if !this.before.is_empty() {
            ready!(Parts::poll_range(
                &this.kept,
                &mut this.before,
                &mut this.reading,
                cx
            ))?
        } else if !this.instead.is_empty() {
            mem::take(&mut this.instead)
        } else if !this.after.is_empty() {
            ready!(Parts::poll_range(
                &this.kept,
                &mut this.after,
                &mut this.reading,
                cx
            ))?
        } else {
            return Poll::Ready(None);
        };
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.left() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.left())
    }
}

#[cfg(test)]
mod tests;
