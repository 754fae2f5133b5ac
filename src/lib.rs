//! fairlane: one binary in front of a team's AI accounts.
//!
//! Four rings. [`domain`] decides and knows neither time nor wire; [`protocol`] knows the wire
//! shapes, purely; [`engine`] waits on behalf of the domain; the adapters talk: [`upstream`] to
//! providers, [`gateway`] to API clients, [`api`] to operators' programs, [`dashboard`] to operators
//! themselves, [`store`] to the disk. [`access`] decides who is an operator, for both.
//! Only [`app`] names them all. Arrows point inwards, and adapters never import one another:
//! `tests/architecture.rs` holds the source to it.
//!
//! A request flows [`gateway`] -> [`protocol`] (route, peek) -> [`engine`] (admission asks
//! [`domain`]) -> [`upstream`] -> [`gateway`] (relay, settle). On a WebSocket every response asked for
//! goes that way by itself (`gateway::socket`, [`protocol::socket`]).
pub mod access;
pub mod api;
pub mod app;
pub mod blocking;
pub mod cli;
pub mod clock;
pub mod config;
pub mod crypto;
pub mod dashboard;
pub mod digest;
pub mod document;
pub mod domain;
pub mod engine;
pub mod entropy;
pub mod gateway;
pub mod peer;
pub mod ports;
pub mod protocol;
pub mod reload;
pub mod sim;
pub mod sockets;
pub mod standing;
pub mod store;
pub mod tasks;
pub mod telemetry;
pub mod upstream;
