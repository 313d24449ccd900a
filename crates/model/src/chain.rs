//! Process chains: what is scheduled, stored and executed.

use crate::Name;
use crate::content::{Artifact, ContentId};
use crate::policy::{RetryPolicy, TimeoutPolicy};
use crate::quantity::Resources;
use crate::workflow::Direction;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// A linear sequence of tasks that one agent executes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessChain {
    /// Unique within the workflow run.
    pub id: Name,
    /// The tasks in order.
    pub executables: Vec<Executable>,
    /// What an agent must offer to run all of them; sorted, without repetition.
    #[serde(default)]
    pub required_capabilities: Vec<Name>,
    /// Chains with a higher priority are scheduled first.
    #[serde(default)]
    pub priority: i32,
    /// How often the whole chain is tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<RetryPolicy>,
    /// What the chain needs of an agent while it runs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub resources: Resources,
    /// That it fails is a result like any other: whoever planned it decides what follows from it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub failure_is_result: bool,
    /// How long it is from its beginning to the end of the workflow, in milliseconds, as far as is known: among chains
    /// of one priority the one with the longest way to go comes first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ahead: u64,
    /// So many agents may execute it at the same time; the first result counts. None means one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub replicas: u32,
    /// It must not be started twice, whatever happens. Counts among peers.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exclusive: bool,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// One task: a program and its arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Executable {
    /// The action's name, with `$n` for each loop around it.
    pub id: Name,
    /// The program.
    pub path: Name,
    /// The service it is described by.
    pub service_id: Name,
    /// Its arguments in the order of the service's parameters.
    pub arguments: Vec<Argument>,
    /// How it is started.
    #[serde(default = "other")]
    pub runtime: Name,
    /// Arguments for the runtime.
    #[serde(default)]
    pub runtime_args: Vec<Argument>,
    /// How often it is tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<RetryPolicy>,
    /// Longest time without output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_inactivity: Option<TimeoutPolicy>,
    /// Longest time of one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runtime: Option<TimeoutPolicy>,
    /// Longest time of all attempts together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<TimeoutPolicy>,
    /// A shell command with places for the arguments, in place of `path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Name>,
    /// Environment variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<(Name, String)>,
    /// Whether a result of an earlier run may be used.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub cache: bool,
    /// The system package that has the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<Name>,
    /// Where it runs, if it says so itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surroundings: Option<Box<Surroundings>>,
}

/// Where a task runs, what it reads and writes, and which exit code is a success.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surroundings {
    /// Its working directory; where its files move from and to if it has a directory of its own.
    pub directory: PathBuf,
    /// Its standard input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<PathBuf>,
    /// A file for its standard output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<PathBuf>,
    /// A file for its standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<PathBuf>,
    /// The exit code with which it succeeds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub success: i32,
    /// It runs in a directory of its own, and these files move with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Transfer>,
    /// Where what happens to it is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<JobLog>,
}

/// A log of events in the form of HTCondor's, which other programs read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobLog {
    /// The file.
    pub file: PathBuf,
    /// The number of the submission, and of the job in it.
    pub job: (u64, u32),
    /// The node of the DAG.
    pub node: Name,
}

/// Files that move with a task that runs in a directory of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// Put there before it starts; of a directory with a slash at the end its contents.
    pub inputs: Vec<Name>,
    /// Brought back; whatever is new if it does not say.
    #[serde(default)]
    pub outputs: Option<Vec<Name>>,
    /// What is called otherwise when it is back: the name there and here.
    #[serde(default)]
    pub remaps: Vec<(Name, Name)>,
    /// The program moves as well.
    #[serde(default)]
    pub executable: bool,
}

fn other() -> Name {
    Name::new_static("other")
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_true(b: &bool) -> bool {
    *b
}

impl ProcessChain {
    /// A chain that needs one processor and nothing else.
    pub fn new(id: Name, executables: Vec<Executable>) -> Self {
        Self {
            id,
            executables,
            required_capabilities: Vec::new(),
            priority: 0,
            retries: None,
            resources: Resources::default(),
            failure_is_result: false,
            ahead: 0,
            replicas: 0,
            exclusive: false,
        }
    }
}

impl Executable {
    /// A program that is started once, without arguments or limits.
    pub fn new(id: Name, path: Name) -> Self {
        Self {
            id,
            service_id: path.clone(),
            path,
            arguments: Vec::new(),
            runtime: other(),
            runtime_args: Vec::new(),
            retries: None,
            max_inactivity: None,
            max_runtime: None,
            deadline: None,
            script: None,
            env: Vec::new(),
            cache: true,
            package: None,
            surroundings: None,
        }
    }

    /// The outputs among the arguments.
    pub fn outputs(&self) -> impl Iterator<Item = &Argument> {
        self.arguments.iter().filter(|a| a.direction == Direction::Output)
    }
}

/// An argument of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Argument {
    /// The service's parameter.
    pub id: Name,
    /// Stands before the value on the command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Name>,
    /// The variable and its value.
    pub variable: ArgumentVariable,
    /// In or out.
    #[serde(rename = "type")]
    pub direction: Direction,
    /// What the value is.
    pub data_type: Name,
}

