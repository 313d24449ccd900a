//! One queue for all: the scheduler of the live system, which counts chains by class and gives them to agents by rank.

use super::copies::Copies;
use crate::engine::{Event as Happening, Strategy};
use crate::time::Nanos;
use crate::workload::Workload;
use crate::world::World;
use catena_model::{Name, Resources};
use catena_schedule::{AgentInfo, Class, Command, Event, Policy, Replicate, Scheduler, Settings};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// Drives a [`Scheduler`] in virtual time.
pub(super) struct Central {
    scheduler: Scheduler,
    classes: Vec<Waiting>,
    numbers: BTreeMap<Name, usize>,
    /// For each task how urgent it is; none if they come in the order in which they become ready.
    ranks: Vec<u64>,
    arrivals: u64,
    waiting: usize,
    names: Vec<Name>,
    nodes: BTreeMap<Name, u32>,
    copies: Copies,
}

/// The tasks of a class that wait for a node.
struct Waiting {
    class: Class,
    key: Name,
    /// The most urgent first, then the one that came first.
    tasks: BTreeSet<(Reverse<u64>, u64, u32)>,
    keys: HashMap<u32, (u64, u64)>,
}

impl Waiting {
    fn new(class: &Class) -> Self {
        Self { key: class.key(), class: class.clone(), tasks: BTreeSet::new(), keys: HashMap::new() }
    }

    fn remove(&mut self, task: u32) -> bool {
        let Some((rank, arrival)) = self.keys.remove(&task) else { return false };
        self.tasks.remove(&(Reverse(rank), arrival, task))
    }

    /// The rank of the most urgent task, as schedulers know it.
    fn rank(&self) -> i64 {
        self.tasks.first().map_or(i64::MIN / 2, |(Reverse(rank), ..)| *rank as i64)
    }

    /// How it stands, for the scheduler.
    fn truth(&self) -> Event {
        Event::Waiting { class: self.class.clone(), count: self.tasks.len() as u64, rank: self.rank() }
    }
}

impl Central {
    pub(super) fn new(workload: &Workload, ranks: Vec<u64>, policy: Policy, replicate: Replicate) -> Self {
        // Messages take no time here, so nobody needs anything in advance; and ranks decide, whatever their distance.
        let aging = Duration::from_millis(1);
        let settings = Settings { policy, look_ahead: Duration::ZERO, aging, placed: None };
        let classes: Vec<Waiting> = workload.classes.iter().map(Waiting::new).collect();
        Self {
            scheduler: Scheduler::new(settings),
            numbers: classes.iter().map(|c| c.key.clone()).zip(0..).collect(),
            classes,
            ranks,
            arrivals: 0,
            waiting: 0,
            names: Vec::new(),
            nodes: BTreeMap::new(),
            copies: Copies::new(replicate),
        }
    }

    fn rank(&self, task: u32) -> u64 {
        self.ranks.get(task as usize).copied().unwrap_or(0)
    }

    fn add(&mut self, task: u32, rank: u64, world: &World<'_>) {
        self.arrivals += 1;
        let waiting = &mut self.classes[world.workload.tasks[task as usize].class as usize];
        if waiting.keys.contains_key(&task) {
            return;
        }
        waiting.keys.insert(task, (rank, self.arrivals));
        waiting.tasks.insert((Reverse(rank), self.arrivals, task));
        self.waiting += 1;
        let class = waiting.class.clone();
        self.scheduler.handle(Event::Registered { class, count: 1, rank: rank as i64 });
    }

    fn remove(&mut self, task: u32, world: &World<'_>) {
        let waiting = &mut self.classes[world.workload.tasks[task as usize].class as usize];
        if waiting.remove(task) {
            self.waiting -= 1;
            self.scheduler.handle(waiting.truth());
        }
    }

    fn join(&mut self, node: u32, world: &World<'_>) {
        let id = Name::new(format!("{node:06}"));
        if self.names.len() <= node as usize {
            self.names.resize(node as usize + 1, Name::default());
        }
        self.names[node as usize] = id.clone();
        self.nodes.insert(id.clone(), node);
        let kind = world.kind(node);
        // What is as much as is needed does not differ.
        let resources = Resources { memory: kind.resources.memory.min(1 << 60), ..kind.resources.clone() };
        let capabilities = kind.capabilities.clone();
        self.scheduler.handle(Event::AgentJoined(AgentInfo { id, capabilities, resources }));
    }

    fn freed(&mut self, task: u32, node: u32, world: &World<'_>) {
        let agent = self.names[node as usize].clone();
        let class = &self.classes[world.workload.tasks[task as usize].class as usize];
        self.scheduler.handle(Event::Ended { agent, class: class.key.clone(), millis: None });
    }

    /// Takes the most urgent tasks of a class out that a node does not execute already.
    fn take(&mut self, class: usize, node: u32, limit: usize, world: &World<'_>) -> Vec<u32> {
        let waiting = &mut self.classes[class];
        let running = &world.nodes[node as usize].running;
        let tasks = waiting.tasks.iter().map(|(_, _, task)| *task).filter(|t| !running.contains(t));
        let tasks: Vec<u32> = tasks.take(limit).collect();
        for task in &tasks {
            waiting.remove(*task);
        }
        self.waiting -= tasks.len();
        tasks
    }
}

impl Strategy for Central {
    fn handle(&mut self, event: Happening, now: Nanos, world: &World<'_>) {
        self.copies.handle(event, now, world);
        match event {
            Happening::Ready(task) => self.add(task, self.rank(task), world),
            Happening::Withdrawn(task) => self.remove(task, world),
            Happening::Ended { task, node } => {
                self.freed(task, node, world);
                // A copy that has not started is not needed any more.
                self.remove(task, world);
            }
            Happening::Freed { task, node } => self.freed(task, node, world),
            Happening::Began { .. } => {}
            Happening::Joined(node) => self.join(node, world),
            Happening::Left(node) => {
                let id = self.names[node as usize].clone();
                self.scheduler.handle(Event::AgentLeft(id));
            }
        }
    }

    fn start(&mut self, now: Nanos, world: &World<'_>) -> Vec<(u32, u32)> {
        for task in self.copies.due(now, world) {
            self.add(task, self.copies.rank(self.rank(task)), world);
        }
        let mut starts = Vec::new();
        // Some policies want several steps.
        while self.waiting > 0 {
            let before = starts.len();
            for command in self.scheduler.decide(0) {
                let Command::Claim { agent, class, limit } = command else { continue };
                let (node, number) = (self.nodes[&agent], self.numbers[&class]);
                let tasks = self.take(number, node, limit, world);
                let (asked, got) = (limit as u64, tasks.len() as u64);
                let waiting = &self.classes[number];
                let rank = Some(waiting.rank());
                self.scheduler.handle(Event::Claimed { agent, class, asked, got, rank });
                if got < asked {
                    self.scheduler.handle(self.classes[number].truth());
                }
                for task in tasks {
                    self.copies.given(task, node, now, world);
                    starts.push((task, node));
                }
            }
            if starts.len() == before {
                break;
            }
        }
        starts
    }

    fn wake(&self) -> Option<Nanos> {
        self.copies.wake()
    }
}
