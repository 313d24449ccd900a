//! ADAGE as its authors' code does it: a plan by the client, a queue on every node, a decision maker for those who have
//! nothing to do, and work that is given away in doubling intervals.
//!
//! Where paper and code differ, this follows the code: a node that gives work away keeps it too, copies compete for
//! the start of a task and not for its end, and the first wait is a second. The paper's Listing 3 prefers the node that
//! has the least of a task's data, which cannot be meant; here it is the node that lacks the least.

use crate::cluster::Cluster;
use crate::engine::{Strategy, World};
use crate::random::Random;
use crate::workload::Workload;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};

/// The longest wait between two attempts to give work away, in seconds.
const LONGEST_WAIT: f64 = 128.0;
/// How long a queued task counts as looked after, in seconds.
const EXPIRY: f64 = 125.0;
/// How often that is renewed, in seconds.
const VALIDATION: f64 = 62.5;
/// So many more copies of a task there may be.
const COPIES: u8 = 2;

pub(super) struct Adage {
    /// Millions of instructions from a task to the end: its priority.
    priority: Vec<u64>,
    length: Vec<u64>,
    planned: Vec<u32>,
    nodes: Vec<Queue>,
    /// Tasks that are ready and not done, by number.
    shared: BTreeSet<u32>,
    /// Until when a task counts as looked after.
    alive_until: Vec<f64>,
    copies: Vec<u8>,
    next_validation: f64,
    next_balance: f64,
    random: Random,
}

/// A node's own queue.
#[derive(Default)]
struct Queue {
    /// By priority, then by number.
    tasks: BTreeSet<(u64, Reverse<u32>)>,
    load: u64,
    wait: f64,
    next: f64,
}

impl Adage {
    pub(super) fn new(workload: &Workload, cluster: &Cluster, seed: u64) -> Self {
        let n = workload.len();
        let length = |t: u32| (workload.tasks[t as usize].seconds * 1000.0).max(100.0) as u64;
        let length: Vec<u64> = (0..n as u32).map(length).collect();
        let priority: Vec<u64> =
            workload.upward(|t| length[t as usize] as f64).iter().map(|p| *p as u64).collect();
        let new = |_| Queue { wait: 1.0, next: 1.0, ..Queue::default() };
        Self {
            planned: plan(workload, cluster, &length, &priority),
            nodes: (0..cluster.nodes).map(new).collect(),
            shared: BTreeSet::new(),
            alive_until: vec![f64::NEG_INFINITY; n],
            copies: vec![0; n],
            next_validation: VALIDATION,
            next_balance: 1.0,
            random: Random::new(seed),
            priority,
            length,
        }
    }

    fn enqueue(&mut self, task: u32, node: u32, now: f64) {
        self.alive_until[task as usize] = now + EXPIRY;
        let queue = &mut self.nodes[node as usize];
        if queue.tasks.insert((self.priority[task as usize], Reverse(task))) {
            queue.load += self.length[task as usize];
        }
    }

    /// What an idle node with an empty queue does: it takes what was planned for it, or else reminds others of theirs.
    fn decide(&mut self, node: u32, now: f64, world: &World<'_>) {
        let expired = |t: &u32| self.alive_until[*t as usize] <= now && !world.started[*t as usize];
        let expired: Vec<u32> = self.shared.iter().copied().filter(expired).collect();
        let own: Vec<u32> = expired.iter().copied().filter(|t| self.planned[*t as usize] == node).collect();
        let (tasks, mine) = if own.is_empty() { (expired, false) } else { (own, true) };
        for task in tasks {
            let to = if mine { node } else { self.planned[task as usize] };
            self.enqueue(task, to, now);
        }
    }

    /// The most urgent task of a node's queue that nobody has started.
    fn poll(&mut self, node: u32, started: &HashSet<u32>, world: &World<'_>) -> Option<u32> {
        loop {
            let (_, Reverse(task)) = self.nodes[node as usize].tasks.pop_last()?;
            self.nodes[node as usize].load -= self.length[task as usize];
            if !world.started[task as usize] && !started.contains(&task) {
                return Some(task);
            }
        }
    }

    /// A node that has more to do than its neighbours gives some of it away.
    fn balance(&mut self, node: u32, now: f64, world: &World<'_>) {
        let given = self.neighbour(node).is_some_and(|to| self.give(node, to, now, world));
        let queue = &mut self.nodes[node as usize];
        queue.wait = if given { 1.0 } else { (queue.wait * 2.0).min(LONGEST_WAIT) };
        queue.next = now + queue.wait;
    }

