//! Who runs what: matches classes of process chains with agents. Decides, never does.
//!
//! - A [`Class`] is a set of required capabilities with an amount of resources. Classes are few, chains
//!   are many, so the scheduler counts chains by class and never looks at one.
//! - [`Scheduler::handle`] takes an event in; [`Scheduler::decide`] says what to claim for whom.
//! - No clock, no socket, no thread: the same code runs live and in the simulator.

mod class;
mod scheduler;

pub use class::Class;
pub use scheduler::{AgentInfo, Command, Event, Scheduler};
