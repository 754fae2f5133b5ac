//! Argon2id, off the async runtime, and never more than two at once: each takes 19 MiB and a core.
use super::AccessError;
use crate::blocking;
use argon2::{Argon2, PasswordHasher, PasswordVerifier, password_hash::phc::PasswordHash};
use tokio::sync::Semaphore;

/// Hashes at a time: enough for people, too few for a flood to take the machine's memory.
const AT_ONCE: usize = 2;

/// The shortest password that is taken, in characters.
pub const MIN_CHARACTERS: usize = 10;

/// The longest password that is taken, in bytes: far beyond any passphrase.
pub const MAX_BYTES: usize = 1024;

/// Why a password is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    /// Shorter than [`MIN_CHARACTERS`].
    #[error("is too short; at least {MIN_CHARACTERS} characters are needed")]
    TooShort,
    /// Longer than [`MAX_BYTES`].
    #[error("is too long; at most {MAX_BYTES} bytes are taken")]
    TooLong,
}

/// Whether a new password may be taken. Length is the whole rule.
pub fn check(password: &str) -> Result<(), PasswordError> {
    if password.chars().count() < MIN_CHARACTERS {
        Err(PasswordError::TooShort)
    } else if password.len() > MAX_BYTES {
        Err(PasswordError::TooLong)
    } else {
        Ok(())
    }
}

/// Hashes a password that was checked, for threads that may block.
pub fn hash_blocking(password: &str) -> Result<String, HashError> {
    check(password)?;
    hashed(password).map_err(|_| HashError::Hashing)
}

/// Why [`hash_blocking`] failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HashError {
    /// The password is not taken.
    #[error("the password {0}")]
    Refused(#[from] PasswordError),
    /// The hashing itself.
    #[error("the password could not be hashed")]
    Hashing,
}

fn hashed(password: &str) -> Result<String, AccessError> {
    let hash = Argon2::default().hash_password(password.as_bytes());
    hash.map(|h| h.to_string())
        .map_err(|_| AccessError::Hashing)
}

/// Where hashing waits its turn.
#[derive(Debug)]
pub(super) struct Hasher(Semaphore);

impl Default for Hasher {
    fn default() -> Self {
        Self(Semaphore::const_new(AT_ONCE))
    }
}

impl Hasher {
    /// The password's hash in PHC form, with a salt of its own.
    pub(super) async fn hash(&self, password: &str) -> Result<String, AccessError> {
        let password = password.to_owned();
        self.run(move || hashed(&password)).await
    }

    /// Whether `password` is the one that `stored` was made of.
    pub(super) async fn verify(&self, password: &str, stored: String) -> Result<bool, AccessError> {
        if password.len() > MAX_BYTES {
            return Ok(false);
        }
        let password = password.to_owned();
        self.run(move || {
            let parsed = PasswordHash::new(&stored).map_err(|_| AccessError::Hashing)?;
            let verified = Argon2::default().verify_password(password.as_bytes(), &parsed);
            Ok(verified.is_ok())
        })
        .await
    }

    async fn run<T, F>(&self, work: F) -> Result<T, AccessError>
    where
        T: Send + 'static,
        F: FnOnce() -> Result<T, AccessError> + Send + 'static,
    {
        let _turn = self.0.acquire().await.map_err(|_| AccessError::Hashing)?;
        blocking::run(work).await.ok_or(AccessError::Hashing)?
    }
}
