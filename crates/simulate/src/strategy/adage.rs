//! ADAGE as its authors' code does it: a plan by the client, a queue on every node, a decision maker for those who have
//! nothing to do, and work that is given away in doubling intervals.
//!
//! Where paper and code differ, this follows the code: a node that gives work away keeps it too, copies compete for
//! the start of a task and not for its end, and the first wait is a second. The paper's Listing 3 prefers the node that
//! has the least of a task's data, which cannot be meant; here it is the node that lacks the least.

use super::prefetched::Prefetched;
use crate::cluster::{Cluster, Kind};
use crate::engine::{Event, Strategy};
use crate::random::Random;
use crate::time::{Nanos, seconds};
use crate::workload::Workload;
use crate::world::{State, World};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};

const SECOND: Nanos = 1_000_000_000;
/// The longest wait between two attempts to give work away.
const LONGEST_WAIT: Nanos = 128 * SECOND;
/// How long a queued task counts as looked after.
const EXPIRY: Nanos = 125 * SECOND;
/// How often that is renewed.
const VALIDATION: Nanos = EXPIRY / 2;
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
    alive_until: Vec<Nanos>,
    /// Those of them that have not started, by that time.
    unstarted: BTreeSet<(Nanos, u32)>,
    /// When nodes try to give work away next.
    timers: BTreeSet<(Nanos, u32)>,
    /// Nodes with room.
    open: BTreeSet<u32>,
    copies: Vec<u8>,
    next_validation: Nanos,
    random: Random,
    prefetched: Prefetched,
}

/// A node's own queue.
#[derive(Default)]
struct Queue {
    /// By priority, then by number.
    tasks: BTreeSet<(u64, Reverse<u32>)>,
    load: u64,
    wait: Nanos,
}

impl Adage {
    pub(super) fn new(workload: &Workload, cluster: &Cluster, seed: u64) -> Self {
        let n = workload.len();
        let length = |t: u32| (workload.tasks[t as usize].seconds * 1000.0).max(100.0) as u64;
        let length: Vec<u64> = (0..n as u32).map(length).collect();
        let priority: Vec<u64> = workload.upward(|t| length[t as usize]);
        let new = |_| Queue { wait: SECOND, ..Queue::default() };
        Self {
            planned: plan(workload, cluster, &length, &priority),
            nodes: (0..cluster.nodes()).map(new).collect(),
            shared: BTreeSet::new(),
            alive_until: vec![0; n],
            unstarted: BTreeSet::new(),
            timers: (0..cluster.nodes()).map(|node| (SECOND, node)).collect(),
            open: BTreeSet::new(),
            copies: vec![0; n],
            next_validation: VALIDATION,
            random: Random::new(seed),
            prefetched: Prefetched::default(),
            priority,
            length,
        }
    }

    /// A task counts as looked after until then.
    fn attend(&mut self, task: u32, until: Nanos) {
        if self.unstarted.remove(&(self.alive_until[task as usize], task)) {
            self.unstarted.insert((until, task));
        }
        self.alive_until[task as usize] = until;
    }

    fn enqueue(&mut self, task: u32, node: u32, now: Nanos) {
        self.attend(task, now + EXPIRY);
        let queue = &mut self.nodes[node as usize];
        if queue.tasks.insert((self.priority[task as usize], Reverse(task))) {
            queue.load += self.length[task as usize];
        }
    }

    /// Tasks that nobody looks after.
    fn expired(&self, now: Nanos) -> impl Iterator<Item = u32> {
        self.unstarted.range(..=(now, u32::MAX)).map(|(_, task)| *task)
    }

    /// What an idle node with an empty queue does: it takes what was planned for it, or else reminds others of theirs.
    fn decide(&mut self, node: u32, now: Nanos, world: &World<'_>) {
        let mut expired: Vec<u32> = self.expired(now).collect();
        expired.sort_unstable();
        let own: Vec<u32> = expired.iter().copied().filter(|t| self.planned[*t as usize] == node).collect();
        let (tasks, mine) = if own.is_empty() { (expired, false) } else { (own, true) };
        for task in tasks {
            let planned = self.planned[task as usize];
            let to = if mine || world.nodes[planned as usize].is_up {
                planned
            } else {
                self.best(task, node, world)
            };
            self.enqueue(task, to, now);
        }
    }

