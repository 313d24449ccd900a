//! Nodes that hold tasks in advance: they bring files while others compute, and compute what is there and most urgent.

use super::{Engine, Event};
use crate::outcome::{Execution, Fate};
use crate::time::NEVER;

impl Engine<'_> {
    /// A node brings the files of what it was given, of as much as it can at once.
    pub(super) fn fetch(&mut self, node: u32) {
        let most = self.world.cluster.network.at_once.map_or(usize::MAX, |n| n as usize);
        loop {
            let state = &mut self.world.nodes[node as usize];
            if state.staging.len() >= most {
                return;
            }
            let Some(task) = state.unstaged.pop(|_| true) else { return };
            state.staging.push(task);
            if let Some(execution) = self.execution_on(task, node) {
                self.bring(execution);
            }
        }
    }

    /// The files of an execution are there. It waits for its turn.
    pub(super) fn staged(&mut self, execution: u32) {
        if self.is_running(execution) {
            let Execution { task, node, .. } = self.outcome.executions[execution as usize];
            let (rank, time) = (self.ranks[execution as usize], self.world.compute(task, node));
            self.world.nodes[node as usize].staged.push(task, rank, time, true);
            self.stirred.insert(node);
        }
    }

    /// Nodes compute what they can.
    pub(super) fn serve(&mut self) {
        let workload = self.world.workload;
        for node in std::mem::take(&mut self.stirred) {
            let state = &mut self.world.nodes[node as usize];
            let mut begun = Vec::new();
            while let Some(task) = state.staged.pop(|t| state.spare.fits(&workload.class(t).resources)) {
                state.spare.take(&workload.class(task).resources);
                begun.push(task);
            }
            for task in begun {
                let Some(execution) = self.execution_on(task, node) else { continue };
                self.outcome.executions[execution as usize].busy = self.now;
                self.compute(execution, self.now);
                self.say(Event::Began { task, node });
            }
        }
    }

    /// A node gives a task back that it has not begun to compute. What is on its way there still comes.
    pub(super) fn give_back(&mut self, task: u32, node: u32) {
        let waits = |e: &u32| self.outcome.executions[*e as usize].busy == NEVER;
        if let Some(execution) = self.execution_on(task, node).filter(waits) {
            self.give_up(execution, Fate::Recalled);
        }
    }
}
