//! Digests by which secrets are known again without being compared as text.
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// SHA-256: for secrets with full entropy, such as client keys and admin tokens.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// HMAC-SHA-256 under the instance's own key: for upstream secrets, so that a copy of the
/// fingerprints alone says nothing about them.
pub fn keyed(key: &[u8; 32], bytes: &[u8]) -> [u8; 32] {
    // HMAC takes a key of any length; the type has a `Result` for MACs that do not.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        return sha256(bytes);
    };
    mac.update(bytes);
    mac.finalize().into_bytes().into()
}
