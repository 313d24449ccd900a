//! What waits in queues that a policy keeps for nodes: they bring the files of as many tasks as they hold in advance.

use crate::world::{State, World};
use std::collections::BTreeSet;

/// What nodes were asked to bring.
#[derive(Default)]
pub(super) struct Prefetched {
    asked: BTreeSet<(u32, u32)>,
}

impl Prefetched {
    /// A node is gone, with everything it had.
    pub(super) fn forget(&mut self, node: u32) {
        self.asked.retain(|(n, _)| *n != node);
    }

    /// The tasks whose files should be brought, by the queues of nodes, the most urgent tasks first.
    pub(super) fn next<T: Iterator<Item = u32>>(
        &mut self,
        queues: impl Iterator<Item = (u32, T)>,
        world: &World<'_>,
    ) -> Vec<(u32, u32)> {
        let mut next = Vec::new();
        for (node, tasks) in queues {
            let cpus = world.kind(node).resources.cpus / 1000;
            let first = tasks.filter(|t| world.state(*t) == State::Ready);
            for task in first.take(cpus as usize * world.cluster.ahead as usize) {
                if self.asked.insert((node, task)) {
                    next.push((task, node));
                }
            }
        }
        next
    }
}
