//! In what order, and cut where: workflows become process chains.
//!
//! - [`Program::new`] resolves the names of a workflow once.
//! - [`Planner::new`] starts planning; [`Planner::next_chain`] gives what can run now.
//! - [`Planner::chain_succeeded`] takes results in and makes more chains possible.
//! - [`DagPlan`] does the same for DAGMan files, whose nodes have scripts, retries and limits.
//! - [`Paths`] say how long it is from each action to the end of the workflow.
//! - [`StepGraph`] is what people see of a workflow: its steps and who gets something from whom; [`layout`] places them.
//! - [`prio_order`] and its like say which of the jobs of a [`Dag`] should come first.
//!
//! Planning is deterministic: the same results in the same order, taken in between the same chains, give
//! the same chains. A planner is therefore never saved; it is rebuilt by replaying the results that the
//! store has kept (see `docs/decisions/0002-replay.md`). A [`DagPlan`] is told of the chains that are known.

mod dagman;
mod graph;
mod layout;
mod lifetimes;
mod paths;
mod planner;
mod prio;
mod program;
mod steps;
mod value;

pub use dagman::{
    DagEnd, DagEvent, DagOptions, DagPlan, DagShape, DagView, Happening, JobMacros, KnownChain, NodeStatus,
    REMOVED, Submitter, dag_of, rescue_text,
};
pub use graph::{Cycle, Dag};
pub use layout::{Layout, Place, layout};
pub use paths::Paths;
pub use planner::{ChainPolicy, Order, PlanCounts, PlanError, PlanOptions, Planner};
pub use prio::{auto_order, eligible, eligible_gain, fifo_order, prio_order};
pub use program::{Program, ProgramError};
pub use steps::{Edge, Step, StepGraph, step_name};
