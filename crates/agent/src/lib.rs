//! Runs process chains: processes, working directories, logs, limits, and the result cache.
//!
//! - [`Agent::start`] offers slots; [`Agent::assign`] gives it chains; events report back.
//! - A chain runs in a directory of its own. Outputs appear in their final place only when all of its
//!   tasks have succeeded.
//! - With a depot an agent has files of its own: what chains read is brought before it is their turn, and what they
//!   write is held for others.
//! - [`Cache`] remembers what tasks produced, so that unchanged ones need not run again.

mod agent;
mod cache;
mod execute;
mod joblog;
mod log;
mod process;
mod roster;
mod staging;
mod supply;
mod surroundings;

pub use agent::{Agent, AgentConfig, Backlog, Job, Mode};
pub use cache::{Cache, CacheError};
pub use roster::{Roster, end_leftovers};
