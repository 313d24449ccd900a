//! An instance of Catena: the roles, wired to a store and a bus.
//!
//! - [`Definition`] says what a run is; its fingerprint tells whether two runs are the same work.
//! - [`Driver`] is controller and scheduler in one: it plans, claims, assigns, takes results in, and ends
//!   runs. It talks to agents over the bus only.
//! - [`AgentRole`] connects an agent to the bus.
//! - [`StateDirectory`] is where an embedded instance keeps everything; one instance at a time owns it.

mod agent_role;
mod definition;
mod driver;
mod event;
mod publish;
mod resume;
mod state;

pub use agent_role::AgentRole;
pub use definition::Definition;
pub use driver::{Driver, DriverError, StopWish};
pub use event::{FailedTask, RunEvent, RunSummary};
pub use publish::{PublishedResult, publish_results};
pub use state::{StateDirectory, StateError};
