//! The claim on a database: only one instance serves from it.
//!
//! Invariant: the claim lives exactly as long as the process or the [`Claim`], whichever ends
//! first, because the operating system holds it; a crash leaves nothing to clean up. Commands that
//! work alongside a running instance take none.
use super::{
    error::{Refusal, StoreError},
    file::beside,
};
use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read as _, Seek as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

/// The right to serve from a database; given back when dropped.
#[must_use = "dropping the claim gives it back"]
#[derive(Debug)]
pub struct Claim {
    _lock: File,
}

impl Claim {
    /// Takes the claim on the database at `path`. It is refused while another instance has it.
    pub fn take(path: &Path) -> Result<Self, StoreError> {
        let refused = |refusal| StoreError::Refused {
            path: path.to_owned(),
            refusal,
        };
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(beside(path, ".lock"))
            .map_err(|e| refused(e.into()))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(refused(Refusal::Served {
                    pid: holder(&mut lock),
                }));
            }
            Err(TryLockError::Error(e)) => return Err(refused(e.into())),
        }
        sign(&mut lock).map_err(|e| refused(e.into()))?;
        Ok(Self { _lock: lock })
    }
}

fn holder(lock: &mut File) -> Option<u32> {
    let mut text = String::new();
    lock.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// Leaves the process id for the message of whoever comes second.
fn sign(lock: &mut File) -> std::io::Result<()> {
    lock.set_len(0)?;
    lock.rewind()?;
    writeln!(lock, "{}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_claim_is_refused_until_the_first_is_given_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f.db");
        let first = Claim::take(&path).unwrap();
        let refused = Claim::take(&path).unwrap_err();
        let pid = Some(std::process::id());
        assert_eq!(
            refused,
            StoreError::Refused {
                path: path.clone(),
                refusal: Refusal::Served { pid }
            }
        );
        drop(first);
        assert!(Claim::take(&path).is_ok());
    }
}
