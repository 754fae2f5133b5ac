//! Sockets: turns of the Responses API, and realtime sessions that say again what they are told.
//!
//! Invariant: a message that asks for a response is a request of method `WS` to rules, limits and
//! the log; what it is answered with is what a `POST` would be, event by event.
use std::{collections::HashSet, time::Duration};

use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, net::TcpStream, time::sleep};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message,
        handshake::derive_accept_key,
        protocol::{CloseFrame, Role, WebSocketConfig},
    },
};

use super::{
    Shared,
    act::{Act, Close},
    credential::Credential,
    log::{Closing, Outcome},
    provider::{self, Call},
    reply::{Body, Pace, Reply},
    request::{Framing, Head, Received},
    rules,
    tally::InFlight,
    trace::{Arrived, Trace},
};

/// Larger messages are closed upon with 1009.
const MAX_MESSAGE_BYTES: usize = 128 << 20;

type Socket<'s> = WebSocketStream<&'s mut TcpStream>;

/// Whether a request asks for a socket where there is one.
pub(super) fn is_asked_for(head: &Head) -> bool {
    let wants = head.header("upgrade");
    head.method == "GET"
        && wants.is_some_and(|v| v.eq_ignore_ascii_case("websocket"))
        && (head.path().ends_with("/responses") || is_realtime(head))
}

fn is_realtime(head: &Head) -> bool {
    head.path().ends_with("/realtime")
}

/// One socket.
pub(super) struct Visit<'a> {
    pub(super) shared: &'a Shared,
    pub(super) connection: u64,
    pub(super) head: &'a Head,
    pub(super) credential: Option<Credential<'a>>,
}

/// What one turn is played from.
struct Script {
    messages: Vec<String>,
    pace: Pace,
    stall_after: Option<usize>,
    end: Option<(usize, End)>,
}

/// How a turn ends the socket.
enum End {
    Drop,
    Close(CloseFrame),
}

/// Why a socket is over.
enum Over {
    Peer(Closing),
    Own,
}

