//! Task by task, where it matters which node a task goes to: see [`Placement`].

use super::copies::Copies;
use crate::engine::{Event, Strategy};
use crate::time::Nanos;
use crate::world::World;
use catena_schedule::{Costs, Place, Placement, Replicate};

/// Drives a [`Placement`] in virtual time.
pub(super) struct Placed {
    placement: Placement,
    ranks: Vec<u64>,
    copies: Copies,
}

impl Placed {
    pub(super) fn new(place: Place, ranks: Vec<u64>, replicate: Replicate) -> Self {
        Self { placement: Placement::new(place), ranks, copies: Copies::new(replicate) }
    }

    fn rank(&self, task: u32) -> u64 {
        self.ranks.get(task as usize).copied().unwrap_or(0)
    }
}

impl Costs for World<'_> {
    fn can(&self, task: u32, agent: u32) -> bool {
        World::can(self, task, agent)
    }

    fn fits(&self, task: u32, agent: u32, others: &[u32]) -> bool {
        if others.is_empty() {
            return World::fits(self, task, agent);
        }
        let mut free = self.nodes[agent as usize].free.clone();
        for other in others {
            free.take(&self.workload.class(*other).resources);
        }
        World::can(self, task, agent) && free.fits(&self.workload.class(task).resources)
    }

    fn compute(&self, task: u32, agent: u32) -> u64 {
        World::compute(self, task, agent)
    }

    fn transfer(&self, bytes: u64) -> u64 {
        self.cluster.transfer(bytes)
    }

    fn inputs(&self, task: u32) -> &[u32] {
        match self.cluster.storage {
            // Nobody is nearer to it than others.
            crate::cluster::Storage::Shared(_) => &[],
            crate::cluster::Storage::Local => &self.workload.tasks[task as usize].inputs,
        }
    }

    fn size(&self, file: u32) -> u64 {
        self.workload.files[file as usize]
    }

    fn unstarted(&self) -> u64 {
        self.unstarted
    }

    fn width(&self, task: u32, _: u32) -> usize {
        self.workload.class(task).resources.cpus.div_ceil(1000) as usize
    }

    fn decision(&self) -> u64 {
        self.cluster.scheduling
    }

    fn is_shared(&self) -> bool {
        self.cluster.network.is_fair
    }
}

impl Strategy for Placed {
    fn handle(&mut self, event: Event, now: Nanos, world: &World<'_>) {
        self.copies.handle(event, now, world);
        match event {
            Event::Ready(task) => self.placement.add(task, 0, self.rank(task), world),
            Event::Withdrawn(task) => self.placement.remove(task),
            Event::Ended { task, node } => {
                self.placement.remove(task);
                self.placement.ended(task, node, now);
                if world.cluster.storage == crate::cluster::Storage::Local {
                    self.placement.hold(node, &world.workload.tasks[task as usize].outputs);
                }
            }
            Event::Freed { task, node } => self.placement.ended(task, node, now),
            Event::Began { task, node } => {
                self.placement.started(task, node, now);
                self.placement.hold(node, Costs::inputs(world, task));
            }
            Event::Joined(node) => {
                let slots = (world.kind(node).resources.cpus / 1000) as usize;
                let ahead = slots * world.cluster.ahead as usize;
                self.placement.join(node, world.nodes[node as usize].kind, slots, ahead, now);
            }
            Event::Left(node) => self.placement.leave(node),
        }
    }

    fn start(&mut self, now: Nanos, world: &World<'_>) -> Vec<(u32, u32)> {
        for task in self.copies.due(now, world) {
            self.placement.add(task, 0, self.copies.rank(self.rank(task)), world);
        }
        let starts = self.placement.decide(now, world);
        for (task, node) in &starts {
            self.copies.given(*task, *node, now, world);
        }
        starts
    }

    fn rank(&self, task: u32) -> u64 {
        Self::rank(self, task)
    }

    fn recall(&mut self, now: Nanos, world: &World<'_>) -> Vec<(u32, u32)> {
        self.placement.recall(now, world)
    }

    fn wake(&self) -> Option<Nanos> {
        self.copies.wake().into_iter().chain(self.placement.wake()).min()
    }
}
