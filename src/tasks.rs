//! Tasks with an owner: a task that panics is noticed and logged under its name.
use std::{future::Future, panic::AssertUnwindSafe};

use futures_util::FutureExt as _;
use tokio::task::JoinHandle;

/// Spawns `work` on the current runtime; a panic in it is logged with `name`.
#[expect(clippy::disallowed_methods, reason = "the one place that spawns")]
pub fn spawn<F>(name: &'static str, work: F) -> JoinHandle<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    // Combinators: an async block would hold the work twice, before and after pinning it.
    tokio::spawn(AssertUnwindSafe(work).catch_unwind().map(move |ended| {
        if ended.is_err() {
            tracing::error!(task = name, "a task panicked");
        }
    }))
}