/// A variable with its value, as it stands on a command line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArgumentVariable {
    /// The variable.
    pub id: Name,
    /// Its value.
    pub value: Name,
}

/// Which run a chain belongs to, and its number within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ChainKey {
    /// The run.
    pub run: RunId,
    /// Chains of a run are numbered from 0 in the order they are generated.
    pub seq: u64,
}

impl fmt::Display for ChainKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.run, self.seq)
    }
}

/// A run of a workflow. Runs are numbered from 1 within a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunId(pub i64);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One try at a chain. The number is the fencing token: each is given out once, and only an attempt that somebody is
/// still believed to be at may commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Attempt {
    /// The chain.
    pub chain: ChainKey,
    /// Counted from 1.
    pub number: u32,
}

/// Where a chain stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChainState {
    /// Waits for an agent.
    Registered,
    /// Given to an agent.
    Running,
    /// Waits for its next attempt.
    Paused,
    /// Done.
    Succeeded,
    /// Given up.
    Failed,
    /// Stopped by a user or a time limit.
    Cancelled,
}

impl ChainState {
    /// All states, in the order of their codes.
    pub const ALL: [Self; 6] =
        [Self::Registered, Self::Running, Self::Paused, Self::Succeeded, Self::Failed, Self::Cancelled];

    /// A small number for stores.
    pub fn code(self) -> i64 {
        Self::ALL.iter().position(|s| *s == self).expect("listed") as i64
    }

    /// The state with this code.
    pub fn from_code(code: i64) -> Option<Self> {
        usize::try_from(code).ok().and_then(|i| Self::ALL.get(i).copied())
    }

    /// Whether nothing more will happen to the chain by itself.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}

impl fmt::Display for ChainState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Registered => "registered",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        })
    }
}

/// What came of a task that succeeded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskResult {
    /// For each output its values: one path, or the files of a directory.
    #[serde(rename = "o")]
    pub outputs: Vec<Vec<String>>,
    /// When it started, in milliseconds since 1970.
    #[serde(rename = "s")]
    pub started: i64,
    /// How long it took, in milliseconds.
    #[serde(rename = "d")]
    pub millis: f64,
    /// Whether the result came from the cache.
    #[serde(rename = "h", default, skip_serializing_if = "is_default")]
    pub cached: bool,
    /// How often it was tried.
    #[serde(rename = "n", default = "once", skip_serializing_if = "is_once")]
    pub attempts: u32,
    /// Processor time in milliseconds.
    #[serde(rename = "c", default, skip_serializing_if = "is_default")]
    pub cpu_millis: f64,
    /// Peak memory in bytes.
    #[serde(rename = "m", default, skip_serializing_if = "is_default")]
    pub memory: u64,
    /// Why it failed, where that is a result.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Box<TaskFailure>>,
    /// What it has written, by content, where agents have files of their own.
    #[serde(rename = "a", default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<Produced>,
}

/// A file or directory that a task has written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Produced {
    /// What the run calls it: the path that it would have, did all machines share one file system.
    #[serde(rename = "n")]
    pub name: Name,
    /// What it is.
    #[serde(rename = "c")]
    pub artifact: Artifact,
}

/// Something that a chain reads, and where it can be had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Supply {
    /// What the run calls it. Arguments name it, or something below it if it is a directory.
    pub name: Name,
    /// What it is.
    pub artifact: Artifact,
    /// Of a directory, the files in it that are read; all of them if none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
    /// Who has it, the nearest first.
    pub sources: Vec<Origin>,
}

/// Where content can be had.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// From an agent or another machine that serves what it holds.
    Agent {
        /// Its name.
        name: Name,
        /// Where it serves.
        address: DataAddress,
    },
    /// From the object storage of the cluster.
    Object,
}

/// Where a machine serves what it holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DataAddress {
    /// The address.
    pub url: Name,
    /// What has to be known to be answered.
    pub token: Name,
}

/// An agent that another one may give chains to, and how much it has to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Neighbour {
    /// Its name.
    pub agent: Name,
    /// What it can do.
    pub capabilities: Vec<Name>,
    /// How much it can do at once.
    pub resources: Resources,
    /// How many chains wait there.
    pub waiting: usize,
    /// Whether it could start one more at once.
    pub is_idle: bool,
}

impl Neighbour {
    /// Whether it can execute a chain that requires this.
    pub fn can(&self, capabilities: &[Name], resources: &Resources) -> bool {
        capabilities.iter().all(|c| self.capabilities.contains(c)) && self.resources.fits(resources)
    }

    /// How many chains wait there for each processor.
    pub fn load(&self) -> f64 {
        self.waiting as f64 / (self.resources.cpus.max(1) as f64 / 1000.0)
    }
}

