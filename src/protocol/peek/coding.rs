//! Undoing content encodings piece by piece.
//!
//! Invariant: whatever comes in, what is held at a time is bounded: one buffer per encoding besides
//! the decoders' own windows. Nothing is decoded ahead of its consumer, so that a consumer's limit
//! stops a small body that would become a huge one.
use super::{
    PeekError,
    gzip::{Gzip, inflate},
};
use flate2::Decompress;
use zstd::{
    stream::raw::{DParameter, Decoder as ZstdDecoder, Operation},
    zstd_safe::{InBuffer, OutBuffer},
};

/// What a decoder writes at a time.
const BUFFER_BYTES: usize = 16 * 1024;

/// The largest window of zstd: 8 MiB, as RFC 9659 has it for content encodings.
const MAX_WINDOW_LOG: u32 = 23;

/// More encodings on one body than this are nobody's honest work.
const MAX_ENCODINGS: usize = 3;

/// Takes decoded bytes.
type Sink<'a> = dyn FnMut(&[u8]) -> Result<(), PeekError> + 'a;

/// Undoes the content encodings of one body.
pub struct Decoder {
    /// In the order of decoding: the reverse of the header's.
    stages: Vec<Stage>,
}

struct Stage {
    coding: Coding,
    has_input: bool,
    out: Box<[u8]>,
}

enum Coding {
    Gzip(Box<Gzip>),
    Deflate(Box<Deflate>),
    Zstd(Zstd),
}

/// `deflate` means zlib, but some programs send the bare data: the first two bytes tell.
struct Deflate {
    first: Option<u8>,
    inflate: Option<Decompress>,
    has_ended: bool,
}

struct Zstd {
    decoder: ZstdDecoder<'static>,
    is_between_frames: bool,
}

impl Decoder {
    /// For a body with those values of `Content-Encoding`, in the order of the header lines.
    pub fn new<'a>(encodings: impl Iterator<Item = &'a [u8]>) -> Result<Self, PeekError> {
        let mut stages = Vec::new();
        for name in encodings.flat_map(|value| value.split(|b| *b == b',')) {
            let Some(coding) = Coding::named(name.trim_ascii())? else {
                continue;
            };
            if stages.len() == MAX_ENCODINGS {
                return Err(PeekError::TooManyEncodings { max: MAX_ENCODINGS });
            }
            stages.push(Stage {
                coding,
                has_input: false,
                out: vec![0; BUFFER_BYTES].into_boxed_slice(),
            });
        }
        stages.reverse();
        Ok(Self { stages })
    }

    /// Whether there is nothing to undo.
    pub fn is_identity(&self) -> bool {
        self.stages.is_empty()
    }

    /// Decodes the next piece; `sink` gets what comes of it, in pieces, and may stop it.
    pub fn push(&mut self, piece: &[u8], sink: &mut Sink<'_>) -> Result<(), PeekError> {
        push(&mut self.stages, piece, sink)
    }

    /// Checks that the body was whole. One without any bytes is taken for an empty one.
    pub fn finish(&self) -> Result<(), PeekError> {
        match self.stages.iter().find(|s| !s.is_complete()) {
            Some(stage) => Err(stage.corrupt()),
            None => Ok(()),
        }
    }
}

fn push(stages: &mut [Stage], mut input: &[u8], sink: &mut Sink<'_>) -> Result<(), PeekError> {
    let Some((stage, rest)) = stages.split_first_mut() else {
        return sink(input);
    };
    stage.has_input |= !input.is_empty();
    loop {
        let Some((used, made)) = stage.coding.run(input, &mut stage.out) else {
            return Err(stage.corrupt());
        };
        input = input.get(used..).unwrap_or_default();
        if made > 0 {
            push(rest, stage.out.get(..made).unwrap_or_default(), sink)?;
        }
        // A full buffer may mean that there is more to come without further input.
        if input.is_empty() && made < stage.out.len() {
            return Ok(());
        }
        if used == 0 && made == 0 {
            return Err(stage.corrupt());
        }
    }
}

