//! Who runs what: matches waiting chains with agents that can run them, and keeps track of who has what.
//!
//! - Chains with the same required capabilities and resources are one [`Class`]; there are few classes, and
//!   the [`Scheduler`] counts chains by class and never looks at one.
//! - [`Scheduler::handle`] takes an event in; [`Scheduler::decide`] says what to claim for whom, by a [`Policy`].
//! - [`Dispatch`] is what a scheduler knows of the agents it looks after and of the attempts they have;
//!   [`Attachment`] is what an agent knows of its scheduler. Together they make sure that whatever messages
//!   are lost, nothing is forgotten and nothing counts twice.
//! - Where agents have data of their own or are not equally fast, a [`Placement`] decides task by task, also what agents
//!   hold in advance; [`Speculation`] says which executions take so long that another one is worth a try. A [`Placer`]
//!   drives both in a live cluster, with what it has learned.
//! - A [`ReadyQueue`] is what waits at an agent, and a [`Giver`] decides what it gives to others; [`Stages`] name the choices
//!   at every stage of scheduling.
//! - No clock, no socket, no thread: the same code runs live and in the simulator.

mod attachment;
mod class;
mod dispatch;
mod giving;
mod placement;
mod placer;
mod policy;
mod ready;
mod scheduler;
mod speculation;
mod stages;

pub use attachment::{Address, Attachment, Heard};
pub use class::Class;
pub use dispatch::{Dispatch, Live, Reconciled};
pub use giving::{Giver, Giving};
pub use placement::{Costs, Placement};
pub use placer::{Placed, Placer, ReadyChain, ReadyInput};
pub use policy::Policy;
pub use ready::ReadyQueue;
pub use scheduler::{AgentInfo, Command, Event, Scheduler, Settings};
pub use speculation::{Patience, Speculation};
pub use stages::{Order, Place, Queue, Rebalance, Replicate, Stages};
