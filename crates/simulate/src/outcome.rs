//! What came of a simulation.

use crate::time::{Nanos, seconds};

/// What came of a simulation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// When the last task ended.
    pub makespan: Nanos,
    /// How many bytes came over the network, or from shared storage.
    pub bytes_moved: u64,
    /// Every execution of a task, in the order in which they started.
    pub executions: Vec<Execution>,
    /// The nodes that there were.
    pub stays: Vec<Stay>,
}

/// An execution of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execution {
    /// The task.
    pub task: u32,
    /// The node.
    pub node: u32,
    /// When its node was given it and began to bring files.
    pub start: Nanos,
    /// When its files were there.
    pub staged: Nanos,
    /// Since when it has occupied processors: while files are brought, unless its node holds tasks in advance.
    pub busy: Nanos,
    /// When it was over.
    pub end: Nanos,
    /// What became of it.
    pub fate: Fate,
}

/// What became of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes on.
    Running,
    /// It was the first of its task to end.
    Succeeded,
    /// It failed.
    Failed,
    /// Another execution of its task was faster.
    Stopped,
    /// Its node died.
    Lost,
    /// It had not begun to compute and was wanted elsewhere.
    Recalled,
}

/// The time for which a node was there and had to be paid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stay {
    /// The node.
    pub node: u32,
    /// Which of the cluster's kinds it is.
    pub kind: usize,
    /// How many processors it has, in thousandths.
    pub cpus: u64,
    /// What it costs per hour.
    pub price: f64,
    /// When it was asked for.
    pub from: Nanos,
    /// When it was given back, or everything was over.
    pub to: Nanos,
}

impl Outcome {
    /// The part of the time in which processors were busy. `cpus` says how many thousandths a task takes.
    pub fn utilisation(&self, cpus: impl Fn(u32) -> u64) -> f64 {
        let busy = |e: &Execution| (e.end - e.busy) as f64 * cpus(e.task) as f64;
        let busy: f64 = self.executions.iter().map(busy).sum();
        let there: f64 = self.stays.iter().map(|s| (s.to - s.from) as f64 * s.cpus as f64).sum();
        if there > 0.0 { busy / there } else { 0.0 }
    }

    /// What the nodes cost.
    pub fn cost(&self) -> f64 {
        self.stays.iter().map(|s| seconds(s.to - s.from) / 3600.0 * s.price).sum()
    }

    /// How many executions were in vain.
    pub fn wasted(&self) -> usize {
        self.executions.iter().filter(|e| !matches!(e.fate, Fate::Succeeded | Fate::Recalled)).count()
    }

    /// For each task the execution that counted: the last one that succeeded.
    pub fn of_tasks(&self, tasks: usize) -> Vec<Option<Execution>> {
        let mut all = vec![None; tasks];
        for execution in self.executions.iter().filter(|e| e.fate == Fate::Succeeded) {
            all[execution.task as usize] = Some(*execution);
        }
        all
    }
}
