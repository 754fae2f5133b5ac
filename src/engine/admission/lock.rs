//! The lock of admission: the standard one, or one under which a test plays every order of taking it.
#[cfg(feature = "shuttle")]
pub(super) use shuttle::sync::{Mutex, MutexGuard};
#[cfg(not(feature = "shuttle"))]
pub(super) use std::sync::{Mutex, MutexGuard};
