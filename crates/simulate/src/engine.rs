//! Virtual time: tasks start, end, and set others free.
//!
//! What runs where is decided by a [`Strategy`], which sees what a scheduler could see and nothing else. The same
//! workload, cluster, strategy and seed give the same result on every machine.

use crate::cluster::{Cluster, Storage};
use crate::workload::Workload;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashSet};

/// Decides what runs where.
pub trait Strategy {
    /// All tasks that a task waits for have ended.
    fn ready(&mut self, task: u32, now: f64, world: &World<'_>);
    /// A task has ended, and its node is idle.
    fn ended(&mut self, task: u32, node: u32, now: f64, world: &World<'_>);
    /// Which tasks start now, on which idle nodes. Called whenever something has happened.
    fn start(&mut self, now: f64, world: &World<'_>) -> Vec<(u32, u32)>;
    /// When it wants to be asked again, even if nothing happens before.
    fn wake(&self) -> Option<f64> {
        None
    }
}

/// What a strategy can see.
pub struct World<'a> {
    /// What is computed.
    pub workload: &'a Workload,
    /// Where.
    pub cluster: &'a Cluster,
    /// The task that each node executes.
    pub running: Vec<Option<u32>>,
    /// Whether tasks have started.
    pub started: Vec<bool>,
    /// The files that nodes have, where that matters.
    held: Vec<HashSet<u32>>,
}

impl World<'_> {
    /// How many bytes have to be brought to a node before a task can compute there.
    pub fn missing(&self, task: u32, node: u32) -> u64 {
        match self.cluster.storage {
            Storage::Shared(_) => self.workload.bytes_read(task),
            Storage::Local(_) => {
                let held = &self.held[node as usize];
                let inputs = self.workload.tasks[task as usize].inputs.iter().filter(|f| !held.contains(f));
                inputs.map(|f| self.workload.files[*f as usize]).sum()
            }
        }
    }

    /// How long a task takes on a node if it starts there now.
    pub fn time(&self, task: u32, node: u32) -> f64 {
        self.cluster.compute(self.workload, task) + self.cluster.transfer(self.missing(task, node))
    }

    /// Whether a node has nothing to do.
    pub fn is_idle(&self, node: u32) -> bool {
        self.running[node as usize].is_none()
    }
}

/// What came of a simulation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// When the last task ended, in seconds.
    pub makespan: f64,
    /// How many bytes came over the network, or from shared storage.
    pub bytes_moved: u64,
    /// For each task its node, when it started and when it ended.
    pub history: Vec<(u32, f64, f64)>,
}

impl Outcome {
    /// The part of the time in which nodes were busy.
    pub fn utilisation(&self, nodes: usize) -> f64 {
        let busy: f64 = self.history.iter().map(|(_, start, end)| end - start).sum();
        if self.makespan > 0.0 { busy / (self.makespan * nodes as f64) } else { 0.0 }
    }
}

/// The end of a task: when, in which order it started, the task, and its node.
#[derive(Clone, Copy, PartialEq)]
struct End {
    time: f64,
    order: u32,
    task: u32,
    node: u32,
}

impl Eq for End {}

impl Ord for End {
    fn cmp(&self, other: &Self) -> Ordering {
        self.time.total_cmp(&other.time).then(self.order.cmp(&other.order))
    }
}

impl PartialOrd for End {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Executes a workload in virtual time. An error says that a strategy leaves tasks undone.
pub fn simulate(
    workload: &Workload,
    cluster: &Cluster,
    strategy: &mut dyn Strategy,
) -> Result<Outcome, String> {
    let n = workload.len();
    let held = if matches!(cluster.storage, Storage::Local(_)) { cluster.nodes } else { 0 };
    let mut world = World {
        workload,
        cluster,
        running: vec![None; cluster.nodes],
        started: vec![false; n],
        held: vec![HashSet::new(); held],
    };
    let mut outcome = Outcome { history: vec![(0, 0.0, 0.0); n], ..Outcome::default() };
    let mut waits: Vec<u32> = (0..n as u32).map(|t| workload.dag.parents(t).len() as u32).collect();
    let mut ends: BinaryHeap<Reverse<End>> = BinaryHeap::new();
    let mut now = 0.0;
    let (mut done, mut order) = (0, 0);
    for task in (0..n as u32).filter(|t| waits[*t as usize] == 0) {
        strategy.ready(task, now, &world);
    }
    loop {
        for (task, node) in strategy.start(now, &world) {
            assert!(
                world.is_idle(node) && !world.started[task as usize],
                "a slot runs one task, a task runs once"
            );
            world.running[node as usize] = Some(task);
            world.started[task as usize] = true;
            let moved = world.missing(task, node);
            let time = now + cluster.transfer(moved) + cluster.compute(workload, task);
            outcome.bytes_moved += moved;
            outcome.history[task as usize] = (node, now, time);
            if let Some(held) = world.held.get_mut(node as usize) {
                held.extend(&workload.tasks[task as usize].inputs);
            }
            order += 1;
            ends.push(Reverse(End { time, order, task, node }));
        }
        if done == n {
            outcome.makespan = now;
            return Ok(outcome);
        }
        let next = ends.peek().map(|Reverse(end)| end.time);
        let wake = strategy.wake().filter(|w| next.is_none_or(|next| *w < next));
        match (wake, next) {
            (Some(time), _) if next.is_some() || time.is_finite() => now = time.max(now),
            (_, Some(time)) => {
                now = time;
                // Everything that ends at the same time ends before anything starts.
                while let Some(Reverse(end)) = ends.peek().copied().filter(|Reverse(e)| e.time <= now) {
                    ends.pop();
                    done += 1;
                    world.running[end.node as usize] = None;
                    if let Some(held) = world.held.get_mut(end.node as usize) {
                        held.extend(&workload.tasks[end.task as usize].outputs);
                    }
                    strategy.ended(end.task, end.node, now, &world);
                    for child in workload.dag.children(end.task) {
                        waits[*child as usize] -= 1;
                        if waits[*child as usize] == 0 {
                            strategy.ready(*child, now, &world);
                        }
                    }
                }
            }
            _ => return Err(format!("{} of {n} tasks never start", n - done)),
        }
    }
}

/// No schedule can be shorter: the longest path, and all work divided by all nodes.
pub fn lower_bound(workload: &Workload, cluster: &Cluster) -> f64 {
    let cost = |t: u32| match cluster.storage {
        Storage::Shared(_) => cluster.longest(workload, t),
        Storage::Local(_) => cluster.compute(workload, t),
    };
    let path = workload.upward(cost).into_iter().fold(0.0, f64::max);
    let work: f64 = (0..workload.len() as u32).map(cost).sum();
    path.max(work / cluster.nodes as f64)
}
