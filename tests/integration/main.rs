//! The whole product against the simulated provider, over real sockets, in one process.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its world or read its answer has failed"
)]

mod breaks;
mod byte_exact;
mod cooled;
mod cooling;
mod cors;
mod dashboard;
mod encodings;
mod faults;
mod hand;
mod harness;
mod headers;
mod key_limits;
mod keys;
mod leaks;
mod leaving;
mod lifecycle;
mod limits;
mod models;
mod moving;
mod naming;
mod oddities;
mod owners;
mod parked;
mod plumbing;
mod pool;
mod refused;
mod renames;
mod secrets;
mod sessions;
mod shots;
mod smoke;
mod sockets;
mod sse_boundaries;
mod standing;
mod stopping;
mod streams;
mod tls;
mod wire;
