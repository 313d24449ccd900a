//! More than one execution of a task: a fixed number of them, or another one where the first is late.

use crate::engine::Event;
use crate::time::Nanos;
use crate::world::{State, World};
use catena_schedule::{Patience, Replicate, Speculation};

/// Says which tasks should be executed once more.
pub(super) struct Copies {
    replicate: Replicate,
    speculation: Speculation,
    wake: Option<Nanos>,
    /// Tasks of which more executions are wanted, whatever happens.
    wanted: Vec<u32>,
}

impl Copies {
    pub(super) fn new(replicate: Replicate) -> Self {
        let speculation = Speculation::new(Patience::default());
        Self { replicate, speculation, wake: None, wanted: Vec::new() }
    }

    pub(super) fn handle(&mut self, event: Event, now: Nanos, world: &World<'_>) {
        if self.replicate == Replicate::Speculative {
            match event {
                Event::Ended { task, .. } | Event::Ready(task) => self.speculation.forget(task),
                Event::Freed { task, node } => self.speculation.ended(task, node),
                Event::Began { task, node } => {
                    // Another execution has to bring its files first.
                    let transfer = world.cluster.transfer(world.workload.bytes_read(task));
                    self.speculation.started(task, node, now, world.compute(task, node) + transfer);
                }
                Event::Withdrawn(_) | Event::Joined(_) | Event::Left(_) => return,
            }
            self.wake = self.speculation.next_late();
        }
    }

    /// A task was given to a node. One that holds tasks in advance says itself when it has begun.
    pub(super) fn given(&mut self, task: u32, node: u32, now: Nanos, world: &World<'_>) {
        match self.replicate {
            Replicate::None => {}
            Replicate::Copies(n) => {
                if world.copies(task) + 1 < n.into() {
                    self.wanted.push(task);
                }
            }
            Replicate::Speculative => {
                if world.cluster.ahead == 0 {
                    self.speculation.started(task, node, now, world.time(task, node));
                    self.wake = self.speculation.next_late();
                }
            }
        }
    }

    /// Tasks that should be executed once more now.
    pub(super) fn due(&mut self, now: Nanos, world: &World<'_>) -> Vec<u32> {
        let mut due = std::mem::take(&mut self.wanted);
        if self.wake.is_some_and(|wake| wake <= now) {
            due = self.speculation.late(now);
            self.wake = self.speculation.next_late();
        }
        // It may have ended meanwhile.
        due.retain(|task| world.state(*task) == State::Running);
        due
    }

    /// How urgent another execution of a task is that has this rank: what is executed several times in any case can wait
    /// until there is nothing else to do.
    pub(super) fn rank(&self, rank: u64) -> u64 {
        if self.replicate == Replicate::Speculative { rank } else { 0 }
    }

    /// When somebody will be late.
    pub(super) fn wake(&self) -> Option<Nanos> {
        self.wake
    }
}
