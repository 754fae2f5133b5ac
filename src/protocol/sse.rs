//! Finding the events in an event stream that passes by.
//!
//! Invariant: lines may end in LF, CRLF or CR and be cut anywhere, and events are the same. An event
//! that stands whole in a piece is looked at in place; what is cut is kept until its end comes, up to
//! a bound, beyond which only its two ends are.
use memchr::memchr2;

/// The longest line, event or body that is kept whole.
const MAX_WHOLE_BYTES: usize = 256 * 1024;
/// What is kept of the beginning of a longer one: enough for the type of an event.
const HEAD_BYTES: usize = 4 * 1024;
/// What is kept of its end: enough for the usage that stands there.
const TAIL_BYTES: usize = 64 * 1024;
/// A buffer larger than this is given back once it is empty.
const IDLE_BYTES: usize = 8 * 1024;
/// The longest event name that is told apart.
const MAX_NAME_BYTES: usize = 64;

/// Bytes that came by: all of them, or the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload<'a> {
    /// Everything.
    Whole(&'a [u8]),
    /// What was too long to be kept.
    Ends {
        /// How it began.
        head: &'a [u8],
        /// How it ended; may overlap with the head.
        tail: &'a [u8],
    },
}

impl<'a> Payload<'a> {
    /// The beginning.
    pub fn head(self) -> &'a [u8] {
        match self {
            Self::Whole(bytes) | Self::Ends { head: bytes, .. } => bytes,
        }
    }

    /// The end.
    pub fn tail(self) -> &'a [u8] {
        match self {
            Self::Whole(bytes) | Self::Ends { tail: bytes, .. } => bytes,
        }
    }

    fn strip_prefix(self, prefix: &[u8]) -> Option<Self> {
        let rest = self.head().strip_prefix(prefix)?;
        Some(match self {
            Self::Whole(_) => Self::Whole(rest),
            Self::Ends { tail, .. } => Self::Ends { head: rest, tail },
        })
    }

    fn is_whole(self) -> bool {
        matches!(self, Self::Whole(_))
    }
}

/// Keeps bytes whole while they are few, and their two ends when they are not.
#[derive(Debug, Default)]
pub struct Bounded {
    /// Everything, or the head once `is_cut`.
    first: Vec<u8>,
    last: Vec<u8>,
    is_cut: bool,
}

impl Bounded {
    /// Adds `bytes` at the end.
    pub fn push(&mut self, bytes: &[u8]) {
        if !self.is_cut {
            if self.first.len() + bytes.len() <= MAX_WHOLE_BYTES {
                self.first.extend_from_slice(bytes);
                return;
            }
            self.cut(bytes);
        }
        let bytes = last_of(bytes, TAIL_BYTES);
        if self.last.len() + bytes.len() > 2 * TAIL_BYTES {
            // Moving so much at a time makes it one copy per byte in the mean.
            let excess = self.last.len().saturating_sub(TAIL_BYTES);
            self.last.drain(..excess);
        }
        self.last.extend_from_slice(bytes);
    }

    fn cut(&mut self, next: &[u8]) {
        self.is_cut = true;
        self.last
            .extend_from_slice(last_of(&self.first, TAIL_BYTES));
        let room = HEAD_BYTES.saturating_sub(self.first.len());
        self.first
            .extend_from_slice(next.get(..room).unwrap_or(next));
        self.first.truncate(HEAD_BYTES);
        self.first.shrink_to_fit();
    }

    /// What is kept.
    pub fn payload(&self) -> Payload<'_> {
        if self.is_cut {
            Payload::Ends {
                head: &self.first,
                tail: last_of(&self.last, TAIL_BYTES),
            }
        } else {
            Payload::Whole(&self.first)
        }
    }

    fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    fn clear(&mut self) {
        self.is_cut = false;
        self.last = Vec::new();
        self.first.clear();
        if self.first.capacity() > IDLE_BYTES {
            self.first = Vec::new();
        }
    }
}

fn last_of(bytes: &[u8], count: usize) -> &[u8] {
    bytes
        .get(bytes.len().saturating_sub(count)..)
        .unwrap_or(bytes)
}

/// Finds the events of one stream. Whoever feeds it gets each event's name and data.
#[derive(Debug, Default)]
pub struct EventScanner {
    line: Bounded,
    name: Vec<u8>,
    /// Data of the event at hand that had to be kept, its lines joined.
    data: Bounded,
    has_data: bool,
    ended_in_return: bool,
    has_seen_line: bool,
}

