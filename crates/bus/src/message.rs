//! What is said.

use catena_model::chain::{AgentEvent, Attempt, ProcessChain, RunContext, RunId};
use catena_model::{Name, Resources};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Names of subjects.
pub mod subject {
    /// What concerns schedulers: agents that join, attempts that end.
    pub const SCHEDULER: &str = "scheduler";

    /// What concerns one agent.
    pub fn agent(id: &str) -> String {
        format!("agent.{id}")
    }
}

/// A message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Message {
    /// An agent offers itself.
    AgentJoined {
        /// Its name.
        id: Name,
        /// What it can do.
        capabilities: Vec<Name>,
        /// How much it can do at once.
        resources: Resources,
    },
    /// Something happened on an agent.
    Agent {
        /// Its name.
        id: Name,
        /// What happened, in order.
        events: Vec<AgentEvent>,
    },
    /// Chains for an agent.
    Assign {
        /// The chains.
        chains: Vec<Assignment>,
        /// Where they live.
        context: Arc<RunContext>,
    },
    /// Stop all chains of a run for good.
    Cancel(RunId),
    /// Stop everything; chains can go on later.
    Interrupt,
    /// Look at the store: something has changed there.
    Look,
}

/// A chain for an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Assignment {
    /// Which attempt.
    pub attempt: Attempt,
    /// The chain.
    pub chain: Arc<ProcessChain>,
}
