//! Pictures: graphs of workflows, timelines of runs, rings of peers.

pub(crate) mod graph;
pub(crate) mod lanes;
pub(crate) mod plot;
pub(crate) mod ring;
pub(crate) mod timeline;
