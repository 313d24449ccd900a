//! How a run is planned: as a workflow, or as a DAG of DAGMan.

use crate::dagman::DagFiles;
use catena_model::Name;
use catena_model::chain::{ProcessChain, TaskResult};
use catena_model::dagman::DagFile;
use catena_plan::{DagOptions, DagPlan, Order, PlanCounts, PlanError, PlanOptions, Planner, Program};
use std::sync::Arc;

/// What is going to be planned.
pub enum Blueprint {
    /// A workflow.
    Workflow {
        /// What it does.
        program: Arc<Program>,
        /// How it is cut into chains.
        options: PlanOptions,
    },
    /// A DAG.
    Dag {
        /// What it says.
        file: Box<DagFile>,
        /// How it is executed.
        options: DagOptions,
        /// What is written about it while it runs, if anything.
        files: Option<DagFiles>,
    },
}

impl Blueprint {
    /// Whether chains must not be given to agents before others that come before them may turn up.
    pub(crate) fn is_strict(&self) -> bool {
        match self {
            Self::Workflow { options, .. } => options.order != Order::Fifo,
            Self::Dag { file, options, .. } => {
                options.order != Order::Fifo || file.nodes.iter().any(|n| n.priority != 0)
            }
        }
    }
}

/// A plan that is carried out.
pub(crate) enum Plan {
    Workflow(Box<Planner>),
    Dag(Box<DagPlan>),
}

impl Plan {
    pub(crate) fn next_chain(&mut self) -> Result<Option<ProcessChain>, PlanError> {
        match self {
            Self::Workflow(planner) => planner.next_chain(),
            Self::Dag(plan) => Ok(plan.next_chain()),
        }
    }

    pub(crate) fn chain_ended(&mut self, seq: u64, results: Vec<TaskResult>) {
        match self {
            Self::Workflow(planner) => {
                planner.chain_succeeded(seq, results.into_iter().map(|r| r.outputs).collect());
            }
            Self::Dag(plan) => plan.chain_ended(seq, &results),
        }
    }

    /// Files that nobody will read any more, since the last call.
    pub(crate) fn take_released(&mut self) -> Vec<String> {
        match self {
            Self::Workflow(planner) => planner.take_released(),
            Self::Dag(_) => Vec::new(),
        }
    }

    pub(crate) fn chain_count(&self) -> u64 {
        match self {
            Self::Workflow(planner) => planner.chain_count(),
            Self::Dag(plan) => plan.chain_count(),
        }
    }

    pub(crate) fn counts(&self) -> PlanCounts {
        match self {
            Self::Workflow(planner) => planner.counts(),
            Self::Dag(plan) => plan.counts(),
        }
    }

    pub(crate) fn place(&self) -> Option<f64> {
        match self {
            Self::Workflow(planner) => planner.place(),
            Self::Dag(plan) => plan.place(),
        }
    }

    pub(crate) fn is_finished(&self) -> bool {
        match self {
            Self::Workflow(planner) => planner.is_finished(),
            Self::Dag(plan) => plan.is_finished(),
        }
    }

    pub(crate) fn results(&self) -> Vec<(Name, Vec<String>)> {
        match self {
            Self::Workflow(planner) => planner.results(),
            Self::Dag(_) => Vec::new(),
        }
    }

    /// Names of actions or nodes that wait for others.
    pub(crate) fn waiting(&self, limit: usize) -> Vec<Name> {
        match self {
            Self::Workflow(planner) => planner.waiting_actions(limit),
            Self::Dag(plan) => plan.waiting_nodes(limit),
        }
    }
}
