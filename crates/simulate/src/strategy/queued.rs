//! Tasks that wait at nodes: placed as soon as they are ready, and moved when somebody else has nothing to do.

use super::copies::Copies;
use super::neighbours;
use super::prefetched::Prefetched;
use crate::engine::{Event, Strategy};
use crate::random::Random;
use crate::time::Nanos;
use crate::world::{State, World};
use catena_schedule::{Costs, Place, Queue, ReadyQueue, Rebalance, Stages};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// How soon who found nothing to take or nobody to give to tries again, first and at most.
const FIRST_WAIT: Nanos = 1_000_000;
const LONGEST_WAIT: Nanos = 1_000_000_000;

pub(super) struct Queued {
    stages: Stages,
    ranks: Vec<u64>,
    /// Tasks that wait at no node, the most urgent first.
    ready: BTreeSet<(Reverse<u64>, u32)>,
    queues: Vec<ReadyQueue>,
    /// When each node last got something.
    served: Vec<u64>,
    turn: u64,
    copies: Copies,
    random: Random,
    wait: Nanos,
    next: Option<Nanos>,
    prefetched: Prefetched,
}

impl Queued {
    pub(super) fn new(stages: Stages, ranks: Vec<u64>, seed: u64) -> Self {
        Self {
            stages,
            ranks,
            ready: BTreeSet::new(),
            queues: Vec::new(),
            served: Vec::new(),
            turn: 0,
            copies: Copies::new(stages.replicate),
            random: Random::new(seed),
            wait: FIRST_WAIT,
            next: None,
            prefetched: Prefetched::default(),
        }
    }

    fn key(&self, task: u32) -> (Reverse<u64>, u32) {
        (Reverse(self.ranks.get(task as usize).copied().unwrap_or(0)), task)
    }

    fn forget(&mut self, task: u32) {
        self.ready.remove(&self.key(task));
        self.ready.remove(&(Reverse(self.copies.rank(self.key(task).0.0)), task));
        for queue in &mut self.queues {
            queue.remove(task);
        }
    }

    /// How many tasks may wait at a node.
    fn depth(&self, node: u32, world: &World<'_>) -> usize {
        match self.stages.queue {
            Queue::Batch => 0,
            Queue::Depth(n) => n as usize * (world.kind(node).resources.cpus / 1000) as usize,
            Queue::All => usize::MAX,
        }
    }

    /// Gives ready tasks to nodes whose queues have room; a node that could start something has room for that.
    fn place(&mut self, world: &World<'_>) {
        for key in self.ready.clone() {
            let task = key.1;
            let has_room = |node: &u32| {
                let queue = &self.queues[*node as usize];
                let starts = usize::from(queue.is_empty() && world.fits(task, *node));
                let is_there = world.nodes[*node as usize].running.contains(&task);
                !is_there && world.can(task, *node) && queue.len() < self.depth(*node, world).max(starts)
            };
            let nodes = (0..self.queues.len() as u32).filter(has_room);
            let load = |node: u32| {
                let busy = &world.nodes[node as usize].running;
                let busy: u64 = busy.iter().map(|t| World::compute(world, *t, node)).sum();
                busy + self.queues[node as usize].load()
            };
            let best = match self.stages.place {
                Place::LongestIdle => nodes.min_by_key(|n| (self.served[*n as usize], *n)),
                Place::Data => nodes.min_by_key(|n| (world.missing(task, *n), load(*n), *n)),
                _ => nodes.min_by_key(|n| (load(*n) + world.time(task, *n), *n)),
            };
            let Some(node) = best else { continue };
            self.ready.remove(&key);
            self.turn += 1;
            self.served[node as usize] = self.turn;
            self.queues[node as usize].push(task, key.0.0, world.time(task, node), true);
        }
    }

    /// Whether a node could start something, had it anything.
    fn hungers(&self, node: u32, world: &World<'_>, starts: &[(u32, u32)]) -> bool {
        let cpus = world.nodes[node as usize].free.cpus;
        let mut taken = starts.iter().filter(|(_, n)| *n == node);
        let taken: u64 = taken.by_ref().map(|(t, _)| world.workload.class(*t).resources.cpus).sum();
        world.nodes[node as usize].is_up && self.queues[node as usize].is_empty() && cpus >= taken + 1000
    }

