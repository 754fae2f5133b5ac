//! Asks for a WebSocket: a connection of its own, the upgrade, and the proof that the peer meant it.
//!
//! Invariant: no extension is ever offered, so that none is in force; a connection that did not
//! become a socket is closed and never rests.
use super::{
    client::{Outline, describe, provenance, unsent},
    dial::{DialError, dial},
    wire::{Witness, Witnessed},
};
use crate::{
    domain::dispatch::{Cause, Provenance},
    ports::{Answer, Attempt, Opened, SendFailure, SocketIo},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header, response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::handshake::{client::generate_key, derive_accept_key};

/// As much of a refusal as is read; they are short.
const REFUSAL_BYTES: usize = 256 << 10;

/// How long reading a refusal may take.
const REFUSAL_WITHIN: Duration = Duration::from_secs(5);

/// Asks for a WebSocket.
pub(super) async fn open(attempt: Attempt<'_>) -> Result<Opened, SendFailure> {
    let key = generate_key();
    let mut request = Outline::of(&attempt)?.build();
    ask_in(request.headers_mut(), &key)?;
    let connect = attempt.timeouts.connect;
    let transport = dial(attempt.base_url, connect)
        .await
        .map_err(|e| unsent(&e))?;
    let (io, witness) = Witnessed::new(transport);
    let (mut sender, connection) = http1::Builder::new()
        .handshake(TokioIo::new(io))
        .await
        .map_err(|e| unsent(&DialError::Setup(e)))?;
    let failed = Failed(witness);
    let mut driver = Driving {
        driver: pin!(connection.with_upgrades()),
        has_ended: false,
    };
    let limit = attempt.timeouts.header;
    let answered = timeout(limit, driver.until(sender.send_request(request))).await;
    let mut answer = answered
        .map_err(|_| failed.late(limit))?
        .map_err(|e| failed.broken(describe(&e)))?;
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Ok(Opened::Refused(refusal(answer, &mut driver).await));
    }
    verify(&answer, &key).map_err(|what| failed.broken(what.to_owned()))?;
    let upgraded = driver.until(hyper::upgrade::on(&mut answer)).await;
    let io = upgraded.map_err(|e| failed.broken(describe(&e)))?;
    let io: SocketIo = Box::new(TokioIo::new(io));
    Ok(Opened::Socket(answer.into_parts().0, io))
}

/// Makes the request an upgrade.
fn ask_in(headers: &mut HeaderMap, key: &str) -> Result<(), SendFailure> {
    let key = HeaderValue::from_str(key).map_err(|e| SendFailure {
        provenance: Provenance::NotDispatched,
        cause: Cause::Connection,
        detail: format!("the key of the upgrade cannot be sent: {e}"),
    })?;
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(
        header::SEC_WEBSOCKET_VERSION,
        HeaderValue::from_static("13"),
    );
    headers.insert(header::SEC_WEBSOCKET_KEY, key);
    headers.remove(header::SEC_WEBSOCKET_EXTENSIONS);
    Ok(())
}

/// Whether the peer has understood what it agreed to.
fn verify(answer: &Response<Incoming>, key: &str) -> Result<(), &'static str> {
    let headers = answer.headers();
    let proof = headers.get(header::SEC_WEBSOCKET_ACCEPT);
    if proof.is_none_or(|p| p.as_bytes() != derive_accept_key(key.as_bytes()).as_bytes()) {
        return Err("upstream switched protocols without proving that it speaks WebSocket");
    }
    if headers.contains_key(header::SEC_WEBSOCKET_EXTENSIONS) {
        return Err("upstream uses a WebSocket extension that was not offered");
    }
    Ok(())
}

/// The answer of a peer that does not speak WebSocket here, read whole as far as it is bounded.
async fn refusal<D: Future>(answer: Response<Incoming>, driver: &mut Driving<'_, D>) -> Answer {
    let (head, body): (response::Parts, _) = answer.into_parts();
    let reading = driver.until(Limited::new(body, REFUSAL_BYTES).collect());
    // What cannot be read of it is not needed: its status and headers tell the most.
    let body = match timeout(REFUSAL_WITHIN, reading).await {
        Ok(Ok(collected)) => collected.to_bytes(),
        Ok(Err(_)) | Err(_) => Bytes::new(),
    };
    let body = Full::new(body).map_err(|never| match never {});
    Answer {
        head,
        body: Box::pin(body),
    }
}

/// Waits for something that the connection brings, doing its I/O meanwhile.
struct Driving<'d, D> {
    driver: Pin<&'d mut D>,
    has_ended: bool,
}

impl<D: Future> Driving<'_, D> {
    async fn until<F: Future>(&mut self, wanted: F) -> F::Output {
        let mut wanted = pin!(wanted);
        poll_fn(|cx| {
            if !self.has_ended && self.driver.as_mut().poll(cx).is_ready() {
                self.has_ended = true;
            }
            wanted.as_mut().poll(cx)
        })
        .await
    }
}

/// Tells of a failure whether bytes had left by then.
struct Failed(Arc<Witness>);

impl Failed {
    fn broken(&self, detail: String) -> SendFailure {
        SendFailure {
            provenance: provenance(self.0.attempts() > 0),
            cause: Cause::Connection,
            detail,
        }
    }

    fn late(&self, limit: Duration) -> SendFailure {
        SendFailure {
            cause: Cause::HeaderTimeout,
            ..self.broken(format!(
                "no answer to the upgrade within {} s",
                limit.as_secs()
            ))
        }
    }
}
