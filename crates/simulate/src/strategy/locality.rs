//! MATRIX and Albatross, the systems that the paper on ADAGE compares itself with, rebuilt from what it and their own
//! papers say: their schedulers are not published in a form that could be simulated.
//!
//! MATRIX (Wang and others, 2014): tasks wait at random nodes and are stolen by those who have nothing to do, half a queue
//! at a time, from the most loaded of √n random ones. Tasks with large inputs wait where most of these are, and are not
//! stolen: that is its collapse where a few files are read by everybody.
//!
//! Albatross (Sadooghi and others, 2016): ready tasks wait in one distributed queue. Who has nothing to do takes the
//! first, and sends it to the node with most of its inputs if that is not overloaded; otherwise it executes it.

use super::neighbours;
use crate::engine::{Event, Strategy};
use crate::random::Random;
use crate::time::Nanos;
use crate::workload::Workload;
use crate::world::{State, World};
use std::collections::{HashMap, VecDeque};

/// Inputs below this size do not bind a task to a node.
const LARGE: u64 = 10_000_000;
/// How soon who found nothing to steal tries again, first and at most.
const FIRST_WAIT: Nanos = 1_000_000;
const LONGEST_WAIT: Nanos = 1_000_000_000;
/// A node with more tasks than this in its queue is overloaded.
const OVERLOADED: usize = 2;

/// Who has made a file.
#[derive(Default)]
struct Holders(HashMap<u32, u32>);

impl Holders {
    fn learn(&mut self, task: u32, node: u32, workload: &Workload) {
        for file in &workload.tasks[task as usize].outputs {
            self.0.insert(*file, node);
        }
    }

    fn forget(&mut self, node: u32) {
        self.0.retain(|_, holder| *holder != node);
    }

    /// The node that has most of a task's inputs, if that is much.
    fn best(&self, task: u32, world: &World<'_>) -> Option<u32> {
        let mut bytes: HashMap<u32, u64> = HashMap::new();
        for file in &world.workload.tasks[task as usize].inputs {
            if let Some(node) = self.0.get(file) {
                *bytes.entry(*node).or_default() += world.workload.files[*file as usize];
            }
        }
        let best = bytes.into_iter().max_by_key(|(node, bytes)| (*bytes, std::cmp::Reverse(*node)));
        best.filter(|(node, bytes)| *bytes >= LARGE && world.can(task, *node)).map(|(node, _)| node)
    }
}

/// Takes the first task out that a node can start.
fn first(queue: &mut VecDeque<u32>, node: u32, own: &[u32], world: &World<'_>) -> Option<u32> {
    let can_start =
        |t: &u32| world.state(*t) == State::Ready && catena_schedule::Costs::fits(world, *t, node, own);
    let place = queue.iter().position(can_start)?;
    queue.remove(place)
}

pub(super) struct Matrix {
    /// Tasks that nobody else may take.
    bound: Vec<VecDeque<u32>>,
    free: Vec<VecDeque<u32>>,
    /// Tasks for which there is no node yet.
    homeless: Vec<u32>,
    holders: Holders,
    random: Random,
    wait: Nanos,
    next: Option<Nanos>,
}

impl Matrix {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            bound: Vec::new(),
            free: Vec::new(),
            homeless: Vec::new(),
            holders: Holders::default(),
            random: Random::new(seed),
            wait: FIRST_WAIT,
            next: None,
        }
    }

    fn add(&mut self, task: u32, world: &World<'_>) {
        if let Some(node) = self.holders.best(task, world) {
            self.bound[node as usize].push_back(task);
            return;
        }
        let nodes: Vec<u32> = (0..self.free.len() as u32).filter(|n| world.can(task, *n)).collect();
        if nodes.is_empty() {
            self.homeless.push(task);
        } else {
            let node = nodes[self.random.below(nodes.len() as u64) as usize];
            self.free[node as usize].push_back(task);
        }
    }

    /// Half of the queue of the most loaded of some random nodes, the newest tasks first.
    fn steal(&mut self, thief: u32) -> bool {
        let others = neighbours::some(&mut self.random, self.free.len(), thief);
        let Some(victim) = others.into_iter().max_by_key(|o| self.free[*o as usize].len()) else {
            return false;
        };
        let queue = &mut self.free[victim as usize];
        let stolen = queue.split_off(queue.len() / 2);
        let got = !stolen.is_empty();
        self.free[thief as usize].extend(stolen);
        got
    }
}

