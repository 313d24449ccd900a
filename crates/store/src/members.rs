//! Who is there: instances, agents, machines, and people with tokens.

use crate::error::StoreError;
use async_trait::async_trait;
use catena_model::chain::DataAddress;
use catena_model::{Name, Resources};
use serde::{Deserialize, Serialize};

/// An instance that shares the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Instance {
    /// Its name; a new one with every start.
    pub id: Name,
    /// Its roles, separated by commas.
    pub roles: String,
    /// The machine it runs on.
    pub host: String,
    /// When it started.
    pub since: i64,
    /// It counts as alive until then.
    pub until: i64,
}

/// An agent that an instance looks after.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AgentRecord {
    /// Its name.
    pub id: Name,
    /// Differs with every start.
    pub incarnation: u64,
    /// What it can do.
    pub capabilities: Vec<Name>,
    /// How much it can do at once.
    pub resources: Resources,
    /// The instance whose scheduler gives it work.
    pub scheduler: Option<Name>,
    /// When it joined.
    pub joined: i64,
    /// When it was last heard of.
    pub seen: i64,
    /// Where it serves the files that it has, if it does. Not shown to users: who knows it can read them.
    #[serde(skip)]
    pub data: Option<DataAddress>,
}

/// Where an agent serves, as it is kept.
pub(crate) fn data_text(agent: &AgentRecord) -> Option<String> {
    agent.data.as_ref().and_then(|d| serde_json::to_string(d).ok())
}

/// A machine that the fleet has asked a provider for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Its name, which is also its agent's.
    pub id: Name,
    /// The setup it was made from.
    pub setup: Name,
    /// Where it stands.
    pub state: MachineState,
    /// What the provider calls it.
    pub handle: Option<String>,
    /// When it was asked for.
    pub created: i64,
    /// When its state last changed.
    pub changed: i64,
    /// Why it failed or went.
    pub reason: Option<String>,
}

/// Where a machine stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MachineState {
    /// Asked for.
    Creating,
    /// Its agent has joined.
    Running,
    /// Is being taken down.
    Destroying,
    /// Gone.
    Destroyed,
    /// Never came up.
    Failed,
}

impl MachineState {
    /// Whether the machine uses up some of what its setup allows.
    pub fn counts(self) -> bool {
        matches!(self, Self::Creating | Self::Running | Self::Destroying)
    }

    /// The name it is kept by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Running => "running",
            Self::Destroying => "destroying",
            Self::Destroyed => "destroyed",
            Self::Failed => "failed",
        }
    }

    /// The state of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Creating, Self::Running, Self::Destroying, Self::Destroyed, Self::Failed];
        all.into_iter().find(|s| s.name() == name)
    }
}

/// A token somebody may use. The token itself is not kept, only its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Token {
    /// Who or what it is for.
    pub name: String,
    /// What it allows.
    pub role: String,
    /// The hash of the token.
    #[serde(skip)]
    pub hash: String,
    /// When it was made.
    pub created: i64,
    /// When it ends.
    pub expires: Option<i64>,
}

/// Who shares the store. All times are those of [`Members::now`].
#[async_trait]
pub trait Members: Send + Sync {
    /// The time of the store, in milliseconds since 1970. Instances measure leases by it, whatever their own
    /// clocks say.
    async fn now(&self) -> Result<i64, StoreError>;

    /// Says that an instance is alive until `instance.until`.
    async fn enlist(&self, instance: &Instance) -> Result<(), StoreError>;
    /// Says that an instance is gone: what it had is free at once.
    async fn resign(&self, instance: &Name) -> Result<(), StoreError>;
    /// Instances that are alive.
    async fn instances(&self, now: i64) -> Result<Vec<Instance>, StoreError>;
    /// Makes `holder` the only one with the named duty until `until`, unless another holds it.
    async fn take_duty(&self, duty: &str, holder: &Name, until: i64, now: i64) -> Result<bool, StoreError>;

    /// Notes an agent and makes `agent.scheduler` look after it, unless another living instance does. Returns
    /// which start of the agent was known before, or `None` if another instance looks after it.
    async fn adopt_agent(&self, agent: &AgentRecord, now: i64) -> Result<Option<u64>, StoreError>;
    /// Notes an agent that nobody may look after yet, or that it was heard of.
    async fn greet_agent(&self, agent: &AgentRecord, now: i64) -> Result<(), StoreError>;
    /// Makes `scheduler` look after all agents that nobody alive looks after, and returns them.
    async fn adopt_orphans(&self, scheduler: &Name, now: i64) -> Result<Vec<AgentRecord>, StoreError>;
    /// Notes that agents were heard of, and returns those that `scheduler` still looks after.
    async fn agents_seen(&self, scheduler: &Name, agents: &[Name], now: i64)
    -> Result<Vec<Name>, StoreError>;
    /// All agents.
    async fn agents(&self) -> Result<Vec<AgentRecord>, StoreError>;
    /// Forgets an agent, if it is still this incarnation of it.
    async fn remove_agent(&self, agent: &Name, incarnation: u64) -> Result<(), StoreError>;

    /// Notes a machine or how it stands now.
    async fn put_machine(&self, machine: &Machine) -> Result<(), StoreError>;
    /// Machines, newest first.
    async fn machines(&self) -> Result<Vec<Machine>, StoreError>;

    /// Adds a token or replaces the one of the same name.
    async fn put_token(&self, token: &Token) -> Result<(), StoreError>;
    /// All tokens.
    async fn tokens(&self) -> Result<Vec<Token>, StoreError>;
    /// Removes a token; returns whether there was one.
    async fn remove_token(&self, name: &str) -> Result<bool, StoreError>;
}
