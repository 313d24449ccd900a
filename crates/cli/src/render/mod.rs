//! Pictures: graphs of workflows and timelines of runs.

pub(crate) mod graph;
pub(crate) mod lanes;
mod layout;
pub(crate) mod plot;
pub(crate) mod timeline;
