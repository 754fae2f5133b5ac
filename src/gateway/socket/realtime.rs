//! A realtime session: one lease for all of it, two sides, and messages passed between them.
//!
//! Invariant: upstream has agreed before the client is told so; the slot is free as soon as either
//! side is gone.
use super::{
    Tether,
    leg::{Heard, Leg, closed, described, fault},
};
use crate::{
    domain::ledger::Outcome,
    engine::{admission::Lease, live::Stage},
    gateway::ticket::{Ended, Ticket},
    protocol::{
        socket::{self, Meaning, told},
        usage::Usage,
    },
};
use std::time::Duration;
use tokio_tungstenite::tungstenite::{
    Message,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

/// How long a peer may take to agree that a socket is closed.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// A session whose sides both agreed.
pub(super) struct Session {
    pub(super) ticket: Ticket,
    pub(super) lease: Option<Lease>,
    pub(super) upstream: Leg,
    /// The largest message, in bytes.
    pub(super) limit: u64,
}

/// How a session ends: what both sides are told, and what the record says.
struct End {
    frame: Option<CloseFrame>,
    outcome: Outcome,
    error: Option<String>,
}

impl Session {
    /// Serves the session to its end.
    pub(super) async fn run(mut self, mut client: Leg, mut tether: Tether) {
        let (mut bytes, mut used) = (0, Usage::default());
        let end = loop {
            let (client_takes, upstream_takes) = (client.has_room(), self.upstream.has_room());
            tokio::select! {
                biased;
                () = tether.stopped() => break stopped(),
                heard = client.next(upstream_takes) => match heard {
                    Heard::Message(message) => self.upstream.push(message),
                    Heard::Room => {}
                    other => break self.of_client(other),
                },
                heard = self.upstream.next(client_takes) => match heard {
                    Heard::Message(message) => {
                        if bytes == 0 {
                            self.ticket.live.reach(Stage::FirstByte);
                        }
                        bytes += message.len() as u64;
                        add_usage(&mut used, &message);
                        client.push(message);
                    }
                    Heard::Room => {}
                    other => break self.of_upstream(other),
                },
            }
        };
        self.lease = None;
        self.ticket.settle(Ended {
            response_bytes: bytes,
            tokens: used,
            error: end.error.map(Into::into),
            ..Ended::with(end.outcome)
        });
        drop(self.ticket);
        tokio::join!(
            self.upstream.close(end.frame.clone(), CLOSE_WITHIN),
            client.close(end.frame, CLOSE_WITHIN),
        );
    }

    fn of_client(&self, heard: Heard) -> End {
        match heard {
            Heard::Lost(lost) => End {
                frame: fault(&lost, self.limit),
                outcome: Outcome::ClientGone,
                error: Some(described(&lost)),
            },
            Heard::Closed(frame) => End {
                frame,
                outcome: Outcome::Ok,
                error: None,
            },
            Heard::Message(_) | Heard::Room => stopped(),
        }
    }

    fn of_upstream(&self, heard: Heard) -> End {
        match heard {
            Heard::Closed(frame) => {
                let is_usual = frame
                    .as_ref()
                    .is_none_or(|f| matches!(f.code, CloseCode::Normal | CloseCode::Away));
                End {
                    outcome: if is_usual {
                        Outcome::Ok
                    } else {
                        Outcome::Broken
                    },
                    error: (!is_usual).then(|| closed(frame.as_ref())),
                    frame,
                }
            }
            Heard::Lost(lost) => End {
                frame: fault(&lost, self.limit).or(Some(CloseFrame {
                    code: CloseCode::Error,
                    reason: "the connection to the provider broke".into(),
                })),
                outcome: Outcome::Broken,
                error: Some(described(&lost)),
            },
            Heard::Message(_) | Heard::Room => stopped(),
        }
    }
}

fn stopped() -> End {
    End {
        frame: Some(CloseFrame {
            code: CloseCode::Away,
            reason: "shutting down".into(),
        }),
        outcome: Outcome::ClientGone,
        error: None,
    }
}

/// Each response of a session says what it has used by itself.
fn add_usage(total: &mut Usage, message: &Message) {
    let Message::Text(text) = message else {
        return;
    };
    if told(text).meaning != Meaning::Ended {
        return;
    }
    if let Some(more) = socket::usage(text) {
        let add = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        total.input = add(total.input, more.input);
        total.output = add(total.output, more.output);
        total.cached = add(total.cached, more.cached);
    }
}