    /// The node that lacks least of a task's data and has least to do; sizes and lengths are added as they are.
    fn best(&self, task: u32, node: u32, world: &World<'_>) -> u32 {
        let nodes = (0..self.nodes.len() as u32).filter(|n| world.can(task, *n));
        let cost = |n: &u32| world.missing(task, *n) + self.nodes[*n as usize].load;
        nodes.min_by_key(cost).unwrap_or(node)
    }

    /// The most urgent task of a node's queue that nobody has started.
    fn poll(&mut self, node: u32, started: &HashSet<u32>, world: &World<'_>) -> Option<u32> {
        loop {
            let (_, Reverse(task)) = self.nodes[node as usize].tasks.pop_last()?;
            self.nodes[node as usize].load -= self.length[task as usize];
            if world.state(task) == State::Ready && !started.contains(&task) {
                return Some(task);
            }
        }
    }

    /// A node that has more to do than its neighbours gives some of it away.
    fn balance(&mut self, node: u32, now: Nanos, world: &World<'_>) {
        let given = self.neighbour(node).is_some_and(|to| self.give(node, to, now, world));
        let queue = &mut self.nodes[node as usize];
        queue.wait = if given { SECOND } else { (queue.wait * 2).min(LONGEST_WAIT) };
        self.timers.insert((now + queue.wait, node));
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

    /// Gives copies of half of what was planned for a node, the least urgent first. Returns whether there were any to give.
    fn give(&mut self, from: u32, to: u32, now: Nanos, world: &World<'_>) -> bool {
        let queue = &self.nodes[from as usize].tasks;
        let may_go = |t: &u32| self.copies[*t as usize] < COPIES && !is_started(*t, world);
        let own = queue.iter().map(|(_, Reverse(t))| *t).filter(|t| self.planned[*t as usize] == from);
        let half = own.clone().count() / 2;
        let gift: Vec<u32> = own.filter(may_go).take(half).collect();
        for task in &gift {
            self.copies[*task as usize] += 1;
            self.enqueue(*task, to, now);
        }
        !gift.is_empty()
    }

    /// Drops what has ended from all queues, and counts the rest as looked after.
    fn validate(&mut self, now: Nanos) {
        let mut queued = BTreeSet::new();
        for queue in &mut self.nodes {
            let gone: Vec<(u64, Reverse<u32>)> = queue
                .tasks
                .iter()
                .filter(|(_, Reverse(task))| !self.shared.contains(task))
                .copied()
                .collect();
            for key in gone {
                queue.tasks.remove(&key);
                queue.load -= self.length[key.1.0 as usize];
            }
            queued.extend(queue.tasks.iter().map(|(_, Reverse(task))| *task));
        }
        for task in queued {
            self.attend(task, now + EXPIRY);
        }
    }
}

/// Tasks in the order of their latest start, each where its data are planned to be and a processor is free. Sizes are
/// in bytes and the bandwidth in megabytes per second, as in the authors' code, so that data decide.
fn plan(workload: &Workload, cluster: &Cluster, length: &[u64], priority: &[u64]) -> Vec<u32> {
    let longest = priority.iter().copied().max().unwrap_or(0);
    let mut order: Vec<u32> = (0..workload.len() as u32).collect();
    order.sort_by_key(|t| longest - priority[*t as usize]);
    let bandwidth = 1.0 / seconds(cluster.transfer(1_000_000));
    let kinds: Vec<&Kind> = cluster.kinds.iter().flat_map(|k| (0..k.count).map(move |_| k)).collect();
    let mut ready = vec![0.0f64; cluster.nodes() as usize];
    let mut data_ready = vec![0.0f64; cluster.nodes() as usize];
    let mut held: Vec<HashSet<u32>> = vec![HashSet::new(); cluster.nodes() as usize];
    let mut planned = vec![0; workload.len()];
    for t in order {
        let task = &workload.tasks[t as usize];
        let missing = |node: usize| -> u64 {
            let inputs = task.inputs.iter().filter(|f| !held[node].contains(f));
            inputs.map(|f| workload.files[*f as usize]).sum()
        };
        let mut best = (f64::INFINITY, 0, 0.0);
        for (node, kind) in kinds.iter().enumerate() {
            if !kind.can(workload.class(t)) {
                continue;
            }
            let data = data_ready[node] + missing(node) as f64 / bandwidth;
            let start = ready[node].max(data);
            if start < best.0 {
                best = (start, node, data);
            }
        }
        let (start, node, data) = best;
        planned[t as usize] = node as u32;
        data_ready[node] = data;
        ready[node] = start + length[t as usize] as f64 / (1000.0 * kinds[node].speed);
        held[node].extend(task.inputs.iter().chain(&task.outputs));
    }
    planned
}

/// Whether somebody executes a task or has executed it: copies compete for the start of a task.
fn is_started(task: u32, world: &World<'_>) -> bool {
    matches!(world.state(task), State::Running | State::Done)
}

impl Strategy for Adage {
    fn handle(&mut self, event: Event, _: Nanos, world: &World<'_>) {
        match event {
            Event::Ready(task) => {
                // What was lost counts as not looked after.
                self.unstarted.remove(&(self.alive_until[task as usize], task));
                self.alive_until[task as usize] = 0;
                self.unstarted.insert((0, task));
                self.shared.insert(task);
            }
            Event::Withdrawn(task) => {
                self.shared.remove(&task);
                self.unstarted.remove(&(self.alive_until[task as usize], task));
            }
            Event::Ended { task, node } => {
                self.shared.remove(&task);
                self.open.insert(node);
            }
            Event::Freed { node, .. } | Event::Joined(node) => {
                self.open.insert(node);
            }
            Event::Began { .. } => {}
            Event::Left(node) => {
                self.prefetched.forget(node);
                self.open.remove(&node);
                let queue = &mut self.nodes[node as usize];
                queue.load = 0;
                for (_, Reverse(task)) in std::mem::take(&mut queue.tasks) {
                    if world.state(task) == State::Ready {
                        self.attend(task, 0);
                    }
                }
            }
        }
    }