    /// Moves tasks to those who have nothing to do. Returns whether it moved any.
    fn rebalance(&mut self, world: &World<'_>, starts: &[(u32, u32)]) -> bool {
        let n = self.queues.len();
        let mut moved = false;
        let active: Vec<u32> = match self.stages.rebalance {
            Rebalance::None => Vec::new(),
            Rebalance::Steal => (0..n as u32).filter(|node| self.hungers(*node, world, starts)).collect(),
            Rebalance::Give => (0..n as u32).filter(|node| !self.queues[*node as usize].is_empty()).collect(),
        };
        for node in active {
            let others = neighbours::some(&mut self.random, n, node);
            let load = |o: &u32| self.queues[*o as usize].load();
            let pair = match self.stages.rebalance {
                Rebalance::Steal => others.into_iter().max_by_key(load).map(|victim| (victim, node)),
                _ => {
                    let hungry = others.into_iter().filter(|o| self.hungers(*o, world, starts));
                    hungry.min_by_key(load).map(|to| (node, to))
                }
            };
            if let Some((from, to)) = pair {
                moved |= self.move_half(from, to, world);
            }
        }
        moved
    }

    /// What would end no later elsewhere goes there.
    fn move_half(&mut self, from: u32, to: u32, world: &World<'_>) -> bool {
        let here = self.queues[from as usize].load();
        let is_worth = |task: u32| {
            let is_there = world.nodes[to as usize].running.contains(&task);
            !is_there && world.can(task, to) && world.time(task, to) <= here + world.time(task, from)
        };
        let gift = self.queues[from as usize].gift(is_worth);
        for task in &gift {
            self.queues[from as usize].remove(*task);
            let Reverse(rank) = self.key(*task).0;
            self.queues[to as usize].push(*task, rank, world.time(*task, to), false);
        }
        !gift.is_empty()
    }

    /// What nodes start of what waits there.
    fn serve(&mut self, now: Nanos, world: &World<'_>, starts: &mut Vec<(u32, u32)>) {
        for node in 0..self.queues.len() as u32 {
            let mut own: Vec<u32> = starts.iter().filter(|(_, n)| *n == node).map(|(t, _)| *t).collect();
            if !world.nodes[node as usize].is_up || self.queues[node as usize].is_empty() {
                continue;
            }
            let running = &world.nodes[node as usize].running;
            while let Some(task) = self.queues[node as usize].pop(|t| {
                let can_start = matches!(world.state(t), State::Ready | State::Running);
                can_start && !running.contains(&t) && !own.contains(&t) && Costs::fits(world, t, node, &own)
            }) {
                own.push(task);
                starts.push((task, node));
                self.copies.given(task, node, now, world);
            }
        }
    }
}

impl Strategy for Queued {
    fn handle(&mut self, event: Event, now: Nanos, world: &World<'_>) {
        self.copies.handle(event, now, world);
        match event {
            Event::Ready(task) => {
                let key = self.key(task);
                self.ready.insert(key);
            }
            Event::Withdrawn(task) | Event::Ended { task, .. } => self.forget(task),
            Event::Freed { .. } | Event::Began { .. } => {}
            Event::Joined(node) => {
                if self.queues.len() <= node as usize {
                    self.queues.resize(node as usize + 1, ReadyQueue::default());
                    self.served.resize(node as usize + 1, 0);
                }
            }
            Event::Left(node) => {
                self.prefetched.forget(node);
                let queue = std::mem::take(&mut self.queues[node as usize]);
                self.ready.extend(queue.tasks().map(|t| self.key(t)).collect::<Vec<_>>());
            }
        }
        self.wait = FIRST_WAIT;
    }

    fn start(&mut self, now: Nanos, world: &World<'_>) -> Vec<(u32, u32)> {
        for task in self.copies.due(now, world) {
            let Reverse(rank) = self.key(task).0;
            self.ready.insert((Reverse(self.copies.rank(rank)), task));
        }
        let mut starts = Vec::new();
        self.place(world);
        self.serve(now, world, &mut starts);
        while self.rebalance(world, &starts) {
            self.serve(now, world, &mut starts);
            self.place(world);
        }
        let waits = self.stages.rebalance != Rebalance::None && self.queues.iter().any(|q| !q.is_empty());
        let hungry = (0..self.queues.len() as u32).any(|n| self.hungers(n, world, &starts));
        self.next = (waits && hungry).then(|| now + self.wait);
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
        starts
    }

    fn rank(&self, task: u32) -> u64 {
        self.key(task).0.0
    }

    fn prefetch(&mut self, _: Nanos, world: &World<'_>) -> Vec<(u32, u32)> {
        let queues = (0..).zip(&self.queues).filter(|(_, queue)| !queue.is_empty());
        self.prefetched.next(queues.map(|(node, queue)| (node, queue.tasks())), world)
    }

    fn wake(&self) -> Option<Nanos> {
        self.next.into_iter().chain(self.copies.wake()).min()
    }
}
