//! Step 1: arcs that say nothing new.
//!
//! An arc is a shortcut if another path leads to the same job. One that leads to the next level never is. Of the
//! others most are decided by landmarks, a few hundred jobs spread over the dag: each job knows which of them it
//! leads to and which lead to it. What remains is searched from both ends at once, level by level, until the
//! searches meet or pass each other. Where that takes too long, or many arcs lead to the same job, one sweep over
//! the dag answers for many targets at a time, a bit for each.

use super::landmarks::Landmarks;
use crate::graph::{Adjacency, Dag};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Beyond this many arcs the search for another path is given up for the sweep.
const SEARCH_LIMIT: usize = 16_384;
/// From this many arcs on, a search asks the landmarks about every job it comes to.
const ASK_AFTER: usize = 256;
/// So many arcs at least are worth a thread of their own.
const THREAD_ARCS: usize = 4096;
/// Words of 64 targets per sweep.
const WORDS: usize = 8;

/// The same dag without shortcuts.
pub(super) fn without_shortcuts(dag: &Dag) -> Dag {
    let levels = dag.levels();
    if dag.arcs().all(|(u, v)| levels[v as usize] - levels[u as usize] == 1) {
        return dag.clone();
    }
    let ranked = Ranked::new(dag, &levels);
    let found = ranked.shortcuts();
    let mut is_shortcut = vec![false; dag.arc_count()];
    for (rank, job) in (0..).zip(&ranked.jobs) {
        let numbers = |dag: &Dag, job| dag.first_arc(job)..dag.first_arc(job) + dag.children(job).len();
        is_shortcut[numbers(dag, *job)].copy_from_slice(&found[numbers(&ranked.dag, rank)]);
    }
    let kept = dag.arcs().zip(&is_shortcut).filter(|(_, is_shortcut)| !**is_shortcut).map(|(arc, _)| arc);
    Dag::from_children(Adjacency::new(dag.len(), kept))
}

/// A dag whose jobs are numbered level by level, so that arcs lead to higher numbers and what is looked at together
/// is close in memory.
struct Ranked {
    dag: Dag,
    /// The original numbers of the jobs.
    jobs: Vec<u32>,
    /// For each job the first one of its level.
    level_start: Vec<u32>,
    /// For each job the first one of the next level.
    level_end: Vec<u32>,
}

impl Ranked {
    fn new(dag: &Dag, levels: &[u32]) -> Self {
        let height = levels.iter().max().map_or(0, |highest| *highest as usize + 1);
        let by_level = Adjacency::new(height, (0..dag.len() as u32).map(|job| (levels[job as usize], job)));
        let (mut level_start, mut level_end) = (Vec::with_capacity(dag.len()), Vec::with_capacity(dag.len()));
        for level in 0..height as u32 {
            let (start, jobs) = (level_start.len(), by_level.of(level).len());
            level_start.resize(start + jobs, start as u32);
            level_end.resize(start + jobs, (start + jobs) as u32);
        }
        let jobs: Vec<u32> = by_level.arcs().map(|(_, job)| job).collect();
        let mut ranks = vec![0; dag.len()];
        for (rank, job) in (0..).zip(&jobs) {
            ranks[*job as usize] = rank;
        }
        let ranks = &ranks;
        let arcs = (0..).zip(&jobs).flat_map(|(rank, job)| {
            dag.children(*job).iter().map(move |child| (rank, ranks[*child as usize]))
        });
        let arcs: Vec<(u32, u32)> = arcs.collect();
        let dag = Dag::from_children(Adjacency::new(dag.len(), arcs.into_iter()));
        Self { dag, jobs, level_start, level_end }
    }

