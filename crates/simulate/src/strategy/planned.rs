//! Plans that are made with full knowledge before anything runs, and then carried out.
//!
//! H. Topcuoglu, S. Hariri, M.-Y. Wu, "Performance-Effective and Low-Complexity Task Scheduling for Heterogeneous
//! Computing", 2002. HEFT takes tasks by upward rank and puts each where it ends first, also into gaps. CPOP takes what
//! is ready by the length of the longest path through it, and keeps the longest path of all on one node.
//!
//! The papers know no nodes that die. What was planned for one that did goes to any node that has room.

use crate::cluster::{Cluster, Storage};
use crate::engine::{Event, Strategy};
use crate::time::{NEVER, Nanos};
use crate::workload::Workload;
use crate::world::{State, World};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, VecDeque};

/// Carries a plan out.
pub(super) struct Planned {
    /// For each processor its tasks, in the order of the plan.
    plan: Vec<VecDeque<u32>>,
    /// The first processor of each node.
    first: Vec<usize>,
    node_of: Vec<u32>,
    /// Whether a task is still in the plan.
    still_due: Vec<bool>,
    ranks: Vec<u64>,
    /// Nodes whose next task may be able to start.
    stirred: BTreeSet<u32>,
    /// Ready tasks whose node is gone, the most urgent first.
    orphans: BTreeSet<(Reverse<u64>, u32)>,
}

/// The nodes of a cluster while a plan is made.
struct Planner<'a> {
    workload: &'a Workload,
    cluster: &'a Cluster,
    nodes: Vec<Node>,
    /// Who has a file, as planned.
    holders: HashMap<u32, Vec<u32>>,
    end: Vec<Nanos>,
    /// Where each task is planned: its node, and its processor there.
    place: Vec<(u32, usize)>,
}

struct Node {
    kind: usize,
    /// For each processor when it is busy, in order, and with what.
    lanes: Vec<Vec<(Nanos, Nanos, u32)>>,
}

/// Where a task could be: when it would end and start, and its node and processors there.
type Slot = (Nanos, Nanos, u32, Vec<usize>);

impl Node {
    /// When and on which processors a task of this length that can start at `ready` would start.
    fn earliest(&self, ready: Nanos, length: Nanos, cpus: usize) -> (Nanos, Vec<usize>) {
        if cpus == 1 {
            let lanes = self.lanes.iter().enumerate().map(|(i, lane)| (gap(lane, ready, length), i));
            let (start, lane) = lanes.min().unwrap_or((NEVER, 0));
            return (start, vec![lane]);
        }
        // What needs several processors waits until so many of them have nothing else to do.
        let ends = self.lanes.iter().enumerate().map(|(i, l)| (l.last().map_or(0, |(_, end, _)| *end), i));
        let mut ends: Vec<(Nanos, usize)> = ends.collect();
        ends.sort_unstable();
        ends.truncate(cpus);
        let start = ends.last().map_or(ready, |(end, _)| ready.max(*end));
        (start, ends.into_iter().map(|(_, lane)| lane).collect())
    }

    fn is_empty(&self) -> bool {
        self.lanes.iter().all(Vec::is_empty)
    }
}

/// When a task of this length would start on a processor that is busy at these times.
fn gap(busy: &[(Nanos, Nanos, u32)], ready: Nanos, length: Nanos) -> Nanos {
    let first = busy.partition_point(|(_, end, _)| *end <= ready);
    let mut start = ready;
    for (from, to, _) in &busy[first..] {
        if start + length <= *from {
            return start;
        }
        start = start.max(*to);
    }
    start
}

impl<'a> Planner<'a> {
    fn new(workload: &'a Workload, cluster: &'a Cluster) -> Self {
        let node = |kind: usize| {
            let lanes = (cluster.kinds[kind].resources.cpus / 1000).max(1) as usize;
            Node { kind, lanes: vec![Vec::new(); lanes] }
        };
        let kinds = cluster.kinds.iter().enumerate();
        let nodes = kinds.flat_map(|(kind, k)| (0..k.count).map(move |_| kind)).map(node).collect();
        let n = workload.len();
        Self { workload, cluster, nodes, holders: HashMap::new(), end: vec![0; n], place: vec![(0, 0); n] }
    }

    /// How much of a task's input the few nodes have that have something of it.
    fn at_hand(&self, task: u32) -> HashMap<u32, u64> {
        let mut at_hand = HashMap::new();
        if self.cluster.storage == Storage::Local {
            for file in &self.workload.tasks[task as usize].inputs {
                for node in self.holders.get(file).into_iter().flatten() {
                    *at_hand.entry(*node).or_default() += self.workload.files[*file as usize];
                }
            }
        }
        at_hand
    }