impl Strategy for Matrix {
    fn handle(&mut self, event: Event, _: Nanos, world: &World<'_>) {
        self.wait = FIRST_WAIT;
        match event {
            Event::Ready(task) => self.add(task, world),
            Event::Ended { task, node } => self.holders.learn(task, node, world.workload),
            Event::Joined(node) => {
                let nodes = self.free.len().max(node as usize + 1);
                self.free.resize(nodes, VecDeque::new());
                self.bound.resize(nodes, VecDeque::new());
                for task in std::mem::take(&mut self.homeless) {
                    self.add(task, world);
                }
            }
            Event::Withdrawn(task) => {
                self.homeless.retain(|t| *t != task);
                for queue in self.bound.iter_mut().chain(&mut self.free) {
                    queue.retain(|t| *t != task);
                }
            }
            Event::Freed { .. } | Event::Began { .. } => {}
            Event::Left(node) => {
                self.holders.forget(node);
                let queues = [&mut self.bound[node as usize], &mut self.free[node as usize]];
                let tasks: Vec<u32> = queues.into_iter().flat_map(std::mem::take).collect();
                for task in tasks.into_iter().filter(|t| world.state(*t) == State::Ready) {
                    self.add(task, world);
                }
            }
        }
    }

    fn start(&mut self, now: Nanos, world: &World<'_>) -> Vec<(u32, u32)> {
        let mut starts = Vec::new();
        let mut hungry = false;
        // Where nothing waits, nothing can be stolen.
        let mut waiting: usize = self.free.iter().map(VecDeque::len).sum();
        for node in (0..self.free.len() as u32).filter(|n| world.nodes[*n as usize].is_up) {
            let mut own: Vec<u32> = Vec::new();
            while own.len() < (world.nodes[node as usize].free.cpus / 1000) as usize {
                let bound = first(&mut self.bound[node as usize], node, &own, world);
                let task = bound.or_else(|| {
                    let task = first(&mut self.free[node as usize], node, &own, world);
                    waiting -= usize::from(task.is_some());
                    task
                });
                if let Some(task) = task {
                    own.push(task);
                    starts.push((task, node));
                } else if waiting == 0 || !self.free[node as usize].is_empty() || !self.steal(node) {
                    hungry = true;
                    break;
                }
            }
        }
        self.next = (waiting > 0 && hungry).then(|| now + self.wait);
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
        starts
    }

    fn wake(&self) -> Option<Nanos> {
        self.next
    }
}

pub(super) struct Albatross {
    shared: VecDeque<u32>,
    queues: Vec<VecDeque<u32>>,
    holders: Holders,
}

impl Albatross {
    pub(super) fn new() -> Self {
        Self { shared: VecDeque::new(), queues: Vec::new(), holders: Holders::default() }
    }

    /// What a node with room starts: of its own queue, or of the shared one.
    fn pull(&mut self, node: u32, own: &[u32], world: &World<'_>) -> Option<u32> {
        if let Some(task) = first(&mut self.queues[node as usize], node, own, world) {
            return Some(task);
        }
        while let Some(task) = first(&mut self.shared, node, own, world) {
            match self.holders.best(task, world) {
                Some(best) if best != node && self.queues[best as usize].len() < OVERLOADED => {
                    self.queues[best as usize].push_back(task);
                }
                _ => return Some(task),
            }
        }
        None
    }
}

impl Strategy for Albatross {
    fn handle(&mut self, event: Event, _: Nanos, world: &World<'_>) {
        match event {
            Event::Ready(task) => self.shared.push_back(task),
            Event::Ended { task, node } => self.holders.learn(task, node, world.workload),
            Event::Joined(node) if self.queues.len() <= node as usize => {
                self.queues.resize(node as usize + 1, VecDeque::new());
            }
            Event::Withdrawn(task) => {
                for queue in std::iter::once(&mut self.shared).chain(&mut self.queues) {
                    queue.retain(|t| *t != task);
                }
            }
            Event::Freed { .. } | Event::Began { .. } | Event::Joined(_) => {}
            Event::Left(node) => {
                self.holders.forget(node);
                let tasks = std::mem::take(&mut self.queues[node as usize]);
                self.shared.extend(tasks.into_iter().filter(|t| world.state(*t) == State::Ready));
            }
        }
    }

    fn start(&mut self, _: Nanos, world: &World<'_>) -> Vec<(u32, u32)> {
        let mut starts = Vec::new();
        let mut started: HashMap<u32, Vec<u32>> = HashMap::new();
        // What one node sends to another may start there at once.
        loop {
            let before = starts.len();
            for node in (0..self.queues.len() as u32).filter(|n| world.nodes[*n as usize].is_up) {
                let own = started.entry(node).or_default();
                while own.len() < (world.nodes[node as usize].free.cpus / 1000) as usize {
                    let Some(task) = self.pull(node, own, world) else { break };
                    own.push(task);
                    starts.push((task, node));
                }
            }
            if starts.len() == before {
                return starts;
            }
        }
    }
}
