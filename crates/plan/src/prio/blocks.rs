//! Step 3: in which order the non-sinks of a component are executed.
//!
//! Rows (W), their duals (M), zigzags (N) and cycles have an order that keeps the most jobs eligible at every
//! step; so has a clique, for which the rule for everything else is as good: next comes the eligible job with
//! the most children. Of several equal orders we take the one the tool of the paper takes, which depends
//! on the local numbering.

use super::decompose::Component;
use crate::graph::{Adjacency, Dag};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A component with its jobs numbered from zero, non-sinks first.
struct Local {
    non_sinks: u32,
    children: Adjacency,
    parents: Adjacency,
}

/// Orders of the non-sinks of components, with what becomes eligible.
pub(super) struct Scheduler<'d> {
    dag: &'d Dag,
    /// The local number of a job in the component that is being looked at.
    number: Vec<u32>,
}

impl<'d> Scheduler<'d> {
    pub(super) fn new(dag: &'d Dag) -> Self {
        Self { dag, number: vec![0; dag.len()] }
    }

    /// The order of the non-sinks, and the number of eligible jobs before the first and after each of them.
    pub(super) fn schedule(&mut self, component: &Component) -> (Vec<u32>, Vec<u32>) {
        let jobs = component.non_sinks.iter().chain(&component.sinks);
        for (i, job) in jobs.enumerate() {
            self.number[*job as usize] = i as u32;
        }
        let arcs = component.non_sinks.iter().flat_map(|job| {
            self.dag.children(*job).iter().map(|c| (self.number[*job as usize], self.number[*c as usize]))
        });
        let nodes = component.non_sinks.len() + component.sinks.len();
        let children = Adjacency::new(nodes, arcs);
        let parents = children.reversed();
        let local = Local { non_sinks: component.non_sinks.len() as u32, children, parents };
        let block = if component.bipartite { local.block() } else { None };
        let order = block.unwrap_or_else(|| local.by_children());
        let profile = local.profile(&order);
        (order.into_iter().map(|i| component.non_sinks[i as usize]).collect(), profile)
    }
}

impl Local {
    fn nodes(&self) -> u32 {
        self.children.nodes() as u32
    }

    fn block(&self) -> Option<Vec<u32>> {
        self.row()
            .or_else(|| self.dual_row())
            .or_else(|| zigzag(&self.children, &self.parents))
            .or_else(|| self.cycle())
    }

    /// W: the sources along the row.
    fn row(&self) -> Option<Vec<u32>> {
        row(&self.children, &self.parents, 0)
    }

    /// M: all parents of the first sink, then the missing ones of the next, and so on.
    fn dual_row(&self) -> Option<Vec<u32>> {
        let sinks = row(&self.parents, &self.children, self.non_sinks)?;
        let mut listed = vec![false; self.non_sinks as usize];
        let parents = sinks.iter().flat_map(|sink| self.parents.of(*sink)).copied();
        Some(parents.filter(|p| !std::mem::replace(&mut listed[*p as usize], true)).collect())
    }

    /// A cycle is a zigzag and one arc more.
    fn cycle(&self) -> Option<Vec<u32>> {
        let last = *self.children.of(0).last()?;
        let arcs = self.children.arcs().filter(|arc| *arc != (0, last));
        let children = Adjacency::new(self.nodes() as usize, arcs);
        zigzag(&children, &children.reversed())
    }

    /// The eligible non-sink with the most children first.
    fn by_children(&self) -> Vec<u32> {
        let mut waits: Vec<u32> = (0..self.nodes()).map(|v| self.parents.of(v).len() as u32).collect();
        let entry = |job: u32| (self.children.of(job).len(), Reverse(job));
        let eligible = (0..self.non_sinks).filter(|v| waits[*v as usize] == 0).map(entry);
        let mut eligible: BinaryHeap<(usize, Reverse<u32>)> = eligible.collect();
        let mut order = Vec::with_capacity(self.non_sinks as usize);
        while let Some((_, Reverse(job))) = eligible.pop() {
            order.push(job);
            for child in self.children.of(job) {
                waits[*child as usize] -= 1;
                if waits[*child as usize] == 0 && *child < self.non_sinks {
                    eligible.push(entry(*child));
                }
            }
        }
        order
    }

