//! What a scheduler would do that knows everything at once: no messages, no time to decide, the same rules.

use super::load::Load;
use super::outcome::SpaceOutcome;
use super::swarm::{Swarm, resource, tasks_of};
use catena_rules::{Query, Value};
use catena_space::chemistry::{Part, Ripe};
use catena_space::index::{Direction, Key};
use catena_space::molecule::{Kind, Name};
use catena_space::time::Micros;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

struct Waiting {
    part: Part,
    /// How many of those it waits for are not over.
    open: usize,
}

/// How far a workflow is.
#[derive(Default)]
struct Course {
    /// What has not started.
    waiting: BTreeMap<Name, Waiting>,
    /// Who waits for whom.
    targets: BTreeMap<Name, Vec<Name>>,
    /// How much is not over.
    left: usize,
}

struct Central<'a> {
    swarm: &'a Swarm,
    load: &'a Load,
    now: Micros,
    speeds: Vec<f64>,
    resources: Vec<Value>,
    /// Free resources and waiting tasks, in the order in which they are taken.
    free: BTreeSet<(Key, usize)>,
    parked: BTreeMap<(Key, u64), (usize, Name, Query, Micros)>,
    serial: u64,
    queue: BinaryHeap<Reverse<(Micros, u64, Happens)>>,
    flows: Vec<Course>,
    /// How many tasks of a level are not over.
    levels: BTreeMap<(usize, Name), usize>,
    /// The level of a task.
    parents: BTreeMap<(usize, Name), Name>,
    out: SpaceOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    Enters(usize),
    Ends(usize, Name, usize),
}

/// Executes workflows on the same peers with one scheduler that knows everything at once.
pub fn central(swarm: &Swarm, load: &Load) -> Result<SpaceOutcome, String> {
    let speeds = swarm.speeds();
    let resources: Vec<Value> = speeds.iter().enumerate().map(|(i, s)| resource(i as u64, *s)).collect();
    let mut this = Central {
        swarm,
        load,
        now: 0,
        free: BTreeSet::new(),
        parked: BTreeMap::new(),
        serial: 0,
        queue: BinaryHeap::new(),
        flows: Vec::new(),
        levels: BTreeMap::new(),
        parents: BTreeMap::new(),
        out: SpaceOutcome { workflows: vec![None; load.workflows.len()], ..SpaceOutcome::default() },
        speeds,
        resources,
    };
    this.free = (0..this.resources.len()).map(|r| (this.key(r), r)).collect();
    for (number, flow) in load.workflows.iter().enumerate() {
        this.flows.push(Course::default());
        this.serial += 1;
        this.queue.push(Reverse((flow.at, this.serial, Happens::Enters(number))));
    }
    while let Some(Reverse((at, _, happens))) = this.queue.pop() {
        this.now = at;
        this.out.events += 1;
        match happens {
            Happens::Enters(number) => {
                let parts = swarm.chemistry.weave(&tasks_of(load, number))?;
                this.enter(number, parts, None)?;
            }
            Happens::Ends(number, name, resource) => {
                this.out.committed += 1;
                this.out.done.push((at, false));
                let key = this.key(resource);
                this.free.insert((key, resource));
                // Who has waited comes before who is ready now.
                this.serve(resource);
                this.over(number, name)?;
            }
        }
    }
    Ok(this.out)
}

