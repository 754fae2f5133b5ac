//! Randomness: fresh identifiers and fresh secrets.
//!
//! Invariant: nothing else draws random numbers for what is stored or handed out.
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

/// The 128 bits of a new `UUIDv7`, for the `from_u128` of an id type.
pub fn uuid7() -> u128 {
    uuid::Uuid::now_v7().as_u128()
}

/// A new secret: `prefix`, then 256 random bits in URL-safe base64 (43 characters).
pub fn secret(prefix: &str) -> String {
    format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bytes()))
}

/// What client keys begin with.
pub const CLIENT_KEY: &str = "fl-";

/// What admin tokens begin with.
pub const ADMIN_TOKEN: &str = "fla-";

/// 256 random bits.
pub fn bytes() -> [u8; 32] {
    rand::random()
}

/// One random byte, to spread what must not happen in step.
pub fn byte() -> u8 {
    rand::random()
}
