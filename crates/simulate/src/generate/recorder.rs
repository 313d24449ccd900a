//! Puts together traces of jobs that never ran.

use crate::random::Random;
use catena_model::Name;
use catena_model::import::{Trace, TraceFile, TraceJob};
use std::collections::HashMap;

/// No job makes this file.
const NOBODY: u32 = u32::MAX;

/// A trace that grows job by job. A job waits for those that make what it reads.
///
/// What is random is made of sums and products of whole numbers, so that it is the same on every machine: the
/// logarithms and powers of mathematical libraries differ in their last digits.
pub(super) struct Recorder {
    trace: Trace,
    random: Random,
    /// Who makes each file.
    makers: Vec<u32>,
    /// For whom the newest job waits.
    waits_for: Vec<u32>,
    /// How many jobs of each program there are.
    counts: HashMap<&'static str, u32>,
}

impl Recorder {
    pub(super) fn new(jobs: usize, seed: u64) -> Self {
        let mut trace = Trace::default();
        trace.jobs.reserve(jobs);
        Self {
            trace,
            random: Random::new(seed),
            makers: Vec::new(),
            waits_for: Vec::new(),
            counts: HashMap::new(),
        }
    }

    /// A file, which has at least a byte.
    pub(super) fn file(&mut self, name: impl Into<Name>, size: f64) -> u32 {
        self.trace.files.push(TraceFile { name: name.into(), size: size.max(1.0) as u64 });
        self.makers.push(NOBODY);
        self.trace.files.len() as u32 - 1
    }

    /// How many bytes some files have together.
    pub(super) fn size(&self, files: &[u32]) -> f64 {
        files.iter().map(|f| self.trace.files[*f as usize].size).sum::<u64>() as f64
    }

    /// A job that takes `seconds`.
    pub(super) fn job(&mut self, program: &'static str, seconds: f64, inputs: Vec<u32>, outputs: Vec<u32>) {
        let job = self.trace.jobs.len() as u32;
        let makers = inputs.iter().map(|f| self.makers[*f as usize]).filter(|m| *m != NOBODY);
        self.waits_for.clear();
        self.waits_for.extend(makers);
        self.waits_for.sort_unstable();
        self.waits_for.dedup();
        self.trace.arcs.extend(self.waits_for.iter().map(|m| (*m, job)));
        for file in &outputs {
            self.makers[*file as usize] = job;
        }
        let count = self.counts.entry(program).or_default();
        let id = Name::from(format!("{program}_{count:05}"));
        *count += 1;
        // In hundredths of a second, as such records are.
        let runtime = (seconds.max(0.01) * 100.0).round() / 100.0;
        self.trace.jobs.push(TraceJob {
            id,
            program: Name::new_static(program),
            runtime,
            cores: 1.0,
            inputs,
            outputs,
            ..TraceJob::default()
        });
    }

    /// The trace, under the name of its kind and with its size.
    pub(super) fn named(mut self, kind: &str) -> Trace {
        self.trace.name = format!("{kind}-{}", self.trace.jobs.len());
        self.trace
    }

    /// A number below `limit`.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.random.below(limit as u64) as usize
    }

    /// A number between two others, each as likely as any.
    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.random.unit()
    }

    /// A number near the mean: the sum of twelve evenly distributed ones, which is nearly normally distributed.
    pub(super) fn around(&mut self, mean: f64, deviation: f64) -> f64 {
        let sum: f64 = (0..12).map(|_| self.random.unit()).sum();
        (mean + deviation * (sum - 6.0)).max(mean / 20.0)
    }

    /// A number of which most are below the mean and a few far above it: the square of an evenly distributed one.
    pub(super) fn skewed(&mut self, mean: f64, deviation: f64) -> f64 {
        /// The deviation of such a square.
        const DEVIATION: f64 = 0.298_142_396_999_972;
        let part = self.random.unit();
        (mean + deviation * (part * part - 1.0 / 3.0) / DEVIATION).max(mean / 20.0)
    }
}

/// What was measured at some sizes, for a size between them. Beyond them it is as at the last.
pub(super) fn interpolate(measured: &[(usize, f64)], size: usize) -> f64 {
    let mut before = measured[0];
    for at in measured {
        if size <= at.0 {
            let part = (size.max(before.0) - before.0) as f64 / (at.0 - before.0).max(1) as f64;
            return before.1 + part * (at.1 - before.1);
        }
        before = *at;
    }
    before.1
}

/// Shares out `total` among `parts` as evenly as possible: how many the given part gets.
pub(super) fn share(total: usize, parts: usize, part: usize) -> usize {
    (part + 1) * total / parts - part * total / parts
}

/// The same jobs in another order, which `seed` decides.
#[must_use]
pub fn shuffled(mut trace: Trace, seed: u64) -> Trace {
    let places = Random::new(seed).places(trace.jobs.len());
    let mut jobs = vec![TraceJob::default(); trace.jobs.len()];
    for (job, place) in trace.jobs.into_iter().zip(&places) {
        jobs[*place as usize] = job;
    }
    for (from, to) in &mut trace.arcs {
        (*from, *to) = (places[*from as usize], places[*to as usize]);
    }
    Trace { jobs, ..trace }
}
