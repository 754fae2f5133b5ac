//! The whole product against the simulated provider, over real sockets, in one process.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its world or read its answer has failed"
)]

mod breaks;
mod byte_exact;
mod cors;
mod encodings;
mod faults;
mod hand;
mod harness;
mod headers;
mod keys;
mod leaving;
mod lifecycle;
mod limits;
mod models;
mod plumbing;
mod renames;
mod review_stop;
mod review_tls;
mod review_wire;
mod secrets;
mod smoke;
mod sse_boundaries;
mod streams;
mod wire;
