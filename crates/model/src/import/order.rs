//! Who waits for whom, all in all.

use super::Trace;
use std::collections::HashMap;

/// Jobs that wait for each other: each for the one before, and the first for the last.
pub(super) struct Circle(pub(super) Vec<u32>);

/// The jobs in an order in which they can run.
pub(super) fn in_order(trace: &Trace) -> Result<Vec<u32>, Circle> {
    let count = trace.jobs.len();
    let mut missing = vec![0_u32; count];
    let mut starts = vec![0_usize; count + 1];
    for (from, to) in &trace.arcs {
        missing[*to as usize] += 1;
        starts[*from as usize + 1] += 1;
    }
    for job in 0..count {
        starts[job + 1] += starts[job];
    }
    let mut places = starts.clone();
    let mut children = vec![0; trace.arcs.len()];
    for (from, to) in &trace.arcs {
        let place = &mut places[*from as usize];
        children[*place] = *to;
        *place += 1;
    }
    let mut order: Vec<u32> = (0..count as u32).filter(|j| missing[*j as usize] == 0).collect();
    let mut next = 0;
    while let Some(job) = order.get(next).map(|j| *j as usize) {
        next += 1;
        for child in &children[starts[job]..starts[job + 1]] {
            missing[*child as usize] -= 1;
            if missing[*child as usize] == 0 {
                order.push(*child);
            }
        }
    }
    if order.len() == count { Ok(order) } else { Err(circle(trace, &missing)) }
}

/// Who waits in vain waits for another who does; going from one to the next ends in a circle.
fn circle(trace: &Trace, missing: &[u32]) -> Circle {
    let waits = |job: u32| missing[job as usize] > 0;
    let arcs = trace.arcs.iter().filter(|(from, to)| waits(*from) && waits(*to));
    let parents: HashMap<u32, u32> = arcs.map(|(from, to)| (*to, *from)).collect();
    let mut way = Vec::new();
    let mut steps = HashMap::new();
    let mut at = (0..missing.len() as u32).find(|j| waits(*j));
    while let Some(job) = at.filter(|j| !steps.contains_key(j)) {
        steps.insert(job, way.len());
        way.push(job);
        at = parents.get(&job).copied();
    }
    let start = at.map_or(0, |job| steps[&job]);
    Circle(way.split_off(start).into_iter().rev().collect())
}

impl Trace {
    /// How long the jobs take one after the other on the longest way through the workflow, in seconds: no number of nodes
    /// makes it faster. Nothing, if jobs wait for each other in a circle.
    pub fn critical_path(&self) -> f64 {
        let mut begin = vec![0.0_f64; self.jobs.len()];
        let mut end = vec![0.0_f64; self.jobs.len()];
        let order = in_order(self).unwrap_or_default();
        let mut places = vec![0; self.jobs.len()];
        for (place, job) in order.iter().enumerate() {
            places[*job as usize] = place;
        }
        let mut arcs = self.arcs.clone();
        arcs.sort_unstable_by_key(|(from, _)| places[*from as usize]);
        let mut arcs = arcs.into_iter().peekable();
        for job in order {
            end[job as usize] = begin[job as usize] + self.jobs[job as usize].runtime;
            while let Some((_, to)) = arcs.next_if(|(from, _)| *from == job) {
                begin[to as usize] = begin[to as usize].max(end[job as usize]);
            }
        }
        end.into_iter().fold(0.0, f64::max)
    }
}
