//! Who may change what: granular locks on a graph of units.

mod lease;
mod mode;
mod queue;
mod table;
mod units;

pub use lease::{Hold, LockEvent, Locks, Millis, Outcome, Release, Timing};
pub use mode::Mode;
pub use queue::{Answer, Obstruction, Patience, Queue, Refusal};
pub use table::{Conflict, Obstacle, Session, Table, Want};
pub use units::{Unit, Units};
