//! What upstream's answers mean: one pure function over status, headers and the body's beginning.
//!
//! Invariant: the status decides what an answer can be at all; codes, and in a few cases whole
//! sentences of the provider's own, decide within that. What a client wrote must never sentence an
//! account: fields are read only where providers put them, sentences only from their start.
//!
//! Of all the waits that an answer states, the longest counts, so that a short one cannot cut a
//! long one. What cannot be read is as if it were not there; what lies in the past is a wait of 0.
mod codes;
mod hints;
mod said;
mod scan;
mod time;

pub use self::time::MAX_WAIT_MS;

use self::{codes::Grounds, said::Said};
use crate::domain::{
    dispatch::meaning::{Limited, Meaning},
    protocol::Protocol,
};
use http::HeaderMap;

/// How much of a body is looked at. Errors are short; longer ones carry their code early.
pub const MAX_BODY_BYTES: usize = 64 * 1024;

/// What an answer means.
///
/// `body` is its decoded beginning, perhaps cut; `now_ms` is the time of its receipt in
/// milliseconds since 1970, and matters only for hints that are dates.
///
/// | status | meaning |
/// |---|---|
/// | below 400 | [`Meaning::Accepted`], whatever else it says |
/// | 401 | [`Meaning::AuthRefused`] |
/// | 402 | [`Meaning::BillingRefused`]; [`Meaning::Limited`] if only running requests hold the money |
/// | 429 | [`Meaning::Limited`]; with a code of the quota and no time, [`Meaning::BillingRefused`] |
/// | 400, 403 | [`Meaning::ClientsFault`], unless the provider says by them what others say by 401, 402 or 429 |
/// | any other 4xx | [`Meaning::ClientsFault`] |
/// | 503, 529 | [`Meaning::Refused`] |
/// | 521, 522, 523, 525, 526, 530 | [`Meaning::OriginUnreached`] |
/// | any other | [`Meaning::Failed`] |
///
/// Statuses from 600 on are not defined and mean what 500 means (RFC 9110, section 15).
pub fn judge(
    protocol: Protocol,
    status: u16,
    headers: &HeaderMap,
    body: &[u8],
    now_ms: i64,
) -> Meaning {
    let body = body.get(..MAX_BODY_BYTES).unwrap_or(body);
    match status {
        ..400 => Meaning::Accepted,
        401 => Meaning::AuthRefused,
        400 | 402 | 403 | 429 => {
            let said = Said::read(protocol, status, body, now_ms);
            let wait_ms = said.wait_ms().max(hints::wait_ms(headers, now_ms));
            of_account(status, said.grounds(), wait_ms)
        }
        404..500 => Meaning::ClientsFault,
        503 | 529 => Meaning::Refused {
            has_provider_shape: Said::read(protocol, status, body, now_ms).has_provider_shape(),
        },
        521 | 522 | 523 | 525 | 526 | 530 => Meaning::OriginUnreached,
        _ => Meaning::Failed,
    }
}

/// The statuses by which providers speak of an account or a credential.
fn of_account(status: u16, grounds: Option<Grounds>, wait_ms: Option<u64>) -> Meaning {
    let limited = |is_quota| Meaning::Limited(Limited { wait_ms, is_quota });
    match (status, grounds) {
        (402, Some(Grounds::Reserved)) => limited(false),
        (402, _) => Meaning::BillingRefused,
        (_, Some(Grounds::Quota)) if wait_ms.is_some() => limited(true),
        (_, Some(Grounds::Quota)) => Meaning::BillingRefused,
        (429, grounds) => limited(grounds == Some(Grounds::Daily)),
        (_, Some(Grounds::Key)) => Meaning::AuthRefused,
        _ => Meaning::ClientsFault,
    }
}

#[cfg(test)]
mod tests;
