//! Pictures: graphs of workflows and timelines of runs.

pub(crate) mod graph;
pub(crate) mod layout;
