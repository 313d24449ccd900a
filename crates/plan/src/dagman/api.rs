//! What a plan is told and tells.

use super::node::NodeStatus;
use super::state::{Graph, Stage};
use super::steps::JobMacros;
use crate::planner::Order;
use catena_model::Name;
use catena_model::chain::TaskResult;
use catena_model::dagman::{DagFile, DagNode, Submission};

/// Settings of DAGMan that change how a DAG is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DagOptions {
    /// How many nodes may have jobs at a time; 0 for no limit.
    pub max_jobs: u32,
    /// How many PRE scripts may run at a time.
    pub max_pre: u32,
    /// How many POST scripts may run at a time.
    pub max_post: u32,
    /// POST scripts run also if PRE scripts have failed.
    pub always_run_post: bool,
    /// A DAG that goes on has all its retries again.
    pub reset_retries: bool,
    /// Which nodes of the same priority come first.
    pub order: Order,
}

impl Default for DagOptions {
    fn default() -> Self {
        Self {
            max_jobs: 0,
            max_pre: 20,
            max_post: 20,
            always_run_post: false,
            reset_retries: true,
            order: Order::Fifo,
        }
    }
}

/// Reads what nodes refer to.
pub trait Submitter: Send + Sync {
    /// The jobs of a node.
    fn jobs(&mut self, file: &DagFile, node: &DagNode, macros: &JobMacros) -> Result<Submission, String>;
    /// The DAG of a node that is one.
    fn open(&mut self, node: &DagNode) -> Result<DagFile, String>;
    /// The DAG of a node has not succeeded. It may be opened again.
    fn failed(&mut self, dag: DagView<'_>);
}

/// A chain that a store knows of.
#[derive(Clone, Debug)]
pub struct KnownChain {
    /// Its number.
    pub seq: u64,
    /// Its name.
    pub id: Name,
    /// What came of it, if it has ended.
    pub results: Option<Vec<TaskResult>>,
}

/// Something has happened to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DagEvent {
    /// Which DAG: the file itself is 0, then come those of nodes.
    pub dag: u32,
    /// The node.
    pub node: u32,
    /// What.
    pub what: Happening,
}

/// What can happen to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// Its PRE script can run.
    PreStarted,
    /// Its PRE script has ended with this exit code.
    PreEnded(i64),
    /// So many jobs can run.
    Submitted {
        /// The number of the submission.
        cluster: u64,
        /// How many.
        jobs: u32,
    },
    /// One of them was started.
    JobStarted {
        /// The number of the submission.
        cluster: u64,
        /// Which one.
        job: u32,
    },
    /// One of them has ended with this exit code.
    JobEnded {
        /// The number of the submission.
        cluster: u64,
        /// Which one.
        job: u32,
        /// How.
        code: i64,
    },
    /// Its POST script can run.
    PostStarted,
    /// Its POST script has ended with this exit code.
    PostEnded(i64),
    /// It is tried again.
    Retried {
        /// For the how manieth time.
        retry: u32,
        /// After this exit code.
        code: i64,
    },
    /// It has ended.
    Ended(NodeStatus),
    /// Its jobs could not be submitted.
    NotSubmitted(String),
    /// Something about it could not be honoured.
    Warned(String),
    /// The DAG it belongs to ends because of it, with this exit code.
    Aborted(i64),
}

/// How a DAG has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DagEnd {
    /// What DAGMan would return: 0 if it has succeeded.
    pub code: i64,
    /// Nodes that have failed.
    pub failed: u32,
    /// Nodes that could not run.
    pub futile: u32,
    /// A node has stopped everything.
    pub aborted: bool,
}

/// A look at one of the DAGs of a plan.
#[derive(Clone, Copy, Debug)]
pub struct DagView<'a> {
    pub(super) graph: &'a Graph,
    pub(super) options: &'a DagOptions,
}

impl<'a> DagView<'a> {
    /// What the file says.
    pub fn file(&self) -> &'a DagFile {
        &self.graph.file
    }

    /// The settings.
    pub fn options(&self) -> &'a DagOptions {
        self.options
    }

    /// Where its nodes stand.
    pub fn statuses(&self) -> impl Iterator<Item = NodeStatus> + use<'a> {
        self.graph.nodes.iter().map(|n| n.status)
    }

    /// How often a node was tried again.
    pub fn retries(&self, node: u32) -> u32 {
        self.graph.nodes[node as usize].retries
    }

    /// How it has ended, if it has.
    pub fn end(&self) -> Option<DagEnd> {
        let Stage::Ended(code) = self.graph.stage else { return None };
        let Graph { failed, futile, aborted, .. } = *self.graph;
        Some(DagEnd { code, failed, futile, aborted: aborted.is_some() })
    }

    /// Comes before the names of its nodes.
    pub fn label(&self) -> &'a str {
        &self.graph.label
    }
}
