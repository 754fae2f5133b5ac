//! What the simulator saw: one record per request, from its head to the end of its connection.
//!
//! Invariant: a record is appended when its head was read, so the order is that of arrival, and it
//! is only ever completed afterwards. Beyond [`KEPT_RECORDS`] the oldest are let go.
use std::{
    collections::VecDeque,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
};

use serde::{Deserialize, Serialize};

use super::octets::Octets;

/// Enough for any test; a forgotten recorder must not fill the memory.
pub const KEPT_RECORDS: usize = 100_000;

/// How much is recorded of each request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recording {
    /// Nothing: the fastest.
    #[default]
    Off,
    /// Everything but the bodies, of which the digest and length are kept.
    Hashes,
    /// The bodies too, as far as they are held at all.
    Bodies,
}

/// One request and what became of it. Times are milliseconds since the simulator's start.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Record {
    /// Counts requests, from 0.
    pub seq: u64,
    /// Counts connections, from 0.
    pub connection: u64,
    /// The secret itself: this is for made-up ones.
    pub credential: Option<String>,
    /// Where it was: `bearer`, `key`, `x-api-key`, `x-goog-api-key` or `query`.
    pub scheme: Option<&'static str>,
    /// The method.
    pub method: String,
    /// The raw request target.
    pub target: String,
    /// Header lines in their order, spelling and multiplicity. A value that is not UTF-8 stands
    /// here with one character for each of its bytes.
    pub headers: Vec<(String, String)>,
    /// Trailer lines of a chunked body.
    pub trailers: Vec<(String, String)>,
    /// Length of the body without its framing.
    pub body_bytes: u64,
    /// SHA-256 of the body in lower-case hex.
    pub body_sha256: String,
    /// The body, with [`Recording::Bodies`].
    pub body: Option<Octets>,
    /// Whether the complete request was read.
    pub is_complete: bool,
    /// The rule that answered, by its id; empty for one without.
    pub rule: Option<String>,
    /// Whether an in-flight limit refused it.
    pub is_limited: bool,
    /// The status that was sent.
    pub status: Option<u16>,
    /// When the head was read.
    pub started_ms: u64,
    /// When the complete request was read.
    pub received_ms: Option<u64>,
    /// When the first byte of the answer was written.
    pub answered_ms: Option<u64>,
    /// When nothing more was to be done.
    pub finished_ms: Option<u64>,
    /// Bytes written, head included.
    pub sent_bytes: u64,
    /// How it ended, once it has.
    pub outcome: Option<Outcome>,
    /// How the peer closed the connection, if this was the last request on it.
    pub closed: Option<Closed>,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The whole answer was written.
    Answered,
    /// A script broke it off.
    BrokenOff,
    /// The peer left before its end.
    PeerLeft,
    /// What arrived was no HTTP.
    Malformed,
}

/// How and when a peer closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Closed {
    /// In which way.
    pub how: Closing,
    /// At which point of the exchange.
    pub during: Phase,
    /// When.
    pub at_ms: u64,
}

/// In which way a peer closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Closing {
    /// An orderly end.
    Fin,
    /// A reset, or any other error of the connection.
    Reset,
}

/// A point of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before the end of the request.
    Request,
    /// After the request, before the first byte of the answer.
    Waiting,
    /// After the first byte of the answer, before its end.
    Answer,
    /// After the answer.
    Idle,
}

impl Record {
    /// The first value of that header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.header_values(name).into_iter().next()
    }

    /// Every value of that header, in order.
    pub fn header_values(&self, name: &str) -> Vec<&str> {
        self.headers
            .iter()
            .filter(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, v)| &**v)
            .collect()
    }

    /// The recorded body as JSON.
    pub fn json(&self) -> Option<serde_json::Value> {
        serde_json::from_slice(&self.body.as_ref()?.0).ok()
    }
}

/// The records.
pub(super) struct Log {
    level: AtomicU8,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    records: VecDeque<Record>,
    next_seq: u64,
}

impl Log {
    pub(super) fn new(level: Recording) -> Self {
        Self {
            level: AtomicU8::new(level as u8),
            kept: Mutex::default(),
        }
    }

    pub(super) fn level(&self) -> Recording {
        match self.level.load(Ordering::Relaxed) {
            0 => Recording::Off,
            1 => Recording::Hashes,
            _ => Recording::Bodies,
        }
    }

    pub(super) fn set_level(&self, level: Recording) {
        self.level.store(level as u8, Ordering::Relaxed);
    }

    /// Appends, numbers, and returns the number.
    pub(super) fn append(&self, mut record: Record) -> u64 {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let seq = kept.next_seq;
        kept.next_seq += 1;
        record.seq = seq;
        if kept.records.len() == KEPT_RECORDS {
            kept.records.pop_front();
        }
        kept.records.push_back(record);
        seq
    }

    /// Completes a record, if it is still kept.
    pub(super) fn update(&self, seq: u64, change: impl FnOnce(&mut Record)) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(first) = kept.records.front().map(|r| r.seq) else {
            return;
        };
        let index = seq.checked_sub(first).and_then(|n| usize::try_from(n).ok());
        if let Some(record) = index.and_then(|n| kept.records.get_mut(n)) {
            change(record);
        }
    }

    pub(super) fn records(&self, since: u64) -> Vec<Record> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.records
            .iter()
            .filter(|r| r.seq >= since)
            .cloned()
            .collect()
    }

    /// Looks at the records without copying them.
    pub(super) fn look<T>(&self, at: impl FnOnce(&[Record]) -> T) -> T {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        at(kept.records.make_contiguous())
    }

    /// Forgets the records. Numbers go on, so that late completions hit none of the new ones.
    pub(super) fn clear(&self) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.records.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_completion_finds_its_record_or_none() {
        let log = Log::new(Recording::Hashes);
        let first = log.append(Record::default());
        log.clear();
        let second = log.append(Record::default());
        log.update(first, |r| r.status = Some(500));
        log.update(second, |r| r.status = Some(200));
        let got = log.records(0);
        assert_eq!(got.len(), 1);
        assert_eq!((got[0].seq, got[0].status), (1, Some(200)));
    }

    #[test]
    fn the_oldest_records_are_let_go() {
        let log = Log::new(Recording::Hashes);
        for _ in 0..KEPT_RECORDS + 3 {
            log.append(Record::default());
        }
        log.update(3, |r| r.status = Some(200));
        log.update(1, |r| r.status = Some(500));
        let got = log.records(0);
        assert_eq!(got.len(), KEPT_RECORDS);
        assert_eq!((got[0].seq, got[0].status), (3, Some(200)));
    }
}
