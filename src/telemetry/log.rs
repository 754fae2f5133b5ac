//! The log: structured, to standard error, as text or JSON.
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _};

/// The shape of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Lines that may wait for the thread that writes them; beyond that they are dropped.
const LINES: usize = 8192;

/// Writes lines in a thread of its own; dropped at the end, it writes what is left.
#[must_use = "lines are lost when the writer goes"]
pub struct Writer(#[expect(dead_code, reason = "held for its drop")] WorkerGuard);

/// Sends everything that `filter` lets through to standard error from now on. A reader of
/// standard error that stalls costs lines, never a request: the thread that writes them is not
/// one that serves.
pub fn start(filter: EnvFilter, format: Format) -> Writer {
    let (writer, guard) = NonBlockingBuilder::default()
        .buffered_lines_limit(LINES)
        .finish(std::io::stderr());
    let lines = fmt::layer()
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_writer(writer);
    let registry = tracing_subscriber::registry().with(filter);
    let started = match format {
        Format::Text => registry.with(lines).try_init(),
        Format::Json => registry.with(lines.json().flatten_event(true)).try_init(),
    };
    if let Err(error) = started {
        tracing::debug!(%error, "the log had been started before");
    }
    Writer(guard)
}
