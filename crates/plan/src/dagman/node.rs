//! One node: what follows from the exit codes of its scripts and its jobs.

use super::api::DagOptions;
use catena_model::dagman::{DagNode, NodeKind, NodeRules};
use serde::Serialize;

/// Where a node stands. The numbers are those of DAGMan's status file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeStatus {
    /// It waits for others.
    #[default]
    NotReady = 0,
    /// Nothing but limits keeps it from running.
    Ready = 1,
    /// Its PRE script runs.
    Pre = 2,
    /// Its jobs run.
    Submitted = 3,
    /// Its POST script runs.
    Post = 4,
    /// It has succeeded.
    Done = 5,
    /// It has failed.
    Error = 6,
    /// It cannot run any more, because one that it waits for has failed.
    Futile = 7,
}

impl NodeStatus {
    /// Whether nothing more will happen to it.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Error | Self::Futile)
    }

    /// What DAGMan calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotReady => "STATUS_NOT_READY",
            Self::Ready => "STATUS_READY",
            Self::Pre => "STATUS_PRERUN",
            Self::Submitted => "STATUS_SUBMITTED",
            Self::Post => "STATUS_POSTRUN",
            Self::Done => "STATUS_DONE",
            Self::Error => "STATUS_ERROR",
            Self::Futile => "STATUS_FUTILE",
        }
    }
}

/// The exit code that stands for a job that could not be submitted.
pub(super) const NOT_SUBMITTED: i64 = -1001;
/// The exit code that stands for a job that was removed.
pub const REMOVED: i64 = -1002;
/// For one whose PRE script has failed.
pub(super) const PRE_FAILED: i64 = -1004;

/// A node while the DAG runs.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) status: NodeStatus,
    /// How many nodes it still waits for.
    pub(super) unmet: u32,
    /// How often it was tried again.
    pub(super) retries: u32,
    pub(super) try_: Try,
}

/// One try at a node.
#[derive(Debug, Default)]
pub(super) struct Try {
    /// The exit code of the PRE script.
    pub(super) pre: Option<i64>,
    /// The number of the submission, how many jobs it has, and how many of them still run.
    pub(super) cluster: u64,
    pub(super) jobs: u32,
    pub(super) open: u32,
    /// How the jobs that have ended did: first the one that decides.
    pub(super) codes: Vec<i64>,
    pub(super) failed: u32,
    pub(super) removed: u32,
    /// The jobs have failed, or could not even be submitted.
    pub(super) job_failed: bool,
}

impl Try {
    /// The exit code that stands for all jobs: that of the first that failed.
    pub(super) fn value(&self) -> i64 {
        if self.pre.is_some_and(|code| code != 0) {
            return PRE_FAILED;
        }
        self.codes.iter().copied().find(|c| *c != 0).filter(|_| self.job_failed).unwrap_or(0)
    }
}

/// What comes next for a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Submit,
    Post,
    Succeed,
    /// With this exit code.
    Fail(i64),
    /// The whole DAG ends with this exit code.
    Abort(i64),
}

/// After the PRE script.
pub(super) fn after_pre(rules: &NodeRules, options: &DagOptions, code: i64) -> Next {
    if code == 0 {
        return Next::Submit;
    }
    if rules.pre_skip == Some(code) {
        return Next::Succeed;
    }
    if let Some(end) = aborts(rules, code) {
        return Next::Abort(end);
    }
    match code {
        _ if options.always_run_post && rules.post.is_some() => Next::Post,
        code => Next::Fail(code),
    }
}

/// After the last job. A POST script decides, if there is one, whatever the jobs did.
pub(super) fn after_jobs(rules: &NodeRules, this: &Try) -> Next {
    if rules.post.is_some() {
        return Next::Post;
    }
    let code = this.value();
    match aborts(rules, code) {
        Some(end) => Next::Abort(end),
        None if this.job_failed => Next::Fail(code),
        None => Next::Succeed,
    }
}

/// After the POST script.
pub(super) fn after_post(rules: &NodeRules, code: i64) -> Next {
    match (aborts(rules, code), code) {
        (Some(end), _) => Next::Abort(end),
        (None, 0) => Next::Succeed,
        (None, code) => Next::Fail(code),
    }
}

fn aborts(rules: &NodeRules, code: i64) -> Option<i64> {
    let (wanted, returns) = rules.abort?;
    (code == wanted).then(|| returns.map_or(code, i64::from))
}

/// Whether a node that failed with this exit code is tried again.
pub(super) fn may_retry(node: &DagNode, retries: u32, code: i64) -> bool {
    match node.rules().retry {
        Some((max, unless)) => retries < max && unless != Some(code) && node.kind != NodeKind::Final,
        None => false,
    }
}

/// Whether so many failed jobs are too many.
pub(super) fn too_many(rules: &NodeRules, failed: u32, jobs: u32) -> bool {
    match rules.tolerance {
        None => failed > 0,
        Some(t) if t.percent => u64::from(failed) * 100 > u64::from(t.count) * u64::from(jobs),
        Some(t) => failed > t.count,
    }
}
