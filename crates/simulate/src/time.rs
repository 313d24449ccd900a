//! Virtual time in whole nanoseconds, so that sums do not depend on their order and results are the same everywhere.

/// A point in virtual time, or a span of it, in nanoseconds.
pub type Nanos = u64;

/// Later than anything that happens.
pub const NEVER: Nanos = Nanos::MAX;

/// So many seconds; what is negative counts as nothing.
pub fn nanos(seconds: f64) -> Nanos {
    (seconds * 1e9).round() as Nanos
}

/// The same in seconds.
pub fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / 1e9
}
