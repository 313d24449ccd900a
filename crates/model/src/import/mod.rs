//! Workflows as other systems have recorded them: jobs with runtimes, files with sizes, and who waits for whom.

mod dax;
mod export;
mod pegasus;
mod wfformat;

use crate::Name;
use std::collections::{HashMap, HashSet};

pub use dax::read_dax;
pub use export::{write_dax, write_wfformat};
pub use pegasus::read_pegasus;
pub use wfformat::read_wfformat;

/// A recorded workflow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// What it is called.
    pub name: String,
    /// Its jobs in the order of their definition.
    pub jobs: Vec<TraceJob>,
    /// Its files in the order in which jobs name them.
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
    /// How long it took, in seconds.
    pub runtime: f64,
    /// How many processors it used.
    pub cores: f64,
    /// How much memory it used, in bytes.
    pub memory: u64,
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
    /// Its size in bytes.
    pub size: u64,
}

/// Puts a trace together.
#[derive(Default)]
struct Builder {
    trace: Trace,
    jobs: HashMap<Name, u32>,
    /// Files by name, and whether their size is that of an input.
    files: HashMap<Name, (u32, bool)>,
}

impl Builder {
    fn job(&mut self, job: TraceJob) -> Result<u32, String> {
        let number = self.trace.jobs.len() as u32;
        if self.jobs.insert(job.id.clone(), number).is_some() {
            return Err(format!("there is another job `{}`", job.id));
        }
        self.trace.jobs.push(job);
        Ok(number)
    }

    fn find(&self, id: &str) -> Result<u32, String> {
        self.jobs.get(id).copied().ok_or_else(|| format!("there is no job `{id}`"))
    }

    /// A job uses a file. What its first reader says about its size counts, and what writers say only until then.
    fn uses(&mut self, job: u32, name: &str, size: Option<f64>, is_input: bool) {
        let next = self.trace.files.len() as u32;
        let (file, known) = *self.files.entry(Name::new(name)).or_insert((next, false));
        if file == next {
            self.trace.files.push(TraceFile { name: Name::new(name), size: 1 });
        }
        if let Some(size) = size.filter(|_| !known) {
            self.trace.files[file as usize].size = (size.abs() as u64).max(1);
            self.files.insert(Name::new(name), (file, is_input));
        }
        let job = &mut self.trace.jobs[job as usize];
        let list = if is_input { &mut job.inputs } else { &mut job.outputs };
        if !list.contains(&file) {
            list.push(file);
        }
    }

    fn finish(mut self) -> Trace {
        for job in &mut self.trace.jobs {
            let outputs = &job.outputs;
            job.inputs.retain(|f| !outputs.contains(f));
        }
        // In the order in which they were said, which decides between jobs that are alike.
        let mut seen = HashSet::new();
        self.trace.arcs.retain(|arc| seen.insert(*arc));
        self.trace
    }
}