/// What an attempt is at, as in Table 3 of the paper on ADAGE. Before an agent has it, a chain is *waiting* or *ready*;
/// it ends as *complete* or *failed*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// An agent has it, and it waits for its turn.
    Queued,
    /// What it reads is brought to the agent.
    StageIn,
    /// Its tasks are executed.
    Running,
    /// What it has written is put where others can have it.
    StageOut,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Queued => "queued",
            Self::StageIn => "stage-in",
            Self::Running => "running",
            Self::StageOut => "stage-out",
        })
    }
}

/// When an attempt began what, in milliseconds since 1970.
pub type History = Vec<(Phase, i64)>;

fn once() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_once(n: &u32) -> bool {
    *n == 1
}

/// Why a task failed, with what a reader needs to find out more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskFailure {
    /// The task.
    pub task: Name,
    /// What happened, in one sentence.
    pub message: String,
    /// The command line.
    #[serde(default)]
    pub command: String,
    /// The exit code, if it exited.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// The signal that killed it, if one did.
    #[serde(default)]
    pub signal: Option<i32>,
    /// The last lines it wrote, standard error before standard output.
    #[serde(default)]
    pub tail: Vec<String>,
    /// Where the whole log is.
    #[serde(default)]
    pub log: Option<String>,
    /// What to do about it.
    #[serde(default)]
    pub help: Option<String>,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    /// All tasks succeeded.
    Succeeded(Vec<TaskResult>),
    /// A task failed.
    Failed(Box<TaskFailure>),
    /// A time limit that is no error was reached, or a user stopped the run.
    Cancelled(Box<TaskFailure>),
    /// The agent stopped before the end; the chain can run elsewhere.
    Interrupted,
    /// What it reads could not be brought to the agent.
    Unsupplied(Box<Unsupplied>),
}

/// Why something that a chain reads could not be brought to an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsupplied {
    /// What happened, in one sentence.
    pub message: String,
    /// What to do about it.
    #[serde(default)]
    pub help: Option<String>,
    /// Who does not have what they were believed to have, and what that is.
    #[serde(default)]
    pub gone: Vec<(Name, ContentId)>,
    /// The agent has no room for it, and waiting will not help.
    #[serde(default)]
    pub no_room: bool,
}

/// Where the chains of a run live on this agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunContext {
    /// The run.
    pub run: RunId,
    /// Names the workflow from run to run.
    pub workflow: String,
    /// The directory that relative paths refer to.
    pub directory: PathBuf,
    /// Intermediate files, in their final places.
    pub tmp: PathBuf,
    /// Results, in their final places.
    pub out: PathBuf,
    /// Attempts work below here.
    pub work: PathBuf,
    /// Logs.
    pub logs: PathBuf,
    /// The state directory, to recognise processes.
    pub state: PathBuf,
}

impl AgentEvent {
    /// The attempt it is about.
    pub fn attempt(&self) -> Option<Attempt> {
        match self {
            Self::TaskStarted { attempt, .. } | Self::Phase { attempt, .. } | Self::Ended { attempt, .. } => {
                Some(*attempt)
            }
            Self::Holdings { .. } | Self::Notice { .. } => None,
        }
    }
}

/// What an agent reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum AgentEvent {
    /// A task was started, or its result taken from the cache.
    TaskStarted {
        /// The attempt.
        attempt: Attempt,
        /// Which task of the chain.
        index: usize,
        /// Whether the result comes from the cache.
        cached: bool,
        /// Why it has to run.
        reason: Option<String>,
    },
    /// An attempt goes on with something else.
    Phase {
        /// The attempt.
        attempt: Attempt,
        /// What it is at now.
        phase: Phase,
        /// Since when, in milliseconds since 1970.
        at: i64,
    },
    /// The agent holds content that it did not hold, or does not hold it any more.
    Holdings {
        /// What is new, with whether it stays until somebody says otherwise.
        holds: Vec<(ContentId, bool)>,
        /// What is gone.
        lost: Vec<ContentId>,
        /// What others were believed to hold and do not.
        gone: Vec<(Name, ContentId)>,
        /// The bytes that came from others, and how long that took, in milliseconds.
        moved: (u64, f64),
        /// It begins to say everything that it holds: what was said before does not count.
        anew: bool,
    },
    /// Something that people should know, and that was mended without them.
    Notice {
        /// The run that has met it.
        run: RunId,
        /// What happened.
        message: String,
    },
    /// An attempt has ended.
    Ended {
        /// The attempt.
        attempt: Attempt,
        /// How.
        outcome: Outcome,
        /// When it started, in milliseconds since 1970.
        started: i64,
        /// When it ended.
        ended: i64,
        /// How long it took by the monotonic clock, in milliseconds.
        millis: f64,
        /// When it began what, where that was more than to execute tasks.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        history: History,
    },
}