    /// For each arc whether it is a shortcut.
    fn shortcuts(&self) -> Vec<bool> {
        let dag = &self.dag;
        let numbered = (0..).zip(dag.arcs()).map(|(number, (from, to))| Arc { number, from, to });
        let mut long: Vec<Arc> = numbered
            .filter(|arc| arc.to >= self.level_end[self.level_end[arc.from as usize] as usize])
            .collect();
        let mut is_shortcut = vec![false; dag.arc_count()];
        let crowded = crowded_targets(dag, &long);
        self.sweep(&crowded, &mut is_shortcut);
        long.retain(|arc| crowded.binary_search(&arc.to).is_err());

        let landmarks = Landmarks::new(dag);
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let share = long.len().div_ceil(threads).max(THREAD_ARCS);
        let search = |arcs: &[Arc]| Search::new(self, &landmarks).run(arcs);
        let found: Vec<Found> = std::thread::scope(|scope| {
            let (own, others) = long.split_at(share.min(long.len()));
            let others: Vec<_> = others.chunks(share).map(|arcs| scope.spawn(move || search(arcs))).collect();
            let own = search(own);
            let others = others.into_iter().map(|t| t.join().expect("a search does not panic"));
            std::iter::once(own).chain(others).collect()
        });
        let mut hard: Vec<u32> = Vec::new();
        for Found { shortcuts, undecided } in found {
            for number in shortcuts {
                is_shortcut[number as usize] = true;
            }
            hard.extend(undecided);
        }
        hard.sort_unstable();
        hard.dedup();
        self.sweep(&hard, &mut is_shortcut);
        is_shortcut
    }

    /// Finds the shortcuts among the arcs that lead to these jobs, which are sorted: those of similar levels go
    /// together, because only what is above them has to be looked at.
    fn sweep(&self, targets: &[u32], is_shortcut: &mut [bool]) {
        if targets.is_empty() {
            return;
        }
        let dag = &self.dag;
        let mut bit = vec![u32::MAX; dag.len()];
        let mut below = vec![[0u64; WORDS]; dag.len()];
        for block in targets.chunks(64 * WORDS) {
            for (i, v) in block.iter().enumerate() {
                bit[*v as usize] = i as u32;
            }
            let first = block.iter().flat_map(|v| dag.parents(*v)).min().copied().unwrap_or(0);
            let last = block.last().copied().unwrap_or(0);
            for u in (first..last).rev() {
                // What is below the children has a path of two arcs at least.
                let mut reached = [0u64; WORDS];
                for c in dag.children(u) {
                    for (to, from) in reached.iter_mut().zip(below[*c as usize]) {
                        *to |= from;
                    }
                }
                let mut own = reached;
                for (number, v) in (dag.first_arc(u)..).zip(dag.children(u)) {
                    let b = bit[*v as usize] as usize;
                    if b < 64 * WORDS {
                        is_shortcut[number] |= reached[b / 64] >> (b % 64) & 1 == 1;
                        own[b / 64] |= 1 << (b % 64);
                    }
                }
                below[u as usize] = own;
            }
            below[first as usize..last as usize].fill([0; WORDS]);
            for v in block {
                bit[*v as usize] = u32::MAX;
            }
        }
    }
}

/// An arc that skips levels.
#[derive(Clone, Copy)]
struct Arc {
    /// Its place among all arcs.
    number: u32,
    from: u32,
    to: u32,
}

/// Jobs to which so many long arcs lead that a sweep takes less than a search for each arc. Sorted.
fn crowded_targets(dag: &Dag, long: &[Arc]) -> Vec<u32> {
    let mut arcs_to = vec![0u32; dag.len()];
    for arc in long {
        arcs_to[arc.to as usize] += 1;
    }
    let mut targets: Vec<u32> = (0..dag.len() as u32).filter(|v| arcs_to[*v as usize] > 16).collect();
    targets.sort_unstable_by_key(|v| Reverse(arcs_to[*v as usize]));
    let is_worth_it = |block: &&[u32]| {
        let arcs = block.iter().map(|v| arcs_to[*v as usize] as usize).sum::<usize>();
        8 * arcs > dag.arc_count()
    };
    let mut crowded = targets.chunks(64 * WORDS).take_while(is_worth_it).collect::<Vec<_>>().concat();
    crowded.sort_unstable();
    crowded
}