impl Stage {
    fn is_complete(&self) -> bool {
        !self.has_input
            || match &self.coding {
                Coding::Gzip(gzip) => gzip.is_complete(),
                Coding::Deflate(deflate) => deflate.has_ended,
                Coding::Zstd(zstd) => zstd.is_between_frames,
            }
    }

    fn corrupt(&self) -> PeekError {
        PeekError::Corrupt {
            encoding: match self.coding {
                Coding::Gzip(_) => "gzip",
                Coding::Deflate(_) => "deflate",
                Coding::Zstd(_) => "zstd",
            },
        }
    }
}

impl Coding {
    /// The coding of that name, or `None` for the one that changes nothing.
    fn named(name: &[u8]) -> Result<Option<Self>, PeekError> {
        let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        if name.is_empty() || is("identity") {
            return Ok(None);
        }
        if is("gzip") || is("x-gzip") {
            return Ok(Some(Self::Gzip(Box::new(Gzip::new()))));
        }
        if is("deflate") {
            return Ok(Some(Self::Deflate(Box::new(Deflate {
                first: None,
                inflate: None,
                has_ended: false,
            }))));
        }
        if is("zstd") {
            return Zstd::new().map(|z| Some(Self::Zstd(z)));
        }
        // Long enough for any registered name, short enough for a message.
        let shown = name.get(..32).unwrap_or(name);
        Err(PeekError::UnsupportedEncoding {
            name: shown.escape_ascii().to_string(),
        })
    }

    fn run(&mut self, input: &[u8], out: &mut [u8]) -> Option<(usize, usize)> {
        match self {
            Self::Gzip(gzip) => gzip.run(input, out),
            Self::Deflate(deflate) => deflate.run(input, out),
            Self::Zstd(zstd) => zstd.run(input, out),
        }
    }
}

impl Deflate {
    fn run(&mut self, input: &[u8], out: &mut [u8]) -> Option<(usize, usize)> {
        if self.has_ended {
            return Some((0, 0));
        }
        let ended = &mut self.has_ended;
        if let Some(decompress) = &mut self.inflate {
            return inflate(decompress, input, out, |end| *ended = end);
        }
        let (first, used) = match (self.first, input) {
            (None, []) => return Some((0, 0)),
            (None, [first]) => {
                self.first = Some(*first);
                return Some((1, 0));
            }
            (None, [first, ..]) => (*first, 1),
            (Some(first), _) => (first, 0),
        };
        let Some(second) = input.get(used) else {
            return Some((0, 0));
        };
        let is_zlib = first & 0x0f == 8 && u16::from_be_bytes([first, *second]).is_multiple_of(31);
        let decompress = self.inflate.insert(Decompress::new(is_zlib));
        // One byte of input yields no output yet, so all of `out` is still free afterwards.
        inflate(decompress, &[first], out, |_| ())?;
        let rest = input.get(used..)?;
        let (more, made) = inflate(decompress, rest, out, |end| *ended = end)?;
        Some((used + more, made))
    }
}

impl Zstd {
    fn new() -> Result<Self, PeekError> {
        let refused = |_| PeekError::Corrupt { encoding: "zstd" };
        let mut decoder = ZstdDecoder::new().map_err(refused)?;
        decoder
            .set_parameter(DParameter::WindowLogMax(MAX_WINDOW_LOG))
            .map_err(refused)?;
        Ok(Self {
            decoder,
            is_between_frames: true,
        })
    }

    fn run(&mut self, input: &[u8], out: &mut [u8]) -> Option<(usize, usize)> {
        let mut source = InBuffer::around(input);
        let mut target = OutBuffer::around(out);
        let hint = self.decoder.run(&mut source, &mut target).ok()?;
        let (used, made) = (source.pos(), target.pos());
        // Called without input at a frame's end, the hint speaks of the frame that may follow.
        if used > 0 || made > 0 {
            self.is_between_frames = hint == 0;
        }
        Some((used, made))
    }
}
