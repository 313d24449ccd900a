//! DAGs of DAGMan and the disk: what is read when nodes are due, and what is written while they run.

mod files;
mod rescue;
mod submit;

pub use files::DagFiles;
pub use rescue::{OpenDag, Rescue, open_dag, retire_rescues};
pub(crate) use submit::DiskSubmitter;
