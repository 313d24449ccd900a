//! Pictures: graphs of workflows and timelines of runs.

pub(crate) mod graph;
mod layout;
pub(crate) mod timeline;
