//! What an instance tells those who watch it.

use catena_model::Name;
use catena_model::chain::{ChainState, Phase, RunId, TaskFailure};
use catena_store::{Counts, RunState};
use serde::{Deserialize, Serialize};

/// Something happened in a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum RunEvent {
    /// The run begins or goes on.
    Started {
        /// The run.
        run: RunId,
        /// Its name.
        name: String,
        /// Whether it goes on from an earlier start.
        resumed: bool,
        /// Tasks that were done before.
        done: u64,
    },
    /// A task was started, or its result taken from the cache.
    TaskStarted {
        /// The run.
        run: RunId,
        /// The chain.
        chain: u64,
        /// The attempt.
        attempt: u32,
        /// The task.
        task: Name,
        /// Whether the result comes from the cache.
        cached: bool,
        /// Why it has to run.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A chain has ended, or will be tried again.
    ChainEnded {
        /// The run.
        run: RunId,
        /// The chain.
        chain: u64,
        /// The attempt.
        attempt: u32,
        /// How it stands now.
        state: ChainState,
        /// Its tasks.
        tasks: Vec<Name>,
        /// How many of them came from the cache.
        cached: u32,
        /// How long it took, in milliseconds.
        millis: f64,
        /// What went wrong.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<Box<TaskFailure>>,
    },
    /// A chain goes on with something else, where agents have files of their own.
    Phase {
        /// The run.
        run: RunId,
        /// The chain.
        chain: u64,
        /// The attempt.
        attempt: u32,
        /// Who executes it.
        agent: Name,
        /// What it is at now.
        phase: Phase,
        /// Since when, in milliseconds since 1970.
        at: i64,
    },
    /// How far the run is.
    Progress {
        /// The run.
        run: RunId,
        /// Chains by state.
        counts: Counts,
        /// Tasks that are done.
        tasks_done: u64,
        /// Tasks that are known to exist.
        tasks_known: u64,
        /// Whether more tasks may become known.
        growing: bool,
    },
    /// Something a user may want to know.
    Note {
        /// The run.
        run: RunId,
        /// What.
        message: String,
    },
    /// Something a user should know.
    Notice {
        /// The run.
        run: RunId,
        /// What.
        message: String,
    },
    /// The run has ended or was interrupted.
    Ended(RunSummary),
}

/// How a run ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunSummary {
    /// The run.
    pub run: RunId,
    /// Its name.
    pub name: String,
    /// How it ended.
    pub state: RunState,
    /// Why, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Chains by state.
    pub counts: Counts,
    /// Tasks that were done in this session.
    pub tasks_done: u64,
    /// Of these, taken from the cache.
    pub tasks_cached: u64,
    /// Tasks that were skipped because of a condition.
    pub tasks_skipped: u64,
    /// Tasks that could not run because what they need is missing.
    pub tasks_blocked: u64,
    /// How long this session took, in milliseconds.
    pub millis: f64,
    /// Named results: values as they were planned.
    pub results: Vec<(Name, Vec<String>)>,
    /// Failures, at most a few.
    pub failures: Vec<FailedTask>,
    /// What the process should return, if the run says so itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
}

/// A failure with its place.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FailedTask {
    /// The chain.
    pub chain: u64,
    /// The attempt.
    pub attempt: u32,
    /// What went wrong.
    pub failure: TaskFailure,
}
