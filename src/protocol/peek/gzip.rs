//! gzip, fed in pieces: members one after the other, each with head, deflated data and checksum.
use flate2::{Crc, Decompress, FlushDecompress, Status};

const HAS_CHECKSUM: u8 = 1 << 1;
const HAS_EXTRA: u8 = 1 << 2;
const HAS_NAME: u8 = 1 << 3;
const HAS_COMMENT: u8 = 1 << 4;

/// Bytes of a member's head that are always there.
const FIXED: usize = 10;
/// Bytes of a member's tail: checksum and length.
const TAIL: usize = 8;

/// What comes next in a member.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    Fixed(usize),
    ExtraLength(usize),
    Extra(usize),
    Name,
    Comment,
    Checksum(usize),
    Data,
    Tail(usize),
}

/// Undoes gzip. Bytes go in and come out as they can.
pub(super) struct Gzip {
    part: Part,
    flags: u8,
    extra: [u8; 2],
    inflate: Decompress,
    crc: Crc,
    tail: [u8; TAIL],
}

impl Gzip {
    pub(super) fn new() -> Self {
        Self {
            part: Part::Fixed(0),
            flags: 0,
            extra: [0; 2],
            inflate: Decompress::new(false),
            crc: Crc::new(),
            tail: [0; TAIL],
        }
    }

    /// Whether a member has ended and none has begun since.
    pub(super) fn is_complete(&self) -> bool {
        self.part == Part::Fixed(0)
    }

    /// Reads from `input`, writes to `out`, and tells how many bytes of each; `None` if the data is
    /// not gzip.
    pub(super) fn run(&mut self, input: &[u8], out: &mut [u8]) -> Option<(usize, usize)> {
        let mut used = 0;
        while let Some(&byte) = input.get(used) {
            if self.part == Part::Data {
                break;
            }
            self.frame_byte(byte)?;
            used += 1;
        }
        if self.part != Part::Data {
            return Some((used, 0));
        }
        let (read, made) = inflate(&mut self.inflate, input.get(used..)?, out, |ended| {
            if ended {
                self.part = Part::Tail(0);
            }
        })?;
        self.crc.update(out.get(..made)?);
        Some((used + read, made))
    }

    fn frame_byte(&mut self, byte: u8) -> Option<()> {
        self.part = match self.part {
            Part::Fixed(n) => self.fixed(n, byte)?,
            Part::ExtraLength(n) => {
                *self.extra.get_mut(n)? = byte;
                match (n, u16::from_le_bytes(self.extra)) {
                    (0, _) => Part::ExtraLength(1),
                    (_, 0) => self.after_extra(),
                    (_, length) => Part::Extra(usize::from(length)),
                }
            }
            Part::Extra(1) => self.after_extra(),
            Part::Extra(n) => Part::Extra(n - 1),
            Part::Name if byte == 0 => self.after_name(),
            Part::Comment if byte == 0 => self.after_comment(),
            Part::Checksum(0) => Part::Checksum(1),
            Part::Checksum(_) => Part::Data,
            Part::Tail(n) => self.tail(n, byte)?,
            Part::Name | Part::Comment | Part::Data => self.part,
        };
        Some(())
    }

    fn fixed(&mut self, n: usize, byte: u8) -> Option<Part> {
        let is_right = match n {
            0 => byte == 0x1f,
            1 => byte == 0x8b,
            2 => byte == 8,
            3 => {
                self.flags = byte;
                byte & 0xe0 == 0
            }
            _ => true,
        };
        if !is_right {
            return None;
        }
        if n + 1 < FIXED {
            return Some(Part::Fixed(n + 1));
        }
        self.inflate.reset(false);
        self.crc.reset();
        Some(match self.flags & HAS_EXTRA {
            0 => self.after_extra(),
            _ => Part::ExtraLength(0),
        })
    }

    fn after_extra(&self) -> Part {
        match self.flags & HAS_NAME {
            0 => self.after_name(),
            _ => Part::Name,
        }
    }

    fn after_name(&self) -> Part {
        match self.flags & HAS_COMMENT {
            0 => self.after_comment(),
            _ => Part::Comment,
        }
    }

    fn after_comment(&self) -> Part {
        match self.flags & HAS_CHECKSUM {
            0 => Part::Data,
            _ => Part::Checksum(0),
        }
    }

    fn tail(&mut self, n: usize, byte: u8) -> Option<Part> {
        *self.tail.get_mut(n)? = byte;
        if n + 1 < TAIL {
            return Some(Part::Tail(n + 1));
        }
        let expected = u64::from(self.crc.amount()) << 32 | u64::from(self.crc.sum());
        (u64::from_le_bytes(self.tail) == expected).then_some(Part::Fixed(0))
    }
}

/// One step of inflating: bytes read and bytes written, and `at_end` told whether the data ended.
pub(super) fn inflate(
    inflate: &mut Decompress,
    input: &[u8],
    out: &mut [u8],
    at_end: impl FnOnce(bool),
) -> Option<(usize, usize)> {
    let (read, made) = (inflate.total_in(), inflate.total_out());
    let status = inflate.decompress(input, out, FlushDecompress::None).ok()?;
    at_end(status == Status::StreamEnd);
    let read = usize::try_from(inflate.total_in() - read).ok()?;
    let made = usize::try_from(inflate.total_out() - made).ok()?;
    Some((read, made))
}
