//! What came of a simulated space.

use catena_space::time::{Micros, SECOND};
use std::collections::BTreeMap;

/// What came of a simulation.
#[derive(Clone, Debug, Default)]
pub struct SpaceOutcome {
    /// From the first workflow that arrived to the end of the last one.
    pub makespan: Micros,
    /// How long each workflow took, in the order in which they arrived; nothing: it did not end.
    pub workflows: Vec<Option<Micros>>,
    /// How long tasks waited for nothing but a resource.
    pub waits: Vec<Micros>,
    /// Tasks that are done.
    pub committed: u64,
    /// When each task was done, in order, and whether by a peer on the smaller side of a cut.
    pub done: Vec<(Micros, bool)>,
    /// How many peers are on the smaller side of a cut.
    pub beyond: usize,
    /// Tasks that were done once more because their data were lost.
    pub again: u64,
    /// Tasks that were done more than once.
    pub twice: u64,
    /// Results that were accepted although their lease counted no more.
    pub stale: u64,
    /// Tasks that were started, each time counted.
    pub started: u64,
    /// Results that were refused, and executions that were stopped.
    pub wasted: u64,
    /// Molecules that could not go on for a while.
    pub blocked: u64,
    /// Messages, by what they are.
    pub messages: BTreeMap<&'static str, u64>,
    /// Those of them that were sent before the first workflow came, and when it came.
    pub before: BTreeMap<&'static str, u64>,
    /// See [`before`](Self::before).
    pub began: Micros,
    /// Messages that were there because of the work, and those that say who is there.
    pub control: u64,
    /// See [`control`](Self::control).
    pub upkeep: u64,
    /// Messages that each peer got because of the work.
    pub received: Vec<u64>,
    /// Events that were simulated.
    pub events: u64,
    /// A hash of all of them, in order.
    pub digest: u64,
    /// When all was over.
    pub end: Micros,
}

impl SpaceOutcome {
    /// How many workflows ended.
    pub fn ended(&self) -> usize {
        self.workflows.iter().flatten().count()
    }

    /// How long workflows took, in seconds.
    pub fn mean_workflow(&self) -> f64 {
        self.workflows.iter().flatten().map(|t| *t as f64).sum::<f64>()
            / self.ended().max(1) as f64
            / SECOND as f64
    }

    /// How long tasks waited for a resource, in seconds: so many of a hundred not longer.
    pub fn wait(&self, percent: usize) -> f64 {
        let mut waits = self.waits.clone();
        waits.sort_unstable();
        let place = (waits.len() * percent / 100).min(waits.len().saturating_sub(1));
        waits.get(place).map_or(0.0, |w| *w as f64 / SECOND as f64)
    }

    /// Messages for each task, without those that say who is there.
    pub fn messages_per_task(&self) -> f64 {
        self.control as f64 / self.committed.max(1) as f64
    }

    /// Messages that a peer got because of the work, on average.
    pub fn mean_received(&self) -> f64 {
        self.received.iter().sum::<u64>() as f64 / self.received.len().max(1) as f64
    }

    /// Messages that peers got because of the work: so many of a hundred not more.
    pub fn received(&self, percent: usize) -> u64 {
        let mut received = self.received.clone();
        received.sort_unstable();
        let place = (received.len() * percent / 100).min(received.len().saturating_sub(1));
        received.get(place).copied().unwrap_or(0)
    }

    /// How many times as many messages as the mean the busiest peer got.
    pub fn hottest(&self) -> f64 {
        self.received
            .iter()
            .max()
            .map_or(0.0, |max| *max as f64 / self.mean_received().max(f64::MIN_POSITIVE))
    }

    /// How many tasks were done while the network was cut: on the larger side, and on the smaller one.
    pub fn done_between(&self, from: Micros, to: Micros) -> (usize, usize) {
        let within = self.done.iter().filter(|(at, _)| from <= *at && *at < to);
        let (beyond, here): (Vec<bool>, Vec<bool>) = within.map(|(_, beyond)| *beyond).partition(|b| *b);
        (here.len(), beyond.len())
    }
}
