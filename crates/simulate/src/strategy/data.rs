//! Ours where data are on the nodes: the task with the longest way to the end goes where it would end first, and waits for a
//! busy node if that is sooner than bringing its data elsewhere.

use crate::cluster::Cluster;
use crate::engine::{Strategy, World};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

/// Decides again whenever something has happened; nothing that has not started is promised to a node.
pub(super) struct DataAware {
    ranks: Vec<f64>,
    /// Tasks that are ready, the most urgent first.
    ready: BTreeSet<(Reverse<u64>, u32)>,
    idle: BTreeSet<u32>,
    /// When nodes will have ended what they do.
    free_at: Vec<f64>,
    /// Who has a file.
    holders: HashMap<u32, Vec<u32>>,
}

impl DataAware {
    pub(super) fn new(cluster: &Cluster, ranks: Vec<f64>) -> Self {
        Self {
            ranks,
            ready: BTreeSet::new(),
            idle: (0..cluster.nodes as u32).collect(),
            free_at: vec![0.0; cluster.nodes],
            holders: HashMap::new(),
        }
    }

    fn hold(&mut self, files: &[u32], node: u32) {
        for file in files {
            let holders = self.holders.entry(*file).or_default();
            if !holders.contains(&node) {
                holders.push(node);
            }
        }
    }

    /// Where a task would end first, and when, if nodes are free at these times.
    fn best(
        &self,
        task: u32,
        now: f64,
        free_at: &HashMap<u32, f64>,
        idle: &BTreeSet<u32>,
        world: &World<'_>,
    ) -> (u32, f64) {
        let inputs = &world.workload.tasks[task as usize].inputs;
        let near = inputs.iter().filter_map(|f| self.holders.get(f)).flatten().copied();
        // Nodes without any of its data are alike but for when they are free.
        let far = idle.first().copied();
        let mut best = (0, f64::INFINITY);
        for node in near.chain(far).collect::<BTreeSet<u32>>() {
            let free = free_at.get(&node).copied().unwrap_or(self.free_at[node as usize]).max(now);
            let end = free + world.time(task, node);
            if end < best.1 {
                best = (node, end);
            }
        }
        best
    }
}

impl Strategy for DataAware {
    fn ready(&mut self, task: u32, _: f64, _: &World<'_>) {
        let rank = (self.ranks[task as usize] * 1e6) as u64;
        self.ready.insert((Reverse(rank), task));
    }

    fn ended(&mut self, task: u32, node: u32, _: f64, world: &World<'_>) {
        self.idle.insert(node);
        let outputs = world.workload.tasks[task as usize].outputs.clone();
        self.hold(&outputs, node);
    }

    fn start(&mut self, now: f64, world: &World<'_>) -> Vec<(u32, u32)> {
        let mut starts = Vec::new();
        let mut idle = self.idle.clone();
        // What more urgent tasks would like to have counts as taken.
        let mut free_at: HashMap<u32, f64> = HashMap::new();
        let tasks: Vec<(Reverse<u64>, u32)> = self.ready.iter().copied().collect();
        for key in tasks {
            if idle.is_empty() {
                break;
            }
            let (node, end) = self.best(key.1, now, &free_at, &idle, world);
            if !end.is_finite() {
                break;
            }
            free_at.insert(node, end);
            if idle.remove(&node) {
                self.ready.remove(&key);
                self.idle.remove(&node);
                self.free_at[node as usize] = end;
                starts.push((key.1, node));
            }
        }
        for (task, node) in &starts {
            let inputs = world.workload.tasks[*task as usize].inputs.clone();
            self.hold(&inputs, *node);
        }
        starts
    }
}
