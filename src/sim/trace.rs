//! One request as the log sees it, while it is being answered.
use super::{
    Shared,
    credential::Credential,
    log::{Closed, Closing, Outcome, Phase, Record, Recording},
    octets::Octets,
    plan::{End, Plan},
    request::{Head, Received},
};

/// The record of a request; nothing is done where nothing is recorded.
#[derive(Clone, Copy)]
pub(super) struct Trace<'a> {
    shared: &'a Shared,
    seq: Option<u64>,
}

/// What is known of a request when its head was read.
pub(super) struct Arrived<'a> {
    pub(super) connection: u64,
    pub(super) head: &'a Head,
    pub(super) credential: Option<Credential<'a>>,
    pub(super) rule: Option<&'a str>,
    pub(super) is_limited: bool,
}

impl<'a> Trace<'a> {
    pub(super) const fn none(shared: &'a Shared) -> Self {
        Self { shared, seq: None }
    }

    pub(super) fn begin(shared: &'a Shared, arrived: &Arrived<'_>) -> Self {
        if shared.log.level() == Recording::Off {
            return Self::none(shared);
        }
        let head = arrived.head;
        let headers = head.headers.iter().map(|(n, v)| (text(n), text(v)));
        Self::append(
            shared,
            Record {
                connection: arrived.connection,
                credential: arrived.credential.map(|c| c.secret.to_owned()),
                scheme: arrived.credential.map(|c| c.scheme),
                method: head.method.clone(),
                target: head.target.clone(),
                headers: headers.collect(),
                rule: arrived.rule.map(str::to_owned),
                is_limited: arrived.is_limited,
                ..Record::default()
            },
        )
    }

    /// Notes something that is no request.
    pub(super) fn malformed(shared: &'a Shared, connection: u64) {
        if shared.log.level() != Recording::Off {
            Self::append(
                shared,
                Record {
                    connection,
                    outcome: Some(Outcome::Malformed),
                    ..Record::default()
                },
            );
        }
    }

    fn append(shared: &'a Shared, record: Record) -> Self {
        let seq = shared.log.append(Record {
            started_ms: shared.elapsed_ms(),
            ..record
        });
        shared.bell.ring();
        Self {
            shared,
            seq: Some(seq),
        }
    }

    pub(super) const fn is_on(&self) -> bool {
        self.seq.is_some()
    }

    fn update(self, change: impl FnOnce(&mut Record, u64)) {
        if let Some(seq) = self.seq {
            let now = self.shared.elapsed_ms();
            self.shared.log.update(seq, |record| change(record, now));
            self.shared.bell.ring();
        }
    }

    /// The body, or as much of it as came.
    pub(super) fn received(self, body: &Received) {
        let keep = self.shared.log.level() == Recording::Bodies;
        self.update(|record, now| {
            record.trailers.clone_from(&body.trailers);
            record.body_bytes = body.length;
            record.body_sha256 = body.sha256.map(hex).unwrap_or_default();
            record.body = keep.then(|| Octets(body.held.clone()));
            record.is_complete = body.complete;
            record.received_ms = body.complete.then_some(now);
        });
    }

    /// The first byte of the answer went out.
    pub(super) fn answering(self, status: Option<u16>) {
        self.update(|record, now| {
            record.status = status;
            record.answered_ms = Some(now);
        });
    }

    /// Nothing more is to be done.
    pub(super) fn finished(self, outcome: Outcome, sent_bytes: u64) {
        self.update(|record, now| {
            record.sent_bytes = sent_bytes;
            record.finished_ms = Some(now);
            record.outcome = Some(outcome);
        });
    }

    /// The peer closed the connection.
    pub(super) fn left(self, how: Closing, during: Phase) {
        self.update(|record, at_ms| record.closed = Some(Closed { how, during, at_ms }));
    }
}

/// What a plan that was played to its end means.
pub(super) fn outcome_of(plan: &Plan) -> Outcome {
    if plan.is_whole && plan.end != End::Reset {
        Outcome::Answered
    } else {
        Outcome::BrokenOff
    }
}

/// Header bytes as text that loses none of them.
fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().copied().map(char::from).collect(),
    }
}

/// A digest in lower-case hexadecimal.
pub(super) fn hex(digest: [u8; 32]) -> String {
    use std::fmt::Write as _;
    digest
        .iter()
        .fold(String::with_capacity(64), |mut out, byte| {
            // Writing into a string cannot fail.
            let _ok = write!(out, "{byte:02x}");
            out
        })
}