impl Visit<'_> {
    /// Agrees to the upgrade and serves the socket to its end.
    pub(super) async fn serve(&self, stream: &mut TcpStream, ahead: BytesMut) -> Closing {
        if stream.write_all(self.agreement().as_bytes()).await.is_err() {
            return Closing::Reset;
        }
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES));
        let role = Role::Server;
        let ahead = ahead.to_vec();
        let mut socket =
            WebSocketStream::from_partially_read(stream, ahead, role, Some(config)).await;
        let over = if is_realtime(self.head) {
            self.realtime(&mut socket).await
        } else {
            self.turns(&mut socket).await
        };
        match over {
            Over::Peer(how) => how,
            Over::Own => Closing::Fin,
        }
    }

    fn agreement(&self) -> String {
        let key = self.head.header("sec-websocket-key").unwrap_or_default();
        let accept = derive_accept_key(key.as_bytes());
        let offered = self.head.header("sec-websocket-protocol");
        let chosen = offered.and_then(|o| o.split(',').map(str::trim).next());
        let chosen =
            chosen.map_or_else(String::new, |c| format!("sec-websocket-protocol: {c}\r\n"));
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
             sec-websocket-accept: {accept}\r\n{chosen}\r\n"
        )
    }

    async fn realtime(&self, socket: &mut Socket<'_>) -> Over {
        let hello = json!({"type": "session.created", "session": {"object": "realtime.session"}});
        if socket.send(Message::text(hello.to_string())).await.is_err() {
            return Over::Peer(Closing::Reset);
        }
        loop {
            let message = match next(socket).await {
                Ok(message) => message,
                Err(over) => return over,
            };
            let asks = matches!(&message, Message::Text(t) if t.contains("\"response.create\""));
            let answer = if asks {
                let usage = json!({"input_tokens": 3, "output_tokens": 4});
                let done = json!({"type": "response.done", "response": {"usage": usage}});
                Message::text(done.to_string())
            } else {
                message
            };
            if socket.send(answer).await.is_err() {
                return Over::Peer(Closing::Reset);
            }
        }
    }

    async fn turns(&self, socket: &mut Socket<'_>) -> Over {
        // What is not stored can be continued on this socket alone.
        let mut unstored = HashSet::new();
        loop {
            let message = match next(socket).await {
                Ok(message) => message,
                Err(over) => return over,
            };
            let text = message.to_text().unwrap_or_default();
            let asked = serde_json::from_str::<Value>(text).unwrap_or_default();
            let done = if asked["type"] == "response.create" {
                self.turn(socket, text, asked, &mut unstored).await
            } else {
                let what = "This message is not known here.";
                let error = json!({"message": what, "type": "invalid_request_error", "code": null});
                let error = json!({"type": "error", "status": 400, "error": error});
                let sent = socket.send(Message::text(error.to_string())).await;
                sent.map_err(|_| Over::Peer(Closing::Reset))
            };
            if let Err(over) = done {
                return over;
            }
        }
    }

    async fn turn(
        &self,
        socket: &mut Socket<'_>,
        text: &str,
        asked: Value,
        unstored: &mut HashSet<String>,
    ) -> Result<(), Over> {
        let head = self.as_method("WS");
        let secret = self.credential.map_or("", |c| c.secret);
        let entered = InFlight::enter(&self.shared.tallies.of(secret), &self.shared.bell);
        let met = rules::Asked {
            credential: self.credential.map(|c| c.secret),
            method: &head.method,
            target: &head.target,
        };
        let rule = entered
            .as_ref()
            .ok()
            .and_then(|_| self.shared.rules.select(met));
        let arrived = Arrived {
            connection: self.connection,
            head: &head,
            credential: self.credential,
            rule: rule.as_ref().map(|(id, _)| id.as_deref().unwrap_or("")),
            is_limited: entered.is_err(),
        };
        let trace = Trace::begin(self.shared, &arrived);
        trace.received(&received(text.as_bytes()));
        let act = rule.as_ref().map(|(_, act)| act);
        let body = received(as_post(asked, unstored).to_string().as_bytes());
        let post = self.as_method("POST");
        let call = Call::new(self.shared, &post, secret, &body);
        let reply = match &entered {
            Ok(in_flight) => provider::answer(&call, in_flight.headroom(), act),
            Err(gate) => provider::limited(&call, gate),
        };
        let script = Script::of(&reply, act);
        let done = play(socket, script, unstored).await;
        trace.finished(
            match &done {
                Ok(()) => Outcome::Answered,
                Err(Over::Own) => Outcome::BrokenOff,
                Err(Over::Peer(_)) => Outcome::PeerLeft,
            },
            0,
        );
        done
    }

    /// The head of the upgrade as that of a request with another method.
    fn as_method(&self, method: &str) -> Head {
        Head {
            method: method.to_owned(),
            target: self.head.target.clone(),
            headers: self.head.headers.clone(),
            keep_alive: true,
            framing: Framing::Fixed(0),
            expects_continue: false,
        }
    }
}

/// The next text or binary message.
async fn next(socket: &mut Socket<'_>) -> Result<Message, Over> {
    loop {
        match socket.next().await {
            Some(Ok(message @ (Message::Text(_) | Message::Binary(_)))) => return Ok(message),
            Some(Ok(Message::Close(_))) => {
                // The answer to a close is all that is left to say.
                let _told = socket.flush().await;
                return Err(Over::Peer(Closing::Fin));
            }
            Some(Ok(_)) => {}
            Some(Err(_)) => return Err(Over::Peer(Closing::Reset)),
            None => return Err(Over::Peer(Closing::Fin)),
        }
    }
}

fn received(bytes: &[u8]) -> Received {
    Received {
        held: Bytes::copy_from_slice(bytes),
        length: bytes.len() as u64,
        sha256: Some(crate::digest::sha256(bytes)),
        complete: true,
        trailers: Vec::new(),
    }
}

