//! The one place where work leaves the async runtime for a thread that may block.

/// Runs `f` on a blocking thread. `None` if it panicked or the runtime is going down.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that leaves the async runtime"
)]
pub async fn run<T, F>(f: F) -> Option<T>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    let span = tracing::Span::current();
    tokio::task::spawn_blocking(move || span.in_scope(f))
        .await
        .ok()
}