impl Central<'_> {
    fn key(&self, resource: usize) -> Key {
        Key::new(self.swarm.chemistry.resource_order(&self.resources[resource]), resource as u64)
    }

    fn enter(&mut self, number: usize, parts: Vec<Part>, parent: Option<Name>) -> Result<(), String> {
        let mut ready = Vec::new();
        for part in parts {
            let (name, open) = (part.name, part.sources.len());
            let Course { waiting, targets, left } = &mut self.flows[number];
            for source in &part.sources {
                targets.entry(*source).or_default().push(name);
            }
            *left += 1;
            if let Some(level) = parent {
                *self.levels.entry((number, level)).or_default() += 1;
                self.parents.insert((number, name), level);
            }
            if open == 0 {
                ready.push(name);
            }
            waiting.insert(name, Waiting { part, open });
        }
        ready.into_iter().try_for_each(|name| self.ready(number, name))
    }

    fn ready(&mut self, number: usize, name: Name) -> Result<(), String> {
        let Some(Waiting { mut part, .. }) = self.flows[number].waiting.remove(&name) else { return Ok(()) };
        for source in &part.sources {
            part.value = self.swarm.chemistry.arrive(&part.value, *source)?;
        }
        match self.swarm.chemistry.ripe(&part.value, self.now)? {
            Ripe::Apart(parts) => self.enter(number, parts, Some(name)),
            Ripe::Search(query, order) => {
                let (bounds, direction) = self.swarm.chemistry.resources(&query);
                let accepts = |(key, r): &&(Key, usize)| {
                    bounds.is_none_or(|(low, high)| low <= *key && *key <= high)
                        && self.swarm.chemistry.accepts(&query, &self.resources[*r])
                };
                let best = match direction {
                    Direction::Up => self.free.iter().find(accepts),
                    Direction::Down => self.free.iter().rev().find(accepts),
                };
                match best.copied() {
                    Some((key, resource)) => {
                        self.free.remove(&(key, resource));
                        self.start(number, name, resource, self.now);
                    }
                    None => {
                        self.serial += 1;
                        let key = (Key::new(order, self.serial), self.serial);
                        self.parked.insert(key, (number, name, query, self.now));
                    }
                }
                Ok(())
            }
            Ripe::Waits => Err(format!("{name} has nothing to wait for and does not start")),
        }
    }

    fn start(&mut self, number: usize, name: Name, resource: usize, since: Micros) {
        self.out.started += 1;
        self.out.waits.push(self.now - since);
        let length = self.load.workflows[number].tasks[name.number as usize - 1].length;
        let takes = (length as f64 / self.speeds[resource]) as Micros;
        self.serial += 1;
        self.queue.push(Reverse((self.now + takes, self.serial, Happens::Ends(number, name, resource))));
    }

    /// A resource is free: the first of those who wait takes it.
    fn serve(&mut self, resource: usize) {
        let accepts = |(_, (.., query, _)): &(&(Key, u64), &(usize, Name, Query, Micros))| {
            self.swarm.chemistry.accepts(query, &self.resources[resource])
        };
        let first = match self.swarm.chemistry.tasks() {
            Direction::Up => self.parked.iter().find(accepts),
            Direction::Down => self.parked.iter().rev().find(accepts),
        };
        let Some(key) = first.map(|(key, _)| *key) else { return };
        let key_of = self.key(resource);
        if self.free.remove(&(key_of, resource)) {
            let (number, name, _, since) = self.parked.remove(&key).expect("just seen");
            self.start(number, name, resource, since);
        }
    }

    fn over(&mut self, number: usize, name: Name) -> Result<(), String> {
        let Course { waiting, targets, left } = &mut self.flows[number];
        *left -= 1;
        let mut ready = Vec::new();
        for target in targets.remove(&name).unwrap_or_default() {
            if let Some(waits) = waiting.get_mut(&target) {
                waits.open -= 1;
                if waits.open == 0 {
                    ready.push(target);
                }
            }
        }
        if *left == 0 {
            let took = self.now - self.load.workflows[number].at;
            self.out.workflows[number] = Some(took);
            self.out.makespan = self.out.makespan.max(self.now);
        }
        for target in ready {
            self.ready(number, target)?;
        }
        if let Some(level) = self.parents.remove(&(number, name)) {
            let open = self.levels.get_mut(&(number, level)).expect("it has tasks");
            *open -= 1;
            if *open == 0 {
                debug_assert_eq!(level.kind, Kind::Level);
                self.over(number, level)?;
            }
        }
        Ok(())
    }
}
