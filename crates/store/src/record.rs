//! What is kept about runs and chains.

use catena_model::Name;
use catena_model::chain::{ChainKey, ChainState, History, Produced, RunId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// A run to be added.
#[derive(Clone, Debug, Default)]
pub struct NewRun {
    /// A name for people.
    pub name: String,
    /// The file the workflow came from.
    pub source: String,
    /// Identifies workflow, services, macros and inputs: runs with the same fingerprint are the same work.
    pub fingerprint: String,
    /// The texts and settings needed to go on after a restart; opaque to the store.
    pub definition: Vec<u8>,
    /// When it was submitted, in milliseconds since 1970.
    pub created: i64,
    /// Higher ones come first.
    pub priority: i32,
    /// Files that come with it, where agents have files of their own.
    pub files: Vec<Produced>,
}

/// The columns of a run that its record has.
pub(crate) const RUN_COLUMNS: &str = "id, name, source, fingerprint, state, created, started, ended, error,
    cancel_requested, results, tasks, skipped, priority, held, controller";

/// A run. Its definition can be large and is asked for alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its number.
    pub id: RunId,
    /// A name for people.
    pub name: String,
    /// The file the workflow came from.
    pub source: String,
    /// See [`NewRun::fingerprint`].
    pub fingerprint: String,
    /// Where it stands.
    pub state: RunState,
    /// When it was submitted.
    pub created: i64,
    /// When its first chain could run.
    pub started: Option<i64>,
    /// When it ended.
    pub ended: Option<i64>,
    /// Why it failed.
    pub error: Option<String>,
    /// Whether somebody asked to stop it.
    pub cancel_requested: bool,
    /// Named results, as JSON.
    pub results: Option<String>,
    /// How many tasks are known, and how many were skipped.
    pub tasks: i64,
    /// How many tasks were skipped because of a condition.
    pub skipped: i64,
    /// Higher ones come first.
    pub priority: i32,
    /// Whether somebody asked it to wait.
    pub held: bool,
    /// The instance that plans it.
    pub controller: Option<Name>,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// Submitted or under way.
    Running,
    /// Stopped before it was done; goes on when asked to.
    Interrupted,
    /// Everything succeeded.
    Succeeded,
    /// Some chains failed, others succeeded.
    PartiallySucceeded,
    /// Failed.
    Failed,
    /// Stopped for good by a user.
    Cancelled,
}

impl RunState {
    const ALL: [Self; 6] = [
        Self::Running,
        Self::Interrupted,
        Self::Succeeded,
        Self::PartiallySucceeded,
        Self::Failed,
        Self::Cancelled,
    ];

    pub(crate) fn code(self) -> i64 {
        Self::ALL.iter().position(|s| *s == self).expect("listed") as i64
    }

    pub(crate) fn from_code(code: i64) -> Option<Self> {
        usize::try_from(code).ok().and_then(|i| Self::ALL.get(i).copied())
    }

    /// Whether the run has come to its end.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Running | Self::Interrupted)
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Succeeded => "succeeded",
            Self::PartiallySucceeded => "partially succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        })
    }
}

/// What changes about a run; `None` leaves a field as it is.
#[derive(Clone, Debug, Default)]
pub struct RunChange {
    /// Where it stands.
    pub state: Option<RunState>,
    /// When its first chain could run.
    pub started: Option<i64>,
    /// When it ended; `Some(None)` if it goes on.
    pub ended: Option<Option<i64>>,
    /// Why it failed; `Some(None)` if it goes on.
    pub error: Option<Option<String>>,
    /// Whether somebody asked to stop it.
    pub cancel_requested: Option<bool>,
    /// Named results, as JSON.
    pub results: Option<String>,
    /// How many tasks are known.
    pub tasks: Option<i64>,
    /// How many tasks were skipped.
    pub skipped: Option<i64>,
    /// Whether somebody asked it to wait.
    pub held: Option<bool>,
    /// The instance that plans it; `Some(None)` if it needs a new one.
    pub controller: Option<Option<Name>>,
}

/// How many chains are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Wait for an agent.
    pub registered: u64,
    /// Are with an agent.
    pub running: u64,
    /// Wait for their next attempt.
    pub paused: u64,
    /// Are done.
    pub succeeded: u64,
    /// Were given up.
    pub failed: u64,
    /// Were stopped.
    pub cancelled: u64,
}

