//! One client connection after the other, and what comes back on it.
use std::{io, net::SocketAddr, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request, Response,
    body::Incoming,
    client::conn::http1::{SendRequest, handshake},
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// The usage is at the end of an answer; so much of the end is looked through for it.
const TAIL_BYTES: usize = 4096;

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Complete {
        tokens: u64,
    },
    Refused {
        reason: String,
        retry_after: Duration,
    },
}

/// Why nothing did, or not all of it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Connect(#[from] io::Error),
    #[error(transparent)]
    Exchange(#[from] hyper::Error),
    #[error(transparent)]
    Request(#[from] http::Error),
}

/// A connection that is dialled when it is needed.
pub(super) struct Line {
    address: SocketAddr,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl Line {
    pub(super) const fn new(address: SocketAddr) -> Self {
        Self {
            address,
            sender: None,
        }
    }

    /// The connection of the latest request, if it lives on.
    async fn usable(&mut self) -> Option<SendRequest<Full<Bytes>>> {
        let mut sender = self.sender.take()?;
        sender.ready().await.ok()?;
        Some(sender)
    }

    /// Posts a document and reads the answer to its end.
    pub(super) async fn ask(
        &mut self,
        path: &str,
        secret: &str,
        body: &Value,
    ) -> Result<Answer, Failure> {
        let mut request = Request::post(path)
            .header("host", self.address.to_string())
            .header("authorization", format!("Bearer {secret}"))
            .header("content-type", "application/json");
        if path == "/v1/messages" {
            request = request.header("anthropic-version", "2023-06-01");
        }
        let request = request.body(Full::from(body.to_string()))?;
        let mut sender = match self.usable().await {
            Some(sender) => sender,
            None => dial(self.address).await?,
        };
        let response = sender.send_request(request).await?;
        let answer = read(response).await?;
        self.sender = Some(sender);
        Ok(answer)
    }
}

async fn dial(address: SocketAddr) -> Result<SendRequest<Full<Bytes>>, Failure> {
    let stream = TcpStream::connect(address).await?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    crate::tasks::spawn("demo-connection", async move {
        // Its failure reaches whoever waits for an answer on it.
        let _failed = connection.await;
    });
    Ok(sender)
}

async fn read(response: Response<Incoming>) -> Result<Answer, Failure> {
    let (head, mut body) = response.into_parts();
    let mut tail = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(bytes) = frame?.into_data() {
            tail.extend_from_slice(&bytes);
            let beyond = tail.len().saturating_sub(TAIL_BYTES);
            tail.drain(..beyond);
        }
    }
    if head.status.is_success() {
        return Ok(Answer::Complete {
            tokens: tokens(&tail),
        });
    }
    let header = |name: &str| head.headers.get(name).and_then(|v| v.to_str().ok());
    let reason = header("x-fairlane-reason").unwrap_or_else(|| head.status.as_str());
    let seconds = header("retry-after").and_then(|v| v.parse().ok());
    Ok(Answer::Refused {
        reason: reason.to_owned(),
        retry_after: Duration::from_secs(seconds.unwrap_or(0)),
    })
}

/// The last count of output tokens in the end of an answer.
fn tokens(tail: &[u8]) -> u64 {
    ["\"completion_tokens\":", "\"output_tokens\":"]
        .iter()
        .filter_map(|name| {
            let at = memchr::memmem::rfind(tail, name.as_bytes())? + name.len();
            let digits = tail.get(at..)?.iter().take_while(|b| b.is_ascii_digit());
            let digits: String = digits.copied().map(char::from).collect();
            digits.parse().ok()
        })
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_count_of_tokens_is_taken() {
        assert_eq!(tokens(br#""output_tokens":1},..."output_tokens":27}"#), 27);
        assert_eq!(tokens(br#""completion_tokens":9,"total_tokens":12"#), 9);
        assert_eq!(tokens(b"data: [DONE]"), 0);
    }
}