/// The message as the body of a streaming `POST`.
fn as_post(mut asked: Value, unstored: &HashSet<String>) -> Value {
    let continued = asked["previous_response_id"].as_str();
    let is_here = continued.is_some_and(|id| unstored.contains(id));
    if let Some(fields) = asked.as_object_mut() {
        fields.remove("type");
        fields.insert("stream".to_owned(), true.into());
        if is_here {
            fields.remove("previous_response_id");
        }
    }
    asked
}

impl Script {
    fn of(reply: &Reply, act: Option<&Act>) -> Self {
        let messages = match &reply.body {
            Body::Pieces(pieces) => pieces.iter().map(|p| message_of(p)).collect(),
            Body::Whole(body) => vec![error_of(reply, body)],
            Body::Fill(_) => Vec::new(),
        };
        let at = |default: usize| act.and_then(|a| a.close_after).unwrap_or(default);
        let close = act.and_then(|act| {
            Some(CloseFrame {
                code: act.close_code?.into(),
                reason: act.message.clone().unwrap_or_default().into(),
            })
        });
        let end = match (close, act.and_then(|a| a.close)) {
            (Some(frame), _) => Some((at(0), End::Close(frame))),
            (None, Some(Close::BeforeHeaders)) => Some((0, End::Drop)),
            (None, Some(_)) => Some((at(1), End::Drop)),
            (None, None) => None,
        };
        Self {
            messages,
            pace: reply.pace,
            stall_after: act.and_then(|a| a.stall_after),
            end,
        }
    }
}

/// An event without what frames it in a stream.
fn message_of(piece: &[u8]) -> String {
    let text = String::from_utf8_lossy(piece);
    let data = text.split_once("data: ").map_or(&*text, |(_, data)| data);
    data.trim_end().to_owned()
}

fn error_of(reply: &Reply, body: &[u8]) -> String {
    let document = serde_json::from_slice::<Value>(body).unwrap_or_default();
    let named = |name: &str| reply.headers.iter().find(|(n, _)| n == name);
    let headers: serde_json::Map<String, Value> = named("retry-after")
        .map(|(name, value)| (name.to_string(), Value::from(&**value)))
        .into_iter()
        .collect();
    let error = &document["error"];
    json!({"type": "error", "status": reply.status, "error": error, "headers": headers}).to_string()
}

/// Says what the script has, unless the peer leaves; notes what can be continued here.
async fn play(
    socket: &mut Socket<'_>,
    script: Script,
    unstored: &mut HashSet<String>,
) -> Result<(), Over> {
    let Script {
        messages,
        pace,
        stall_after,
        end,
    } = script;
    let stops_at = end.as_ref().map(|(at, _)| *at);
    for (n, message) in messages.into_iter().enumerate() {
        if stops_at == Some(n) || stall_after == Some(n) {
            break;
        }
        let wait = match n {
            0 => pace.before_head + pace.before_first,
            _ => pace.between,
        };
        pause(socket, wait).await?;
        note(&message, unstored);
        let sent = socket.send(Message::text(message)).await;
        sent.map_err(|_| Over::Peer(Closing::Reset))?;
    }
    if stall_after.is_some() {
        loop {
            next(socket).await?;
        }
    }
    match end {
        None => Ok(()),
        Some((_, End::Drop)) => Err(Over::Own),
        Some((_, End::Close(frame))) => {
            let closed = socket.close(Some(frame)).await;
            closed.map_err(|_| Over::Peer(Closing::Reset))?;
            loop {
                next(socket).await?;
            }
        }
    }
}

fn note(message: &str, unstored: &mut HashSet<String>) {
    if !message.contains("\"response.completed\"") {
        return;
    }
    let event = serde_json::from_str::<Value>(message).unwrap_or_default();
    if let Some(id) = event["response"]["id"].as_str() {
        unstored.insert(id.to_owned());
    }
}

/// Waits, but not for a peer that has left.
async fn pause(socket: &mut Socket<'_>, time: Duration) -> Result<(), Over> {
    if time.is_zero() {
        return Ok(());
    }
    tokio::select! {
        () = sleep(time) => Ok(()),
        over = async {
            loop {
                if let Err(over) = next(socket).await {
                    return over;
                }
            }
        } => Err(over),
    }
}
