//! Forms that are described here because what has them knows nothing of HTTP. They are never made.
#![expect(dead_code, reason = "they describe what others write")]

use std::collections::BTreeMap;
use utoipa::ToSchema;

/// What something has or needs: `cpus` and named quantities in thousandths, the others in bytes.
#[derive(ToSchema)]
pub(crate) struct Resources {
    cpus: u64,
    memory: u64,
    disk: u64,
    #[schema(required = false)]
    named: BTreeMap<String, u64>,
}

/// Chains by state.
#[derive(ToSchema)]
pub(crate) struct Counts {
    registered: u64,
    running: u64,
    paused: u64,
    succeeded: u64,
    failed: u64,
    cancelled: u64,
}

/// Why a task failed.
#[derive(ToSchema)]
pub(crate) struct TaskFailure {
    task: String,
    /// What happened, in one sentence.
    message: String,
    command: String,
    #[schema(required)]
    exit_code: Option<i32>,
    #[schema(required)]
    signal: Option<i32>,
    /// The last lines it wrote.
    tail: Vec<String>,
    /// Where the whole log is.
    #[schema(required)]
    log: Option<String>,
    /// What to do about it.
    #[schema(required)]
    help: Option<String>,
}

/// Where a run stands.
#[derive(ToSchema)]
#[schema(rename_all = "kebab-case")]
pub(crate) enum RunState {
    Running,
    Interrupted,
    Succeeded,
    PartiallySucceeded,
    Failed,
    Cancelled,
}

/// Where a chain stands.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(crate) enum ChainState {
    Registered,
    Running,
    Paused,
    Succeeded,
    Failed,
    Cancelled,
}

/// A machine that the fleet has asked for.
#[derive(ToSchema)]
pub(crate) struct Machine {
    id: String,
    setup: String,
    state: MachineState,
    created: i64,
    changed: i64,
    #[schema(required)]
    reason: Option<String>,
}

/// Where a machine stands.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(crate) enum MachineState {
    Creating,
    Running,
    Destroying,
    Destroyed,
    Failed,
}

/// An instance of the cluster.
#[derive(ToSchema)]
pub(crate) struct Instance {
    id: String,
    /// Separated by commas.
    roles: String,
    host: String,
    since: i64,
    /// It counts as alive until then.
    until: i64,
}

/// Whether a parameter goes in or comes out.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(crate) enum Direction {
    Input,
    Output,
}

/// A composition, seen from outside.
#[derive(ToSchema)]
pub(crate) struct CompositionHead {
    /// Its name in addresses.
    id: String,
    name: String,
    creator: String,
    created: i64,
    /// The number of the last operation.
    seq: u64,
    /// The version that runs.
    #[schema(required)]
    published: Option<String>,
}

/// A mistake in a workflow, among the details of a refusal.
#[derive(ToSchema)]
pub(crate) struct Mistake {
    severity: Severity,
    #[schema(required = false)]
    code: String,
    message: String,
    #[schema(required = false)]
    help: String,
    #[schema(required = false)]
    file: String,
    #[schema(required = false)]
    line: u32,
    #[schema(required = false)]
    column: u32,
}

/// How bad it is.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(crate) enum Severity {
    Error,
    Warning,
}

/// What the bearer of a token may do.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(crate) enum TokenRole {
    Viewer,
    Editor,
    Operator,
    Agent,
}

/// What a simulation comes to.
#[derive(ToSchema)]
pub(crate) struct Figure {
    workflow: String,
    tasks: usize,
    /// How many there are at most.
    nodes: u32,
    policy: String,
    seed: u64,
    /// In seconds.
    makespan: f64,
    bytes_moved: u64,
    /// The part of the time in which processors were busy.
    utilisation: f64,
    cost: f64,
    /// Executions that were in vain.
    wasted: usize,
    /// No policy could be faster, in seconds.
    lower_bound: f64,
}
