//! The whole product against the simulated provider, over real sockets, in one process.
mod byte_exact;
mod harness;
mod smoke;
mod sse_boundaries;
mod wire;
