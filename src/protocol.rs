//! Wire shapes of the protocols: what a request is, what its body says, how an answer went.
//!
//! Invariant: everything here is pure. Functions take bytes and headers and return values; whatever
//! must look at a body takes it in pieces as they come (`feed`) and never changes a byte of it. What
//! is kept of a body is bounded, however long or odd that body is, and no input can cause a panic.
//!
//! In the order in which a request meets them: [`route`] tells the [`operation`] from the path,
//! [`peek`] reads the few fields that choose an edge, [`headers`] takes off what must not travel,
//! [`owned`] tells which objects on upstream a request names and its answer makes, [`verdict`] tells
//! what the answer means, [`watch`] follows it, [`errors`] and [`models`] are answers of fairlane's
//! own, [`keepalive`] is what it says meanwhile.
pub mod auth;
pub mod errors;
pub mod headers;
pub mod keepalive;
pub mod models;
pub mod operation;
pub mod owned;
pub mod peek;
mod percent;
pub mod route;
pub mod socket;
pub mod sse;
pub mod usage;
pub mod verdict;
pub mod watch;
