//! Time in whole microseconds since some beginning: the driver says which.

/// A moment, or how long something takes.
pub type Micros = u64;

/// A thousandth of a second.
pub const MILLI: Micros = 1_000;
/// A second.
pub const SECOND: Micros = 1_000_000;