/// Looks for other paths between the ends of arcs, one arc after the other.
struct Search<'d> {
    dag: &'d Dag,
    ranked: &'d Ranked,
    landmarks: &'d Landmarks,
    /// For each job the search that has reached it last: odd numbers from above, even ones from below.
    reached: Vec<u32>,
    number: u32,
    /// Jobs whose children are to be looked at, the highest first, and whose parents are, the lowest first.
    down: BinaryHeap<Reverse<u32>>,
    up: BinaryHeap<u32>,
    /// Targets of arcs about which it is hard to say.
    hard: Vec<bool>,
}

/// What searches have found.
#[derive(Default)]
struct Found {
    /// The numbers of arcs that are shortcuts.
    shortcuts: Vec<u32>,
    /// Targets of arcs that are still to be decided.
    undecided: Vec<u32>,
}

impl<'d> Search<'d> {
    fn new(ranked: &'d Ranked, landmarks: &'d Landmarks) -> Self {
        let dag = &ranked.dag;
        let (reached, hard) = (vec![0; dag.len()], vec![false; dag.len()]);
        let (down, up) = (BinaryHeap::new(), BinaryHeap::new());
        Self { dag, ranked, landmarks, reached, number: 1, down, up, hard }
    }

    fn run(mut self, arcs: &[Arc]) -> Found {
        let mut found = Found::default();
        for Arc { number, from, to } in arcs.iter().copied() {
            // The sweep will answer for all arcs to the same job.
            if self.hard[to as usize] {
                continue;
            }
            match self.first_step(from, to).or_else(|| self.has_another_path(from, to)) {
                Some(true) => found.shortcuts.push(number),
                Some(false) => {}
                None => {
                    self.hard[to as usize] = true;
                    found.undecided.push(to);
                }
            }
        }
        found
    }

    /// The jobs that a path between two others can lead over: what is on the level of an end is not between.
    fn between(&self, from: u32, to: u32) -> std::ops::Range<u32> {
        self.ranked.level_end[from as usize]..self.ranked.level_start[to as usize]
    }

    /// Asks the landmarks about the jobs next to one end of the arc, whichever has fewer.
    fn first_step(&self, from: u32, to: u32) -> Option<bool> {
        let between = self.between(from, to);
        let (children, parents) = (self.dag.children(from), self.dag.parents(to));
        let is_above = children.len() <= parents.len();
        let mut is_known = true;
        for job in
            if is_above { children } else { parents }.iter().copied().filter(|job| between.contains(job))
        {
            match if is_above { self.landmarks.leads(job, to) } else { self.landmarks.leads(from, job) } {
                Some(true) => return Some(true),
                Some(false) => {}
                None => is_known = false,
            }
        }
        is_known.then_some(false)
    }

