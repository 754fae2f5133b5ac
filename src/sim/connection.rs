//! Connections on raw sockets: reads requests, has them answered, one after the other.
use std::{sync::Arc, sync::atomic::Ordering, time::Duration};

use bytes::{Bytes, BytesMut};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
    time::sleep,
};

use super::{
    Shared,
    act::{Act, Expect},
    control, credential,
    log::{Closing, Outcome, Phase},
    plan::{self, End, Plan},
    provider::{self, Call},
    reply::{Body, Reply},
    request::{BodyReader, Head, Received, take_head},
    rules, socket,
    tally::{InFlight, Tally},
    trace::{Arrived, Trace, outcome_of},
    wire,
};

/// Accepts until told to stop. `alive` is held by everything that still runs.
pub(super) async fn accept(
    listener: TcpListener,
    shared: Arc<Shared>,
    mut stopping: watch::Receiver<bool>,
    alive: mpsc::Sender<()>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.changed() => return,
        };
        let Ok((stream, _)) = accepted else {
            // Out of file descriptors: those in use will be given back.
            sleep(Duration::from_millis(10)).await;
            continue;
        };
        let (shared, alive, mut stopping) = (Arc::clone(&shared), alive.clone(), stopping.clone());
        crate::tasks::spawn("sim-connection", async move {
            tokio::select! {
                () = serve(stream, &shared) => {}
                _ = stopping.changed() => {}
            }
            drop(alive);
        });
    }
}

async fn serve(mut stream: TcpStream, shared: &Shared) {
    // Without it small chunks would wait for acknowledgements; a socket that refuses is gone.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let mut connection = Connection {
        shared,
        number: shared.connections.fetch_add(1, Ordering::Relaxed),
        buffer: BytesMut::new(),
        last: Trace::none(shared),
        tally: None,
    };
    while let After::Again = connection.exchange(&mut stream).await {}
}

/// What follows an exchange.
enum After {
    Again,
    Over,
}

/// How an exchange ends that gets no answer.
enum Stop {
    Left(Closing),
    Malformed,
}

struct Connection<'a> {
    shared: &'a Shared,
    number: u64,
    buffer: BytesMut,
    /// The latest request, for how the peer closes after it.
    last: Trace<'a>,
    /// The latest credential's counts, so that a connection looks them up once.
    tally: Option<(String, Arc<Tally>)>,
}

