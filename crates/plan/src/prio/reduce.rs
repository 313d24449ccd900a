//! Step 1: arcs that say nothing new.
//!
//! An arc is a shortcut if another path leads to the same job. One that leads to the next level never is. For a
//! longer one we gather jobs from which its target is reached, level by level. Then we dive from its start until
//! we meet one of them; below the last level that was gathered no other job leads to the target, so there
//! is no need to dive deeper. Where that takes too long, one sweep over the dag answers for many targets at a
//! time, a bit for each.

use crate::graph::{Adjacency, Dag};
use std::collections::BinaryHeap;

/// So many jobs are gathered before a target.
const GATHERED: usize = 40;
/// Beyond this many jobs the search for another path is given up for the sweep.
const SEARCH_LIMIT: usize = 8192;
/// Words of 64 targets per sweep.
const WORDS: usize = 8;

/// The same dag without shortcuts.
pub(super) fn without_shortcuts(dag: &Dag) -> Dag {
    let levels = dag.levels();
    let is_long = |u: u32, v: u32| levels[v as usize] - levels[u as usize] > 1;
    let long: Vec<(u32, u32)> = dag.arcs().filter(|(u, v)| is_long(*u, *v)).collect();
    if long.is_empty() {
        return dag.clone();
    }
    let mut search = Search::new(dag, &levels);
    let mut shortcuts = Vec::new();
    let mut hard = Vec::new();
    for (u, v) in long {
        match search.has_another_path(u, v) {
            Some(true) => shortcuts.push((u, v)),
            Some(false) => {}
            None => hard.push(v),
        }
    }
    hard.sort_unstable();
    hard.dedup();
    sweep(dag, &hard, &is_long, &mut shortcuts);
    shortcuts.sort_unstable();
    let is_kept = |arc: &(u32, u32)| shortcuts.binary_search(arc).is_err();
    let kept: Vec<(u32, u32)> = dag.arcs().filter(is_kept).collect();
    Dag::from_children(Adjacency::new(dag.len(), kept.into_iter()))
}

struct Search<'d> {
    dag: &'d Dag,
    levels: &'d [u32],
    /// For each job the search that has reached it last: odd numbers from above, even ones from below.
    reached: Vec<u32>,
    number: u32,
    /// Jobs whose parents are to be gathered, the deepest first, each with its level.
    gather: BinaryHeap<(u32, u32)>,
    dive: Vec<u32>,
}

impl<'d> Search<'d> {
    fn new(dag: &'d Dag, levels: &'d [u32]) -> Self {
        let reached = vec![0; dag.len()];
        Self { dag, levels, reached, number: 1, gather: BinaryHeap::new(), dive: Vec::new() }
    }

    /// Whether another path leads from one end of an arc to the other. `None` if that is hard to say.
    fn has_another_path(&mut self, from: u32, to: u32) -> Option<bool> {
        self.number += 2;
        let (above, below) = (self.number, self.number + 1);
        let level = |job: u32| self.levels[job as usize];
        self.gather.clear();
        self.gather.push((level(to), to));
        for _ in 0..GATHERED {
            let Some((_, job)) = self.gather.pop() else { return Some(false) };
            for parent in self.dag.parents(job) {
                if *parent == from && job != to {
                    return Some(true);
                }
                let mark = &mut self.reached[*parent as usize];
                if *mark != below && level(*parent) > level(from) {
                    *mark = below;
                    self.gather.push((level(*parent), *parent));
                }
            }
        }
        let Some((deepest, _)) = self.gather.peek().copied() else { return Some(false) };
        self.dive.clear();
        self.dive.push(from);
        let mut visited = 0;
        while let Some(job) = self.dive.pop() {
            for child in self.dag.children(job) {
                let mark = &mut self.reached[*child as usize];
                if *mark == below {
                    return Some(true);
                }
                if *mark != above && level(*child) < deepest {
                    *mark = above;
                    self.dive.push(*child);
                    visited += 1;
                }
            }
            if visited > SEARCH_LIMIT {
                return None;
            }
        }
        Some(false)
    }
}

/// Adds the shortcuts that lead to these jobs.
fn sweep(dag: &Dag, targets: &[u32], is_long: &dyn Fn(u32, u32) -> bool, shortcuts: &mut Vec<(u32, u32)>) {
    if targets.is_empty() {
        return;
    }
    let order = dag.topological_order();
    let mut bit = vec![u32::MAX; dag.len()];
    let mut below = vec![[0u64; WORDS]; dag.len()];
    for block in targets.chunks(64 * WORDS) {
        for (i, v) in block.iter().enumerate() {
            bit[*v as usize] = i as u32;
        }
        below.fill([0; WORDS]);
        for u in order.iter().rev() {
            // What is below the children has a path of two arcs at least.
            let mut reached = [0u64; WORDS];
            for c in dag.children(*u) {
                for (to, from) in reached.iter_mut().zip(below[*c as usize]) {
                    *to |= from;
                }
            }
            for v in dag.children(*u) {
                let b = bit[*v as usize] as usize;
                if b < 64 * WORDS {
                    if is_long(*u, *v) && reached[b / 64] >> (b % 64) & 1 == 1 {
                        shortcuts.push((*u, *v));
                    }
                    below[*u as usize][b / 64] |= 1 << (b % 64);
                }
            }
            for (to, from) in below[*u as usize].iter_mut().zip(reached) {
                *to |= from;
            }
        }
        for v in block {
            bit[*v as usize] = u32::MAX;
        }
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

    proptest! {
        #[test]
        fn exactly_the_shortcuts_go(jobs in 1u32..40, arcs in prop::collection::vec((any::<u32>(), any::<u32>()), 0..150)) {
            let arcs: Vec<(u32, u32)> = arcs.iter().map(|(a, b)| (a % jobs, b % jobs)).filter(|(a, b)| a < b).collect();
            let dag = Dag::new(jobs as usize, &arcs).unwrap();
            let kept: Vec<(u32, u32)> = dag.arcs().filter(|(u, v)| !has_another_way(&dag, *u, *v)).collect();
            prop_assert_eq!(without_shortcuts(&dag).arcs().collect::<Vec<_>>(), kept.clone());
            // The sweep alone finds the same.
            let all: Vec<u32> = (0..jobs).collect();
            let levels = dag.levels();
            let mut swept = Vec::new();
            sweep(&dag, &all, &|u, v| levels[v as usize] - levels[u as usize] > 1, &mut swept);
            swept.sort_unstable();
            let left: Vec<(u32, u32)> = dag.arcs().filter(|a| swept.binary_search(a).is_err()).collect();
            prop_assert_eq!(left, kept);
        }
    }
}
