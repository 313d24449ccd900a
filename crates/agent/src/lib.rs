//! Runs process chains: processes, working directories, logs, limits, and the result cache.
//!
//! - [`Agent::start`] offers slots; [`Agent::assign`] gives it chains; events report back.
//! - A chain runs in a directory of its own. Outputs appear in their final place only when all of its
//!   tasks have succeeded.
//! - [`Cache`] remembers what tasks produced, so that unchanged ones need not run again.

mod agent;
mod cache;
mod execute;
mod joblog;
mod log;
mod process;
mod roster;
mod staging;
mod surroundings;

pub use agent::{Agent, AgentConfig, Job, Mode};
pub use cache::{Cache, CacheError};
pub use roster::{Roster, end_leftovers};
