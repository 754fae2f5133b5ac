//! An answer of upstream's that is looked at before it is passed on: its beginning is read to learn
//! what it means, and goes out again in front of the rest.
//!
//! Invariant: whoever gets such an answer gets every byte of it, in order.
use super::held::{Held, Patience};
use crate::{
    clock::unix_millis,
    domain::{dispatch::meaning::Meaning, protocol::Protocol},
    ports::Answer,
    protocol::verdict::{self, MAX_BODY_BYTES},
};
use http::{HeaderValue, header};
use std::time::Duration;

/// How long the beginning of an error may take: the request waits meanwhile.
const BEGINNING_WITHIN: Duration = Duration::from_secs(2);

/// What the answer means, and the answer itself.
pub(super) async fn judged(protocol: Protocol, mut answer: Answer) -> (Meaning, Answer) {
    let status = answer.head.status.as_u16();
    if status < 400 {
        return (Meaning::Accepted, answer);
    }
    let patience = Patience::InAll(BEGINNING_WITHIN);
    let held = Held::read(answer.body, patience, MAX_BODY_BYTES).await;
    let headers = &answer.head.headers;
    let codings = headers.get_all(header::CONTENT_ENCODING).iter();
    // What cannot be unpacked is judged by its status and headers.
    let document = held.document(codings.map(HeaderValue::as_bytes));
    let document = document.unwrap_or_default();
    let meaning = verdict::judge(protocol, status, headers, &document, unix_millis());
    answer.body = Box::pin(held);
    (meaning, answer)
}

#[cfg(test)]
mod tests;
