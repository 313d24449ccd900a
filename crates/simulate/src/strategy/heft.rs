//! Heterogeneous Earliest Finish Time: a plan made with full knowledge, then carried out.
//!
//! H. Topcuoglu, S. Hariri, M.-Y. Wu, "Performance-Effective and Low-Complexity Task Scheduling for Heterogeneous
//! Computing", 2002: tasks by upward rank, each where it ends first, also in gaps.

use crate::cluster::{Cluster, Storage};
use crate::engine::{Strategy, World};
use crate::workload::{Task, Workload};
use std::collections::{HashMap, HashSet, VecDeque};

/// Carries a plan out.
pub(super) struct Heft {
    /// For each node its tasks, in the order of the plan.
    plan: Vec<VecDeque<u32>>,
    ready: HashSet<u32>,
    /// Nodes whose next task may be able to start.
    stirred: Vec<u32>,
    node_of: Vec<u32>,
}

/// A node while the plan is made.
#[derive(Default)]
struct Node {
    /// When it is busy, in order, and with what.
    busy: Vec<(f64, f64, u32)>,
}

impl Node {
    /// When a task of this length that can start at `ready` would start.
    fn earliest(&self, ready: f64, length: f64) -> f64 {
        let first = self.busy.partition_point(|(_, end, _)| *end <= ready);
        let mut start = ready;
        for (from, to, _) in &self.busy[first..] {
            if start + length <= *from {
                return start;
            }
            start = start.max(*to);
        }
        start
    }
}

impl Heft {
    pub(super) fn new(workload: &Workload, cluster: &Cluster) -> Self {
        let n = workload.len();
        let ranks = workload.upward(|t| cluster.longest(workload, t));
        let mut order: Vec<u32> = workload.dag.topological_order();
        order.sort_by(|a, b| ranks[*b as usize].total_cmp(&ranks[*a as usize]));
        let is_local = matches!(cluster.storage, Storage::Local(_));
        let mut nodes: Vec<Node> = (0..cluster.nodes).map(|_| Node::default()).collect();
        let mut holders: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut end = vec![0.0f64; n];
        let mut node_of = vec![0; n];
        for t in order {
            let ready = workload.dag.parents(t).iter().map(|p| end[*p as usize]).fold(0.0, f64::max);
            let all = workload.bytes_read(t);
            // What is at hand on the few nodes that have something.
            let mut held: HashMap<u32, u64> = HashMap::new();
            if is_local {
                for file in &workload.tasks[t as usize].inputs {
                    for node in holders.get(file).into_iter().flatten() {
                        *held.entry(*node).or_default() += workload.files[*file as usize];
                    }
                }
            }
            let compute = cluster.compute(workload, t);
            let mut best = (f64::INFINITY, 0.0, 0);
            for (node, state) in (0..).zip(&nodes) {
                let at_hand = held.get(&node).copied().unwrap_or(0);
                let length = compute + cluster.transfer(all - at_hand);
                let start = state.earliest(ready, length);
                if start + length < best.0 {
                    best = (start + length, start, node);
                }
                // All nodes without any work and data are alike.
                if state.busy.is_empty() && at_hand == 0 && held.is_empty() {
                    break;
                }
            }
            let (finish, start, node) = best;
            let busy = &mut nodes[node as usize].busy;
            let place = busy.partition_point(|(from, ..)| *from < start);
            busy.insert(place, (start, finish, t));
            (end[t as usize], node_of[t as usize]) = (finish, node);
            if is_local {
                let Task { inputs, outputs, .. } = &workload.tasks[t as usize];
                for file in inputs.iter().chain(outputs) {
                    let holders = holders.entry(*file).or_default();
                    if !holders.contains(&node) {
                        holders.push(node);
                    }
                }
            }
        }
        let plan = nodes.iter().map(|n| n.busy.iter().map(|(_, _, t)| *t).collect()).collect();
        Self { plan, ready: HashSet::new(), stirred: Vec::new(), node_of }
    }
}

impl Strategy for Heft {
    fn ready(&mut self, task: u32, _: f64, _: &World<'_>) {
        self.ready.insert(task);
        self.stirred.push(self.node_of[task as usize]);
    }

    fn ended(&mut self, _: u32, node: u32, _: f64, _: &World<'_>) {
        self.stirred.push(node);
    }

    fn start(&mut self, _: f64, world: &World<'_>) -> Vec<(u32, u32)> {
        let mut starts = Vec::new();
        let mut taken = HashSet::new();
        for node in std::mem::take(&mut self.stirred) {
            let next = self.plan[node as usize].front().copied();
            if let Some(task) = next.filter(|t| self.ready.contains(t))
                && world.is_idle(node)
                && taken.insert(node)
            {
                self.plan[node as usize].pop_front();
                self.ready.remove(&task);
                starts.push((task, node));
            }
        }
        starts
    }
}
