//! How much comes after each chain of a run, by what was seen of its tasks so far.

use catena_model::Name;
use catena_model::chain::TaskResult;
use catena_plan::{Paths, Planner};
use std::collections::HashMap;

/// How long a task is taken to be while nothing is known of its service, in milliseconds.
const UNKNOWN: f64 = 1000.0;
/// How much a new duration changes an expected one.
const LEARNING: f64 = 0.2;

/// The critical path of a run, as far as it is known.
#[derive(Debug, Default)]
pub(crate) struct Urgency {
    /// How long tasks take, by service, in milliseconds.
    durations: HashMap<Name, f64>,
    paths: Option<Paths>,
    /// How many tasks have been seen, and after how many paths are found anew.
    seen: u64,
    renew_at: u64,
}

impl Urgency {
    /// A chain has succeeded.
    pub(crate) fn learn(&mut self, planner: &Planner, chain: u64, results: &[TaskResult]) {
        for (service, result) in planner.services(chain).into_iter().zip(results).filter(|(_, r)| !r.cached) {
            let known = self.durations.entry(service).or_insert_with(|| {
                self.renew_at = 0;
                result.millis
            });
            *known += (result.millis - *known) * LEARNING;
            self.seen += 1;
        }
        // Twice as much is known as before, or something new.
        if self.seen >= self.renew_at {
            self.renew_at = 2 * self.seen.max(1);
            self.paths = None;
        }
    }

    /// How long it is from the beginning of the chain that was planned last to the end of the run, in milliseconds.
    pub(crate) fn ahead(&mut self, planner: &Planner) -> u64 {
        let durations = &self.durations;
        let time = |service: &Name| durations.get(service).copied().unwrap_or(UNKNOWN);
        let paths = self.paths.get_or_insert_with(|| planner.paths(&time));
        planner.ahead(paths) as u64
    }
}