    fn profile(&self, order: &[u32]) -> Vec<u32> {
        let mut waits: Vec<u32> = (0..self.nodes()).map(|v| self.parents.of(v).len() as u32).collect();
        let mut eligible = waits.iter().filter(|w| **w == 0).count() as u32;
        let mut profile = vec![eligible];
        for job in order {
            eligible -= 1;
            for child in self.children.of(*job) {
                waits[*child as usize] -= 1;
                eligible += u32::from(waits[*child as usize] == 0);
            }
            profile.push(eligible);
        }
        profile
    }
}

/// The tops of a component along a row in which neighbours share one bottom, if it is one and all tops have
/// the same number of bottoms.
fn row(down: &Adjacency, up: &Adjacency, first: u32) -> Option<Vec<u32>> {
    let mut seen = vec![false; down.nodes()];
    // Go to one end of the row. What is no row is found out on the way back.
    let mut top = first;
    loop {
        seen[top as usize] = true;
        let others = down.of(top).iter().flat_map(|bottom| up.of(*bottom));
        match others.rev().find(|t| !seen[**t as usize]) {
            Some(other) => top = *other,
            None => break,
        }
    }
    seen.fill(false);
    let mut tops = Vec::new();
    let mut private = Vec::new();
    let mut bottoms = 0;
    loop {
        seen[top as usize] = true;
        tops.push(top);
        let mut next = None;
        let mut own = 0;
        for bottom in down.of(top) {
            bottoms += usize::from(!std::mem::replace(&mut seen[*bottom as usize], true));
            match up.of(*bottom) {
                [_] => own += 1,
                [a, b] => {
                    let other = if *a == top { *b } else { *a };
                    if !seen[other as usize] && next.replace(other).is_some() {
                        return None;
                    }
                }
                _ => return None,
            }
        }
        private.push(own);
        let shared = down.of(top).len() - own;
        // One bottom is shared with the neighbour behind and one with the neighbour ahead.
        if shared != usize::from(tops.len() > 1) + usize::from(next.is_some()) {
            return None;
        }
        match next {
            Some(other) => top = other,
            None => break,
        }
    }
    let ends = private[0];
    let (last, inner) = (private[private.len() - 1], private.get(1..private.len() - 1).unwrap_or_default());
    let is_regular = last == ends && inner.iter().all(|own| own + 1 == ends);
    (tops.len() + bottoms == down.nodes() && is_regular).then_some(tops)
}

/// N: the sources from the one with a sink of its own to the one with only one child, each of which has a sink
/// in common with the next.
fn zigzag(children: &Adjacency, parents: &Adjacency) -> Option<Vec<u32>> {
    let nodes = children.nodes();
    if !nodes.is_multiple_of(2) || nodes < 4 {
        return None;
    }
    let is_end = |v: &u32| parents.of(*v).is_empty() && children.of(*v).len() == 1;
    let mut source = (0..nodes as u32).find(is_end)?;
    let mut sink = children.of(source)[0];
    let mut seen = vec![false; nodes];
    seen[source as usize] = true;
    seen[sink as usize] = true;
    let mut order = vec![source];
    loop {
        let unseen = |list: &[u32], seen: &[bool]| list.iter().copied().find(|v| !seen[*v as usize]);
        match parents.of(sink) {
            [_] => break,
            both @ [_, _] => source = unseen(both, &seen)?,
            _ => return None,
        }
        seen[source as usize] = true;
        order.push(source);
        let [_, _] = children.of(source) else { return None };
        sink = unseen(children.of(source), &seen)?;
        seen[sink as usize] = true;
    }
    order.reverse();
    (2 * order.len() == nodes).then_some(order)
}
