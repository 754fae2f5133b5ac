//! A point on the process's own time line, which no change of the wall clock stretches or cuts.
//!
//! Invariant: moments of two processes are never compared; what outlives the process is stored as
//! wall-clock time and read back as a span from now.

/// Milliseconds since some moment at the process's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// That many milliseconds after the beginning.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the beginning.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The moment `ms` milliseconds later.
    #[must_use]
    pub const fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this one; 0 if that is not earlier.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
