//! Workflows as other systems have recorded them: jobs with runtimes, files with sizes, and who waits for whom.
//!
//! - [`read_dax`], [`read_pegasus`] and [`read_wfformat`] take a text and give a [`Trace`], or say what is wrong as
//!   `line:column: what, and what to do`.
//! - [`read_recorded`] finds out which of them it is.
//! - [`write_dax`] and [`write_wfformat`] write one; what is written and read again is the same.
//! - [`StandIn`] is one that can be run, without the programs and data it was recorded with.
//!
//! Records are taken as they are where that makes sense: a negative runtime, which clocks that are set back leave behind,
//! counts as none, and the sign of a size does not count. What is no number or beyond all reason is refused.

mod builder;
mod dax;
mod export;
mod order;
mod pegasus;
mod place;
mod stand_in;
mod wfformat;

use crate::Name;
use std::path::Path;

pub use dax::read_dax;
pub use export::{write_dax, write_wfformat};
pub use pegasus::read_pegasus;
pub use stand_in::{StandIn, StandInFile};
pub use wfformat::read_wfformat;

/// Reads a workflow that another system has recorded; the name of its file and the text tell which. `None` if it is
/// something else.
pub fn read_recorded(name: &Path, text: &str) -> Option<Result<Trace, String>> {
    let is = |extension: &str| name.extension().is_some_and(|e| e.eq_ignore_ascii_case(extension));
    let read: fn(&str) -> Result<Trace, String> = if is("xml") || is("dax") {
        read_dax
    } else if is("json") && text.contains("\"schemaVersion\"") {
        read_wfformat
    } else if (is("yml") || is("yaml")) && text.lines().any(|l| l.starts_with("pegasus:"))
        || is("json") && text.contains("\"pegasus\":")
    {
        read_pegasus
    } else {
        return None;
    };
    Some(read(text).map_err(|e| format!("{}:{e}", name.display())))
}

/// A recorded workflow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// What it is called.
    pub name: String,
    /// Its jobs in the order of their definition.
    pub jobs: Vec<TraceJob>,
    /// Its files, in the order in which they are listed or in which jobs name them.
    pub files: Vec<TraceFile>,
    /// Pairs of jobs; the second waits for the first.
    pub arcs: Vec<(u32, u32)>,
}

/// A job that was recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceJob {
    /// Identifies it in its file.
    pub id: Name,
    /// What it runs.
    pub program: Name,
    /// How long it took, in seconds; 0 if nobody knows.
    pub runtime: f64,
    /// How many processors it used; 1 if nobody knows.
    pub cores: f64,
    /// How much memory it used, in bytes; 0 if nobody knows.
    pub memory: u64,
    /// The capabilities it requires.
    pub needs: Vec<Name>,
    /// The files that it reads and does not write itself.
    pub inputs: Vec<u32>,
    /// The files that it writes.
    pub outputs: Vec<u32>,
}

/// A file that was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceFile {
    /// What it is called.
    pub name: Name,
    /// Its size in bytes; 0 if nobody knows.
    pub size: u64,
}