impl EventScanner {
    /// Takes the next piece of the stream.
    pub fn feed(&mut self, piece: &[u8], on_event: &mut impl FnMut(&[u8], Payload<'_>)) {
        let mut rest = piece;
        if self.ended_in_return && !piece.is_empty() {
            self.ended_in_return = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some((line, next)) = memchr2(b'\n', b'\r', rest).and_then(|n| {
            let (line, next) = rest.split_at_checked(n)?;
            Some((line, self.after_line_end(next)))
        }) {
            rest = next;
            let is_last = matches!(rest.first(), Some(b'\n' | b'\r'));
            if self.line.is_empty() {
                self.line(Payload::Whole(line), is_last, on_event);
            } else {
                self.line.push(line);
                let mut kept = std::mem::take(&mut self.line);
                self.line(kept.payload(), is_last, on_event);
                kept.clear();
                self.line = kept;
            }
        }
        self.line.push(rest);
    }

    /// Ends the stream: what came last counts, even if its line or event was not closed.
    pub fn finish(&mut self, on_event: &mut impl FnMut(&[u8], Payload<'_>)) {
        let line = std::mem::take(&mut self.line);
        self.line(line.payload(), true, on_event);
        self.line(Payload::Whole(b""), true, on_event);
    }

    /// What follows a line end that `rest` begins with.
    fn after_line_end<'a>(&mut self, rest: &'a [u8]) -> &'a [u8] {
        self.ended_in_return = rest == b"\r";
        match rest {
            [b'\r', b'\n', next @ ..] | [_, next @ ..] => next,
            [] => rest,
        }
    }

    /// One line. `is_last` tells that an empty one follows, so that data need not be kept.
    fn line(
        &mut self,
        mut line: Payload<'_>,
        is_last: bool,
        on_event: &mut impl FnMut(&[u8], Payload<'_>),
    ) {
        if !self.has_seen_line {
            self.has_seen_line = true;
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.head().is_empty() {
            self.end_event(on_event);
        } else if let Some(data) = line.strip_prefix(b"data:") {
            let data = data.strip_prefix(b" ").unwrap_or(data);
            if (is_last && !self.has_data) || !data.is_whole() {
                on_event(&self.name, data);
            } else {
                if self.has_data {
                    self.data.push(b"\n");
                }
                self.has_data = true;
                self.data.push(data.head());
            }
        } else if let Some(name) = line.head().strip_prefix(b"event:") {
            let name = name.trim_ascii();
            self.name.clear();
            self.name
                .extend_from_slice(name.get(..MAX_NAME_BYTES).unwrap_or(name));
        }
    }

    fn end_event(&mut self, on_event: &mut impl FnMut(&[u8], Payload<'_>)) {
        if self.has_data {
            on_event(&self.name, self.data.payload());
            self.data.clear();
            self.has_data = false;
        }
        self.name.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn events(stream: &[u8], cut: usize) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let mut on_event = |name: &[u8], data: Payload<'_>| {
            assert!(data.is_whole());
            found.push((text(name), text(data.head())));
        };
        let mut scanner = EventScanner::default();
        for piece in stream.chunks(cut) {
            scanner.feed(piece, &mut on_event);
        }
        scanner.finish(&mut on_event);
        found
    }

    fn check(stream: &str, expect: &[(&str, &str)]) {
        for line_end in ["\n", "\r\n", "\r"] {
            let stream = stream.replace('\n', line_end);
            for cut in 1..=stream.len().max(1) {
                let found = events(stream.as_bytes(), cut);
                let found: Vec<_> = found.iter().map(|(n, d)| (&**n, &**d)).collect();
                assert_eq!(found, expect, "{stream:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn events_are_found_whatever_ends_their_lines_and_wherever_they_are_cut() {
        check("data: a\n\ndata:b\n\n", &[("", "a"), ("", "b")]);
        check(
            "event: x\ndata: 한😀\n\ndata: c\n\n",
            &[("x", "한😀"), ("", "c")],
        );
        check("data: a\nevent:late\n\n", &[("late", "a")]);
        check("data: {\ndata: }\n\n", &[("", "{\n}")]);
        check("data: [DONE]", &[("", "[DONE]")]);
        check("data: [DONE]\n", &[("", "[DONE]")]);
    }

    #[test]
    fn what_is_no_data_is_passed_over() {
        check(
            ":\n: ping - 12:00\n\nid: 7\nretry: 3\nevent: ping\n\n\n\ndata: a\n: x\n\n:",
            &[("", "a")],
        );
        check("\u{feff}data: a\n\n", &[("", "a")]);
        check("datax: a\n\nDATA: b\n\ndata\n\n", &[]);
        check("", &[]);
    }

    #[test]
    fn of_an_endless_line_the_two_ends_are_kept() {
        for cut in [1000, 16 * 1024, 5 << 20] {
            let stream = format!("data: <{}>\n\ndata: b\n\n", "x".repeat(20 << 20));
            let mut found = Vec::new();
            let mut scanner = EventScanner::default();
            for piece in stream.as_bytes().chunks(cut) {
                scanner.feed(piece, &mut |_, data| {
                    found.push((data.head().first().copied(), data.tail().last().copied()));
                });
                let held = scanner.line.first.capacity() + scanner.line.last.capacity();
                assert!(held <= 2 * MAX_WHOLE_BYTES, "{held}");
            }
            assert_eq!(found, [(Some(b'<'), Some(b'>')), (Some(b'b'), Some(b'b'))]);
            assert!(scanner.line.first.capacity() <= IDLE_BYTES);
        }
    }

    proptest! {
        #[test]
        fn both_ends_are_kept_exactly(sizes in proptest::collection::vec(0usize..90_000, 1..12)) {
            let mut kept = Bounded::default();
            let mut all = Vec::new();
            for size in sizes {
                let bytes: Vec<u8> = (0..=250).cycle().take(size).collect();
                kept.push(&bytes);
                all.extend_from_slice(&bytes);
            }
            match kept.payload() {
                Payload::Whole(bytes) => prop_assert_eq!(bytes, &all),
                Payload::Ends { head, tail } => {
                    prop_assert!(all.len() > MAX_WHOLE_BYTES);
                    prop_assert_eq!(head, &all[..HEAD_BYTES]);
                    prop_assert_eq!(tail, &all[all.len() - TAIL_BYTES..]);
                }
            }
        }
    }
}
