//! DAGMan files: how large their graphs are, and how they are executed.

mod api;
mod flow;
mod node;
mod plan;
mod rescue;
mod shape;
mod state;
mod steps;
#[cfg(test)]
mod tests;

pub use api::{DagEnd, DagEvent, DagOptions, DagView, Happening, KnownChain, Submitter};
pub use node::{NodeStatus, REMOVED};
pub use plan::DagPlan;
pub use rescue::rescue_text;
pub use shape::{DagShape, dag_of};
pub use steps::JobMacros;
