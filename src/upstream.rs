//! Adapter towards providers: dials, keeps connections, sends one request, and says of every
//! failure whether the request can have left.
//!
//! Invariant: [`Provenance::NotDispatched`](crate::domain::dispatch::Provenance) is reported only
//! on the word of the dialer, or where the transport was never written to after the request had
//! been handed over; error texts prove nothing.
mod client;
mod dial;
mod exchange;
mod idle;
mod socket;
mod tls;
mod wire;

pub use self::client::Client;

#[cfg(test)]
mod tests;
