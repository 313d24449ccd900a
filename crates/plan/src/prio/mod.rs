//! Which job first? An order of the jobs of a dag that keeps many of them eligible.
//!
//! The heuristic of Malewicz, Foster, Rosenberg and Wilde, "A Tool for Prioritizing DAGMan Jobs and Its
//! Evaluation", section 3: remove shortcuts, take the dag apart into components, order each of
//! them, and execute the components greedily by how little is lost. Where the paper leaves a choice open, we
//! choose as its authors' tool does, and where its text and its tool differ, we follow the tool: the
//! component of a source has the children of *all* its non-sinks, without which an order can be invalid.

mod blocks;
mod decompose;
mod greedy;
mod landmarks;
mod priority;
mod reduce;
#[cfg(test)]
mod tests;

use crate::graph::Dag;

/// The order of the paper, first job first. Jobs that nothing waits for come last.
pub fn prio_order(dag: &Dag) -> Vec<u32> {
    let reduced = reduce::without_shortcuts(dag);
    let components = decompose::decompose(&reduced);
    let mut scheduler = blocks::Scheduler::new(&reduced);
    let (orders, profiles): (Vec<_>, Vec<_>) = components.iter().map(|c| scheduler.schedule(c)).unzip();
    let superorder = greedy::order(&components, profiles, dag.len());
    let mut order: Vec<u32> = superorder.iter().flat_map(|c| &orders[*c as usize]).copied().collect();
    order.extend((0..dag.len() as u32).filter(|job| dag.children(*job).is_empty()));
    order
}

/// First come, first served: jobs in the order in which they become ready.
pub fn fifo_order(dag: &Dag) -> Vec<u32> {
    dag.topological_order()
}

/// How many jobs are eligible before the first job and after each one, if they are executed in this order.
pub fn eligible(dag: &Dag, order: &[u32]) -> Vec<u32> {
    let mut waits: Vec<u32> = (0..dag.len() as u32).map(|v| dag.parents(v).len() as u32).collect();
    let mut eligible = waits.iter().filter(|w| **w == 0).count() as u32;
    let mut profile = Vec::with_capacity(order.len() + 1);
    profile.push(eligible);
    for job in order {
        eligible -= 1;
        for child in dag.children(*job) {
            waits[*child as usize] -= 1;
            eligible += u32::from(waits[*child as usize] == 0);
        }
        profile.push(eligible);
    }
    profile
}

/// How many more jobs are eligible than first come, first served, before the first job and after each one.
pub fn eligible_gain(dag: &Dag, order: &[u32]) -> Vec<i64> {
    let fifo = eligible(dag, &fifo_order(dag));
    eligible(dag, order).iter().zip(fifo).map(|(o, f)| i64::from(*o) - i64::from(f)).collect()
}

/// An order that is never behind either of the others in the mean number of eligible jobs: the better of them.
/// The paper's is behind where what a join sets free is large and far, which its priorities do not see.
pub fn auto_order(dag: &Dag) -> Vec<u32> {
    let sum = |order: &[u32]| eligible(dag, order).iter().map(|e| u64::from(*e)).sum::<u64>();
    let (prio, fifo) = (prio_order(dag), fifo_order(dag));
    if sum(&fifo) > sum(&prio) { fifo } else { prio }
}