    fn start(&mut self, now: Nanos, world: &World<'_>) -> Vec<(u32, u32)> {
        if now >= self.next_validation {
            self.validate(now);
            self.next_validation += VALIDATION;
        }
        let mut due: Vec<u32> = Vec::new();
        while let Some((_, node)) = self.timers.first().copied().filter(|(time, _)| *time <= now) {
            self.timers.pop_first();
            due.push(node);
        }
        due.sort_unstable();
        for node in due {
            self.balance(node, now, world);
        }
        let mut starts = Vec::new();
        let mut started = HashSet::new();
        for node in self.open.clone() {
            let mut own: Vec<u32> = Vec::new();
            while own.len() < (world.nodes[node as usize].free.cpus / 1000) as usize {
                if self.nodes[node as usize].tasks.is_empty() {
                    if self.expired(now).next().is_none() {
                        break;
                    }
                    self.decide(node, now, world);
                }
                let Some(task) = self.poll(node, &started, world) else { break };
                if !catena_schedule::Costs::fits(world, task, node, &own) {
                    self.enqueue(task, node, now);
                    break;
                }
                self.unstarted.remove(&(self.alive_until[task as usize], task));
                started.insert(task);
                own.push(task);
                starts.push((task, node));
            }
            if own.len() as u64 == world.nodes[node as usize].free.cpus / 1000 {
                self.open.remove(&node);
            }
        }
        starts
    }

    fn rank(&self, task: u32) -> u64 {
        self.priority[task as usize]
    }

    fn prefetch(&mut self, _: Nanos, world: &World<'_>) -> Vec<(u32, u32)> {
        let queues = (0..).zip(&self.nodes).filter(|(_, queue)| !queue.tasks.is_empty());
        let queues =
            queues.map(|(node, queue)| (node, queue.tasks.iter().rev().map(|(_, Reverse(task))| *task)));
        self.prefetched.next(queues, world)
    }

    fn wake(&self) -> Option<Nanos> {
        let waits = !self.shared.is_empty();
        let balance = self.timers.first().map_or(Nanos::MAX, |(time, _)| *time);
        waits.then(|| balance.min(self.next_validation))
    }
}
