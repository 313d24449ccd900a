//! Where it is computed: nodes, and how files get to them.

use crate::workload::Workload;

/// A cluster of equal nodes, each of which executes one task at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// How many nodes there are.
    pub nodes: usize,
    /// How fast they are.
    pub speed: f64,
    /// No task computes for less than this, in seconds.
    pub shortest: f64,
    /// Where files are.
    pub storage: Storage,
}

/// Where files are, and how fast they come, in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Storage {
    /// On one file system that all nodes read from.
    Shared(f64),
    /// On the nodes that wrote or read them; from others they come over the network.
    Local(f64),
}

impl Cluster {
    /// The model of the experiments with ADAGE: 2,000 MIPS, where a second of a job is 1,000 million instructions;
    /// shared storage with 1,800 MB/s. The paper speaks of 4 cores per node; in its simulator a node executes one
    /// task at a time.
    pub fn adage(nodes: usize) -> Self {
        Self { nodes, speed: 2.0, shortest: 0.05, storage: Storage::Shared(1.8e9) }
    }

    /// The same nodes without shared storage, at a gigabit per second.
    pub fn adage_local(nodes: usize) -> Self {
        Self { storage: Storage::Local(1.25e8), ..Self::adage(nodes) }
    }

    /// How long a task computes.
    pub fn compute(&self, workload: &Workload, task: u32) -> f64 {
        (workload.tasks[task as usize].seconds / self.speed).max(self.shortest)
    }

    /// How long so many bytes take.
    pub fn transfer(&self, bytes: u64) -> f64 {
        let (Storage::Shared(rate) | Storage::Local(rate)) = self.storage;
        bytes as f64 / rate
    }

    /// How long a task takes at most: if no file is at hand.
    pub fn longest(&self, workload: &Workload, task: u32) -> f64 {
        self.compute(workload, task) + self.transfer(workload.bytes_read(task))
    }
}
