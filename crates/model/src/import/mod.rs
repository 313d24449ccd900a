//! Workflows of other systems, as far as their shape goes: which jobs there are, and which wait for which.

mod dax;
mod wfformat;

use crate::Name;

pub use dax::read_dax;
pub use wfformat::read_wfformat;

/// Jobs in the order of their definition, and who waits for whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobGraph {
    /// The jobs, by what identifies them in their file.
    pub jobs: Vec<Name>,
    /// Pairs of jobs; the second waits for the first.
    pub arcs: Vec<(u32, u32)>,
}
