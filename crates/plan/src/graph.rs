//! A dag of jobs, kept compactly: who comes after whom, and nothing else.

use thiserror::Error;

/// Jobs, numbered in the order of their definition, and the arcs between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dag {
    children: Adjacency,
    parents: Adjacency,
}

/// Lists of neighbours, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Adjacency {
    starts: Vec<u32>,
    ends: Vec<u32>,
}

/// Jobs that wait for each other in a circle, in this order.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{} jobs wait for each other in a circle", .0.len())]
pub struct Cycle(pub Vec<u32>);

impl Adjacency {
    /// The neighbours of `n` nodes, given as arcs; those of a node keep the order of the arcs.
    pub(crate) fn new(n: usize, arcs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut starts = vec![0; n + 1];
        for (from, _) in arcs.clone() {
            starts[from as usize + 1] += 1;
        }
        for i in 0..n {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut ends = vec![0; starts[n] as usize];
        for (from, to) in arcs {
            let place = &mut next[from as usize];
            ends[*place as usize] = to;
            *place += 1;
        }
        Self { starts, ends }
    }

    pub(crate) fn of(&self, node: u32) -> &[u32] {
        &self.ends[self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize]
    }

    pub(crate) fn nodes(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// All arcs, by the node they start at.
    pub(crate) fn arcs(&self) -> impl Iterator<Item = (u32, u32)> + Clone + '_ {
        (0..self.nodes() as u32).flat_map(|u| self.of(u).iter().map(move |v| (u, *v)))
    }

    /// The same arcs the other way round, sorted by where they lead.
    pub(crate) fn reversed(&self) -> Self {
        Self::new(self.nodes(), self.arcs().map(|(u, v)| (v, u)))
    }
}

impl Dag {
    /// A dag of `jobs` jobs. Arcs lead from a job to one that has to wait for it; repeated ones count once.
    pub fn new(jobs: usize, arcs: &[(u32, u32)]) -> Result<Self, Cycle> {
        let mut children = Adjacency::new(jobs, arcs.iter().copied());
        let mut seen = vec![u32::MAX; jobs];
        let mut repeated = false;
        for u in 0..jobs as u32 {
            for v in children.of(u) {
                repeated |= seen[*v as usize] == u;
                seen[*v as usize] = u;
            }
        }
        if repeated {
            seen.fill(u32::MAX);
            let mut fresh = |&(u, v): &(u32, u32)| std::mem::replace(&mut seen[v as usize], u) != u;
            let once: Vec<(u32, u32)> = children.arcs().filter(&mut fresh).collect();
            children = Adjacency::new(jobs, once.into_iter());
        }
        let dag = Self { parents: children.reversed(), children };
        if dag.topological_order().len() == jobs { Ok(dag) } else { Err(dag.find_cycle()) }
    }

    /// A part of a dag, which has no cycle either.
    pub(crate) fn from_children(children: Adjacency) -> Self {
        Self { parents: children.reversed(), children }
    }

    /// How many jobs there are.
    pub fn len(&self) -> usize {
        self.children.nodes()
    }

    /// Whether there is no job.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many arcs there are.
    pub fn arc_count(&self) -> usize {
        self.children.ends.len()
    }

    /// The place of the first arc from a job among all arcs.
    pub(crate) fn first_arc(&self, job: u32) -> usize {
        self.children.starts[job as usize] as usize
    }

    /// The jobs that wait for a job, in the order of the arcs.
    pub fn children(&self, job: u32) -> &[u32] {
        self.children.of(job)
    }

    /// The jobs a job waits for, by number.
    pub fn parents(&self, job: u32) -> &[u32] {
        self.parents.of(job)
    }

    /// All arcs, by the job they start at.
    pub fn arcs(&self) -> impl Iterator<Item = (u32, u32)> + Clone + '_ {
        self.children.arcs()
    }

    /// Jobs in the order in which they become ready and are executed one by one, first come, first served.
    /// Jobs on and behind a cycle are missing.
    pub fn topological_order(&self) -> Vec<u32> {
        let jobs = 0..self.len() as u32;
        let mut waits: Vec<u32> = jobs.clone().map(|v| self.parents(v).len() as u32).collect();
        let mut order: Vec<u32> = jobs.filter(|v| waits[*v as usize] == 0).collect();
        let mut at = 0;
        while at < order.len() {
            for v in self.children(order[at]) {
                waits[*v as usize] -= 1;
                if waits[*v as usize] == 0 {
                    order.push(*v);
                }
            }
            at += 1;
        }
        order
    }

    /// For each job the length of the longest path to it.
    pub fn levels(&self) -> Vec<u32> {
        let mut levels = vec![0; self.len()];
        for u in self.topological_order() {
            for v in self.children(u) {
                levels[*v as usize] = levels[*v as usize].max(levels[u as usize] + 1);
            }
        }
        levels
    }

    /// Walks back from a job that never becomes ready, over others like it, until one comes again.
    fn find_cycle(&self) -> Cycle {
        let mut stuck = vec![true; self.len()];
        for u in self.topological_order() {
            stuck[u as usize] = false;
        }
        let mut place = vec![usize::MAX; self.len()];
        let mut path: Vec<u32> = Vec::new();
        let mut next = stuck.iter().position(|s| *s).map(|u| u as u32);
        while let Some(u) = next {
            if place[u as usize] != usize::MAX {
                let mut cycle = path.split_off(place[u as usize]);
                cycle.reverse();
                return Cycle(cycle);
            }
            place[u as usize] = path.len();
            path.push(u);
            next = self.parents(u).iter().copied().find(|p| stuck[*p as usize]);
        }
        Cycle(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_is_named_in_its_order() {
        let Cycle(cycle) = Dag::new(5, &[(0, 1), (1, 2), (2, 3), (3, 1), (3, 4)]).unwrap_err();
        let mut rotated = cycle.clone();
        rotated.rotate_left(cycle.iter().position(|v| *v == 1).unwrap());
        assert_eq!(rotated, [1, 2, 3]);
        assert_eq!(Dag::new(1, &[(0, 0)]).unwrap_err(), Cycle(vec![0]));
    }

    #[test]
    fn repeated_arcs_count_once_and_keep_their_order() {
        let dag = Dag::new(3, &[(0, 2), (0, 1), (0, 2)]).unwrap();
        assert_eq!(dag.children(0), [2, 1]);
        assert_eq!(dag.arc_count(), 2);
        assert_eq!(dag.levels(), [0, 1, 1]);
    }
}
