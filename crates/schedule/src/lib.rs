//! Who runs what: matches waiting chains with agents that can run them, and keeps track of who has what.
//!
//! - Chains with the same required capabilities and resources are one [`Class`]; there are few classes, and
//!   the [`Scheduler`] counts chains by class and never looks at one.
//! - [`Scheduler::handle`] takes an event in; [`Scheduler::decide`] says what to claim for whom, by a [`Policy`].
//! - [`Dispatch`] is what a scheduler knows of the agents it looks after and of the attempts they have;
//!   [`Attachment`] is what an agent knows of its scheduler. Together they make sure that whatever messages
//!   are lost, nothing is forgotten and nothing counts twice.
//! - No clock, no socket, no thread: the same code runs live and in the simulator.

mod attachment;
mod class;
mod dispatch;
mod policy;
mod scheduler;

pub use attachment::{Address, Attachment, Heard};
pub use class::Class;
pub use dispatch::{Dispatch, Live, Reconciled};
pub use policy::Policy;
pub use scheduler::{AgentInfo, Command, Event, Scheduler, Settings};