    /// Whether another path leads from one end of an arc to the other. `None` if that is hard to say.
    ///
    /// Whatever `from` leads to above the highest job in `down` was found, and whatever leads to `to` below the
    /// lowest in `up`. A path that neither has seen when they pass each other would have an arc from the former to
    /// the latter, and both ends of that were looked at.
    fn has_another_path(&mut self, from: u32, to: u32) -> Option<bool> {
        self.number += 2;
        let (above, below) = (self.number, self.number + 1);
        let (dag, between) = (self.dag, self.between(from, to));
        self.reached[from as usize] = above;
        self.reached[to as usize] = below;
        self.down.clear();
        self.down.push(Reverse(from));
        self.up.clear();
        self.up.push(to);
        let (mut work_down, mut work_up) = (0, 0);
        while let (Some(Reverse(highest)), Some(lowest)) =
            (self.down.peek().copied(), self.up.peek().copied())
        {
            if highest >= lowest {
                break;
            }
            let (children, parents) = (dag.children(highest), dag.parents(lowest));
            let asks = work_down + work_up > ASK_AFTER;
            if work_down + children.len() <= work_up + parents.len() {
                work_down += children.len();
                self.down.pop();
                for child in children.iter().copied() {
                    let mark = &mut self.reached[child as usize];
                    if *mark == below {
                        if (highest, child) != (from, to) {
                            return Some(true);
                        }
                    } else if *mark != above && child < between.end {
                        *mark = above;
                        match if asks { self.landmarks.leads(child, to) } else { None } {
                            Some(true) => return Some(true),
                            Some(false) => {}
                            None => self.down.push(Reverse(child)),
                        }
                    }
                }
            } else {
                work_up += parents.len();
                self.up.pop();
                for parent in parents.iter().copied() {
                    let mark = &mut self.reached[parent as usize];
                    if *mark == above {
                        if (parent, lowest) != (from, to) {
                            return Some(true);
                        }
                    } else if *mark != below && parent >= between.start {
                        *mark = below;
                        match if asks { self.landmarks.leads(from, parent) } else { None } {
                            Some(true) => return Some(true),
                            Some(false) => {}
                            None => self.up.push(parent),
                        }
                    }
                }
            }
            if work_down + work_up > SEARCH_LIMIT {
                return None;
            }
        }
        Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Whether there is a path that does not use the arc itself.
    fn has_another_way(dag: &Dag, u: u32, v: u32) -> bool {
        let mut stack: Vec<u32> = dag.children(u).iter().copied().filter(|c| *c != v).collect();
        let mut seen = vec![false; dag.len()];
        while let Some(job) = stack.pop() {
            if job == v {
                return true;
            }
            if !std::mem::replace(&mut seen[job as usize], true) {
                stack.extend(dag.children(job));
            }
        }
        false
    }

    /// The arcs left by the search alone, with these landmarks, and by the sweep alone.
    fn left_by_each(dag: &Dag, landmarks: usize) -> [Vec<(u32, u32)>; 2] {
        let ranked = Ranked::new(dag, &dag.levels());
        let mut swept = vec![false; dag.arc_count()];
        ranked.sweep(&(0..dag.len() as u32).collect::<Vec<_>>(), &mut swept);
        let landmarks = Landmarks::with(&ranked.dag, landmarks);
        let mut search = Search::new(&ranked, &landmarks);
        let searched =
            ranked.dag.arcs().map(|(u, v)| search.first_step(u, v).or_else(|| search.has_another_path(u, v)));
        let searched: Vec<bool> = searched.map(Option::unwrap).collect();
        [searched, swept].map(|gone| {
            let left = ranked.dag.arcs().zip(gone).filter(|(_, gone)| !gone);
            let original = |job: u32| ranked.jobs[job as usize];
            let mut left: Vec<(u32, u32)> = left.map(|((u, v), _)| (original(u), original(v))).collect();
            left.sort_unstable();
            left
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

        #[test]
        fn exactly_the_shortcuts_go(
            jobs in 1u32..60,
            arcs in prop::collection::vec((any::<u32>(), any::<u32>()), 0..200),
            near in 1u32..60,
            landmarks in 0usize..20,
        ) {
            let arcs: Vec<(u32, u32)> = arcs
                .iter()
                .map(|(a, b)| (a % jobs, a % jobs + 1 + b % near))
                .filter(|(_, b)| *b < jobs)
                .collect();
            let dag = Dag::new(jobs as usize, &arcs).unwrap();
            let kept: Vec<(u32, u32)> = dag.arcs().filter(|(u, v)| !has_another_way(&dag, *u, *v)).collect();
            prop_assert_eq!(without_shortcuts(&dag).arcs().collect::<Vec<_>>(), kept.clone());
            let [searched, swept] = left_by_each(&dag, landmarks);
            let sorted = { let mut kept = kept; kept.sort_unstable(); kept };
            prop_assert_eq!(&searched, &sorted);
            prop_assert_eq!(&swept, &sorted);
        }
    }

    #[test]
    fn arcs_from_everywhere_to_one_job_are_swept() {
        let (chain, last) = (3000u32, 3000u32);
        let mut arcs: Vec<(u32, u32)> = (1..chain).map(|v| (v - 1, v)).collect();
        arcs.extend((0..chain).map(|v| (v, last)));
        let dag = Dag::new(chain as usize + 1, &arcs).unwrap();
        let left = without_shortcuts(&dag);
        assert_eq!(left.arc_count(), chain as usize);
        assert_eq!(left.parents(last), [chain - 1]);
    }
}