    fn cpus(&self, task: u32) -> usize {
        (self.workload.class(task).resources.cpus.div_ceil(1000)).max(1) as usize
    }

    fn option(&self, task: u32, node: u32, ready: Nanos, missing: u64) -> Slot {
        let state = &self.nodes[node as usize];
        let speed = self.cluster.kinds[state.kind].speed;
        let length = self.cluster.compute(self.workload, task, speed) + self.cluster.transfer(missing);
        let (start, lanes) = state.earliest(ready, length, self.cpus(task));
        (start + length, start, node, lanes)
    }

    /// When everything that a task waits for has ended.
    fn ready(&self, task: u32) -> Nanos {
        self.workload.dag.parents(task).iter().map(|p| self.end[*p as usize]).max().unwrap_or(0)
    }

    /// Puts a task where it ends first.
    fn put(&mut self, task: u32) {
        let (ready, all) = (self.ready(task), self.workload.bytes_read(task));
        let at_hand = self.at_hand(task);
        let class = self.workload.class(task);
        let mut best: Slot = (NEVER, 0, 0, Vec::new());
        let mut empty_kinds = BTreeSet::new();
        for (node, state) in (0..).zip(&self.nodes) {
            let held = at_hand.get(&node).copied().unwrap_or(0);
            // All nodes of a kind without any work and data are alike.
            let is_alike = held == 0 && state.is_empty() && !empty_kinds.insert(state.kind);
            if is_alike || !self.cluster.kinds[state.kind].can(class) {
                continue;
            }
            let option = self.option(task, node, ready, all - held);
            if option.0 < best.0 {
                best = option;
            }
        }
        self.take(task, best);
    }

    /// Puts a task on a node, whatever the others are like.
    fn put_on(&mut self, task: u32, node: u32) {
        let held = self.at_hand(task).get(&node).copied().unwrap_or(0);
        let missing = self.workload.bytes_read(task) - held;
        let option = self.option(task, node, self.ready(task), missing);
        self.take(task, option);
    }

    fn take(&mut self, task: u32, (end, start, node, lanes): Slot) {
        self.end[task as usize] = end;
        self.place[task as usize] = (node, lanes.first().copied().unwrap_or(0));
        for lane in lanes {
            let busy = &mut self.nodes[node as usize].lanes[lane];
            let place = busy.partition_point(|(from, ..)| *from < start);
            busy.insert(place, (start, end, task));
        }
        if self.cluster.storage == Storage::Local {
            let task = &self.workload.tasks[task as usize];
            for file in task.inputs.iter().chain(&task.outputs) {
                let holders = self.holders.entry(*file).or_default();
                if !holders.contains(&node) {
                    holders.push(node);
                }
            }
        }
    }

    fn finish(self, ranks: Vec<u64>) -> Planned {
        let mut first = Vec::with_capacity(self.nodes.len());
        let mut plan = Vec::new();
        for (number, node) in (0..).zip(&self.nodes) {
            first.push(plan.len());
            for (l, lane) in node.lanes.iter().enumerate() {
                // A task on several processors waits in the queue of its first.
                let own = lane.iter().map(|(_, _, t)| *t).filter(|t| self.place[*t as usize] == (number, l));
                plan.push(own.collect());
            }
        }
        Planned {
            node_of: self.place.iter().map(|(node, _)| *node).collect(),
            still_due: vec![true; self.place.len()],
            plan,
            first,
            ranks,
            stirred: BTreeSet::new(),
            orphans: BTreeSet::new(),
        }
    }
}

/// Tasks by upward rank, each where it ends first.
pub(super) fn heft(workload: &Workload, cluster: &Cluster) -> Planned {
    let ranks = workload.upward(|t| cluster.longest(workload, t));
    let mut order = workload.dag.topological_order();
    // Of equals those come first that others wait for.
    order.sort_by_key(|t| Reverse(ranks[*t as usize]));
    let mut planner = Planner::new(workload, cluster);
    for task in order {
        planner.put(task);
    }
    planner.finish(ranks)
}