impl Connection<'_> {
    async fn exchange(&mut self, stream: &mut TcpStream) -> After {
        match self.head(stream).await {
            Ok(head) if control::owns(&head) => self.control(stream, &head).await,
            Ok(head) => self.visit(stream, &head).await,
            Err(Stop::Malformed) => {
                Trace::malformed(self.shared, self.number);
                self.refuse(stream).await
            }
            Err(Stop::Left(how)) => {
                self.last.left(how, Phase::Idle);
                After::Over
            }
        }
    }

    async fn head(&mut self, stream: &mut TcpStream) -> Result<Head, Stop> {
        loop {
            match take_head(&mut self.buffer).map_err(|_| Stop::Malformed)? {
                Some(head) => return Ok(head),
                None => wire::fill(stream, &mut self.buffer)
                    .await
                    .map_err(Stop::Left)?,
            }
        }
    }

    /// Answers a request to the provider.
    async fn visit(&mut self, stream: &mut TcpStream, head: &Head) -> After {
        let credential = credential::presented(head);
        let secret = credential.map_or("", |c| c.secret);
        let entered = InFlight::enter(&self.tally_of(secret), &self.shared.bell);
        let asked = rules::Asked {
            credential: credential.map(|c| c.secret),
            method: &head.method,
            target: &head.target,
        };
        // What a limit refuses uses up no rule.
        let rule = entered
            .as_ref()
            .ok()
            .and_then(|_| self.shared.rules.select(asked));
        let arrived = Arrived {
            connection: self.number,
            head,
            credential,
            rule: rule.as_ref().map(|(id, _)| id.as_deref().unwrap_or("")),
            is_limited: entered.is_err(),
        };
        let trace = Trace::begin(self.shared, &arrived);
        self.last = trace;
        let act = rule.as_ref().map(|(_, act)| act);
        let is_plain = act.is_none_or(|act| !act.replaces_answer() && act.close.is_none());
        if socket::is_asked_for(head)
            && entered.is_ok()
            && is_plain
            && self.shared.is_allowed(secret)
        {
            // Turns are in flight, and not the socket that carries them.
            drop(entered);
            return self.socket(stream, (head, credential), trace).await;
        }
        let is_early = act.is_some_and(|act| is_early(act, head));
        let received = match self.receive(stream, head, act, is_early).await {
            Ok(received) => received,
            Err(Stop::Malformed) => {
                trace.finished(Outcome::Malformed, 0);
                return self.refuse(stream).await;
            }
            Err(Stop::Left(how)) => {
                trace.left(how, Phase::Request);
                trace.finished(Outcome::PeerLeft, 0);
                return After::Over;
            }
        };
        let call = Call::new(self.shared, head, secret, &received);
        let reply = match &entered {
            Ok(in_flight) => provider::answer(&call, in_flight.headroom(), act),
            Err(gate) => provider::limited(&call, gate),
        };
        let plan = lay_out(reply, act, head, is_early);
        let after = self.play(stream, plan, trace, is_early).await;
        drop(entered);
        after
    }

    /// Serves a socket, and so the rest of the connection.
    async fn socket(
        &mut self,
        stream: &mut TcpStream,
        (head, credential): (&Head, Option<credential::Credential<'_>>),
        trace: Trace<'_>,
    ) -> After {
        let visit = socket::Visit {
            shared: self.shared,
            connection: self.number,
            head,
            credential,
        };
        trace.answering(Some(101));
        trace.finished(Outcome::Answered, 0);
        let ahead = std::mem::take(&mut self.buffer);
        let how = visit.serve(stream, ahead).await;
        trace.left(how, Phase::Answer);
        After::Over
    }

    /// Reads the body, or as much of it as the answer waits for.
    async fn receive(
        &mut self,
        stream: &mut TcpStream,
        head: &Head,
        act: Option<&Act>,
        is_early: bool,
    ) -> Result<Received, Stop> {
        let enough = act.and_then(|act| act.early_after_bytes);
        if is_early && enough.is_none() {
            return Ok(Received::default());
        }
        if let Some(act) = act
            && act.read_delay_ms > 0
        {
            sleep(Duration::from_millis(act.read_delay_ms)).await;
        }
        if head.expects_continue && act.is_none_or(|a| a.expect == Expect::Continue) {
            wire::say_continue(stream).await.map_err(Stop::Left)?;
        }
        let hashing = self.last.is_on();
        let mut reader = BodyReader::new(head.framing, self.shared.config.hold_bytes, hashing);
        let end = loop {
            match reader.feed(&mut self.buffer) {
                Ok(true) => break Ok(()),
                Ok(false) if enough.is_some_and(|bytes| reader.length() >= bytes) => break Ok(()),
                Ok(false) => {}
                Err(_) => break Err(Stop::Malformed),
            }
            if let Err(how) = wire::fill(stream, &mut self.buffer).await {
                break Err(Stop::Left(how));
            }
        };
        let received = reader.finish();
        self.last.received(&received);
        end.map(|()| received)
    }

    async fn control(&mut self, stream: &mut TcpStream, head: &Head) -> After {
        self.last = Trace::none(self.shared);
        let Ok(received) = self.receive(stream, head, None, false).await else {
            return After::Over;
        };
        let reply = control::answer(self.shared, head, &received);
        let plan = lay_out(reply, None, head, false);
        self.play(stream, plan, Trace::none(self.shared), false)
            .await
    }

    /// Answers what is no HTTP.
    async fn refuse(&mut self, stream: &mut TcpStream) -> After {
        let asked = plan::Asked {
            head_only: false,
            keep_alive: false,
        };
        let reply = Reply::new(
            400,
            "text/plain",
            Body::Whole(Bytes::from_static(b"no HTTP")),
        );
        let plan = plan::plain(reply, asked);
        self.play(stream, plan, Trace::none(self.shared), true)
            .await
    }

    fn tally_of(&mut self, secret: &str) -> Arc<Tally> {
        match &self.tally {
            Some((known, tally)) if known == secret => Arc::clone(tally),
            _ => {
                let tally = self.shared.tallies.of(secret);
                self.tally = Some((secret.to_owned(), Arc::clone(&tally)));
                tally
            }
        }
    }

    async fn play(
        &mut self,
        stream: &mut TcpStream,
        plan: Plan,
        trace: Trace<'_>,
        lingers: bool,
    ) -> After {
        let outcome = outcome_of(&plan);
        let mut sent = 0;
        let count = |n: usize| {
            if sent == 0 {
                trace.answering(plan.status);
            }
            sent += n as u64;
        };
        let played = wire::play(stream, &mut self.buffer, plan.steps, count).await;
        if let Err(how) = played {
            let during = match sent {
                0 => Phase::Waiting,
                _ => Phase::Answer,
            };
            trace.left(how, during);
            trace.finished(Outcome::PeerLeft, sent);
            return After::Over;
        }
        trace.finished(outcome, sent);
        match plan.end {
            End::KeepAlive => return After::Again,
            End::Close if lingers && plan.is_whole => wire::linger(stream).await,
            End::Close => {}
            // Where the option cannot be set the peer is gone already.
            End::Reset => drop(stream.set_zero_linger()),
        }
        After::Over
    }
}

/// Whether the answer comes before the body is read.
fn is_early(act: &Act, head: &Head) -> bool {
    act.early
        || act.early_after_bytes.is_some()
        || (head.expects_continue && act.expect == Expect::Refuse)
}

fn lay_out(reply: Reply, act: Option<&Act>, head: &Head, is_early: bool) -> Plan {
    let asked = plan::Asked {
        head_only: head.method == "HEAD",
        keep_alive: head.keep_alive && !is_early,
    };
    match act {
        Some(act) => plan::scripted(&reply, act, asked),
        None => plan::plain(reply, asked),
    }
}
