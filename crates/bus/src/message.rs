//! What is said.

use catena_model::chain::{
    AgentEvent, Attempt, DataAddress, Neighbour, ProcessChain, RunContext, RunId, Supply,
};
use catena_model::{Name, Resources};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Names of subjects.
pub mod subject {
    /// What concerns all schedulers: agents that look for one, chains that wait.
    pub const SCHEDULERS: &str = "schedulers";
    /// What concerns all controllers: runs that are new or have changed.
    pub const CONTROLLERS: &str = "controllers";
    /// What concerns all agents: runs that are cancelled.
    pub const AGENTS: &str = "agents";
    /// What concerns the fleet: classes without agents.
    pub const FLEET: &str = "fleet";
    /// What people may want to know.
    pub const EVENTS: &str = "events";

    /// What concerns one scheduler.
    pub fn scheduler(id: &str) -> String {
        format!("scheduler.{id}")
    }

    /// What concerns what people edit together over one instance.
    pub fn studio(id: &str) -> String {
        format!("studio.{id}")
    }

    /// What concerns one agent.
    pub fn agent(id: &str) -> String {
        format!("agent.{id}")
    }
}

/// A message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Message {
    /// An agent looks for a scheduler.
    Hello(Box<AgentState>),
    /// An agent says that it is alive, and all that its scheduler should know.
    Beat(Box<AgentState>),
    /// Something happened on an agent.
    Report {
        /// Its name.
        agent: Name,
        /// What happened, in order.
        events: Vec<AgentEvent>,
    },
    /// An agent goes. What it had can run elsewhere at once.
    Leaving {
        /// Its name.
        agent: Name,
        /// Which start of it.
        incarnation: u64,
    },
    /// A scheduler looks after an agent and has heard of it.
    Attached {
        /// The scheduler.
        scheduler: Name,
    },
    /// The ends of these attempts are known; the agent need not remember them.
    Known(Vec<Attempt>),
    /// Chains for an agent.
    Assign {
        /// The chains.
        chains: Vec<Assignment>,
        /// Where they live.
        context: Arc<RunContext>,
    },
    /// Give these back, if they have not started yet: somebody else is idle.
    Recall(Vec<Attempt>),
    /// Say what you hold: it is not known, or not believed any more.
    Inventory,
    /// What an agent keeps for these runs need not be kept any more, and neither need these files.
    Release {
        /// Runs that are over.
        runs: Vec<RunId>,
        /// Files that nobody will read any more.
        files: Vec<(RunId, Name)>,
    },
    /// Get this and keep it: it should not be lost with whoever has it.
    Keep {
        /// For this run.
        run: RunId,
        /// What, and where it can be had.
        supply: Box<Supply>,
    },
    /// The agents that this one may give chains to.
    Neighbours(Vec<Name>),
    /// An agent that has more to do than it can asks another one how much that has.
    HowBusy {
        /// Who asks.
        agent: Name,
    },
    /// The answer.
    Busy(Box<Neighbour>),
    /// An agent gives chains that it has not started to another one.
    Give {
        /// Who gives.
        from: Name,
        /// Who gets them.
        to: Name,
        /// The attempts.
        attempts: Vec<Attempt>,
    },
    /// Stop these attempts: somebody else has the chains.
    Void(Vec<Attempt>),
    /// Stop all chains of a run for good.
    Cancel(RunId),
    /// Give chains of a run back that have not started yet.
    Hold(RunId),
    /// Stop everything; chains can go on later.
    Interrupt,
    /// Somebody wants the agent to stay although it has nothing to do.
    KeepAlive,
    /// End, once there is nothing to do.
    ShutDown,
    /// More chains wait for agents.
    Registered(Vec<Registered>),
    /// Attempts at chains of these runs have ended.
    Ended(Vec<RunId>),
    /// Look at the store: a user has asked for something about these runs, or they are new.
    Look(Vec<RunId>),
    /// Chains wait, and no agent has room for them.
    Missing(Vec<Registered>),
    /// Something people may want to know, as JSON.
    Event(serde_json::Value),
    /// Comes back to the one who sent it, and so shows that messages arrive.
    Echo(u64),
    /// Something between those who edit a composition and the instance that has it.
    Compose {
        /// The composition.
        composition: String,
        /// What.
        word: Box<Word>,
    },
}

/// Something about editing together, from one instance to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Word {
    /// A session comes, or comes back.
    Join {
        /// The session.
        session: u64,
        /// The user.
        user: String,
        /// What the user may do.
        role: String,
        /// The instance that it is connected to.
        from: Name,
    },
    /// A session says something.
    Says {
        /// The session.
        session: u64,
        /// What.
        text: String,
    },
    /// A session is not connected any more.
    Gone {
        /// The session.
        session: u64,
    },
    /// Sessions should hear something.
    Hear {
        /// The sessions.
        sessions: Vec<u64>,
        /// What.
        text: String,
    },
    /// Whoever says this does not have the composition. Look for who has it.
    Elsewhere,
}

/// An agent, and what it has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentState {
    /// Its name.
    pub id: Name,
    /// Differs with every start.
    pub incarnation: u64,
    /// What it can do.
    pub capabilities: Vec<Name>,
    /// How much it can do at once.
    pub resources: Resources,
    /// Attempts that wait or run there.
    pub holding: Vec<Attempt>,
    /// Attempts that have ended, where it is not known that somebody knows.
    pub ended: Vec<AgentEvent>,
    /// It takes nothing new, and ends when it has nothing left.
    #[serde(default)]
    pub leaving: bool,
    /// Where it serves the files that it has, if it does.
    #[serde(default)]
    pub data: Option<DataAddress>,
    /// Runs for which it keeps files.
    #[serde(default)]
    pub keeps: Vec<RunId>,
}

/// Chains of a class that wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registered {
    /// The class.
    pub class: Name,
    /// How many.
    pub count: u64,
    /// The highest rank among them.
    pub rank: i64,
}

impl Registered {
    /// Counts chains, each given by its class and rank.
    pub fn count(chains: impl Iterator<Item = (Name, i64)>) -> Vec<Self> {
        let mut classes: BTreeMap<Name, Self> = BTreeMap::new();
        for (class, rank) in chains {
            let entry = classes.entry(class.clone()).or_insert(Self { class, count: 0, rank });
            entry.count += 1;
            entry.rank = entry.rank.max(rank);
        }
        classes.into_values().collect()
    }
}

/// A chain for an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// Which attempt.
    pub attempt: Attempt,
    /// The chain.
    pub chain: Arc<ProcessChain>,
    /// What it reads, where agents have files of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub supplies: Vec<Supply>,
    /// Another agent has given it away; it is not given away again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub received: bool,
}

impl Assignment {
    /// A chain that comes from a scheduler. What it reads is said later.
    pub fn new(attempt: Attempt, chain: Arc<ProcessChain>) -> Self {
        Self { attempt, chain, supplies: Vec::new(), received: false }
    }
}