/// The longest path on one node; everything else where it ends first, the longest paths first.
pub(super) fn cpop(workload: &Workload, cluster: &Cluster) -> Planned {
    let cost = |t: u32| cluster.longest(workload, t);
    let (upward, downward) = (workload.upward(cost), workload.downward(cost));
    let through: Vec<u64> = upward.iter().zip(&downward).map(|(up, down)| up + down).collect();
    let longest = through.iter().copied().max().unwrap_or(0);
    let mut critical = vec![false; workload.len()];
    let starts = |t: &u32| workload.dag.parents(*t).is_empty() && through[*t as usize] == longest;
    let mut next = (0..workload.len() as u32).find(starts);
    while let Some(task) = next {
        critical[task as usize] = true;
        let children = workload.dag.children(task).iter().copied();
        next = children.filter(|c| through[*c as usize] == longest).min();
    }
    let mut planner = Planner::new(workload, cluster);
    let path = || (0..workload.len() as u32).filter(|t| critical[*t as usize]);
    let able = |node: &u32| {
        let kind = &cluster.kinds[planner.nodes[*node as usize].kind];
        path().all(|t| kind.can(workload.class(t)))
    };
    let time = |node: &u32| -> Nanos {
        let speed = cluster.kinds[planner.nodes[*node as usize].kind].speed;
        path().map(|t| cluster.compute(workload, t, speed)).sum()
    };
    let chosen = (0..planner.nodes.len() as u32).filter(able).min_by_key(time);
    let mut waits: Vec<usize> = (0..workload.len() as u32).map(|t| workload.dag.parents(t).len()).collect();
    let mut ready: BinaryHeap<(u64, Reverse<u32>)> = BinaryHeap::new();
    let entries = (0..workload.len() as u32).filter(|t| waits[*t as usize] == 0);
    ready.extend(entries.map(|t| (through[t as usize], Reverse(t))));
    while let Some((_, Reverse(task))) = ready.pop() {
        match chosen.filter(|_| critical[task as usize]) {
            Some(node) => planner.put_on(task, node),
            None => planner.put(task),
        }
        for child in workload.dag.children(task) {
            waits[*child as usize] -= 1;
            if waits[*child as usize] == 0 {
                ready.push((through[*child as usize], Reverse(*child)));
            }
        }
    }
    planner.finish(through)
}

impl Planned {
    fn lanes(&self, node: u32) -> std::ops::Range<usize> {
        let end = self.first.get(node as usize + 1).copied().unwrap_or(self.plan.len());
        self.first[node as usize]..end
    }

    /// A task whose turn it is, on a node that is there.
    fn next_of(&mut self, lane: usize, world: &World<'_>) -> Option<u32> {
        // What was executed elsewhere meanwhile is not waited for.
        while let Some(task) = self.plan[lane].front().copied() {
            match world.state(task) {
                State::Done | State::Running => self.drop_front(lane),
                State::Ready => return Some(task),
                State::Waiting => return None,
            }
        }
        None
    }

    fn drop_front(&mut self, lane: usize) {
        if let Some(task) = self.plan[lane].pop_front() {
            self.still_due[task as usize] = false;
        }
    }
}

impl Strategy for Planned {
    fn handle(&mut self, event: Event, _: Nanos, world: &World<'_>) {
        match event {
            Event::Ready(task) => {
                let node = self.node_of[task as usize];
                if self.still_due[task as usize] && world.nodes[node as usize].is_up {
                    self.stirred.insert(node);
                } else {
                    self.orphans.insert((Reverse(self.ranks[task as usize]), task));
                }
            }
            Event::Withdrawn(task) => {
                self.orphans.remove(&(Reverse(self.ranks[task as usize]), task));
            }
            Event::Ended { node, .. } | Event::Freed { node, .. } | Event::Joined(node) => {
                self.stirred.insert(node);
            }
            Event::Began { .. } => {}
            Event::Left(node) => {
                for lane in self.lanes(node) {
                    for task in self.plan[lane].drain(..) {
                        self.still_due[task as usize] = false;
                        if world.state(task) == State::Ready {
                            self.orphans.insert((Reverse(self.ranks[task as usize]), task));
                        }
                    }
                }
            }
        }
    }

    fn start(&mut self, _: Nanos, world: &World<'_>) -> Vec<(u32, u32)> {
        let mut starts: Vec<(u32, u32)> = Vec::new();
        let mut taken: HashMap<u32, Vec<u32>> = HashMap::new();
        for node in std::mem::take(&mut self.stirred) {
            for lane in self.lanes(node) {
                let Some(task) = self.next_of(lane, world) else { continue };
                let others = taken.entry(node).or_default();
                if catena_schedule::Costs::fits(world, task, node, others) {
                    others.push(task);
                    self.drop_front(lane);
                    starts.push((task, node));
                }
            }
        }
        if !self.orphans.is_empty() {
            for key in self.orphans.clone() {
                let fits = |node: &u32| {
                    let others = taken.get(node).map_or(&[][..], Vec::as_slice);
                    catena_schedule::Costs::fits(world, key.1, *node, others)
                };
                let Some(node) = (0..world.nodes.len() as u32).find(fits) else { continue };
                self.orphans.remove(&key);
                taken.entry(node).or_default().push(key.1);
                starts.push((key.1, node));
            }
        }
        starts
    }
}