impl Counts {
    /// The count of a state, to be read or changed.
    pub fn of(&mut self, state: ChainState) -> &mut u64 {
        match state {
            ChainState::Registered => &mut self.registered,
            ChainState::Running => &mut self.running,
            ChainState::Paused => &mut self.paused,
            ChainState::Succeeded => &mut self.succeeded,
            ChainState::Failed => &mut self.failed,
            ChainState::Cancelled => &mut self.cancelled,
        }
    }

    /// All chains.
    pub fn total(&self) -> u64 {
        self.registered + self.running + self.paused + self.succeeded + self.failed + self.cancelled
    }
}

/// How many chains of a class are in a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassCount {
    /// Identifies required capabilities and resources.
    pub class: Name,
    /// The state.
    pub state: ChainState,
    /// How many.
    pub count: u64,
}

/// Chains of a class that wait for an agent, in all runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingClass {
    /// Identifies required capabilities and resources.
    pub class: Name,
    /// How many.
    pub count: u64,
    /// The highest rank among them.
    pub rank: i64,
}

/// A chain as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainRecord {
    /// Which chain.
    pub key: ChainKey,
    /// Where it stands.
    pub state: ChainState,
    /// How often it was given to an agent.
    pub attempt: u32,
    /// Required capabilities and resources.
    pub class: Name,
    /// Its priority.
    pub priority: i32,
    /// Orders chains: a higher priority and an earlier time make it larger.
    pub rank: i64,
    /// How many agents were lost while they had it.
    pub losses: u32,
    /// How many attempts have failed.
    pub failures: u32,
    /// The agent that has or had it.
    pub agent: Option<Name>,
    /// When the last attempt started.
    pub started: Option<i64>,
    /// When the last attempt ended.
    pub ended: Option<i64>,
    /// The earliest time of the next attempt.
    pub not_before: i64,
    /// When the attempt that ended it began what, if that is known.
    pub history: History,
    /// The chain itself; empty unless asked for.
    pub payload: Vec<u8>,
    /// Its result; empty unless asked for or if there is none.
    pub result: Vec<u8>,
}

/// Which chains to read, and how much of them.
#[derive(Clone, Debug)]
pub struct ChainFilter {
    /// Only in this state.
    pub state: Option<ChainState>,
    /// From this chain on.
    pub from: u64,
    /// At most so many.
    pub limit: usize,
    /// With their payload.
    pub payload: bool,
    /// With their result.
    pub result: bool,
}

impl Default for ChainFilter {
    fn default() -> Self {
        Self { state: None, from: 0, limit: usize::MAX, payload: false, result: false }
    }
}

/// A result that was used to plan more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedRecord {
    /// The chain whose result it is.
    pub chain: u64,
    /// How many chains had been generated before.
    pub after_chains: u64,
}

/// An attempt that failed, or whose agent was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedAttempt {
    /// Which chain.
    pub key: ChainKey,
    /// Which attempt.
    pub attempt: u32,
    /// The agent that had it.
    pub agent: Option<Name>,
    /// When it started.
    pub started: i64,
    /// When it ended.
    pub ended: i64,
    /// What happened, as JSON; empty if its agent was lost and others try again.
    pub error: String,
}

/// Orders chains for agents: by priority, where `aging` of waiting counts as much as one point of it. The
/// order of two chains never changes, so it can be kept in an index, and nothing waits for ever.
pub fn rank(priority: i32, registered: i64, aging: Duration) -> i64 {
    i64::from(priority) * (aging.as_millis() as i64) - registered
}

/// A history as it is kept: most chains have none.
pub(crate) fn history_text(history: &History) -> Option<String> {
    (!history.is_empty()).then(|| serde_json::to_string(history).unwrap_or_default())
}

/// The history that was kept as a text.
pub(crate) fn read_history(text: Option<&str>) -> History {
    text.and_then(|t| serde_json::from_str(t).ok()).unwrap_or_default()
}

/// The id of a chain in a store: run * 2^32 + number within the run.
pub(crate) fn id(run: RunId, seq: u64) -> i64 {
    (run.0 << 32) | seq as i64
}

/// The chain with an id.
pub(crate) fn key(id: i64) -> ChainKey {
    ChainKey { run: RunId(id >> 32), seq: (id & 0xffff_ffff) as u64 }
}

/// The ids of all chains of a run.
pub(crate) fn id_range(run: RunId) -> (i64, i64) {
    (id(run, 0), id(run, 0xffff_ffff))
}
