//! What is told of the work: metrics, log, and the record of each request.
//!
//! Invariant: no secret, no client key and no text chosen by a client becomes a label; a log line
//! or record holds no secret, no query string and no body.
pub mod log;
pub mod metrics;