    /// The least loaded of some random nodes, if none of them has more to do than this one.
    fn neighbour(&mut self, node: u32) -> Option<u32> {
        let Queue { tasks, load, .. } = &self.nodes[node as usize];
        if tasks.len() < 2 {
            return None;
        }
        let n = self.nodes.len() as u64;
        let others = (0..n.isqrt()).map(|_| self.random.below(n) as u32).filter(|other| *other != node);
        let others: Vec<(u64, u32)> = others.map(|o| (self.nodes[o as usize].load, o)).collect();
        let is_most = others.iter().all(|(other, _)| other <= load);
        others.into_iter().min_by_key(|(load, _)| *load).filter(|_| is_most).map(|(_, other)| other)
    }

    /// Gives copies of half of a queue, the least urgent first. Returns whether there were any to give.
    fn give(&mut self, from: u32, to: u32, now: f64, world: &World<'_>) -> bool {
        let queue = &self.nodes[from as usize].tasks;
        let may_go = |t: &u32| self.copies[*t as usize] < COPIES && !world.started[*t as usize];
        let half = queue.len() / 2;
        let gift: Vec<u32> = queue.iter().map(|(_, Reverse(t))| *t).filter(may_go).take(half).collect();
        for task in &gift {
            self.copies[*task as usize] += 1;
            self.enqueue(*task, to, now);
        }
        !gift.is_empty()
    }

    /// Drops what has ended from all queues, and counts the rest as looked after.
    fn validate(&mut self, now: f64) {
        let Self { nodes, shared, alive_until, length, .. } = self;
        for queue in nodes {
            queue.tasks.retain(|(_, Reverse(task))| {
                let open = shared.contains(task);
                if !open {
                    queue.load -= length[*task as usize];
                }
                open
            });
            for (_, Reverse(task)) in &queue.tasks {
                alive_until[*task as usize] = now + EXPIRY;
            }
        }
    }
}

/// Tasks in the order of their latest start, each where its data are planned to be and a processor is free. Sizes are
/// in bytes and the bandwidth in megabytes per second, as in the authors' code, so that data decide.
fn plan(workload: &Workload, cluster: &Cluster, length: &[u64], priority: &[u64]) -> Vec<u32> {
    let longest = priority.iter().copied().max().unwrap_or(0);
    let mut order: Vec<u32> = (0..workload.len() as u32).collect();
    order.sort_by_key(|t| longest - priority[*t as usize]);
    let bandwidth = 1.0 / cluster.transfer(1_000_000);
    let mut ready = vec![0.0f64; cluster.nodes];
    let mut data_ready = vec![0.0f64; cluster.nodes];
    let mut held: Vec<HashSet<u32>> = vec![HashSet::new(); cluster.nodes];
    let mut planned = vec![0; workload.len()];
    for t in order {
        let task = &workload.tasks[t as usize];
        let missing = |node: usize| -> u64 {
            let inputs = task.inputs.iter().filter(|f| !held[node].contains(f));
            inputs.map(|f| workload.files[*f as usize]).sum()
        };
        let mut best = (f64::INFINITY, 0, 0.0);
        for node in 0..cluster.nodes {
            let data = data_ready[node] + missing(node) as f64 / bandwidth;
            let start = ready[node].max(data);
            if start < best.0 {
                best = (start, node, data);
            }
        }
        let (_, node, data) = best;
        planned[t as usize] = node as u32;
        data_ready[node] = data;
        ready[node] += length[t as usize] as f64 / (1000.0 * cluster.speed);
        held[node].extend(task.inputs.iter().chain(&task.outputs));
    }
    planned
}

impl Strategy for Adage {
    fn ready(&mut self, task: u32, _: f64, _: &World<'_>) {
        self.shared.insert(task);
    }

    fn ended(&mut self, task: u32, _: u32, _: f64, _: &World<'_>) {
        self.shared.remove(&task);
    }

    fn start(&mut self, now: f64, world: &World<'_>) -> Vec<(u32, u32)> {
        if now >= self.next_validation {
            self.validate(now);
            self.next_validation += VALIDATION;
        }
        if now >= self.next_balance {
            for node in 0..self.nodes.len() as u32 {
                if self.nodes[node as usize].next <= now {
                    self.balance(node, now, world);
                }
            }
            self.next_balance = self.nodes.iter().map(|q| q.next).fold(f64::INFINITY, f64::min);
        }
        let mut starts = Vec::new();
        let mut started = HashSet::new();
        for node in (0..self.nodes.len() as u32).filter(|n| world.is_idle(*n)) {
            if self.nodes[node as usize].tasks.is_empty() {
                self.decide(node, now, world);
            }
            if let Some(task) = self.poll(node, &started, world) {
                started.insert(task);
                starts.push((task, node));
            }
        }
        starts
    }

    fn wake(&self) -> Option<f64> {
        let waits = self.nodes.iter().any(|q| !q.tasks.is_empty()) || !self.shared.is_empty();
        waits.then(|| self.next_balance.min(self.next_validation))
    }
}
