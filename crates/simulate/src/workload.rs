//! What is to be computed: tasks with lengths and files, and who waits for whom.

use catena_model::Name;
use catena_model::import::Trace;
use catena_plan::{Cycle, Dag};

/// A workflow whose tasks take known times on a node of speed 1.
#[derive(Clone, Debug)]
pub struct Workload {
    /// What it is called.
    pub name: String,
    /// Its tasks.
    pub tasks: Vec<Task>,
    /// Sizes of its files, in bytes.
    pub files: Vec<u64>,
    /// Who waits for whom.
    pub dag: Dag,
}

/// A task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Task {
    /// Identifies it.
    pub id: Name,
    /// How long it computes, in seconds.
    pub seconds: f64,
    /// The files it reads.
    pub inputs: Vec<u32>,
    /// The files it writes.
    pub outputs: Vec<u32>,
}

impl Workload {
    /// A workflow as it was recorded. `seconds` says how long a job takes whose runtime is known.
    pub fn new(trace: &Trace, seconds: impl Fn(f64) -> f64) -> Result<Self, Cycle> {
        let task = |job: &catena_model::import::TraceJob| Task {
            id: job.id.clone(),
            seconds: seconds(job.runtime),
            inputs: job.inputs.clone(),
            outputs: job.outputs.clone(),
        };
        Ok(Self {
            name: trace.name.clone(),
            tasks: trace.jobs.iter().map(task).collect(),
            files: trace.files.iter().map(|f| f.size).collect(),
            dag: Dag::new(trace.jobs.len(), &trace.arcs)?,
        })
    }

    /// How many tasks there are.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether there is no task.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// How many bytes a task reads.
    pub fn bytes_read(&self, task: u32) -> u64 {
        self.tasks[task as usize].inputs.iter().map(|f| self.files[*f as usize]).sum()
    }

    /// For each task the length of the longest path from its beginning to the end, if tasks take `cost`.
    pub fn upward(&self, cost: impl Fn(u32) -> f64) -> Vec<f64> {
        let mut upward = vec![0.0; self.len()];
        for t in self.dag.topological_order().into_iter().rev() {
            let after = self.dag.children(t).iter().map(|c| upward[*c as usize]).fold(0.0, f64::max);
            upward[t as usize] = cost(t) + after;
        }
        upward
    }
}
