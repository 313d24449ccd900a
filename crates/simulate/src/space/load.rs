//! What peers are given to do: workflows that arrive one after the other.

use crate::random::Random;
use catena_space::time::{Micros, SECOND};

/// Workflows, in the order in which they arrive.
#[derive(Clone, Debug, Default)]
pub struct Load {
    /// Each of them.
    pub workflows: Vec<Flow>,
}

/// A workflow that arrives.
#[derive(Clone, Debug)]
pub struct Flow {
    /// When.
    pub at: Micros,
    /// Its tasks; the first has the number 1.
    pub tasks: Vec<FlowTask>,
}

/// A task of a workflow.
#[derive(Clone, Debug)]
pub struct FlowTask {
    /// The numbers of those it waits for.
    pub sources: Vec<u32>,
    /// How long it takes on a peer of speed 1.
    pub length: Micros,
}

impl Load {
    /// Random workflows of eight levels and about `tasks` tasks of 10 to 100 seconds each, `rate` of them a second. A task
    /// waits for one to three tasks of the level before.
    pub fn random(workflows: usize, tasks: u64, rate: f64, seed: u64) -> Self {
        const LEVELS: u64 = 8;
        let mut random = Random::new(seed);
        let mut at = 0.0;
        let flows = (0..workflows).map(|_| {
            at += random.exponential() / rate;
            let mut flow = Flow { at: (at * SECOND as f64) as Micros, tasks: Vec::new() };
            let mut last: Vec<u32> = Vec::new();
            for _ in 0..LEVELS {
                let width = 1 + random.below((2 * tasks / LEVELS).saturating_sub(1).max(1));
                let mut level = Vec::new();
                for _ in 0..width {
                    let mut sources = Vec::new();
                    for _ in 0..(1 + random.below(3)).min(last.len() as u64) {
                        sources.push(last[random.below(last.len() as u64) as usize]);
                    }
                    sources.sort_unstable();
                    sources.dedup();
                    let length = SECOND * 10 + random.below(SECOND * 90);
                    flow.tasks.push(FlowTask { sources, length });
                    level.push(flow.tasks.len() as u32);
                }
                last = level;
            }
            flow
        });
        Self { workflows: flows.collect() }
    }

    /// How many tasks there are.
    pub fn tasks(&self) -> usize {
        self.workflows.iter().map(|f| f.tasks.len()).sum()
    }

    /// How much work there is on a peer of speed 1, in seconds.
    pub fn work(&self) -> f64 {
        let all = self.workflows.iter().flat_map(|f| &f.tasks);
        all.map(|t| t.length as f64).sum::<f64>() / SECOND as f64
    }
}
