//! A few jobs that all others know: whether they lead to them, and whether they are led to by them.

use crate::graph::Dag;

/// Words of 64 landmarks.
const WORDS: usize = 4;

/// What jobs know of the landmarks.
pub(super) struct Landmarks {
    known: Vec<Known>,
}

/// A bit for each landmark. A landmark leads to itself. All of it is in one line of the cache.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Known {
    /// The ones that a job leads to.
    below: [u64; WORDS],
    /// The ones that lead to it.
    above: [u64; WORDS],
}

impl Landmarks {
    /// Landmarks for a dag whose arcs lead to higher numbers.
    pub(super) fn new(dag: &Dag) -> Self {
        Self::with(dag, 64 * WORDS)
    }

    /// At most so many of them, spread evenly over the numbers. Of neighbours the best connected one is taken.
    pub(super) fn with(dag: &Dag, count: usize) -> Self {
        let jobs: Vec<u32> = (0..dag.len() as u32).collect();
        let mut known = vec![Known::default(); dag.len()];
        let connections = |job: &u32| (dag.children(*job).len() + 1) * (dag.parents(*job).len() + 1);
        let share = dag.len().div_ceil(count.max(1)).max(1);
        for (i, neighbours) in jobs.chunks(share).take(count).enumerate() {
            if let Some(job) = neighbours.iter().copied().max_by_key(connections) {
                known[job as usize].below[i / 64] |= 1 << (i % 64);
                known[job as usize].above[i / 64] |= 1 << (i % 64);
            }
        }
        for job in jobs.iter().copied().rev() {
            let mut below = known[job as usize].below;
            for child in dag.children(job) {
                unite(&mut below, &known[*child as usize].below);
            }
            known[job as usize].below = below;
        }
        for job in jobs {
            let mut above = known[job as usize].above;
            for parent in dag.parents(job) {
                unite(&mut above, &known[*parent as usize].above);
            }
            known[job as usize].above = above;
        }
        Self { known }
    }

    /// Whether one job leads to another, if the landmarks tell. They do if one of them lies between, if the second
    /// leads to one that the first does not lead to, or if one leads to the first and not to the second.
    pub(super) fn leads(&self, from: u32, to: u32) -> Option<bool> {
        let (from, to) = (&self.known[from as usize], &self.known[to as usize]);
        let (mut between, mut missing) = (0, 0);
        for i in 0..WORDS {
            between |= from.below[i] & to.above[i];
            missing |= to.below[i] & !from.below[i] | from.above[i] & !to.above[i];
        }
        match (between, missing) {
            (0, 0) => None,
            (0, _) => Some(false),
            _ => Some(true),
        }
    }
}

fn unite(to: &mut [u64; WORDS], from: &[u64; WORDS]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to |= from;
    }
}
